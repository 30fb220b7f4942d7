//! Backups of a store in use, stores made from them, and one tenant brought back from one.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::audit::Draft;
use crate::clock::UnixMillis;
use crate::error::Error;
use crate::hex;
use crate::key::{OsRandom, TenantId};
use crate::path::TenantName;
use crate::store::{self, BackedUp, BackupCheck, BackupError, Restored, Step};

use super::erase::CERTIFICATE;
use super::transfer::{
    ExportOptions, ExportSink, ImportOptions, ImportOutcome, ImportReport, ImportSource, SinkError,
    SourceEntry, SourceKind,
};
use super::{Tenant, Vault};

/// The largest certificate that is read, in bytes.
const CERTIFICATE_BYTES_MAX: u64 = 64 * 1_024;

/// Where a backup goes. Neither file may exist; both get mode 0600.
#[derive(Debug, Clone, Copy, Default)]
pub struct BackupTargets<'a> {
    /// The sealed records. Default: not written.
    pub records: Option<&'a Path>,
    /// The keyring and the tenants' key files, sealed under the store's key. Default: not
    /// written. Without them no store can be made of the records.
    pub keys: Option<&'a Path>,
}

/// What a store is made from.
#[derive(Debug, Clone, Copy)]
pub struct RestoreSources<'a> {
    /// The file of records.
    pub records: &'a Path,
    /// The file of keys: of the same backup, or a newer one of the same store as long as no
    /// record key of that time was rotated away.
    pub keys: &'a Path,
    /// Tenants that must not come back, besides those that both files know of.
    pub erased: &'a Erasures,
}

/// Tenants that were erased: a restore erases them again.
#[derive(Debug, Clone, Default)]
pub struct Erasures(Vec<TenantId>);

impl Erasures {
    /// None besides those that a backup itself knows of.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what a file knows: a certificate of an erasure (see [`Vault::certificate`]), or a
    /// newer backup of the same store, of records or of keys.
    ///
    /// A certificate is taken at its word. Whether the store made it can be asked of the store
    /// with [`Vault::verify_erasure`].
    ///
    /// # Errors
    /// [`BackupError::NoErasures`] for any other file, or as [`verify_backup`].
    pub fn add_file(&mut self, path: &Path) -> Result<(), Error> {
        match certified(path)? {
            Some(ids) => self.0.extend(ids),
            None => match store::erased_in(path) {
                Err(BackupError::Damaged(_)) if !is_backup(path) => {
                    return Err(BackupError::NoErasures.into());
                }
                found => self.0.extend(found?),
            },
        }
        Ok(())
    }

    /// Adds what an open store knows: the one that the restored store is to replace.
    pub fn add_store(&mut self, vault: &Vault) {
        self.0.extend(vault.shared.store.erased_ids());
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Where one tenant is brought back from.
#[derive(Debug, Clone, Copy)]
pub struct TenantSource<'a> {
    /// The file of records.
    pub records: &'a Path,
    /// The file of keys. `None`: the keys that the store has now, which do as long as the
    /// tenant's record key was not rotated since.
    pub keys: Option<&'a Path>,
    /// The tenant's name in the backup.
    pub tenant: &'a str,
}

impl Vault {
    /// Writes a backup while the store is in use: all records as they were at the moment of one
    /// commit, still sealed. Writers wait only while the last few changed records are copied.
    /// `progress` is told of each step.
    ///
    /// A file gets its name only when it is whole, has been read back and is durable.
    ///
    /// ```
    /// # let home = tempfile::tempdir()?;
    /// # let key = home.path().join("store.key");
    /// # strongroom::generate_key_file(&key)?;
    /// # let (file, keys) = (home.path().join("backup"), home.path().join("keys"));
    /// use strongroom::{BackupTargets, Erasures, RestoreSources, Vault};
    ///
    /// let store = home.path().join("store");
    /// let vault = Vault::builder().path(&store).key_file(&key).create(true).open()?;
    /// vault.tenant("a")?.create("/memories/tea.md", "Likes tea\n")?;
    /// let targets = BackupTargets { records: Some(&file), keys: Some(&keys) };
    /// let made = vault.backup(targets, |_step, _done, _all| ())?;
    /// assert_eq!(made.tenants, Some(1));
    ///
    /// let other = home.path().join("other");
    /// let sources = RestoreSources { records: &file, keys: &keys, erased: &Erasures::new() };
    /// strongroom::restore(sources, &other, |_step, _done, _all| ())?;
    /// let vault = Vault::builder().path(&other).key_file(&key).open()?;
    /// assert!(!vault.tenant("a")?.view("/memories/tea.md", None)?.is_error);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Backup`] for the files; as any write for the entry in the audit log, which
    /// comes before the files have their names.
    pub fn backup(
        &self,
        targets: BackupTargets<'_>,
        mut progress: impl FnMut(Step, u64, u64),
    ) -> Result<BackedUp, Error> {
        let store = &self.shared.store;
        Ok(store.backup(targets.records, targets.keys, &mut progress)?)
    }

    /// Brings the files of one tenant back from a backup into this store, each through the
    /// whole line of a write into `into`, as an import by the operator does: under today's
    /// policy, limits and redaction, with times of today, with an audit entry each. What exists
    /// stays, unless `options` says otherwise. `each` is told what became of each file.
    ///
    /// Sealed records are not copied, since no byte is stored by a second way, and the tenant
    /// may have other keys by now. Holds and audit entries of the backup are not brought back.
    ///
    /// # Errors
    /// [`BackupError::Erased`] for a tenant that was erased since, [`BackupError::OtherMaster`]
    /// when the master key was rotated between the backup's keys and now, and as reading a
    /// store. What ended the import itself is in [`ImportReport::failure`].
    pub fn restore_tenant(
        &self,
        source: TenantSource<'_>,
        into: &Tenant,
        options: ImportOptions,
        each: impl FnMut(&str, &ImportOutcome),
    ) -> Result<ImportReport, Error> {
        let name = TenantName::parse(source.tenant)?;
        let store = store::open_tenant(&self.shared.store, source.records, source.keys, &name)?;
        let old = Vault::new(store, Arc::clone(&self.shared.random))?;
        let old = old.tenant(source.tenant)?;
        let report = into.import(&mut FromTenant(&old), options.as_operator(true), each);
        let mut draft = Draft::new("restore");
        draft.bytes = report.bytes;
        let draft = draft.detail(format!("{} files of one tenant", report.stored));
        self.shared.store.note_event(draft)?;
        Ok(report)
    }
}

/// Makes a store of a backup in a directory that does not exist or is empty, whole or not at
/// all. Needs no key: what is sealed stays sealed. `progress` is told of each step.
///
/// Tenants that were erased since are erased again, before anything else, when the store is
/// first opened for writing; until then a store that has any of them is not opened for reading.
///
/// # Errors
/// [`BackupError::Damaged`] and the like for the files; `AlreadyExists` for the directory.
/// Nothing is left of it then.
pub fn restore(
    sources: RestoreSources<'_>,
    to: impl AsRef<Path>,
    mut progress: impl FnMut(Step, u64, u64),
) -> Result<Restored, Error> {
    Ok(store::restore(
        sources.records,
        sources.keys,
        to.as_ref(),
        &sources.erased.0,
        &OsRandom,
        &mut progress,
    )?)
}

/// Checks a backup's file, of records or of keys, as far as that goes without a key: that it is
/// byte for byte as it was written, to its end; that it has exactly one root, which the STATE in
/// it names; that everything else in it lies where a store has records, and is sealed.
///
/// It does not show that a key opens it, that no record was missing before it was written, or
/// that nobody made it up: those show when a store is made of it and verified.
///
/// # Errors
/// [`BackupError::Damaged`] names what is wrong.
pub fn verify_backup(
    path: impl AsRef<Path>,
    mut progress: impl FnMut(Step, u64, u64),
) -> Result<BackupCheck, Error> {
    Ok(store::check_backup(path.as_ref(), &mut progress)?)
}

/// The tenant's ids in a certificate, the one it had last and those before; `None` for a file
/// that is none.
fn certified(path: &Path) -> Result<Option<Vec<TenantId>>, Error> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(CERTIFICATE_BYTES_MAX).read_to_end(&mut bytes))
        .map_err(|error| BackupError::File {
            doing: "read the erasures",
            kind: error.kind(),
        })?;
    let Ok(certificate) = serde_json::from_slice::<Value>(&bytes) else {
        return Ok(None);
    };
    let text = |name: &str| certificate.get(name).and_then(Value::as_str);
    if text("certificate") != Some(CERTIFICATE) {
        return Ok(None);
    }
    let last = certificate.get("tenant_id");
    let former = certificate
        .get("former_tenant_ids")
        .and_then(Value::as_array);
    let ids = last.into_iter().chain(former.into_iter().flatten());
    let id = |value: &Value| value.as_str().and_then(hex::decode).map(TenantId);
    let ids: Option<Vec<TenantId>> = ids.map(id).collect();
    match ids {
        Some(ids) if last.is_some() => Ok(Some(ids)),
        _ => Err(BackupError::NoErasures.into()),
    }
}

fn is_backup(path: &Path) -> bool {
    let mut magic = [0; 8];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"SRBACKUP"
}

/// The files of a tenant, as an import's source.
struct FromTenant<'a>(&'a Tenant);

impl ImportSource for FromTenant<'_> {
    fn visit(
        &mut self,
        each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut pipe = Pipe {
            each,
            is_over: false,
        };
        let report = self.0.export(&mut pipe, ExportOptions::new(), |_, _| ());
        match report.failure {
            Some(_) if !pipe.is_over => Err(io::ErrorKind::InvalidData.into()),
            _ => Ok(()),
        }
    }
}

/// Hands each exported file on to an import.
struct Pipe<'a> {
    each: &'a mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
    /// The import has ended.
    is_over: bool,
}

impl ExportSink for Pipe<'_> {
    fn directory(&mut self, _path: &str, _modified: UnixMillis) -> Result<(), SinkError> {
        Ok(())
    }

    fn file(
        &mut self,
        path: &str,
        mut content: &[u8],
        _modified: UnixMillis,
    ) -> Result<(), SinkError> {
        let kind = SourceKind::File {
            bytes: content.len() as u64,
            content: &mut content,
        };
        if (self.each)(SourceEntry::new(path.as_bytes(), kind)).is_break() {
            self.is_over = true;
            return Err(io::Error::from(io::ErrorKind::Interrupted).into());
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
