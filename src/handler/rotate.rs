//! New keys for a store in use: record keys, the master key, the credential of a slot.

use crate::error::Error;
use crate::key::{Credential, KdfParams, KeyError, NewSlot};
use crate::path::TenantName;
use crate::store::StoreError;

use super::Vault;

/// A new credential for a slot.
pub struct NewKey<'a> {
    /// The passphrase or key.
    pub credential: &'a Credential,
    /// The operator's note, at most 64 bytes.
    pub label: &'a str,
    /// The cost of a passphrase; not used for keys.
    pub params: KdfParams,
}

/// What a rotation of a tenant's record key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rotated {
    /// The tenant.
    pub tenant: String,
    /// The epoch in which all of its records are sealed now. Older ones are retired.
    pub epoch: u32,
}

/// What a rotation of the master key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MasterRotated {
    /// The slots that open the store now.
    pub kept: Vec<u64>,
    /// The slots that are gone.
    pub dropped: Vec<u64>,
}

impl Vault {
    /// Gives one tenant, or all, a new record key, and seals everything stored anew under it,
    /// in small batches while others go on working. Returns once the key before is gone from
    /// the store. `progress` is told the tenant, and how many of how many steps are done.
    ///
    /// A rotation that is interrupted goes on when the store is next opened for writing.
    ///
    /// # Errors
    /// [`NoSuchTenant`](crate::StoreError::NoSuchTenant), or as any write. [`NoSpace`](crate::StoreError::NoSpace) puts it off: it
    /// goes on once there is room.
    pub fn rotate_keys(
        &self,
        tenant: Option<&str>,
        mut progress: impl FnMut(&str, u64, u64),
    ) -> Result<Vec<Rotated>, Error> {
        let store = &self.shared.store;
        let tenants = match tenant {
            Some(name) => vec![store.tenant(&TenantName::parse(name)?)?],
            None => {
                let mut all = Vec::new();
                for tag in store.tenant_tags() {
                    all.extend(store.listed_tenant(tag)?);
                }
                all.sort_by(|a, b| a.name().as_str().cmp(b.name().as_str()));
                all
            }
        };
        let mut done = Vec::new();
        for tenant_at_hand in tenants {
            let name = tenant_at_hand.name().as_str();
            let (job, epoch) = match store.begin_rotation(&tenant_at_hand) {
                // Erased since the tenants were listed.
                Err(StoreError::NoSuchTenant) if tenant.is_none() => continue,
                begun => begun?,
            };
            store.wait_for_job(job, |at, all| progress(name, at, all))?;
            done.push(Rotated {
                tenant: name.to_owned(),
                epoch,
            });
        }
        Ok(done)
    }

    /// Gives the store a new master key, and seals all tenants' key files anew. Contents and
    /// record keys stay as they are.
    ///
    /// Only slots whose credentials this handle has seen can be given the new master key: the
    /// one that opened it and those added since, or only `new`. All others go, and there must
    /// be none unless `may_drop`.
    ///
    /// # Errors
    /// [`KeyError::OtherSlots`], or as any write. What is interrupted goes on when the store
    /// is next opened for writing; until then the new credential opens it as it will then.
    pub fn rotate_master(
        &self,
        new: Option<&NewKey<'_>>,
        may_drop: bool,
        progress: impl FnMut(u64, u64),
    ) -> Result<MasterRotated, Error> {
        let random = &*self.shared.random;
        let slot = new.map(|new| self.new_slot(new));
        let dropped = self.shared.store.rotate_master(
            |keyring| {
                let opener = keyring.opener();
                let others = keyring.slots().filter(|slot| slot.id != opener).count();
                let keep = match (new, slot) {
                    (Some(new), Some(slot)) => {
                        let id = keyring.replace_slot(opener, new.credential, slot, random)?;
                        // The new one takes the place of the opener alone.
                        if others > 0 && !may_drop {
                            return Err(KeyError::OtherSlots);
                        }
                        Some(id)
                    }
                    _ => None,
                };
                let dropped = keyring.rotate_master(keep, random)?;
                if !dropped.is_empty() && !may_drop {
                    return Err(KeyError::OtherSlots);
                }
                Ok(dropped)
            },
            progress,
        )?;
        Ok(MasterRotated {
            kept: self.key_slots().iter().map(|slot| slot.id).collect(),
            dropped,
        })
    }

    /// As [`VaultBuilder::rotate_full`](super::VaultBuilder::rotate_full), which opens and
    /// closes the store around this.
    pub(super) fn rotate_whole(
        &self,
        new: Option<&NewKey<'_>>,
        may_drop: bool,
        progress: impl FnMut(u64, u64),
    ) -> Result<MasterRotated, Error> {
        let store = &self.shared.store;
        store.finish_jobs()?;
        let random = &*self.shared.random;
        let slot = new.map(|new| self.new_slot(new));
        let (keyring, dropped) = store.with_keyring(|keyring| {
            let mut next = keyring.copy();
            let opener = next.opener();
            let keep = match (new, slot) {
                (Some(new), Some(slot)) => {
                    next.replace_slot(opener, new.credential, slot, random)?
                }
                _ => opener,
            };
            let (next, dropped) = next.renewed_whole(Some(keep), random)?;
            if !dropped.is_empty() && !may_drop {
                return Err(KeyError::OtherSlots);
            }
            Ok((next, dropped))
        })?;
        let kept = keyring.slots().map(|slot| slot.id).collect();
        crate::store::rekey(store, keyring, progress)?;
        Ok(MasterRotated { kept, dropped })
    }

    /// Puts another credential in place of a slot's, or of the one that opened this handle.
    /// The cost does not depend on the store. Returns the new slot's id.
    ///
    /// The old credential still opens copies of the store from before; see
    /// [`Vault::remove_key`].
    ///
    /// # Errors
    /// When there is no such slot, or as any write.
    pub fn change_key(&self, slot: Option<u64>, new: &NewKey<'_>) -> Result<u64, Error> {
        let info = self.new_slot(new);
        let random = &*self.shared.random;
        Ok(self.shared.store.change_keyring("key change", |keyring| {
            let slot = slot.unwrap_or(keyring.opener());
            keyring.replace_slot(slot, new.credential, info, random)
        })?)
    }

    fn new_slot<'a>(&self, new: &NewKey<'a>) -> NewSlot<'a> {
        NewSlot {
            label: new.label,
            created_ms: self.now(),
            params: new.params,
        }
    }
}
