//! Backends that fail on purpose: at a chosen operation, or as a power cut would.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Backend, BackendError, BackendStats, Batch, MemoryBackend, Pair};

/// How a [`FaultBackend`] fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails and leaves nothing behind.
    Before,
    /// The operation is carried out, then reported as failed.
    After,
    /// As `Before`, with a full disk as the reason.
    NoSpace,
}

/// Passes everything on, until the operation whose number has come fails; later ones work again.
pub struct FaultBackend {
    inner: Arc<dyn Backend>,
    operations: AtomicU64,
    fail_at: AtomicU64,
    fault: Fault,
}

impl FaultBackend {
    /// Wraps `inner`; nothing fails until [`FaultBackend::fail_at`] is called.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, fault: Fault) -> Self {
        Self {
            inner,
            operations: AtomicU64::new(0),
            fail_at: AtomicU64::new(u64::MAX),
            fault,
        }
    }

    /// Lets the operation with this number fail, counted from 0 at creation.
    pub fn fail_at(&self, operation: u64) {
        self.fail_at.store(operation, Ordering::SeqCst);
    }

    /// How many operations were asked for.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::SeqCst)
    }

    fn run<T>(&self, call: impl FnOnce() -> Result<T, BackendError>) -> Result<T, BackendError> {
        let number = self.operations.fetch_add(1, Ordering::SeqCst);
        if number != self.fail_at.load(Ordering::SeqCst) {
            return call();
        }
        match self.fault {
            Fault::Before => Err(BackendError::Io(ErrorKind::Other)),
            Fault::NoSpace => Err(BackendError::NoSpace),
            Fault::After => call().and(Err(BackendError::Io(ErrorKind::Other))),
        }
    }
}

impl Backend for FaultBackend {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.run(|| self.inner.get(key))
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Pair>, BackendError> {
        self.run(|| self.inner.scan(prefix, after, limit))
    }

    fn apply(&self, batch: Batch) -> Result<u64, BackendError> {
        self.run(|| self.inner.apply(batch))
    }

    fn wait_durable(&self, applied: u64) -> Result<(), BackendError> {
        self.run(|| self.inner.wait_durable(applied))
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        self.inner.stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        self.inner.close()
    }
}

/// A backend in memory that knows which batches were synced, and can lose the others.
#[derive(Default)]
pub struct PowerLossBackend {
    live: MemoryBackend,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    durable: BTreeMap<Vec<u8>, Vec<u8>>,
    unsynced: Vec<(Vec<Pair>, Vec<Vec<u8>>)>,
}

impl PowerLossBackend {
    /// An empty backend.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A backend as the machine would find it after a power cut now, with `kept` of the
    /// unsynced batches on the disk: the engine's log is read up to its first gap.
    #[must_use]
    pub fn after_power_loss(&self, kept: usize) -> MemoryBackend {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records = log.durable.clone();
        for (puts, deletes) in log.unsynced.iter().take(kept) {
            for key in deletes {
                records.remove(key);
            }
            records.extend(puts.iter().cloned());
        }
        MemoryBackend::with_records(records)
    }

    /// How many batches a power cut now could lose.
    #[must_use]
    pub fn unsynced(&self) -> usize {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .unsynced
            .len()
    }
}

impl Backend for PowerLossBackend {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.live.get(key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Pair>, BackendError> {
        self.live.scan(prefix, after, limit)
    }

    fn apply(&self, batch: Batch) -> Result<u64, BackendError> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = (batch.puts.clone(), batch.deletes.clone());
        let applied = self.live.apply(batch)?;
        log.unsynced.push(kept);
        Ok(applied)
    }

    fn wait_durable(&self, applied: u64) -> Result<(), BackendError> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        for (puts, deletes) in std::mem::take(&mut log.unsynced) {
            for key in deletes {
                log.durable.remove(&key);
            }
            log.durable.extend(puts);
        }
        self.live.wait_durable(applied)
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        self.live.stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        Ok(())
    }
}
