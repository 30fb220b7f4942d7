//! What can go wrong with a store. No variant carries content, a key, or another tenant's name.

use thiserror::Error;

use crate::backend::BackendError;
use crate::key::KeyError;
use crate::record::RecordError;
use crate::seal::SealError;

/// Why the store could not do what was asked. The text fits "failed to {error}".
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Stored bytes are missing, older than they should be, or altered.
    #[error("use the store: {0} is damaged")]
    Damaged(&'static str),
    /// The engine's data is older than what was acknowledged.
    #[error("open the store: its data is older than what it acknowledged; it was rolled back")]
    RolledBack,
    /// STATE is missing or neither of its slots is valid.
    #[error("open the store: its STATE file is missing or damaged")]
    StateLost,
    /// The keyring is older than the data: a removed key slot may have been put back.
    #[error("open the store: its keyring is older than its data")]
    KeyringOlder,
    /// A tenant's key file is missing or cannot be opened. Its data cannot be read.
    #[error("read the tenant: its key file is missing")]
    KeyFileMissing,
    /// A tenant's key file is there but damaged.
    #[error("read the tenant: its key file is damaged")]
    KeyFileDamaged,
    /// A tenant's key file is one from before its last rotation.
    #[error("read the tenant: its key file is older than its data")]
    KeyFileOlder,
    /// There is no tenant of this name.
    #[error("find the tenant: it has no memory in this store")]
    NoSuchTenant,
    /// A hold keeps something of the tenant that was to be erased.
    #[error("erase the tenant: a hold keeps something of it")]
    Held,
    /// Another process holds the store.
    #[error("open the store: it is locked by process {0}")]
    Locked(u32),
    /// There is no store in the directory.
    #[error("open the store: there is none in this directory")]
    NotAStore,
    /// There is something in the directory already.
    #[error("create the store: the directory is not empty")]
    AlreadyExists,
    /// A newer build wrote this store.
    #[error("open the store: it was written by a newer strongroom (format {0})")]
    NewerFormat(u8),
    /// The store was restored from a backup, and erasures are still to be applied to it.
    #[error("open the store: it was restored, and has to be opened for writing first")]
    RestoreUnfinished,
    /// The disk is full; nothing was written.
    #[error("write: no space left on the disk")]
    NoSpace,
    /// The store was opened for reading only.
    #[error("write: the store was opened read-only")]
    ReadOnly,
    /// Damage was found since the store was opened, so it takes no more writes.
    #[error("write: damage was found in the store, which takes no writes until it is repaired")]
    WritesStopped,
    /// A write failed half way; whether it happened shows when the store is opened again.
    #[error("finish a write: its outcome is unknown until the store is opened again")]
    OutcomeUnknown,
    /// The handle was carried into a child process by `fork`.
    #[error("use the store: this handle belongs to another process; open the store after fork")]
    Forked,
    /// The store was closed through another handle.
    #[error("use the store: it was closed")]
    Closed,
    /// A limit of the store itself, such as the depth of directories.
    #[error("write: {0}")]
    Limit(&'static str),
    /// Keys.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The operating system refused an operation on the store's files.
    #[error("use the store's files: {0}")]
    Io(std::io::ErrorKind),
}

impl StoreError {
    /// Whether this says that stored bytes are not what they should be.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Damaged(_)
                | Self::RolledBack
                | Self::StateLost
                | Self::KeyFileMissing
                | Self::KeyFileDamaged
                | Self::KeyFileOlder
                | Self::KeyringOlder
        )
    }

    /// Whether one tenant's keys are lost: no reason to stop the others' writes.
    #[must_use]
    pub fn is_lost_key(&self) -> bool {
        matches!(
            self,
            Self::KeyFileMissing | Self::KeyFileDamaged | Self::KeyFileOlder
        )
    }

    pub(crate) fn io(error: &std::io::Error) -> Self {
        BackendError::from_io(error).into()
    }
}

impl From<BackendError> for StoreError {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::NoSpace => Self::NoSpace,
            BackendError::Io(kind) => Self::Io(kind),
            BackendError::Poisoned | BackendError::Corrupt => Self::Damaged("the engine's data"),
            BackendError::Conflict => Self::Damaged("a record on which a change relies"),
            BackendError::TooLarge => Self::Limit("the change is over the engine's limits"),
        }
    }
}

impl From<SealError> for StoreError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Refused => Self::Damaged("a record"),
            SealError::TooLarge => Self::Limit("a record is too large"),
            SealError::Key(error) => Self::Key(error),
        }
    }
}

impl From<RecordError> for StoreError {
    fn from(_: RecordError) -> Self {
        Self::Damaged("a record")
    }
}

/// Why a read or a change ended without a result: refused by its own logic, or failed.
#[derive(Debug)]
pub enum Abort<R> {
    /// The caller's logic refused; nothing was written.
    Refused(R),
    /// The store failed.
    Failed(StoreError),
}

impl<R, E: Into<StoreError>> From<E> for Abort<R> {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}
