//! The sled engine behind the [`Backend`] trait, with each of its hazards answered.
//!
//! sled 0.34.7 acknowledges before data is durable, its `flush` is no fsync on Linux,
//! and damaged files can make it panic. So a batch counts as durable only after
//! `flush` and an fdatasync of our own on its file, and every call runs under
//! `catch_unwind`; a panic poisons the handle.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::sled_files::read_through;
use super::{Backend, BackendError, BackendStats, Batch, Pair, set_private_mode};

/// The engine's page cache in bytes. It bounds no resident memory; that is measured.
const CACHE_BYTES: u64 = 32 * 1_024 * 1_024;

/// How long another holder of sled's lock is waited for: such holders are about to end.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long between two looks at it.
const LOCK_WAIT_STEP: Duration = Duration::from_millis(1);

/// A sled database in one generation directory.
pub struct SledBackend {
    directory: PathBuf,
    db: RwLock<Option<sled::Db>>,
    file: File,
    apply: Mutex<()>,
    applied: AtomicU64,
    durable: Mutex<u64>,
    syncs: AtomicU64,
    poisoned: AtomicBool,
    process: u32,
}

impl SledBackend {
    /// Opens the database in `directory`, or creates it where the directory is empty.
    ///
    /// # Errors
    /// [`BackendError::Corrupt`] when the engine cannot make sense of its files or
    /// panics over them, [`BackendError::Io`] or [`BackendError::NoSpace`] otherwise.
    pub fn open(directory: &Path) -> Result<Self, BackendError> {
        wait_for_lock(&directory.join("db"))?;
        read_through(&directory.join("db")).map_err(|error| BackendError::from_io(&error))?;
        let config = sled::Config::new()
            .path(directory)
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(None);
        let db = catch_unwind(AssertUnwindSafe(|| config.open()))
            .map_err(|_panic| BackendError::Corrupt)?
            .map_err(|error| from_sled(&error))?;
        let file = File::options()
            .read(true)
            .write(true)
            .open(directory.join("db"))
            .map_err(|error| BackendError::from_io(&error))?;
        // A killed process may have left writes that only the page cache has. Answers from
        // them are given from now on, so they must be durable.
        file.sync_data()
            .map_err(|error| BackendError::from_io(&error))?;
        make_private_and_durable(directory).map_err(|error| BackendError::from_io(&error))?;
        Ok(Self {
            directory: directory.to_path_buf(),
            db: RwLock::new(Some(db)),
            file,
            apply: Mutex::new(()),
            applied: AtomicU64::new(0),
            durable: Mutex::new(0),
            syncs: AtomicU64::new(0),
            poisoned: AtomicBool::new(false),
            process: std::process::id(),
        })
    }

    /// Runs one engine call; a panic in it is reported as damage and ends the handle's use.
    fn guarded<T>(
        &self,
        call: impl FnOnce(&sled::Db) -> sled::Result<T>,
    ) -> Result<T, BackendError> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(BackendError::Poisoned);
        }
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
        let db = db.as_ref().ok_or(BackendError::Poisoned)?;
        match catch_unwind(AssertUnwindSafe(|| call(db))) {
            Ok(result) => result.map_err(|error| from_sled(&error)),
            Err(_panic) => {
                self.poisoned.store(true, Ordering::Release);
                Err(BackendError::Corrupt)
            }
        }
    }
}

impl Backend for SledBackend {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.guarded(|db| Ok(db.get(key)?.map(|value| value.to_vec())))
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Pair>, BackendError> {
        use std::ops::Bound;
        let from = match after {
            Some(after) => Bound::Excluded(after.to_vec()),
            None => Bound::Included(prefix.to_vec()),
        };
        self.guarded(|db| {
            let mut pairs = Vec::new();
            for pair in db.range((from, Bound::Unbounded)).take(limit) {
                let (key, value) = pair?;
                if !key.starts_with(prefix) {
                    break;
                }
                pairs.push((key.to_vec(), value.to_vec()));
            }
            Ok(pairs)
        })
    }

    fn apply(&self, batch: Batch) -> Result<u64, BackendError> {
        batch.check()?;
        // Invariant: `expect` and the batch are one step, because every batch takes this lock.
        let _one_at_a_time = self.apply.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, expected) in &batch.expect {
            if self.get(key)? != *expected {
                return Err(BackendError::Conflict);
            }
        }
        let mut changes = sled::Batch::default();
        for key in batch.deletes {
            changes.remove(key);
        }
        for (key, value) in batch.puts {
            changes.insert(key, value);
        }
        self.guarded(|db| db.apply_batch(changes))?;
        Ok(self.applied.fetch_add(1, Ordering::AcqRel) + 1)
    }

    fn wait_durable(&self, applied: u64) -> Result<(), BackendError> {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        if *durable >= applied {
            return Ok(());
        }
        let reached = self.applied.load(Ordering::Acquire);
        self.guarded(|db| db.flush())?;
        self.file
            .sync_data()
            .map_err(|error| BackendError::from_io(&error))?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        *durable = reached;
        Ok(())
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        let mut disk_bytes = 0;
        let entries =
            std::fs::read_dir(&self.directory).map_err(|error| BackendError::from_io(&error))?;
        for entry in entries.flatten() {
            disk_bytes += entry
                .metadata()
                .map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 });
        }
        Ok(BackendStats {
            disk_bytes,
            syncs: self.syncs.load(Ordering::Relaxed),
            batches: self.applied.load(Ordering::Relaxed),
        })
    }

    fn room_bytes(&self) -> Option<u64> {
        let room = rustix::fs::fstatvfs(&self.file).ok()?;
        Some(room.f_bavail.saturating_mul(room.f_frsize))
    }

    fn close(&self) -> Result<(), BackendError> {
        let applied = self.applied.load(Ordering::Acquire);
        let synced = self.wait_durable(applied);
        let db = self
            .db
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // sled flushes once more in its destructor; damage can make that panic too.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(db)));
        synced?;
        dropped.map_err(|_panic| BackendError::Corrupt)?;
        self.file
            .sync_data()
            .map_err(|error| BackendError::from_io(&error))
    }
}

impl Drop for SledBackend {
    fn drop(&mut self) {
        let db = self
            .db
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if self.process == std::process::id() {
            let _flushed = catch_unwind(AssertUnwindSafe(|| drop(db)));
        } else {
            // In a child made by `fork`, sled's flush on drop would write the parent's files.
            std::mem::forget(db);
        }
    }
}

/// Waits until nobody holds sled's lock on its file. The store's own lock lets only one
/// process come here, but sled's is held until the last thread of a closed handle ends, and
/// by a child of this process from `fork` to `exec`.
fn wait_for_lock(db: &Path) -> Result<(), BackendError> {
    let Ok(file) = File::options().read(true).write(true).open(db) else {
        return Ok(()); // A new directory; any other error sled will meet as well.
    };
    let end = Instant::now() + LOCK_WAIT_MAX;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                std::thread::sleep(LOCK_WAIT_STEP);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(BackendError::Io(ErrorKind::WouldBlock));
            }
            Err(TryLockError::Error(error)) => return Err(BackendError::from_io(&error)),
            Ok(()) => return file.unlock().map_err(|error| BackendError::from_io(&error)),
        }
    }
}

fn from_sled(error: &sled::Error) -> BackendError {
    match error {
        sled::Error::Io(error) => BackendError::from_io(error),
        _ => BackendError::Corrupt,
    }
}

/// sled creates its files under the process's umask, all of them while it opens.
fn make_private_and_durable(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        set_private_mode(&path)?;
    }
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_just_being_closed_opens_again() {
        let home = tempfile::tempdir().unwrap();
        let first = SledBackend::open(home.path()).unwrap();
        let batch = Batch {
            puts: vec![(vec![1], vec![2])],
            ..Batch::default()
        };
        first.apply(batch).unwrap();
        let closing = std::thread::spawn(move || first.close().unwrap());
        let second = SledBackend::open(home.path()).unwrap();
        closing.join().unwrap();
        assert_eq!(second.get(&[1]).unwrap(), Some(vec![2]));
    }
}
