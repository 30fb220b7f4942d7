//! Opens one tenant of a backup in memory, to read its files from.

use std::path::Path;
use std::sync::Arc;

use crate::backend::{Backend, Batch, Copy, Item, KeyStore, MemoryBackend, MemoryKeyStore};
use crate::key::FileTag;
use crate::key::mac::MacKey;
use crate::path::TenantName;
use crate::record::{RecordKey, TenantId};
use crate::store::open::{self, Ground};
use crate::store::{OpenMode, Store, StoreError};

use super::BackupError;
use super::check::{KeysFile, Survey};

/// Records in one batch.
const BATCH_RECORDS: usize = 512;

/// A store in memory that has of the backup's tenants only `name`, and is for reading only.
///
/// Without a file of keys, the live store's own are used, which have what the tenant's records
/// in the backup are sealed under unless it was rotated, or the tenant is another one, since.
/// The keys must lie under the master key of the live store: so no credential is needed.
pub(crate) fn open_tenant(
    live: &Store,
    records: &Path,
    keys: Option<&Path>,
    name: &TenantName,
) -> Result<Store, BackupError> {
    let core = &live.core;
    let survey = Survey::of(records, |_, _| (), &mut |_, _, _| ())?;
    let keys = keys.map(KeysFile::read).transpose()?;
    let of_keys = keys.as_ref().map(|keys| keys.header.store);
    if survey.header.store != core.crypto.id || of_keys.is_some_and(|id| id != core.crypto.id) {
        return Err(BackupError::OtherStore);
    }
    let keyring = {
        let own = core.lock_keyring();
        match &keys {
            None => own.copy(),
            Some(keys) => own
                .open_sibling(&keys.keyring)
                .map_err(|_| BackupError::OtherMaster)?,
        }
    };
    let tag_key = keyring.store_keys().tag.derive("strongroom/v1/file-tag");
    let tag = FileTag::of(&MacKey::new(&tag_key), name.as_str());
    let small = MemoryKeyStore::new();
    let tenant_keys = match &keys {
        Some(keys) => keys.tenant(tag.0).map(<[u8]>::to_vec),
        None => core
            .keys
            .read(Item::Tenant(tag.0), Copy::A)
            .map_err(StoreError::from)?,
    };
    let write = |item, copy, bytes: &[u8]| small.write(item, copy, bytes);
    write(Item::State, survey.state.copy(), &survey.end.state).map_err(StoreError::from)?;
    if let Some(bytes) = tenant_keys {
        write(Item::Tenant(tag.0), Copy::A, &bytes).map_err(StoreError::from)?;
    }
    let backend = Arc::new(MemoryBackend::new());
    load(&backend, &survey, records, |key| key.tenant().is_none())?;
    let ground = Ground {
        backend: Arc::clone(&backend) as Arc<dyn Backend>,
        keys: Arc::new(small),
        clock: Arc::clone(&core.clock),
        random: Arc::clone(&core.random),
        place: None,
    };
    let checked = open::check(ground, &keyring)?;
    let store = open::start(checked, keyring, OpenMode::ReadOnly)?;
    let tenant = store.tenant(name)?;
    let Some(id) = tenant.live().map(|live| live.crypto.id) else {
        return Err(BackupError::NoSuchTenant);
    };
    let known = [core.erased_ids(), survey.erased.clone()];
    let of_keys: &[TenantId] = keys.as_ref().map_or(&[], |keys| &keys.erased);
    if known
        .iter()
        .flatten()
        .chain(of_keys)
        .any(|gone| *gone == id)
    {
        return Err(BackupError::Erased);
    }
    load(&backend, &survey, records, |key| key.tenant() == Some(id))?;
    Ok(store)
}

fn load(
    backend: &MemoryBackend,
    survey: &Survey,
    records: &Path,
    is_wanted: impl Fn(RecordKey) -> bool,
) -> Result<(), BackupError> {
    let mut batch = Batch::default();
    survey.each(records, |key, value| {
        if RecordKey::from_bytes(key).is_some_and(&is_wanted) {
            batch.puts.push((key.to_vec(), value.to_vec()));
        }
        if batch.puts.len() >= BATCH_RECORDS {
            backend
                .apply(std::mem::take(&mut batch))
                .map_err(StoreError::from)?;
        }
        Ok(())
    })?;
    backend.apply(batch).map_err(StoreError::from)?;
    Ok(())
}
