//! Makes a store directory from a backup and its keys, whole or not at all. Needs no credential.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::audit::hex;
use crate::backend::{Backend, Batch, Copy, FileKeyStore, Item, KeyStore, SledBackend};
use crate::key::{Random, TenantId};
use crate::store::compact::NEW_SIZE_MAX;
use crate::store::directory::{
    Lock, generation_name, is_occupied, make_directory, not_renamed, parent_of, sync_directory,
    take_lock,
};
use crate::store::growth::ROOM_BYTES_MIN;
use crate::store::open::scan_all;
use crate::store::safety_copy::room_bytes;
use crate::store::{OpenMode, StoreError};

use super::check::{KeysFile, Sum, Survey};
use super::create::GENERATION;
use super::note::Note;
use super::{BackupError, Restored, Step};

/// Bytes of records in one batch, about.
const BATCH_BYTES: usize = 1_024 * 1_024;

/// Records in one batch.
const BATCH_RECORDS: usize = 512;

/// Builds the store in a temporary sibling of `to`, compares it with the backup and renames it.
/// `erased` are tenants that must not come back, besides those that backup and keys name.
pub(crate) fn restore(
    records: &Path,
    keys: &Path,
    to: &Path,
    erased: &[TenantId],
    random: &dyn Random,
    progress: &mut dyn FnMut(Step, u64, u64),
) -> Result<Restored, BackupError> {
    if is_occupied(to) {
        return Err(StoreError::AlreadyExists.into());
    }
    let survey = Survey::of(records, |_, _| (), progress)?;
    let keys = KeysFile::read(keys)?;
    if survey.header.store != keys.header.store {
        return Err(BackupError::OtherStore);
    }
    let mut gone: Vec<TenantId> = [&survey.erased, &keys.erased, erased]
        .into_iter()
        .flat_map(|ids| ids.iter().copied())
        .collect();
    gone.sort_unstable();
    gone.dedup();
    clear_unfinished(to)?;
    // The engine cannot stand a full disk.
    let needed = ROOM_BYTES_MIN + NEW_SIZE_MAX * survey.sum.bytes;
    if room_bytes(parent_of(to)).is_some_and(|room| room < needed) {
        return Err(StoreError::NoSpace.into());
    }
    let temporary = temporary(to, random)?;
    let plan = Plan {
        records,
        survey: &survey,
        keys: &keys,
        erased: &gone,
    };
    let built = plan.build(&temporary, progress).and_then(|lock| {
        progress(Step::Name, 0, 0);
        fs::rename(&temporary, to).map_err(|error| not_renamed(&error))?;
        drop(lock);
        Ok(())
    });
    if built.is_err() {
        // The backup is still there; this is half of a copy.
        let _removed = fs::remove_dir_all(&temporary);
    }
    built?;
    sync_directory(parent_of(to))?;
    progress(Step::Done, 0, 0);
    let have_keys = |tag: &&[u8; 16]| keys.tenant(**tag).is_some();
    Ok(Restored {
        id: hex(&survey.header.id),
        made: survey.header.made,
        commit: survey.end.seq,
        records: survey.sum.records,
        tenants: survey.heads.len() as u64,
        without_keys: (survey.heads.len() - survey.heads.iter().filter(have_keys).count()) as u64,
        erased: gone.len() as u64,
    })
}

struct Plan<'a> {
    records: &'a Path,
    survey: &'a Survey,
    keys: &'a KeysFile,
    erased: &'a [TenantId],
}

impl Plan<'_> {
    /// Everything, durable, in a directory whose lock is held for as long as what this returns.
    fn build(
        &self,
        directory: &Path,
        progress: &mut dyn FnMut(Step, u64, u64),
    ) -> Result<Lock, BackupError> {
        make_directory(directory)?;
        let lock = take_lock(&directory.join("LOCK"), OpenMode::ReadWrite)?;
        progress(Step::Keys, 0, 0);
        make_directory(&directory.join("keys"))?;
        for shard in 0..=u8::MAX {
            make_directory(&directory.join("keys").join(format!("{shard:02x}")))?;
        }
        sync_directory(&directory.join("keys"))?;
        let store = FileKeyStore::new(directory);
        let write =
            |item, copy, bytes: &[u8]| store.write(item, copy, bytes).map_err(StoreError::from);
        for copy in [Copy::A, Copy::B] {
            write(Item::Keyring, copy, &self.keys.keyring)?;
        }
        let all = self.keys.tenants.len() as u64;
        for (done, (tag, bytes)) in (1..).zip(&self.keys.tenants) {
            write(Item::Tenant(*tag), Copy::A, bytes)?;
            progress(Step::Keys, done, all);
        }
        self.build_generation(&directory.join(generation_name(GENERATION)), progress)?;
        progress(Step::State, 0, 0);
        write(
            Item::State,
            self.survey.state.copy(),
            &self.survey.end.state,
        )?;
        let header = &self.survey.header;
        Note::new(header.id, self.survey.end.seq, header.made, self.erased)
            .write(directory)
            .map_err(|error| StoreError::io(&error))?;
        sync_directory(directory)?;
        Ok(lock)
    }

    fn build_generation(
        &self,
        directory: &Path,
        progress: &mut dyn FnMut(Step, u64, u64),
    ) -> Result<(), BackupError> {
        make_directory(directory)?;
        let new = SledBackend::open(directory).map_err(StoreError::from)?;
        let mut batch = Batch::default();
        let all = self.survey.sum.records;
        let (mut bytes, mut done) = (0, 0);
        self.survey.each(self.records, |key, value| {
            bytes += key.len() + value.len();
            batch.puts.push((key.to_vec(), value.to_vec()));
            if bytes >= BATCH_BYTES || batch.puts.len() >= BATCH_RECORDS {
                done += batch.puts.len() as u64;
                new.apply(std::mem::take(&mut batch))
                    .map_err(StoreError::from)?;
                bytes = 0;
                progress(Step::Records, done, all);
            }
            Ok(())
        })?;
        new.apply(batch).map_err(StoreError::from)?;
        new.close().map_err(StoreError::from)?;
        drop(new);
        sync_directory(directory)?;
        progress(Step::Compare, 0, all);
        // Once more from the disk, as the first open will find it.
        let new = SledBackend::open(directory).map_err(StoreError::from)?;
        let mut sum = Sum::default();
        scan_all(&new, &[], |key, value| {
            sum.add(key, value);
            Ok(())
        })?;
        new.close().map_err(StoreError::from)?;
        if sum != self.survey.sum {
            return Err(StoreError::Damaged("what was restored").into());
        }
        sync_directory(directory)?;
        Ok(())
    }
}

/// How the names of stores in the making begin.
fn beginning(to: &Path) -> Result<String, StoreError> {
    let name = to
        .file_name()
        .ok_or(StoreError::Io(std::io::ErrorKind::InvalidInput))?;
    Ok(format!(".{}.restore-", name.to_string_lossy()))
}

fn temporary(to: &Path, random: &dyn Random) -> Result<PathBuf, StoreError> {
    let mut suffix = [0; 8];
    random.fill(&mut suffix)?;
    Ok(parent_of(to).join(format!("{}{}", beginning(to)?, hex(&suffix))))
}

/// Removes what a restore to the same place left when it was killed: nobody has its lock.
fn clear_unfinished(to: &Path) -> Result<(), StoreError> {
    let beginning = beginning(to)?;
    let io = |error: std::io::Error| StoreError::io(&error);
    for entry in fs::read_dir(parent_of(to)).map_err(io)? {
        let entry = entry.map_err(io)?;
        if !entry.file_name().to_string_lossy().starts_with(&beginning) {
            continue;
        }
        let is_held = File::open(entry.path().join("LOCK"))
            .is_ok_and(|lock| matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock)));
        if !is_held {
            fs::remove_dir_all(entry.path()).map_err(io)?;
        }
    }
    Ok(())
}
