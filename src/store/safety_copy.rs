//! A copy of the engine's files from before the engine opens them: opening damaged files rewrites them.
//!
//! Beside the live directory `gen-N` there may lie, one step of one open away from it:
//! `.keep` (a whole copy, older than any rewriting), `.unfinished` (a copy in the making or
//! on its way out), `.bad` (a live directory that was replaced). A kill between any two
//! steps leaves either the live directory or a whole `.keep`, and the next open goes on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::backend::copy_generation;

use super::StoreError;
use super::directory::sync_directory;

/// A generation up to this size is copied before the engine opens it after a crash.
const COPY_BYTES_MAX: u64 = 256 * 1_024 * 1_024;

/// The copy, if one was made.
pub(super) struct SafetyCopy {
    live: PathBuf,
    copy: Option<PathBuf>,
}

impl SafetyCopy {
    /// Finishes what an interrupted open left, then copies the live directory where that is
    /// needed and it is not too large. A disk without room for it is no reason not to open.
    pub(super) fn make(live: &Path, is_needed: bool, keep_large: bool) -> Result<Self, StoreError> {
        let keep = live.with_extension("keep");
        let unfinished = live.with_extension("unfinished");
        let step = || -> io::Result<bool> {
            if keep.exists() && !has_data(live) {
                replace(live, &keep)?;
            }
            remove_if_there(&unfinished)?;
            remove_if_there(&live.with_extension("bad"))?;
            Ok(keep.exists())
        };
        let is_there = step().map_err(|error| StoreError::io(&error))?;
        let is_wanted = is_needed && (keep_large || bytes_in(live) <= COPY_BYTES_MAX);
        let has_room = || room_bytes(live).is_none_or(|room| room > 2 * bytes_in(live));
        let is_made = is_there || (is_wanted && has_room());
        if !is_made {
            return Ok(Self {
                live: live.to_path_buf(),
                copy: None,
            });
        }
        if !is_there {
            copy_generation(live, &unfinished)
                .and_then(|()| fs::rename(&unfinished, &keep))
                .map_err(|error| StoreError::io(&error))?;
            sync_directory(parent(live))?;
        }
        Ok(Self {
            live: live.to_path_buf(),
            copy: Some(keep),
        })
    }

    /// Makes the live files what they were; the copy stays.
    pub(super) fn restore(&self) -> Result<(), StoreError> {
        let Some(keep) = &self.copy else {
            return Ok(());
        };
        let unfinished = self.live.with_extension("unfinished");
        remove_if_there(&unfinished)
            .and_then(|()| copy_generation(keep, &unfinished))
            .and_then(|()| replace(&self.live, &unfinished))
            .map_err(|error| StoreError::io(&error))
    }

    /// Makes the live files what they were, with the copy itself.
    pub(super) fn put_back(&self) -> Result<(), StoreError> {
        let Some(keep) = &self.copy else {
            return Ok(());
        };
        replace(&self.live, keep).map_err(|error| StoreError::io(&error))
    }

    /// Removes the copy. Durable before the first commit, so that a copy is never older
    /// than something acknowledged.
    pub(super) fn discard(&self) -> Result<(), StoreError> {
        let Some(keep) = &self.copy else {
            return Ok(());
        };
        let unfinished = self.live.with_extension("unfinished");
        remove_if_there(&unfinished)
            .and_then(|()| fs::rename(keep, &unfinished))
            .map_err(|error| StoreError::io(&error))?;
        sync_directory(parent(&self.live))?;
        remove_if_there(&unfinished).map_err(|error| StoreError::io(&error))
    }
}

/// Whether the engine has anything in this directory.
pub(super) fn has_data(live: &Path) -> bool {
    fs::metadata(live.join("db")).is_ok_and(|data| data.len() > 0)
}

/// Puts `with` in the place of the live directory.
fn replace(live: &Path, with: &Path) -> io::Result<()> {
    let bad = live.with_extension("bad");
    remove_if_there(&bad)?;
    match fs::rename(live, &bad) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(with, live)?;
    fs::File::open(parent(live))?.sync_all()?;
    remove_if_there(&bad)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn bytes_in(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| entry.metadata().map_or(0, |data| data.len()))
        .sum()
}

pub(super) fn room_bytes(path: &Path) -> Option<u64> {
    let room = rustix::fs::statvfs(path).ok()?;
    Some(room.f_bavail.saturating_mul(room.f_frsize))
}
