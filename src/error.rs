//! The one error of the library's interface, with a code that programs can match on.

use thiserror::Error as ThisError;

use crate::key::KeyError;
use crate::path::TenantNameError;
use crate::policy::PolicyError;
use crate::redact::RedactError;
use crate::store::{BackupError, StoreError};

/// What kept the store from doing its work.
///
/// Refusals that a model should read (a path outside `/memories`, a file that is too
/// large) are no errors but replies with `is_error` set.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The store.
    #[error(transparent)]
    Store(StoreError),
    /// A key, a key source, or the keyring.
    #[error(transparent)]
    Key(KeyError),
    /// The policy does not load.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A redaction rule cannot be used.
    #[error(transparent)]
    Redaction(#[from] RedactError),
    /// The tenant's name is not one.
    #[error(transparent)]
    TenantName(#[from] TenantNameError),
    /// A token cannot be made as it was described.
    #[error("make a token: {0}")]
    Token(&'static str),
    /// No key source was named.
    #[error("find the key: name a key file, a passphrase file, a passphrase or a key command")]
    NoKeySource,
    /// Where an export goes, or an import comes from, failed.
    #[error("{doing}: {kind}")]
    Transfer {
        /// What was being done.
        doing: &'static str,
        /// What the operating system, or the format, said.
        kind: std::io::ErrorKind,
    },
    /// A backup could not be made, checked or restored.
    #[error(transparent)]
    Backup(BackupError),
    /// No store directory was named.
    #[error("find the store: name its directory")]
    NoPath,
}

/// The kind of an [`Error`], stable across versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// Anything that has no code of its own.
    Other,
    /// The call itself is wrong: a name, a policy, a missing setting.
    Usage,
    /// Something that the operator has set forbids it.
    Refused,
    /// There is no store, or no such thing in it.
    NotFound,
    /// Stored bytes are missing, older than they should be, or altered.
    Integrity,
    /// Another process holds the store.
    Locked,
    /// A key is wrong, missing, or cannot be read.
    Key,
    /// The disk is full.
    NoSpace,
}

impl Code {
    /// The code's name in logs and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Usage => "usage",
            Self::Refused => "refused",
            Self::NotFound => "not_found",
            Self::Integrity => "integrity",
            Self::Locked => "locked",
            Self::Key => "key",
            Self::NoSpace => "no_space",
        }
    }
}

impl Error {
    /// What kind of error this is.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Key(_) | Self::NoKeySource => Code::Key,
            Self::Policy(_)
            | Self::Redaction(_)
            | Self::TenantName(_)
            | Self::Token(_)
            | Self::NoPath => Code::Usage,
            Self::Transfer { kind, .. } => match kind {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    Code::NoSpace
                }
                _ => Code::Other,
            },
            Self::Backup(error) => backup_code(error),
            Self::Store(error) => store_code(error),
        }
    }
}

fn backup_code(error: &BackupError) -> Code {
    use std::io::ErrorKind;
    match error {
        BackupError::File { kind, .. } => match kind {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::NoSpace,
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::AlreadyExists => Code::Usage,
            _ => Code::Other,
        },
        BackupError::Damaged(_) => Code::Integrity,
        BackupError::OtherKind { .. }
        | BackupError::InsideStore
        | BackupError::OtherStore
        | BackupError::NoErasures => Code::Usage,
        BackupError::OtherMaster => Code::Key,
        BackupError::Erased => Code::Refused,
        BackupError::NoSuchTenant => Code::NotFound,
        BackupError::Store(error) => store_code(error),
        _ => Code::Other,
    }
}

fn store_code(error: &StoreError) -> Code {
    match error {
        StoreError::Damaged(_)
        | StoreError::RolledBack
        | StoreError::StateLost
        | StoreError::KeyringOlder
        | StoreError::WritesStopped => Code::Integrity,
        StoreError::KeyFileMissing
        | StoreError::KeyFileDamaged
        | StoreError::KeyFileOlder
        | StoreError::Key(_) => Code::Key,
        StoreError::Locked(_) => Code::Locked,
        StoreError::NotAStore | StoreError::NoSuchTenant => Code::NotFound,
        StoreError::Held => Code::Refused,
        StoreError::AlreadyExists => Code::Usage,
        StoreError::NoSpace => Code::NoSpace,
        _ => Code::Other,
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Key(error) => Self::Key(error),
            error => Self::Store(error),
        }
    }
}

impl From<BackupError> for Error {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Store(error) => error.into(),
            error => Self::Backup(error),
        }
    }
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        Self::Key(error)
    }
}
