//! What can go wrong with a backup, when it is made and when it is used.

use std::io;

use thiserror::Error;

use crate::store::StoreError;

/// Why a backup could not be made, checked or restored. The text fits "failed to {error}".
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The operating system refused an operation on the backup's file.
    #[error("{doing}: {kind}")]
    File {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        kind: io::ErrorKind,
    },
    /// The file is not a whole backup as it was written.
    #[error("read the backup: {0}")]
    Damaged(&'static str),
    /// A newer build made the backup.
    #[error("read the backup: it was made by a newer strongroom (format {0})")]
    NewerFormat(u8),
    /// The file holds keys where records are needed, or the other way round.
    #[error("read the backup: this file holds {holds}, and {needed} are needed")]
    OtherKind {
        /// What is in it.
        holds: &'static str,
        /// What was to be in it.
        needed: &'static str,
    },
    /// The file would lie inside the store that it is to outlive.
    #[error("write the backup: its file lies inside the store")]
    InsideStore,
    /// Another backup of the same store is being made.
    #[error("make the backup: another one is being made")]
    Busy,
    /// So much changes meanwhile that it cannot be followed.
    #[error("make the backup: too much is written to the store meanwhile")]
    TooManyChanges,
    /// Backup, keys or store do not belong together.
    #[error("use the backup: it is one of another store, or its keys are")]
    OtherStore,
    /// The live store's master key is not the one that the keys lie under.
    #[error("restore the tenant: the keys are under another master key than this store's")]
    OtherMaster,
    /// The tenant was erased after the backup, and must not come back.
    #[error("restore the tenant: it was erased from this store since")]
    Erased,
    /// The backup has no such tenant.
    #[error("restore the tenant: the backup has none of this name")]
    NoSuchTenant,
    /// What is named as a list of erasures is none.
    #[error("read the erasures: this is no certificate and no backup")]
    NoErasures,
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BackupError {
    pub(super) fn reading(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged("it ends too early"),
            kind => Self::File {
                doing: "read the backup",
                kind,
            },
        }
    }

    pub(super) fn writing(error: &io::Error) -> Self {
        Self::File {
            doing: "write the backup",
            kind: error.kind(),
        }
    }
}
