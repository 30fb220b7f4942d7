//! Tenants' key files on the disk: read, written, sealed anew, set aside, destroyed.
//!
//! All of it under the keyring's lock: a rotation of the master key changes what the files are
//! sealed under, and must not miss one that is just being written.

use std::collections::HashSet;

use crate::backend::{Copy, Item, KeyStore};
use crate::key::{FileTag, KeyError, Keyring, SecretKey, TenantId, TenantKeys};
use crate::record::TRACE_BYTES;

use super::StoreError;
use super::core::Core;

/// How many set-aside key files of one name are kept.
const ASIDE_MAX: u8 = 8;

/// What key files are sealed under, and were before a rotation that has not ended.
struct Wraps {
    current: SecretKey,
    former: Option<SecretKey>,
}

impl Wraps {
    fn of(keyring: &Keyring) -> Self {
        const LABEL: &str = "strongroom/v1/tenant-keys";
        let keys = keyring.store_keys();
        Self {
            current: keys.tenant.derive(LABEL),
            former: keys.former_tenant.as_ref().map(|key| key.derive(LABEL)),
        }
    }
}

/// A key file as it was read.
struct Found {
    keys: TenantKeys,
    /// Whether it must be written anew: damaged in part, or sealed under the former key.
    is_stale: bool,
}

fn open(bytes: &[u8], wraps: &Wraps, keyring: &Keyring, tag: FileTag) -> Result<Found, StoreError> {
    let store = keyring.store_id();
    match TenantKeys::open(bytes, &wraps.current, store, tag) {
        Ok((keys, is_stale)) => return Ok(Found { keys, is_stale }),
        Err(KeyError::ForeignTenantKeys) => {}
        Err(_) => return Err(StoreError::KeyFileDamaged),
    }
    let former = wraps.former.as_ref().ok_or(StoreError::KeyFileDamaged)?;
    let (keys, _) =
        TenantKeys::open(bytes, former, store, tag).map_err(|_| StoreError::KeyFileDamaged)?;
    Ok(Found {
        keys,
        is_stale: true,
    })
}

/// Where a tenant's keys may lie: in force first, then set aside.
fn places(tag: FileTag) -> impl Iterator<Item = Item> {
    std::iter::once(Item::Tenant(tag.0))
        .chain((0..ASIDE_MAX).map(move |number| Item::Aside(tag.0, number)))
}

/// Gives a key file without a head another name: its tenant's first write never committed,
/// or the store's data is from before it, put back without its keys. The second must lose
/// nothing once the newer data is back.
pub(super) fn set_aside(keys: &dyn KeyStore, tag: [u8; 16]) -> Result<(), StoreError> {
    let item = Item::Tenant(tag);
    if let Some(bytes) = keys.read(item, Copy::A)? {
        let mut free = Item::Aside(tag, ASIDE_MAX - 1);
        for place in (0..ASIDE_MAX).map(|number| Item::Aside(tag, number)) {
            match keys.read(place, Copy::A)? {
                Some(there) if there != bytes => {}
                _ => {
                    free = place;
                    break;
                }
            }
        }
        keys.write(free, Copy::A, &bytes)?;
    }
    Ok(keys.destroy(item)?)
}

/// Brings set-aside keys back where a head names their tenant again.
pub(super) fn bring_back(
    keys: &dyn KeyStore,
    keyring: &Keyring,
    tag: FileTag,
    tenant: TenantId,
) -> Result<(), StoreError> {
    if keys.read(Item::Tenant(tag.0), Copy::A)?.is_some() {
        return Ok(());
    }
    let wraps = Wraps::of(keyring);
    for place in places(tag) {
        let Some(bytes) = keys.read(place, Copy::A)? else {
            continue;
        };
        if open(&bytes, &wraps, keyring, tag).is_ok_and(|found| found.keys.tenant_id() == tenant) {
            keys.write(Item::Tenant(tag.0), Copy::A, &bytes)?;
            return Ok(keys.destroy(place)?);
        }
    }
    Ok(())
}

/// Destroys every key file of an erased tenant. One that cannot be opened goes too, unless
/// another tenant has the name by now.
pub(super) fn destroy(
    keys: &dyn KeyStore,
    keyring: &Keyring,
    tag: FileTag,
    tenant: TenantId,
    is_reused: bool,
) -> Result<(), StoreError> {
    let wraps = Wraps::of(keyring);
    for place in places(tag) {
        let is_its = match keys.read(place, Copy::A)? {
            // What a kill left half written lies beside the file.
            None => matches!(place, Item::Tenant(_)) && !is_reused,
            Some(bytes) => match open(&bytes, &wraps, keyring, tag) {
                Ok(found) => found.keys.tenant_id() == tenant,
                Err(_) => !is_reused,
            },
        };
        if is_its {
            keys.destroy(place)?;
        }
    }
    Ok(())
}

impl Core {
    /// Reads a tenant's key file, and writes it anew where that is needed.
    pub(super) fn read_tenant_keys(&self, tag: FileTag) -> Result<TenantKeys, StoreError> {
        let keyring = self.lock_keyring();
        let found = self.find_keys(&keyring, tag)?;
        if found.is_stale && self.check_writable().is_ok() {
            self.write_keys(&keyring, tag, &found.keys)?;
        }
        Ok(found.keys)
    }

    /// Writes a tenant's key file. Durable when it returns.
    pub(super) fn write_tenant_keys(
        &self,
        tag: FileTag,
        keys: &TenantKeys,
    ) -> Result<(), StoreError> {
        self.write_keys(&self.lock_keyring(), tag, keys)
    }

    /// Writes a key file without the epochs that are retired, if it has any of them: a kill may
    /// have left it so, or an older file may have been put back.
    pub(super) fn forget_retired(
        &self,
        tag: FileTag,
        mut keys: TenantKeys,
        retired: u32,
    ) -> Result<(), StoreError> {
        let old: Vec<u32> = keys.epochs().filter(|at| *at <= retired).collect();
        for epoch in &old {
            keys.remove_epoch(*epoch)?;
        }
        if old.is_empty() {
            return Ok(());
        }
        self.write_tenant_keys(tag, &keys)
    }

    /// What to look for in raw files, to tell that a tenant's wrapped keys are gone: the nonces
    /// and checksums of the key file's two halves, which say nothing about the keys.
    pub(super) fn key_file_traces(
        &self,
        tag: FileTag,
    ) -> Result<Vec<[u8; TRACE_BYTES]>, StoreError> {
        let _keyring = self.lock_keyring();
        let bytes = self.keys.read(Item::Tenant(tag.0), Copy::A)?;
        Ok(TenantKeys::traces(&bytes.unwrap_or_default()))
    }

    /// Destroys the key files of an erased tenant.
    pub(super) fn destroy_tenant_keys(
        &self,
        tag: FileTag,
        tenant: TenantId,
    ) -> Result<(), StoreError> {
        let is_reused = self.known_head(tag).is_some();
        destroy(&*self.keys, &self.lock_keyring(), tag, tenant, is_reused)
    }

    /// Whether a key file of an erased tenant lies anywhere.
    pub(super) fn has_tenant_keys(
        &self,
        tag: FileTag,
        tenant: TenantId,
    ) -> Result<bool, StoreError> {
        let keyring = self.lock_keyring();
        let wraps = Wraps::of(&keyring);
        for place in places(tag) {
            if let Some(bytes) = self.keys.read(place, Copy::A)?
                && open(&bytes, &wraps, &keyring, tag)
                    .is_ok_and(|found| found.keys.tenant_id() == tenant)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Seals key files that are still sealed under the former key, a few at a time so that
    /// nobody waits for the keyring's lock for long. Says whether none is left.
    pub(super) fn rewrap_step(&self, done: &mut HashSet<[u8; 16]>) -> Result<bool, StoreError> {
        const PER_STEP: usize = 16;
        let tags = self.keys.tenants()?;
        for tag in tags
            .iter()
            .filter(|tag| !done.contains(*tag))
            .take(PER_STEP)
            .copied()
            .collect::<Vec<_>>()
        {
            match self.read_tenant_keys(FileTag(tag)) {
                Ok(_) => {}
                // A file that nobody could open before either keeps nothing.
                Err(StoreError::KeyFileMissing | StoreError::KeyFileDamaged)
                    if self.known_head(FileTag(tag)).is_none() => {}
                Err(error) => return Err(error),
            }
            done.insert(tag);
        }
        if !tags.iter().all(|tag| done.contains(tag)) {
            return Ok(false);
        }
        self.rewrap_asides()?;
        Ok(true)
    }

    /// Seals keys that are set aside under the current key too: their tenants' data may come
    /// back. There are few, and none in a store whose directory was never put back in part.
    fn rewrap_asides(&self) -> Result<(), StoreError> {
        let keyring = self.lock_keyring();
        for (place, tag, found) in self.stale_asides(&keyring)? {
            let wraps = Wraps::of(&keyring);
            let bytes = found.seal(&wraps.current, self.crypto.id, tag, &*self.random)?;
            self.keys.write(place, Copy::A, &bytes)?;
        }
        Ok(())
    }

    /// The keys set aside that are sealed under the former key.
    fn stale_asides(
        &self,
        keyring: &Keyring,
    ) -> Result<Vec<(Item, FileTag, TenantKeys)>, StoreError> {
        let wraps = Wraps::of(keyring);
        let mut stale = Vec::new();
        for (tag, number) in self.keys.asides()? {
            let (place, tag) = (Item::Aside(tag, number), FileTag(tag));
            let bytes = self.keys.read(place, Copy::A)?.unwrap_or_default();
            // One that nobody could open before either keeps nothing.
            if let Ok(found) = open(&bytes, &wraps, keyring, tag)
                && found.is_stale
            {
                stale.push((place, tag, found.keys));
            }
        }
        Ok(stale)
    }

    /// Whether every tenant's key file opens under the current key. Under the keyring's lock,
    /// which the caller holds.
    pub(super) fn is_rewrapped(&self, keyring: &Keyring) -> Result<bool, StoreError> {
        for tag in self.known_heads() {
            if self.find_keys(keyring, tag)?.is_stale {
                return Ok(false);
            }
        }
        // A key file is durable before the commit that makes its head.
        for tag in self.keys.tenants()? {
            match self.find_keys(keyring, FileTag(tag)) {
                Ok(found) if found.is_stale => return Ok(false),
                _ => {}
            }
        }
        Ok(self.stale_asides(keyring)?.is_empty())
    }

    fn find_keys(&self, keyring: &Keyring, tag: FileTag) -> Result<Found, StoreError> {
        let bytes = self
            .keys
            .read(Item::Tenant(tag.0), Copy::A)?
            .ok_or(StoreError::KeyFileMissing)?;
        open(&bytes, &Wraps::of(keyring), keyring, tag)
    }

    fn write_keys(
        &self,
        keyring: &Keyring,
        tag: FileTag,
        keys: &TenantKeys,
    ) -> Result<(), StoreError> {
        let wraps = Wraps::of(keyring);
        let bytes = keys.seal(&wraps.current, self.crypto.id, tag, &*self.random)?;
        Ok(self.keys.write(Item::Tenant(tag.0), Copy::A, &bytes)?)
    }
}
