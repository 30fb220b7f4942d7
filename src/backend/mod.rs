//! What a store needs of the engine below it: sealed bytes in, the same bytes out.
//!
//! Everything that reaches a [`Backend`] is sealed already, so any backend holds
//! ciphertext only. The trait promises atomic batches and a point from which on a
//! batch survives power loss; it promises no snapshots and no order of scans beyond
//! that of the keys. The layer above checks every answer.
//!
//! Implementations: [`SledBackend`] for stores on disk, [`MemoryBackend`] for tests
//! and throw-away stores, [`SwitchBackend`] around one whose files are written anew, and [`FaultBackend`] and [`PowerLossBackend`] to try out
//! what happens when an engine fails.

use std::sync::Arc;

use thiserror::Error;

mod fault;
mod key_store;
mod memory;
mod memory_keys;
mod sled_engine;
mod sled_files;
mod switch;

pub use fault::{Fault, FaultBackend, PowerLossBackend};
pub use key_store::{
    Copy, FileKeyStore, Item, KeyStore, overwrite_and_remove, rename_over, set_private_mode,
};
pub use memory::MemoryBackend;
pub use memory_keys::MemoryKeyStore;
pub use sled_engine::SledBackend;
pub use sled_files::{
    Derived, bring_back, copy_generation, remove_aside, remove_half_written_snapshots, set_aside,
};
pub use switch::SwitchBackend;

/// The most operations (puts and deletes) that one batch may hold.
///
/// The engine holds one lock for the whole process while it applies a batch; a
/// thousand operations keep every reader's wait far below 50 ms.
pub const BATCH_OPERATIONS_MAX: usize = 1_024;

/// The largest value in bytes. From 8 KiB on the engine would write a separate
/// file that it never syncs.
pub const VALUE_BYTES_MAX: usize = 6 * 1_024;

/// One key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Changes that happen all or not at all.
#[derive(Default)]
pub struct Batch {
    /// What must still be stored, byte for byte (`None`: nothing), for the batch to apply.
    pub expect: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Records to write.
    pub puts: Vec<Pair>,
    /// Keys to remove.
    pub deletes: Vec<Vec<u8>>,
}

impl Batch {
    /// How many operations the engine will carry out.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.puts.len() + self.deletes.len()
    }

    /// Pair of the limits above: the store keeps them, the backend refuses what does not.
    ///
    /// # Errors
    /// [`BackendError::TooLarge`].
    pub fn check(&self) -> Result<(), BackendError> {
        let value_too_large = self
            .puts
            .iter()
            .any(|(_, value)| value.len() > VALUE_BYTES_MAX);
        if self.operations() > BATCH_OPERATIONS_MAX || value_too_large {
            return Err(BackendError::TooLarge);
        }
        Ok(())
    }
}

/// Figures about the engine, for `stats`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BackendStats {
    /// Bytes that the engine's files take on disk (0 for a backend in memory).
    pub disk_bytes: u64,
    /// How often data was synced to the disk since this handle was opened.
    pub syncs: u64,
    /// How many batches were applied since this handle was opened.
    pub batches: u64,
}

/// An engine that keeps sealed records in key order.
pub trait Backend: Send + Sync {
    /// The value of `key`.
    ///
    /// # Errors
    /// Any [`BackendError`] but `Conflict` and `TooLarge`.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError>;

    /// Up to `limit` pairs whose keys start with `prefix` and lie behind `after`, in key order.
    ///
    /// # Errors
    /// Any [`BackendError`] but `Conflict` and `TooLarge`.
    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Pair>, BackendError>;

    /// Applies the whole batch or nothing. Returns the number to hand to [`Backend::wait_durable`].
    ///
    /// # Errors
    /// [`BackendError::Conflict`] when `expect` does not hold: nothing was written.
    /// After any other error the outcome is unknown and the handle takes no more writes.
    fn apply(&self, batch: Batch) -> Result<u64, BackendError>;

    /// Returns once every batch up to `applied` survives power loss.
    ///
    /// # Errors
    /// After an error nothing may be acknowledged until the store is opened again.
    fn wait_durable(&self, applied: u64) -> Result<(), BackendError>;

    /// Figures for `stats`.
    ///
    /// # Errors
    /// [`BackendError::Io`] when the engine's files cannot be looked at.
    fn stats(&self) -> Result<BackendStats, BackendError>;

    /// Bytes that can still be written, where that is known.
    fn room_bytes(&self) -> Option<u64> {
        None
    }

    /// Puts another backend with the same records in place of the one in use, and returns that
    /// one. `None` where that cannot be done.
    fn switch_to(&self, _next: Arc<dyn Backend>) -> Option<Arc<dyn Backend>> {
        None
    }

    /// Makes everything durable and releases the engine's files.
    ///
    /// # Errors
    /// As [`Backend::wait_durable`].
    fn close(&self) -> Result<(), BackendError>;
}

/// What an engine can answer instead of data. No variant carries stored bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The engine found its own files damaged, or panicked over them.
    #[error("read the engine's files: they are damaged")]
    Corrupt,
    /// An operation of the operating system failed.
    #[error("use the engine's files: {0}")]
    Io(std::io::ErrorKind),
    /// The disk is full.
    #[error("write: no space left on the disk")]
    NoSpace,
    /// An earlier failure has made this handle unusable.
    #[error("use the store: an earlier failure closed it for this process")]
    Poisoned,
    /// A record that the batch relied on has changed.
    #[error("apply a change: a record it relies on has changed")]
    Conflict,
    /// A batch or value is over the engine's limits.
    #[error("apply a change: it is over the engine's limits")]
    TooLarge,
}

impl BackendError {
    /// Sorts an error of the operating system into the kinds that callers tell apart.
    #[must_use]
    pub fn from_io(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::NoSpace,
            kind => Self::Io(kind),
        }
    }
}
