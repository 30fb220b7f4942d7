//! Changes of a keyring that renew it: another credential in a slot, another master key.

use super::{Keyring, NewSlot, Slot, StoreKeys, WRAPPED_BYTES, fixed, format};
use crate::key::secret::random_bytes;
use crate::key::{Credential, KeyError, Random, SecretKey, aead};

impl Keyring {
    /// The slot whose credential opened this keyring.
    #[must_use]
    pub fn opener(&self) -> u64 {
        self.opener
    }

    /// Puts another credential in place of a slot's. Nothing but this slot changes: the cost
    /// does not depend on the store. Returns the new slot's id.
    ///
    /// # Errors
    /// [`KeyError::NoSuchSlot`], and as [`Keyring::add_slot`].
    pub fn replace_slot(
        &mut self,
        id: u64,
        credential: &Credential,
        slot: NewSlot<'_>,
        random: &dyn Random,
    ) -> Result<u64, KeyError> {
        if !self.slots.iter().any(|slot| slot.info.id == id) {
            return Err(KeyError::NoSuchSlot { id });
        }
        let (new, wrap) = self.new_slot(credential, slot, random)?;
        let new_id = new.info.id;
        self.slots.retain(|slot| slot.info.id != id);
        self.wraps.remove(&id);
        self.slots.push(new);
        self.wraps.insert(new_id, wrap);
        if self.opener == id {
            self.opener = new_id;
        }
        self.counter = new_id;
        Ok(new_id)
    }

    /// A new master key, and a new key under which the tenants' key files are sealed; the one
    /// before is kept, beside it, until [`Keyring::retire_former`].
    ///
    /// `keep` names the one slot that stays. Without it all those stay whose credentials this
    /// process has seen; no other can be given the new master key. Returns the ids of the
    /// slots that are gone.
    ///
    /// # Errors
    /// [`KeyError::RotationUnfinished`] while a former key is kept, [`KeyError::NoSuchSlot`]
    /// for a slot that cannot stay, [`KeyError::CounterExhausted`], [`KeyError::Random`].
    pub fn rotate_master(
        &mut self,
        keep: Option<u64>,
        random: &dyn Random,
    ) -> Result<Vec<u64>, KeyError> {
        if self.store_keys.former_tenant.is_some() {
            return Err(KeyError::RotationUnfinished);
        }
        let mut next = self.successor()?;
        next.master = SecretKey::random(random)?;
        next.wraps
            .retain(|id, _| keep.is_none_or(|keep| keep == *id));
        let mut kept = Vec::new();
        let mut gone = Vec::new();
        for slot in &self.slots {
            match next.wraps.get(&slot.info.id) {
                Some(wrap) => kept.push(next.renewed(slot, wrap, random)?),
                None => gone.push(slot.info.id),
            }
        }
        if kept.is_empty() {
            let id = keep.unwrap_or(self.opener);
            return Err(KeyError::NoSuchSlot { id });
        }
        if !next.wraps.contains_key(&next.opener) {
            next.opener = kept.first().map_or(next.opener, |slot| slot.info.id);
        }
        next.slots = kept;
        let tenant = SecretKey::random(random)?;
        next.store_keys.former_tenant =
            Some(std::mem::replace(&mut next.store_keys.tenant, tenant));
        next.seal_store_keys(random)?;
        *self = next;
        Ok(gone)
    }

    /// A keyring for the same store with every key new: the master key and all store keys.
    /// `keep` and the slots as in [`Keyring::rotate_master`]. Returns it with the ids of the
    /// slots that are gone.
    ///
    /// # Errors
    /// As [`Keyring::rotate_master`].
    pub fn renewed_whole(
        &self,
        keep: Option<u64>,
        random: &dyn Random,
    ) -> Result<(Self, Vec<u64>), KeyError> {
        let mut next = self.copy();
        let gone = next.rotate_master(keep, random)?;
        next.store_keys = StoreKeys::random(random)?;
        next.seal_store_keys(random)?;
        Ok((next, gone))
    }

    /// Forgets the key under which tenants' key files were sealed before the last
    /// [`Keyring::rotate_master`]. Says whether there was one.
    ///
    /// # Errors
    /// [`KeyError::CounterExhausted`], [`KeyError::Random`].
    pub fn retire_former(&mut self, random: &dyn Random) -> Result<bool, KeyError> {
        if self.store_keys.former_tenant.is_none() {
            return Ok(false);
        }
        let mut next = self.successor()?;
        next.store_keys.former_tenant = None;
        next.seal_store_keys(random)?;
        *self = next;
        Ok(true)
    }

    /// The same keyring, to be changed while this one is still in force.
    pub(crate) fn copy(&self) -> Self {
        let copy = |key: &SecretKey| SecretKey::copy_of(key.expose());
        Self {
            suite: self.suite,
            counter: self.counter,
            store_id: self.store_id,
            slots: self.slots.clone(),
            sealed_store_keys: self.sealed_store_keys.clone(),
            store_keys: self.store_keys.copy(),
            master: copy(&self.master),
            opener: self.opener,
            wraps: self
                .wraps
                .iter()
                .map(|(id, key)| (*id, copy(key)))
                .collect(),
        }
    }

    /// A copy with the next counter.
    fn successor(&self) -> Result<Self, KeyError> {
        let counter = self.next_counter()?;
        Ok(Self {
            counter,
            ..self.copy()
        })
    }

    fn seal_store_keys(&mut self, random: &dyn Random) -> Result<(), KeyError> {
        self.sealed_store_keys =
            self.store_keys
                .seal(&self.master, self.suite, self.store_id, random)?;
        Ok(())
    }

    /// The same slot around this keyring's master key.
    fn renewed(
        &self,
        slot: &Slot,
        wrap: &SecretKey,
        random: &dyn Random,
    ) -> Result<Slot, KeyError> {
        // Invariant: a nonce is never reused under one key. The wrapping key stays, since its
        // credential and salt do, so the nonce is drawn anew.
        let mut renewed = slot.clone();
        renewed.nonce = random_bytes(random)?;
        let aad = format::slot_aad(self.suite, self.store_id, &renewed);
        let sealed = aead::seal(wrap, &renewed.nonce, &aad, self.master.expose());
        renewed.wrapped = fixed::<WRAPPED_BYTES>(&sealed);
        Ok(renewed)
    }
}
