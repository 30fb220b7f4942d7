//! What a store stands on, in memory: it fails at a chosen operation, or shows what a power cut there would leave.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use arbitrary::Arbitrary;
use strongroom::backend::{
    BATCH_OPERATIONS_MAX, Backend, BackendError, BackendStats, Batch, Copy, Item, KeyStore,
    MemoryKeyStore, Pair, PowerLossBackend,
};

/// Sealed records by key.
pub type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Arbitrary)]
pub enum Trouble {
    /// An operation fails and leaves nothing behind.
    Before,
    /// An operation is carried out, then reported as failed.
    After,
    /// The disk is full.
    NoSpace,
    /// The power is cut, with this many of the unsynced batches on the disk.
    Cut { kept: u8 },
}

/// What lies on the disk.
pub struct Image {
    pub records: Records,
    pub keys: MemoryKeyStore,
}

/// An engine and a key store. Trouble comes once, at an operation told by number.
pub struct Disk {
    records: PowerLossBackend,
    keys: MemoryKeyStore,
    /// Held for writing while both are looked at.
    gate: RwLock<()>,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    coming: Option<(u8, Trouble)>,
    image: Option<Image>,
    has_failed: bool,
}

impl Disk {
    /// One that holds this, durably.
    #[must_use]
    pub fn holding(image: Image) -> Self {
        let records = PowerLossBackend::new();
        let mut pairs = image.records.into_iter().peekable();
        while pairs.peek().is_some() {
            let puts = pairs.by_ref().take(BATCH_OPERATIONS_MAX).collect();
            let batch = Batch {
                puts,
                ..Batch::default()
            };
            records
                .apply(batch)
                .and_then(|applied| records.wait_durable(applied))
                .expect("memory takes a batch");
        }
        Self {
            records,
            keys: image.keys,
            gate: RwLock::default(),
            plan: Mutex::default(),
        }
    }

    /// Lets trouble come at an operation, counted from 0 on.
    pub fn arm(&self, trouble: Option<(u8, Trouble)>) {
        self.plan().coming = trouble;
    }

    /// No more trouble. What a power cut left, if there was one.
    pub fn disarm(&self) -> Option<Image> {
        let mut plan = self.plan();
        plan.coming = None;
        plan.image.take()
    }

    /// Whether an operation was reported as failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.plan().has_failed
    }

    /// What is stored now, synced or not.
    #[must_use]
    pub fn live(&self) -> Image {
        self.image(self.records.unsynced())
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<T>(
        &self,
        operation: impl FnOnce() -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        let pass = || {
            let _gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
            operation()
        };
        let failed = Err(BackendError::Io(ErrorKind::Other));
        match self.trouble() {
            None => pass(),
            Some(Trouble::Before) => failed,
            Some(Trouble::NoSpace) => Err(BackendError::NoSpace),
            Some(Trouble::After) => pass().and(failed),
            Some(Trouble::Cut { .. }) => pass(),
        }
    }

    /// What goes wrong with the operation whose turn it is.
    fn trouble(&self) -> Option<Trouble> {
        let mut plan = self.plan();
        let trouble = match &mut plan.coming {
            Some((0, trouble)) => *trouble,
            Some((left, _)) => {
                *left -= 1;
                return None;
            }
            None => return None,
        };
        plan.coming = None;
        match trouble {
            // The plan stays locked until the image is in it, so that it is the one of this command.
            Trouble::Cut { kept } => plan.image = Some(self.image(usize::from(kept))),
            _ => plan.has_failed = true,
        }
        Some(trouble)
    }

    /// What a power cut would leave now.
    fn image(&self, kept: usize) -> Image {
        let _gate = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let kept = kept % (self.records.unsynced() + 1);
        Image {
            records: self.records.after_power_loss(kept).records(),
            keys: self.keys.clone(),
        }
    }
}

impl Backend for Disk {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.run(|| self.records.get(key))
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Pair>, BackendError> {
        self.run(|| self.records.scan(prefix, after, limit))
    }

    fn apply(&self, batch: Batch) -> Result<u64, BackendError> {
        self.run(|| self.records.apply(batch))
    }

    fn wait_durable(&self, applied: u64) -> Result<(), BackendError> {
        self.run(|| self.records.wait_durable(applied))
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        self.records.stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        self.records.close()
    }
}

impl KeyStore for Disk {
    fn read(&self, item: Item, copy: Copy) -> Result<Option<Vec<u8>>, BackendError> {
        self.run(|| self.keys.read(item, copy))
    }

    fn write(&self, item: Item, copy: Copy, bytes: &[u8]) -> Result<(), BackendError> {
        self.run(|| self.keys.write(item, copy, bytes))
    }

    fn destroy(&self, item: Item) -> Result<(), BackendError> {
        self.run(|| self.keys.destroy(item))
    }

    fn tenants(&self) -> Result<Vec<[u8; 16]>, BackendError> {
        self.run(|| self.keys.tenants())
    }
}
