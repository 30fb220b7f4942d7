//! Writes the engine's files anew: only what is stored now, nothing of what once was.
//!
//! The new generation is built beside the old one while writes wait and reads go on, compared
//! with it record by record, and counts from the moment on that STATE names it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::audit::Draft;
use crate::backend::{Backend, Batch, SledBackend};
use crate::record::RecordKey;

use super::core::{Core, digest};
use super::directory::{generation_name, make_directory};
use super::growth::ROOM_BYTES_MIN;
use super::open::{scan_all, sum_listed};
use super::{Store, StoreError};

/// Bytes of records in one batch of the copy, about.
const BATCH_BYTES: usize = 1_024 * 1_024;

/// Records in one batch of the copy.
const BATCH_RECORDS: usize = 512;

/// What the engine's files take at most, in times the records' bytes, when they are new.
pub(super) const NEW_SIZE_MAX: u64 = 3;

/// What writing the engine's files anew came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// The files' size before, in bytes.
    pub before: u64,
    /// The files' size after, in bytes.
    pub after: u64,
    /// Records.
    pub records: u64,
}

impl Store {
    /// Writes the engine's files anew.
    pub(crate) fn compact(&self, progress: impl FnMut(u64, u64)) -> Result<Compacted, StoreError> {
        self.core.compact(progress)
    }
}

/// How many records there are, their bytes, and a hash over all of them in order.
#[derive(PartialEq, Eq)]
struct Sum {
    records: u64,
    bytes: u64,
    hash: [u8; 32],
}

impl Sum {
    fn of(backend: &dyn Backend) -> Result<Self, StoreError> {
        let mut hash = Sha256::new();
        let (mut records, mut bytes) = (0, 0);
        scan_all(backend, &[], |key, value| {
            for part in [key, value] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
                bytes += part.len() as u64;
            }
            records += 1;
            Ok(())
        })?;
        Ok(Self {
            records,
            bytes,
            hash: hash.finalize().into(),
        })
    }
}

impl Core {
    /// Whether there are files that could be written anew.
    pub(super) fn can_compact(&self) -> bool {
        self.place.is_some()
    }

    pub(super) fn compact(
        &self,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Compacted, StoreError> {
        let place = self
            .place
            .clone()
            .ok_or(StoreError::Limit("the store does not lie in a directory"))?;
        let _one_at_a_time = self.lock_compacting();
        let erasures = self.deleted_erasures();
        let before = self.backend.stats()?.disk_bytes;
        let records = {
            // Writes wait from here on.
            let top = self.lock_top();
            self.check_writable()?;
            let sum = Sum::of(&*self.backend)?;
            let room = self.backend.room_bytes();
            if room.is_some_and(|room| room < ROOM_BYTES_MIN + NEW_SIZE_MAX * sum.bytes) {
                return Err(StoreError::NoSpace);
            }
            let generation = self.generation() + 1;
            let directory = place.join(generation_name(generation));
            let new = match self.build_generation(&directory, &sum, &mut progress) {
                Ok(new) => new,
                Err(error) => {
                    // Nothing counts on it; and it takes room.
                    let _removed = fs::remove_dir_all(&directory);
                    return Err(error);
                }
            };
            let stored = new.get(&RecordKey::Root.to_bytes())?;
            let listed = sum_listed(&*new, &self.crypto.inventory, |_, _| {})?;
            if Sum::of(&*new)? != sum
                || stored.as_ref() != Some(&top.sealed)
                || listed != (top.root.records, top.root.set_hash)
            {
                let _closed = new.close();
                let _removed = fs::remove_dir_all(&directory);
                return Err(self.failed(StoreError::Damaged("the engine's data")));
            }
            self.name_generation(generation, top.root.seq, digest(&top.sealed))?;
            if let Some(old) = self.backend.switch_to(new) {
                let _closed = old.close();
            }
            sum.records
        };
        remove_other_generations(&place, self.generation()).map_err(|e| StoreError::io(&e))?;
        let after = self.backend.stats()?.disk_bytes;
        self.growth.reset(after);
        let draft = Draft::new("compact").detail(format!("{before} to {after} bytes"));
        let seq = self.commit_noted(vec![draft])?;
        self.wait_durable(seq)?;
        self.purged(&erasures)?;
        Ok(Compacted {
            before,
            after,
            records,
        })
    }

    /// Lets STATE name another directory of the engine, in which all up to this commit is
    /// durable.
    fn name_generation(
        &self,
        generation: u32,
        seq: u64,
        root_digest: [u8; 32],
    ) -> Result<(), StoreError> {
        self.write_state(|state| {
            state.generation = generation;
            state.seq = seq;
            state.root_digest = root_digest;
            state.clean = false;
        })
        .inspect_err(|_| self.fail())?;
        self.durability.reached(seq);
        Ok(())
    }

    /// Copies all records to a new generation. Durable when it returns.
    fn build_generation(
        &self,
        directory: &Path,
        sum: &Sum,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Arc<dyn Backend>, StoreError> {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::io(&error));
            }
            _ => make_directory(directory)?,
        }
        let new = SledBackend::open(directory)?;
        let mut batch = Batch::default();
        let (mut bytes, mut done, mut applied) = (0, 0, 0);
        scan_all(&*self.backend, &[], |key, value| {
            bytes += key.len() + value.len();
            batch.puts.push((key.to_vec(), value.to_vec()));
            if bytes >= BATCH_BYTES || batch.puts.len() >= BATCH_RECORDS {
                done += batch.puts.len() as u64;
                applied = new.apply(std::mem::take(&mut batch))?;
                bytes = 0;
                progress(done, sum.records);
            }
            Ok(())
        })?;
        if !batch.puts.is_empty() {
            applied = new.apply(batch)?;
        }
        progress(sum.records, sum.records);
        new.wait_durable(applied)?;
        for path in [Some(directory), directory.parent()].into_iter().flatten() {
            File::open(path)
                .and_then(|opened| opened.sync_all())
                .map_err(|error| StoreError::io(&error))?;
        }
        Ok(Arc::new(new))
    }
}

/// Removes all of the engine's directories but the one that STATE names.
pub(super) fn remove_other_generations(store: &Path, generation: u32) -> io::Result<()> {
    let live = generation_name(generation);
    let mut others: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(store)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("gen-") && !name.starts_with(&live) {
            others.push(entry.path());
        }
    }
    for other in &others {
        fs::remove_dir_all(other)?;
    }
    if others.is_empty() {
        return Ok(());
    }
    File::open(store)?.sync_all()
}
