//! Keeps the keyring's two copies on disk and its counter in the root.

use std::collections::HashSet;

use crate::audit::Draft;
use crate::backend::{Copy, Item, KeyStore};
use crate::key::{KeyError, Keyring};

use super::core::Core;
use super::{Store, StoreError};

/// Writes both copies, one after the other, each durably.
pub(super) fn write(keys: &dyn KeyStore, keyring: &Keyring) -> Result<(), StoreError> {
    let bytes = keyring.encode();
    keys.write(Item::Keyring, Copy::A, &bytes)?;
    Ok(keys.write(Item::Keyring, Copy::B, &bytes)?)
}

impl Store {
    /// Looks at the keyring, for `key list`.
    pub(crate) fn with_keyring<T>(&self, look: impl FnOnce(&Keyring) -> T) -> T {
        look(&self.core.lock_keyring())
    }

    /// How often a loss was accepted.
    pub(crate) fn era(&self) -> u32 {
        self.core.root().era
    }

    /// The format of the stored bytes: all of them go by the keyring's.
    pub(crate) fn format(&self) -> u8 {
        crate::seal::FORMAT
    }

    /// Changes the key slots.
    pub(crate) fn change_keyring<T>(
        &self,
        event: &str,
        change: impl FnOnce(&mut Keyring) -> Result<T, KeyError>,
    ) -> Result<T, StoreError> {
        self.core.check_writable()?;
        let mut keyring = self.core.lock_keyring();
        let value = self.core.replace_keyring(&mut keyring, change)?;
        drop(keyring);
        let seq = self.core.commit_noted(vec![Draft::new(event)])?;
        self.core.wait_durable(seq)?;
        Ok(value)
    }

    /// Gives the store a new master key, and seals all tenants' key files anew. `change` does
    /// the first with [`Keyring::rotate_master`]; `progress` is told of the second.
    pub(crate) fn rotate_master<T>(
        &self,
        change: impl FnOnce(&mut Keyring) -> Result<T, KeyError>,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<T, StoreError> {
        let core: &Core = &self.core;
        let _one_at_a_time = core.lock_master();
        core.finish_master()?;
        // A key file that cannot be opened now could not be sealed anew either.
        for tag in core.known_heads() {
            match core.read_tenant_keys(tag) {
                // Erased since it was listed.
                Err(_) if core.known_head(tag).is_none() => {}
                found => drop(found?),
            }
        }
        let value = self.change_keyring("key rotate --master", change)?;
        core.rewrap_all(&mut progress)?;
        Ok(value)
    }
}

impl Core {
    /// Changes the keyring on the disk, then in memory. It is durable before the root names
    /// its counter, so that a crash between the two leaves a keyring that is newer than the
    /// root: allowed.
    fn replace_keyring<T>(
        &self,
        keyring: &mut Keyring,
        change: impl FnOnce(&mut Keyring) -> Result<T, KeyError>,
    ) -> Result<T, StoreError> {
        let mut next = keyring.copy();
        let value = change(&mut next)?;
        let bytes = next.encode();
        if let Err(error) = self.keys.write(Item::Keyring, Copy::A, &bytes) {
            // Mostly the old copies are both still there and in force: nothing has happened.
            let stored = self.keys.read(Item::Keyring, Copy::A);
            if matches!(stored, Ok(Some(stored)) if stored == keyring.encode()) {
                return Err(error.into());
            }
            self.fail();
            return Err(StoreError::OutcomeUnknown);
        }
        // From here on the new one counts, but until both copies are on the disk the root must
        // not name its counter: the store would refuse its own keyring as too old.
        self.keys
            .write(Item::Keyring, Copy::B, &bytes)
            .map_err(|_| {
                self.fail();
                StoreError::OutcomeUnknown
            })?;
        *keyring = next;
        self.keyring_written(keyring.counter());
        Ok(value)
    }

    /// Ends a rotation of the master key that was interrupted.
    pub(super) fn finish_master_rotation(&self) -> Result<(), StoreError> {
        let _one_at_a_time = self.lock_master();
        self.finish_master()
    }

    fn finish_master(&self) -> Result<(), StoreError> {
        let is_unfinished = self.lock_keyring().store_keys().former_tenant.is_some();
        if is_unfinished {
            self.rewrap_all(&mut |_, _| ())?;
        }
        Ok(())
    }

    /// Seals all key files under the current key, then forgets the former one.
    fn rewrap_all(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<(), StoreError> {
        let mut done = HashSet::new();
        loop {
            // A store that takes no writes leaves stale files as they are, for ever.
            self.check_writable()?;
            while !self.rewrap_step(&mut done)? {
                self.check_writable()?;
                progress(done.len() as u64, self.known_heads().len() as u64);
            }
            let mut keyring = self.lock_keyring();
            if !self.is_rewrapped(&keyring)? {
                done.clear();
                continue;
            }
            self.replace_keyring(&mut keyring, |keyring| keyring.retire_former(&*self.random))?;
            break;
        }
        let draft = Draft::new("key rotate --master").detail("the former key is retired");
        let seq = self.commit_noted(vec![draft])?;
        self.wait_durable(seq)
    }
}
