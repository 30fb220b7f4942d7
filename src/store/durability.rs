//! Group commit: one caller syncs for all that wait, then all are answered.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::StoreError;

/// The newest commit that was applied.
#[derive(Clone, Copy)]
pub(super) struct Applied {
    /// The root record's commit number.
    pub(super) seq: u64,
    /// The backend's number for the batch.
    pub(super) batch: u64,
    /// SHA-256 of the sealed root record.
    pub(super) root_digest: [u8; 32],
}

/// Which commits are applied, which are durable, and who waits.
pub(super) struct Durability {
    progress: Mutex<Progress>,
    changed: Condvar,
}

struct Progress {
    applied: Applied,
    durable: u64,
    syncing: bool,
    failed: bool,
}

impl Durability {
    /// All up to commit `durable` is durable, and STATE names it.
    pub(super) fn new(applied: Applied, durable: u64) -> Self {
        let progress = Progress {
            applied,
            durable,
            syncing: false,
            failed: false,
        };
        Self {
            progress: Mutex::new(progress),
            changed: Condvar::new(),
        }
    }

    /// Notes a commit that the backend has applied. Commits come in order.
    pub(super) fn applied(&self, applied: Applied) {
        self.lock().applied = applied;
    }

    /// Notes that all up to commit `seq` is durable, elsewhere than the backend's numbers say.
    pub(super) fn reached(&self, seq: u64) {
        let mut progress = self.lock();
        progress.durable = progress.durable.max(seq);
        progress.applied.batch = 0;
        drop(progress);
        self.changed.notify_all();
    }

    /// The newest commit that was applied.
    pub(super) fn applied_seq(&self) -> u64 {
        self.lock().applied.seq
    }

    /// From here on nothing is acknowledged any more.
    pub(super) fn fail(&self) {
        self.lock().failed = true;
        self.changed.notify_all();
    }

    pub(super) fn is_failed(&self) -> bool {
        self.lock().failed
    }

    /// Returns once commit `seq` is durable. Whoever finds nobody syncing syncs, with
    /// `sync`, all that is applied by then; the others wait for it.
    ///
    /// # Errors
    /// [`StoreError::OutcomeUnknown`] for all waiting callers when the sync fails.
    pub(super) fn wait(
        &self,
        seq: u64,
        sync: impl Fn(Applied) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut progress = self.lock();
        loop {
            if progress.durable >= seq {
                return Ok(());
            }
            if progress.failed {
                return Err(StoreError::OutcomeUnknown);
            }
            if progress.syncing {
                progress = self
                    .changed
                    .wait(progress)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            progress.syncing = true;
            let applied = progress.applied;
            drop(progress);
            let synced = sync(applied);
            progress = self.lock();
            progress.syncing = false;
            match synced {
                Ok(()) => progress.durable = progress.durable.max(applied.seq),
                Err(_) => progress.failed = true,
            }
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
