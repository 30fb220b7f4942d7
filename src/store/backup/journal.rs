//! The keys of records that commits change while a backup is being made.
//!
//! Every stored byte passes `Core::commit`, which notes its keys here under the root's lock,
//! after the batch was applied. So a record that is not noted has not changed since the
//! journal began, and one that is noted is copied again.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backend::Batch;

use super::BackupError;

/// The most keys that are kept, about 100 MB of them.
const KEYS_MAX: usize = 1_000_000;

/// Nothing while no backup is being made.
#[derive(Default)]
pub(in crate::store) struct Journal(Mutex<Option<Changed>>);

#[derive(Default)]
struct Changed {
    keys: BTreeSet<Vec<u8>>,
    is_too_much: bool,
}

impl Journal {
    /// The keys that a batch changes, if anybody wants to know. Under the root's lock.
    pub(in crate::store) fn keys_of(&self, batch: &Batch) -> Vec<Vec<u8>> {
        if self.lock().is_none() {
            return Vec::new();
        }
        let puts = batch.puts.iter().map(|(key, _)| key);
        puts.chain(&batch.deletes).cloned().collect()
    }

    /// Notes the keys of a batch that was applied. Under the root's lock.
    pub(in crate::store) fn note(&self, keys: Vec<Vec<u8>>) {
        if let Some(changed) = &mut *self.lock() {
            changed.keys.extend(keys);
            if changed.keys.len() > KEYS_MAX {
                changed.is_too_much = true;
                changed.keys.clear();
            }
        }
    }

    /// Begins to note. The caller holds the root's lock, so that no commit is half noted.
    pub(super) fn follow(&self) -> Result<Following<'_>, BackupError> {
        let mut changed = self.lock();
        if changed.is_some() {
            return Err(BackupError::Busy);
        }
        *changed = Some(Changed::default());
        Ok(Following(self))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Changed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Commits are noted for as long as this lives.
pub(super) struct Following<'a>(&'a Journal);

impl Following<'_> {
    /// What was changed since this was last asked.
    pub(super) fn take(&self) -> Result<BTreeSet<Vec<u8>>, BackupError> {
        let mut changed = self.0.lock();
        let changed = changed.as_mut().ok_or(BackupError::Busy)?;
        if changed.is_too_much {
            return Err(BackupError::TooManyChanges);
        }
        Ok(std::mem::take(&mut changed.keys))
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}
