//! A backend in memory, for tests and for stores that nobody needs to keep.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock};

use super::{Backend, BackendError, BackendStats, Batch, Pair};

/// Sealed records in a sorted map. Durable the moment they are applied, gone with the process.
#[derive(Default)]
pub struct MemoryBackend {
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    records: BTreeMap<Vec<u8>, Vec<u8>>,
    stats: BackendStats,
}

impl MemoryBackend {
    /// An empty backend.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A backend that holds these records.
    #[must_use]
    pub fn with_records(records: BTreeMap<Vec<u8>, Vec<u8>>) -> Self {
        Self {
            inner: RwLock::new(Inner {
                records,
                stats: BackendStats::default(),
            }),
        }
    }

    /// A copy of all records, for tests that put damage in.
    #[must_use]
    pub fn records(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        self.inner
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .records
            .clone()
    }

    /// Replaces (or with `None` removes) one record behind the store's back, for tests.
    pub fn tamper(&self, key: &[u8], value: Option<Vec<u8>>) {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        match value {
            Some(value) => inner.records.insert(key.to_vec(), value),
            None => inner.records.remove(key),
        };
    }
}

impl Backend for MemoryBackend {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        Ok(inner.records.get(key).cloned())
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Pair>, BackendError> {
        let from = match after {
            Some(after) => Bound::Excluded(after.to_vec()),
            None => Bound::Included(prefix.to_vec()),
        };
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        Ok(inner
            .records
            .range((from, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .take(limit)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect())
    }

    fn apply(&self, batch: Batch) -> Result<u64, BackendError> {
        batch.check()?;
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if batch
            .expect
            .iter()
            .any(|(key, value)| inner.records.get(key) != value.as_ref())
        {
            return Err(BackendError::Conflict);
        }
        for key in batch.deletes {
            inner.records.remove(&key);
        }
        inner.records.extend(batch.puts);
        inner.stats.batches += 1;
        Ok(inner.stats.batches)
    }

    fn wait_durable(&self, _applied: u64) -> Result<(), BackendError> {
        self.inner
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .stats
            .syncs += 1;
        Ok(())
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        Ok(self
            .inner
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .stats)
    }

    fn close(&self) -> Result<(), BackendError> {
        Ok(())
    }
}
