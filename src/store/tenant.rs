//! A tenant in a running store: its keys, its head, and the lock that orders its writers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use crate::key::aead::Cipher;
use crate::key::mac::MacKey;
use crate::key::{FileTag, Plain, Random, StoreId, TenantKeys};
use crate::path::TenantName;
use crate::record::{Dirent, Head, NameTag, NodeId, RecordKey, TenantId};
use crate::retention::{Schedule, Schedules};
use crate::seal::{self, Place};

use super::StoreError;
use super::core::Core;
use super::index::short;

/// How often a tenant is loaded before a mismatch counts as damage.
const LOAD_TRIES: u32 = 10;

/// So many handles of tenants that nobody holds any more are kept before they are swept.
const TENANTS_KEPT: usize = 1_024;

/// One tenant, shared by all who use it.
pub(crate) struct Tenant {
    pub(super) name: TenantName,
    pub(super) tag: FileTag,
    write: Mutex<()>,
    live: RwLock<Option<Arc<Live>>>,
    /// When its files expire, and of which policy that is part.
    schedule: Mutex<Option<(Arc<Schedules>, Arc<Schedule>)>>,
}

/// A tenant that exists: its keys and its newest head.
pub(super) struct Live {
    pub(super) crypto: Arc<TenantCrypto>,
    pub(super) head: Head,
    /// The head's record.
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
    pub(super) audit_paths: Cipher,
    pub(super) inventory: MacKey,
    store: StoreId,
}

impl TenantCrypto {
    /// The keys of the epochs that the head names: its own, and those before it that are not
    /// retired.
    pub(super) fn new(
        store: StoreId,
        keys: &TenantKeys,
        (epoch, retired): (u32, u32),
    ) -> Result<Self, StoreError> {
        let mut records = BTreeMap::new();
        for named in keys
            .epochs()
            .filter(|at| (retired + 1..=epoch).contains(at))
        {
            records.insert(named, Cipher::new(keys.record_key(named)?));
        }
        if !records.contains_key(&epoch) {
            return Err(StoreError::KeyFileOlder);
        }
        Ok(Self {
            id: keys.tenant_id(),
            epoch,
            names: MacKey::new(&keys.name_key()),
            pseudonyms: MacKey::new(&keys.pseudonym_key()),
            audit_paths: Cipher::new(&keys.audit_path_key()),
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
        let plain = Plain::from(entry.encode());
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

    pub(super) fn open_chunk(&self, key: &[u8], value: &[u8]) -> Result<Plain, StoreError> {
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
    /// Its name.
    pub(crate) fn name(&self) -> &TenantName {
        &self.name
    }

    /// The tag of its key file.
    pub(crate) fn tag(&self) -> FileTag {
        self.tag
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        self.write.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn live(&self) -> Option<Arc<Live>> {
        self.live
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// When its files expire, under these schedules.
    pub(super) fn schedule(&self, schedules: Arc<Schedules>) -> Arc<Schedule> {
        let mut known = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((of, schedule)) if Arc::ptr_eq(of, &schedules) => Arc::clone(schedule),
            _ => {
                let schedule = schedules.of(self.name.as_str());
                let (_, schedule) = known.insert((schedules, schedule));
                Arc::clone(schedule)
            }
        }
    }

    /// Makes all handles those of a tenant that does not exist.
    pub(super) fn withdraw(&self) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn publish(&self, live: Live) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(live));
    }
}

impl Core {
    /// The shared handle of a tenant, loaded from its head if it exists.
    ///
    /// While it is being loaded, other handles may come, write and go. So what was read is
    /// held against the root's list once more, and only a mismatch that stays is damage.
    pub(super) fn tenant(&self, name: &TenantName) -> Result<Arc<Tenant>, StoreError> {
        self.check_open()?;
        let tag = FileTag::of(&self.crypto.tag, name.as_str());
        let mut tries = 0;
        loop {
            if let Some(tenant) = self.handle(tag) {
                return Ok(tenant);
            }
            tries += 1;
            let live = match self.load_live(name, tag) {
                Ok(live) => live,
                Err(StoreError::Damaged(_)) if tries < LOAD_TRIES => continue,
                Err(error) => return Err(self.failed(error)),
            };
            let loaded = live
                .as_ref()
                .map(|live| short(&self.top_mac(&RecordKey::Head(tag), &live.sealed)));
            let mut tenants = self.lock_tenants();
            if let Some(tenant) = tenants.get(&tag).and_then(Weak::upgrade) {
                return Ok(tenant);
            }
            if loaded != self.known_head(tag) {
                continue;
            }
            if tenants.len() >= 2 * self.known_heads().len() + TENANTS_KEPT {
                tenants.retain(|_, tenant| tenant.strong_count() > 0);
            }
            let tenant = Arc::new(Tenant {
                name: name.clone(),
                tag,
                write: Mutex::new(()),
                live: RwLock::new(live.map(Arc::new)),
                schedule: Mutex::default(),
            });
            tenants.insert(tag, Arc::downgrade(&tenant));
            return Ok(tenant);
        }
    }

    /// The handle of a tenant that somebody holds.
    fn handle(&self, tag: FileTag) -> Option<Arc<Tenant>> {
        self.lock_tenants().get(&tag).and_then(Weak::upgrade)
    }

    /// The handle of the tenant with this file tag; its name comes from its key file.
    pub(super) fn tenant_by_tag(&self, tag: FileTag) -> Result<Arc<Tenant>, StoreError> {
        if let Some(tenant) = self.handle(tag) {
            return Ok(tenant);
        }
        let keys = self.read_tenant_keys(tag)?;
        let name = TenantName::parse(keys.name()).map_err(|_| StoreError::KeyFileDamaged)?;
        self.tenant(&name)
    }

    /// As [`Core::tenant_by_tag`], for a list of tenants that was made before. `None`: it has been
    /// erased since.
    pub(super) fn listed_tenant(&self, tag: FileTag) -> Result<Option<Arc<Tenant>>, StoreError> {
        match self.tenant_by_tag(tag) {
            // The head goes before the keys do.
            Err(_) if self.known_head(tag).is_none() => Ok(None),
            found => found.map(Some),
        }
    }

    /// Reads a tenant's key file again: the running process does not need it, the next one does.
    pub(super) fn check_keys(&self, tenant: &Tenant) -> Result<(), StoreError> {
        // A rotation writes the file and then the head.
        let _lock = tenant.lock();
        let Some(live) = tenant.live() else {
            return Ok(());
        };
        let keys = self.read_tenant_keys(tenant.tag)?;
        let epochs = (live.head.epoch, live.head.retired);
        TenantCrypto::new(self.crypto.id, &keys, epochs).map(drop)
    }

    fn lock_tenants(&self) -> MutexGuard<'_, std::collections::HashMap<FileTag, Weak<Tenant>>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and checks a tenant's head. `None`: there is no such tenant.
    fn load_live(&self, name: &TenantName, tag: FileTag) -> Result<Option<Live>, StoreError> {
        let known = self.known_head(tag);
        let key = RecordKey::Head(tag);
        let stored = self.backend.get(&key.to_bytes())?;
        let sealed = match (known, stored) {
            (None, None) => return Ok(None),
            (Some(known), Some(sealed)) if short(&self.top_mac(&key, &sealed)) == known => sealed,
            _ => return Err(StoreError::Damaged("a tenant's head")),
        };
        let head = self.open_head(tag, &sealed)?;
        let keys = self.read_tenant_keys(tag)?;
        if keys.name() != name.as_str() || keys.tenant_id() != head.tenant {
            return Err(StoreError::KeyFileDamaged);
        }
        let epochs = (head.epoch, head.retired);
        let crypto = Arc::new(TenantCrypto::new(self.crypto.id, &keys, epochs)?);
        if self.check_writable().is_ok() {
            self.forget_retired(tag, keys, head.retired)?;
        }
        Ok(Some(Live {
            crypto,
            head,
            sealed,
            seq: self.applied_seq(),
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
}

#[cfg(test)]
mod tests {
    use super::super::tests::{core, put, tenant};
    use super::*;

    #[test]
    fn handles_that_nobody_holds_are_swept_when_there_are_many_and_not_before() {
        let core = core();
        let kept = tenant(&core, "kept");
        put(&core, &kept, "/memories/a.md");
        // The one tenant that exists allows two more.
        for number in 0..TENANTS_KEPT + 1 {
            tenant(&core, &format!("none/{number}"));
        }
        assert_eq!(core.lock_tenants().len(), TENANTS_KEPT + 2);
        tenant(&core, "one-more");
        assert_eq!(core.lock_tenants().len(), 2);
        assert!(Arc::ptr_eq(&kept, &tenant(&core, "kept")));
    }
}
