//! The small blobs of a store that lies in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{BackendError, Copy, Item, KeyStore};

/// A key store in memory, for tests and throw-away stores.
#[derive(Default)]
pub struct MemoryKeyStore {
    blobs: Mutex<BTreeMap<(Item, Copy), Vec<u8>>>,
}

impl MemoryKeyStore {
    /// An empty key store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Clone for MemoryKeyStore {
    fn clone(&self) -> Self {
        let blobs = self
            .blobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Self {
            blobs: Mutex::new(blobs),
        }
    }
}

impl KeyStore for MemoryKeyStore {
    fn read(&self, item: Item, copy: Copy) -> Result<Option<Vec<u8>>, BackendError> {
        Ok(self
            .blobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&(item, copy))
            .cloned())
    }

    fn write(&self, item: Item, copy: Copy, bytes: &[u8]) -> Result<(), BackendError> {
        self.blobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((item, copy), bytes.to_vec());
        Ok(())
    }

    fn destroy(&self, item: Item) -> Result<(), BackendError> {
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        blobs.remove(&(item, Copy::A));
        blobs.remove(&(item, Copy::B));
        Ok(())
    }

    fn tenants(&self) -> Result<Vec<[u8; 16]>, BackendError> {
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(blobs
            .keys()
            .filter_map(|(item, _)| match item {
                Item::Tenant(tag) => Some(*tag),
                Item::Keyring | Item::Aside(..) | Item::State => None,
            })
            .collect())
    }

    fn asides(&self) -> Result<Vec<([u8; 16], u8)>, BackendError> {
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(blobs
            .keys()
            .filter_map(|(item, _)| match item {
                Item::Aside(tag, number) => Some((*tag, *number)),
                Item::Keyring | Item::Tenant(_) | Item::State => None,
            })
            .collect())
    }
}
