//! A backend in whose place another one with the same records can be put while it is in use.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::{Backend, BackendError, BackendStats, Batch, Pair};

/// Passes everything on to the backend in force.
pub struct SwitchBackend {
    inner: RwLock<Arc<dyn Backend>>,
}

impl SwitchBackend {
    /// Passes everything on to `inner`, until another one is put in its place.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self {
            inner: RwLock::new(inner),
        }
    }

    /// Held during each operation, so that none is under way when the backend is switched.
    fn inner(&self) -> RwLockReadGuard<'_, Arc<dyn Backend>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for SwitchBackend {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.inner().get(key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Pair>, BackendError> {
        self.inner().scan(prefix, after, limit)
    }

    fn apply(&self, batch: Batch) -> Result<u64, BackendError> {
        self.inner().apply(batch)
    }

    fn wait_durable(&self, applied: u64) -> Result<(), BackendError> {
        self.inner().wait_durable(applied)
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        self.inner().stats()
    }

    fn room_bytes(&self) -> Option<u64> {
        self.inner().room_bytes()
    }

    fn switch_to(&self, next: Arc<dyn Backend>) -> Option<Arc<dyn Backend>> {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        Some(std::mem::replace(&mut *inner, next))
    }

    fn close(&self) -> Result<(), BackendError> {
        self.inner().close()
    }
}
