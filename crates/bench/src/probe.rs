//! A backend around another that notes what a command asks of the engine, or leaves syncs out.

use std::sync::{Arc, Mutex, PoisonError};

use strongroom::backend::{Backend, BackendError, BackendStats, Batch, Pair};

/// What a command did to the engine: what the engine alone is then asked to do.
#[derive(Clone, Default)]
pub struct Trace {
    /// Keys that were read, with the lengths of their values.
    pub gets: Vec<(Vec<u8>, usize)>,
    /// Keys that were written, the lengths of their values, whether they were new.
    pub puts: Vec<(Vec<u8>, usize, bool)>,
    /// The lengths of keys that were removed.
    pub deletes: Vec<usize>,
}

pub struct Probe {
    inner: Arc<dyn Backend>,
    syncs: bool,
    trace: Mutex<Option<Trace>>,
}

impl Probe {
    /// `syncs` is false only while a store is filled: it is closed with a sync.
    pub fn new(inner: Arc<dyn Backend>, syncs: bool) -> Self {
        Self {
            inner,
            syncs,
            trace: Mutex::new(None),
        }
    }

    /// What `work` does to the engine.
    pub fn trace(&self, work: impl FnOnce()) -> Trace {
        *self.lock() = Some(Trace::default());
        work();
        self.lock().take().unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Trace>> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for Probe {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        let value = self.inner.get(key)?;
        if let Some(trace) = &mut *self.lock() {
            trace
                .gets
                .push((key.to_vec(), value.as_ref().map_or(0, Vec::len)));
        }
        Ok(value)
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
        if let Some(trace) = &mut *self.lock() {
            for (key, value) in &batch.puts {
                let is_new = self.inner.get(key)?.is_none();
                trace.puts.push((key.clone(), value.len(), is_new));
            }
            trace.deletes.extend(batch.deletes.iter().map(Vec::len));
        }
        self.inner.apply(batch)
    }

    fn wait_durable(&self, applied: u64) -> Result<(), BackendError> {
        if self.syncs {
            self.inner.wait_durable(applied)
        } else {
            Ok(())
        }
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        self.inner.stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        self.inner.close()
    }
}
