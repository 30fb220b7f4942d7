//! Directories that were listed not long ago: their opened entries, so that the next page of a
//! listing need not read and open all of them again.
//!
//! A listing counts for one set hash only, which the checked summary above it names. So it is
//! just what a new read would have to find, or that read would fail.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::record::{Dirent, NodeId, SetHash, TenantId};

use super::StoreError;
use super::reader::Reader;
use super::walk::Directory;

/// How many entries all listings together may hold: about 16 MiB.
const ENTRIES_MAX: usize = 50_000;

/// How many listings are kept at most.
const LISTINGS_MAX: NonZeroUsize = match NonZeroUsize::new(256) {
    Some(most) => most,
    None => NonZeroUsize::MIN,
};

/// A directory's entries in byte order of their names, and the set hash for which they count.
type Listing = (SetHash, Arc<[Dirent]>);

/// The latest listings of all tenants' directories.
pub(super) struct Listings(Mutex<Inner>);

struct Inner {
    listings: LruCache<(TenantId, NodeId), Listing>,
    entries: usize,
}

impl Listings {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Inner {
            listings: LruCache::new(LISTINGS_MAX),
            entries: 0,
        }))
    }

    /// The entries of a directory, if it was listed at this set hash.
    pub(super) fn at(
        &self,
        directory: (TenantId, NodeId),
        set_hash: &SetHash,
    ) -> Option<Arc<[Dirent]>> {
        let mut inner = self.lock();
        let (of, entries) = inner.listings.get(&directory)?;
        if of == set_hash {
            return Some(Arc::clone(entries));
        }
        inner.remove(&directory);
        None
    }

    /// Keeps a listing, unless it is larger than all may be together.
    pub(super) fn keep(
        &self,
        directory: (TenantId, NodeId),
        set_hash: SetHash,
        entries: &Arc<[Dirent]>,
    ) {
        if entries.len() > ENTRIES_MAX {
            return;
        }
        let mut inner = self.lock();
        inner.entries += entries.len();
        let listing = (set_hash, Arc::clone(entries));
        if let Some((_, (_, old))) = inner.listings.push(directory, listing) {
            inner.entries = inner.entries.saturating_sub(old.len());
        }
        while inner.entries > ENTRIES_MAX {
            let Some((_, (_, dropped))) = inner.listings.pop_lru() else {
                break;
            };
            inner.entries = inner.entries.saturating_sub(dropped.len());
        }
    }

    /// Forgets all names of a tenant.
    pub(super) fn forget(&self, tenant: TenantId) {
        let mut inner = self.lock();
        let of_tenant =
            |(key, _): (&(TenantId, NodeId), &Listing)| (key.0 == tenant).then_some(*key);
        let keys: Vec<_> = inner.listings.iter().filter_map(of_tenant).collect();
        for key in keys {
            inner.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader<'_> {
    /// As [`Reader::children`], from memory where the directory was listed just so before.
    pub(crate) fn listed(&self, directory: &Directory) -> Result<Arc<[Dirent]>, StoreError> {
        let Some(live) = &self.live else {
            return Ok(Arc::default());
        };
        // There the time decides what exists.
        if self.may_hold_expired(directory) {
            return Ok(self.children(directory)?.into());
        }
        let at = (live.crypto.id, directory.id);
        let set_hash = directory.summary.set_hash;
        if let Some(entries) = self.core.indexes.listings.at(at, &set_hash) {
            return Ok(entries);
        }
        let entries: Arc<[Dirent]> = self.all_children(directory)?.into();
        self.core.indexes.listings.keep(at, set_hash, &entries);
        Ok(entries)
    }
}

impl Inner {
    fn remove(&mut self, directory: &(TenantId, NodeId)) {
        if let Some((_, entries)) = self.listings.pop(directory) {
            self.entries = self.entries.saturating_sub(entries.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: TenantId = TenantId([1; 16]);

    fn listing(count: usize) -> Arc<[Dirent]> {
        let entry = Dirent {
            name: "a.md".to_owned(),
            directory: NodeId([2; 16]),
            node: NodeId([3; 16]),
            body: crate::record::DirentBody::Hold(crate::record::Hold {
                reason: String::new(),
                created: 0,
                until: None,
            }),
        };
        vec![entry; count].into()
    }

    fn directory(number: u8) -> (TenantId, NodeId) {
        (TENANT, NodeId([number; 16]))
    }

    #[test]
    fn a_listing_counts_for_its_set_hash_only() {
        let listings = Listings::new();
        let (then, now) = (SetHash([1; 32]), SetHash([2; 32]));
        listings.keep(directory(1), then, &listing(3));
        assert_eq!(listings.at(directory(1), &then).unwrap().len(), 3);
        assert!(listings.at(directory(1), &now).is_none());
        assert!(listings.at(directory(1), &then).is_none(), "it is dropped");
        assert_eq!(listings.lock().entries, 0);
    }

    #[test]
    fn all_listings_together_stay_within_the_bound() {
        let listings = Listings::new();
        let hash = SetHash([1; 32]);
        for number in 0..4 {
            listings.keep(directory(number), hash, &listing(20_000));
        }
        assert_eq!(listings.lock().entries, 40_000);
        assert!(listings.at(directory(1), &hash).is_none());
        assert!(listings.at(directory(3), &hash).is_some());
        listings.keep(directory(9), hash, &listing(ENTRIES_MAX + 1));
        assert!(listings.at(directory(9), &hash).is_none());
        listings.keep(directory(3), hash, &listing(5));
        assert_eq!(listings.lock().entries, 20_005);
    }

    #[test]
    fn the_names_of_an_erased_tenant_are_forgotten() {
        let listings = Listings::new();
        let hash = SetHash([1; 32]);
        let other = (TenantId([7; 16]), NodeId::ROOT);
        listings.keep(directory(1), hash, &listing(2));
        listings.keep(other, hash, &listing(2));
        listings.forget(TENANT);
        assert!(listings.at(directory(1), &hash).is_none());
        assert!(listings.at(other, &hash).is_some());
        assert_eq!(listings.lock().entries, 2);
    }
}
