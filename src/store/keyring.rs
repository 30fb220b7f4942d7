//! Keeps the keyring's two copies on disk and its counter in the root.

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

    /// Changes the key slots. The keyring is durable before the root names its counter, so
    /// that a crash between the two leaves a keyring that is newer than the root: allowed.
    pub(crate) fn change_keyring<T>(
        &self,
        event: &str,
        change: impl FnOnce(&mut Keyring) -> Result<T, KeyError>,
    ) -> Result<T, StoreError> {
        let core: &Core = &self.core;
        core.check_writable()?;
        let mut keyring = core.lock_keyring();
        let value = change(&mut keyring)?;
        // Once the slots have changed in memory, a keyring that may not be on disk must
        // not reach the root: the store would refuse it as too old.
        // Until both copies are on the disk, the root must not name the new counter: the
        // store would refuse its own keyring as too old.
        write(&*core.keys, &keyring).map_err(|_| {
            core.fail();
            StoreError::OutcomeUnknown
        })?;
        core.keyring_written(keyring.counter());
        drop(keyring);
        let seq = core.commit_noted(vec![Draft::new(event)])?;
        core.wait_durable(seq)?;
        Ok(value)
    }
}
