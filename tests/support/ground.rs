//! A backend and a key store that tell a test what reaches them, in order.

use std::sync::{Arc, PoisonError, RwLock};

use strongroom::backend::{Backend, BackendError, BackendStats, Batch, Copy, Item, KeyStore, Pair};

/// What happens below the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// A batch was applied; its number.
    Applied(u64),
    /// A sync up to this batch begins.
    Sync(u64),
    /// That sync has ended.
    Synced(u64),
    /// One of the small files is about to be written.
    Write(Item, Copy, Vec<u8>),
    /// It was written.
    Written(Item),
}

/// Is told of every point. Operations wait while `gate` is held for writing, so that a
/// watcher can look at backend and key store at one moment.
pub struct Watch {
    pub gate: RwLock<()>,
    hook: Box<dyn Fn(&Point) + Send + Sync>,
}

impl Watch {
    pub fn new(hook: impl Fn(&Point) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self::with_hook(hook))
    }

    /// As [`Watch::new`], for a hook that itself refers to the watch.
    pub fn with_hook(hook: impl Fn(&Point) + Send + Sync + 'static) -> Self {
        Self {
            gate: RwLock::new(()),
            hook: Box::new(hook),
        }
    }

    fn pass<T>(&self, operation: impl FnOnce() -> T) -> T {
        let _gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        operation()
    }
}

/// Passes everything on to a backend and tells the watch.
pub struct WatchedBackend {
    pub inner: Arc<dyn Backend>,
    pub watch: Arc<Watch>,
}

impl Backend for WatchedBackend {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.inner.get(key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Pair>, BackendError> {
        self.inner.scan(prefix, after, limit)
    }

    fn apply(&self, batch: Batch) -> Result<u64, BackendError> {
        let applied = self.watch.pass(|| self.inner.apply(batch))?;
        (self.watch.hook)(&Point::Applied(applied));
        Ok(applied)
    }

    fn wait_durable(&self, applied: u64) -> Result<(), BackendError> {
        (self.watch.hook)(&Point::Sync(applied));
        self.watch.pass(|| self.inner.wait_durable(applied))?;
        (self.watch.hook)(&Point::Synced(applied));
        Ok(())
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        self.inner.stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        self.watch.pass(|| self.inner.close())
    }
}

/// Passes everything on to a key store and tells the watch.
pub struct WatchedKeys {
    pub inner: Arc<dyn KeyStore>,
    pub watch: Arc<Watch>,
}

impl KeyStore for WatchedKeys {
    fn read(&self, item: Item, copy: Copy) -> Result<Option<Vec<u8>>, BackendError> {
        self.inner.read(item, copy)
    }

    fn write(&self, item: Item, copy: Copy, bytes: &[u8]) -> Result<(), BackendError> {
        (self.watch.hook)(&Point::Write(item, copy, bytes.to_vec()));
        self.watch.pass(|| self.inner.write(item, copy, bytes))?;
        (self.watch.hook)(&Point::Written(item));
        Ok(())
    }

    fn destroy(&self, item: Item) -> Result<(), BackendError> {
        self.watch.pass(|| self.inner.destroy(item))
    }

    fn tenants(&self) -> Result<Vec<[u8; 16]>, BackendError> {
        self.inner.tenants()
    }
}
