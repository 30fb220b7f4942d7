//! Backups: the sealed records in one file, the keys in another, and stores made from both.

use std::path::Path;

use crate::clock::UnixMillis;

use super::Store;

mod check;
mod create;
mod error;
mod file;
mod format;
mod journal;
mod note;
mod restore;
mod tenant;

use check::{KeysFile, Survey};

pub use error::BackupError;
pub use format::BackupKind;
pub(super) use journal::Journal;
pub(crate) use restore::restore;
pub(crate) use tenant::open_tenant;

/// What is being done for a backup or a restore. Both tell of each step as it begins, with what
/// of it is done and what there is in all (0 where that is not known).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Records are copied to the backup.
    Copy,
    /// Records that were changed meanwhile are copied again.
    Follow,
    /// The backup is read and checked.
    Check,
    /// Keys are written to the new store.
    Keys,
    /// Records are written to the new store.
    Records,
    /// The new store is compared with the backup.
    Compare,
    /// The last files of the new store are written.
    State,
    /// What was made gets its name.
    Name,
    /// It has it, durably.
    Done,
}

/// A backup that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackedUp {
    /// The backup's random id, in hexadecimal: the same in both files.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub made: UnixMillis,
    /// The number of the commit that it holds the store at.
    pub commit: u64,
    /// Records in it; 0 where only keys were written.
    pub records: u64,
    /// Bytes of the file of records.
    pub bytes: u64,
    /// Tenants whose key files were written; `None` without a file of keys.
    pub tenants: Option<u64>,
}

/// A store that was made from a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The backup's id, in hexadecimal.
    pub id: String,
    /// When the backup was made, in milliseconds since 1970.
    pub made: UnixMillis,
    /// The commit that the store is at.
    pub commit: u64,
    /// Records.
    pub records: u64,
    /// Tenants that the backup has.
    pub tenants: u64,
    /// Of these, those for which there are no keys: they cannot be read.
    pub without_keys: u64,
    /// Tenants that are known to have been erased; those that the backup still has are erased
    /// again when the store is first opened.
    pub erased: u64,
}

/// What can be said of a backup's file without any key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupCheck {
    /// Whether it holds records or keys.
    pub kind: BackupKind,
    /// Its id, in hexadecimal.
    pub id: String,
    /// The id of its store, in hexadecimal.
    pub store: String,
    /// When it was made, in milliseconds since 1970.
    pub made: UnixMillis,
    /// The commit that it holds the store at; `None` for keys.
    pub commit: Option<u64>,
    /// Records; 0 for keys.
    pub records: u64,
    /// Tenants with a head in it, or with a key file.
    pub tenants: u64,
    /// Tenants that it knows to have been erased.
    pub erased: u64,
}

impl Store {
    /// Writes a backup of the records, of the keys, or of both at one moment.
    pub(crate) fn backup(
        &self,
        records: Option<&Path>,
        keys: Option<&Path>,
        progress: &mut dyn FnMut(Step, u64, u64),
    ) -> Result<BackedUp, BackupError> {
        self.core.backup(records, keys, progress)
    }

    /// The ids of tenants that were erased, in hexadecimal.
    pub(crate) fn erased_ids(&self) -> Vec<crate::key::TenantId> {
        self.core.erased_ids()
    }
}

/// Reads a backup's file and checks everything that can be checked without a key.
pub(crate) fn check_backup(
    path: &Path,
    progress: &mut dyn FnMut(Step, u64, u64),
) -> Result<BackupCheck, BackupError> {
    let of = |header: &format::Header| BackupCheck {
        kind: header.kind,
        id: crate::audit::hex(&header.id),
        store: header.store.to_string(),
        made: header.made,
        commit: None,
        records: 0,
        tenants: 0,
        erased: 0,
    };
    match check::kind_of(path)? {
        BackupKind::Records => {
            let survey = Survey::of(path, |_, _| (), progress)?;
            Ok(BackupCheck {
                commit: Some(survey.end.seq),
                records: survey.sum.records,
                tenants: survey.heads.len() as u64,
                erased: survey.erased.len() as u64,
                ..of(&survey.header)
            })
        }
        BackupKind::Keys => {
            let keys = KeysFile::read(path)?;
            Ok(BackupCheck {
                tenants: keys.tenants.len() as u64,
                erased: keys.erased.len() as u64,
                ..of(&keys.header)
            })
        }
    }
}

/// The erasures that a backup's file knows of.
pub(crate) fn erased_in(path: &Path) -> Result<Vec<crate::key::TenantId>, BackupError> {
    match check::kind_of(path)? {
        BackupKind::Records => Ok(Survey::of(path, |_, _| (), &mut |_, _, _| ())?.erased),
        BackupKind::Keys => Ok(KeysFile::read(path)?.erased),
    }
}
