//! Room on the disk: what a write must find, and when the engine's files have grown enough to be
//! written anew without being asked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::backend::Batch;
use crate::record::RecordKey;

use super::StoreError;
use super::core::{Core, TopChange};

/// Room that must be left on the disk before a write starts, beyond the write itself:
/// the engine writes whole segments and cannot stand a full disk.
pub(super) const ROOM_BYTES_MIN: u64 = 8 * 1_024 * 1_024;

/// As [`ROOM_BYTES_MIN`], for a batch that only removes: on a full disk something must be able to go.
const REMOVAL_ROOM_BYTES_MIN: u64 = 4 * 1_024 * 1_024;

/// After so many bytes written, the files' size is looked at.
const LOOK_BYTES: u64 = 16 * 1_024 * 1_024;

/// Files below this size are left as they are.
const GROWN_BYTES_MIN: u64 = 64 * 1_024 * 1_024;

/// So many times the live bytes the files must be, at least.
const GROWN_LIVE: u64 = 6;

/// So many times their size after the last time they must be, at least.
const GROWN_SINCE: u64 = 2;

/// What was written since the store was opened, and what came of looking at it.
#[derive(Default)]
pub(super) struct Growth {
    written: AtomicU64,
    is_to_look: AtomicBool,
    /// The files' size after they were last written anew; 0: not since the store was opened.
    after_last: AtomicU64,
    /// From this size on the live bytes are counted again: that reads every record.
    count_from: AtomicU64,
}

impl Growth {
    /// Whether somebody is to look at the files' size. Says so once.
    pub(super) fn take_look(&self) -> bool {
        self.is_to_look.swap(false, Ordering::AcqRel)
    }

    /// Notes that the files were written anew.
    pub(super) fn reset(&self, disk_bytes: u64) {
        self.after_last.store(disk_bytes, Ordering::Release);
        self.count_from.store(0, Ordering::Release);
    }
}

/// Whether a batch removes something, or is a step of a job that does, and stores no content: what
/// else it puts are the sums above.
fn is_removal(batch: &Batch, changes: &[TopChange]) -> bool {
    let is_content = |key: &[u8]| matches!(RecordKey::from_bytes(key), Some(RecordKey::Chunk(..)));
    let removes = |change: &TopChange| {
        let goes_on = change.old.is_some() && matches!(change.key, RecordKey::Job(_));
        goes_on || change.new.is_none()
    };
    let is_one = !batch.deletes.is_empty() || changes.iter().any(removes);
    is_one && !batch.puts.iter().any(|(key, _)| is_content(key))
}

fn bytes_of(batch: &Batch) -> u64 {
    batch.puts.iter().map(|(_, value)| value.len() as u64).sum()
}

impl Core {
    /// Refuses a batch, with the changes that go with it, for which the disk may not have the room.
    pub(super) fn check_room(
        &self,
        batch: &Batch,
        changes: &[TopChange],
    ) -> Result<(), StoreError> {
        let floor = match is_removal(batch, changes) {
            true => REMOVAL_ROOM_BYTES_MIN,
            false => ROOM_BYTES_MIN,
        };
        match self.backend.room_bytes() {
            Some(room) if room < floor + 4 * bytes_of(batch) => Err(StoreError::NoSpace),
            _ => Ok(()),
        }
    }

    /// Counts what a batch writes, and wakes the reaper now and then to look at the size.
    pub(super) fn count_written(&self, batch: &Batch) {
        let bytes = bytes_of(batch);
        let before = self.growth.written.fetch_add(bytes, Ordering::AcqRel);
        if self.can_compact() && before / LOOK_BYTES != (before + bytes) / LOOK_BYTES {
            self.growth.is_to_look.store(true, Ordering::Release);
            // Without the list's lock, which others hold while they commit. If the reaper
            // misses this, it looks the next time.
            self.jobs.changed.notify_all();
        }
    }

    /// Writes the engine's files anew if their size is at least 64 MiB, six times the live
    /// bytes, and twice what it was after the last time.
    pub(super) fn compact_if_grown(&self) -> Result<(), StoreError> {
        let disk = self.backend.stats()?.disk_bytes;
        let after_last = self.growth.after_last.load(Ordering::Acquire);
        let count_from = self.growth.count_from.load(Ordering::Acquire);
        if disk
            < GROWN_BYTES_MIN
                .max(GROWN_SINCE * after_last)
                .max(count_from)
        {
            return Ok(());
        }
        if disk < self.live_bytes()?.saturating_mul(GROWN_LIVE) {
            let next = disk + disk / 4;
            self.growth.count_from.store(next, Ordering::Release);
            return Ok(());
        }
        self.compact(|_, _| ()).map(drop)
    }
}
