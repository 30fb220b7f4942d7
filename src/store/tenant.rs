//! A tenant in a running store: its keys, its head, and the lock that orders its writers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::backend::{Copy, Item};
use crate::key::aead::Cipher;
use crate::key::mac::MacKey;
use crate::key::{FileTag, Random, StoreId, TenantKeys};
use crate::path::TenantName;
use crate::record::{Dirent, Head, NameTag, NodeId, RecordKey, TenantId};
use crate::seal::{self, Place};

use super::StoreError;
use super::core::Core;
use super::index::short;

/// One tenant, shared by all who use it.
pub(crate) struct Tenant {
    pub(super) name: TenantName,
    pub(super) tag: FileTag,
    write: Mutex<()>,
    live: RwLock<Option<Arc<Live>>>,
}

/// A tenant that exists: its keys and its newest head.
pub(super) struct Live {
    pub(super) crypto: Arc<TenantCrypto>,
    pub(super) head: Head,
    /// The head's record; empty for a tenant that the running write creates.
    pub(super) sealed: Vec<u8>,
    /// The commit that wrote it.
    pub(super) seq: u64,
}

/// A tenant's keys, ready for use.
pub(super) struct TenantCrypto {
    pub(super) id: TenantId,
    pub(super) epoch: u32,
    records: BTreeMap<u32, Cipher>,
    names: MacKey,
    pseudonyms: MacKey,
    pub(super) inventory: MacKey,
    store: StoreId,
}

impl TenantCrypto {
    pub(super) fn new(store: StoreId, keys: &TenantKeys) -> Result<Self, StoreError> {
        let mut records = BTreeMap::new();
        for epoch in keys.epochs() {
            records.insert(epoch, Cipher::new(keys.record_key(epoch)?));
        }
        let (epoch, _) = records.last_key_value().ok_or(StoreError::KeyFileDamaged)?;
        Ok(Self {
            id: keys.tenant_id(),
            epoch: *epoch,
            names: MacKey::new(&keys.name_key()),
            pseudonyms: MacKey::new(&keys.pseudonym_key()),
            inventory: MacKey::new(&keys.inventory_key()),
            records,
            store,
        })
    }

    /// The tag under which a name lies in a directory.
    pub(super) fn name_tag(&self, directory: NodeId, name: &str) -> NameTag {
        let mac = self.names.mac(&[&directory.0, name.as_bytes()]);
        NameTag(short(&mac))
    }

    /// The keyed digest by which a removed value is known within this tenant.
    pub(super) fn pseudonym(&self, value: &[u8]) -> [u8; 32] {
        self.pseudonyms.mac(&[value])
    }

    pub(super) fn seal_entry(
        &self,
        random: &dyn Random,
        key: &[u8],
        entry: &Dirent,
    ) -> Result<Vec<u8>, StoreError> {
        let plain = zeroize::Zeroizing::new(entry.encode());
        let place = self.place(self.epoch, key);
        Ok(seal::seal_record(&place, self.newest()?, random, &plain)?)
    }

    pub(super) fn open_entry(&self, key: &[u8], value: &[u8]) -> Result<Dirent, StoreError> {
        let (epoch, cipher) = self.cipher_of(value)?;
        let plain = seal::open_record(&self.place(epoch, key), cipher, value)?;
        Ok(Dirent::decode(&plain)?)
    }

    pub(super) fn seal_chunk(
        &self,
        random: &dyn Random,
        key: &[u8],
        padded: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        Ok(seal::seal(
            &self.place(self.epoch, key),
            self.newest()?,
            random,
            padded,
        )?)
    }

    pub(super) fn open_chunk(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> Result<zeroize::Zeroizing<Vec<u8>>, StoreError> {
        let (epoch, cipher) = self.cipher_of(value)?;
        Ok(seal::open(&self.place(epoch, key), cipher, value)?)
    }

    fn newest(&self) -> Result<&Cipher, StoreError> {
        self.records
            .get(&self.epoch)
            .ok_or(StoreError::KeyFileDamaged)
    }

    fn cipher_of(&self, value: &[u8]) -> Result<(u32, &Cipher), StoreError> {
        seal::epoch_of(value)
            .and_then(|epoch| Some((epoch, self.records.get(&epoch)?)))
            .ok_or(StoreError::Damaged("a record"))
    }

    fn place<'a>(&self, epoch: u32, key: &'a [u8]) -> Place<'a> {
        Place {
            store: self.store,
            epoch,
            key,
        }
    }
}

impl Tenant {
    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        self.write.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn live(&self) -> Option<Arc<Live>> {
        self.live
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn publish(&self, live: Live) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(live));
    }
}

impl Core {
    /// The shared handle of a tenant, loaded from its head if it exists.
    pub(super) fn tenant(&self, name: &TenantName) -> Result<Arc<Tenant>, StoreError> {
        self.check_open()?;
        let tag = FileTag::of(&self.crypto.tag, name.as_str());
        if let Some(tenant) = self.lock_tenants().get(&tag) {
            return Ok(Arc::clone(tenant));
        }
        let live = self.load_live(name, tag)?;
        let tenant = Arc::new(Tenant {
            name: name.clone(),
            tag,
            write: Mutex::new(()),
            live: RwLock::new(live.map(Arc::new)),
        });
        // Another caller may have loaded it meanwhile: there must be one handle only.
        Ok(Arc::clone(self.lock_tenants().entry(tag).or_insert(tenant)))
    }

    /// All tenants that exist, by name.
    pub(super) fn all_tenants(&self) -> Result<Vec<FileTag>, StoreError> {
        self.check_open()?;
        let heads = self.heads.read().unwrap_or_else(PoisonError::into_inner);
        Ok(heads.keys().copied().collect())
    }

    /// The handle of the tenant with this file tag; its name comes from its key file.
    pub(super) fn tenant_by_tag(&self, tag: FileTag) -> Result<Arc<Tenant>, StoreError> {
        if let Some(tenant) = self.lock_tenants().get(&tag) {
            return Ok(Arc::clone(tenant));
        }
        let keys = self.read_tenant_keys(tag)?;
        let name = TenantName::parse(keys.name()).map_err(|_| StoreError::KeyFileDamaged)?;
        self.tenant(&name)
    }

    fn lock_tenants(&self) -> MutexGuard<'_, std::collections::HashMap<FileTag, Arc<Tenant>>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and checks a tenant's head. `None`: there is no such tenant.
    fn load_live(&self, name: &TenantName, tag: FileTag) -> Result<Option<Live>, StoreError> {
        let known = self
            .heads
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&tag)
            .copied();
        let key = RecordKey::Head(tag);
        let stored = self.backend.get(&key.to_bytes())?;
        let sealed = match (known, stored) {
            (None, None) => return Ok(None),
            (Some(known), Some(sealed)) if short(&self.top_mac(&key, &sealed)) == known => sealed,
            _ => {
                self.note_damage();
                return Err(StoreError::Damaged("a tenant's head"));
            }
        };
        let head = self.open_head(tag, &sealed)?;
        let keys = self.read_tenant_keys(tag)?;
        if keys.name() != name.as_str() || keys.tenant_id() != head.tenant {
            return Err(StoreError::KeyFileDamaged);
        }
        let crypto = Arc::new(TenantCrypto::new(self.crypto.id, &keys)?);
        Ok(Some(Live {
            crypto,
            head,
            sealed,
            seq: self.root().seq,
        }))
    }

    pub(super) fn open_head(&self, tag: FileTag, sealed: &[u8]) -> Result<Head, StoreError> {
        let key = RecordKey::Head(tag).to_bytes();
        let place = Place {
            store: self.crypto.id,
            epoch: 0,
            key: &key,
        };
        let plain = seal::open_record(&place, &self.crypto.top, sealed)?;
        Ok(Head::decode(&plain)?)
    }

    pub(super) fn read_tenant_keys(&self, tag: FileTag) -> Result<TenantKeys, StoreError> {
        let item = Item::Tenant(tag.0);
        let bytes = self
            .keys
            .read(item, Copy::A)?
            .ok_or(StoreError::KeyFileMissing)?;
        let (keys, needs_repair) =
            TenantKeys::open(&bytes, &self.crypto.tenant, self.crypto.id, tag)
                .map_err(|_| StoreError::KeyFileDamaged)?;
        if needs_repair && self.check_writable().is_ok() {
            let whole = keys.seal(&self.crypto.tenant, self.crypto.id, tag, &*self.random)?;
            self.keys.write(item, Copy::A, &whole)?;
        }
        Ok(keys)
    }
}
