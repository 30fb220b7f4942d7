//! What the store remembers of directories that it has checked: name tag to record hash.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::record::{NameTag, NodeId, SetHash, TenantId};

use super::listings::Listings;

/// How many entries all indexes together may hold: about 32 MiB.
const ENTRIES_MAX: usize = 500_000;

/// How many directories are remembered at most, however small.
const DIRECTORIES_MAX: NonZeroUsize = match NonZeroUsize::new(100_000) {
    Some(most) => most,
    None => NonZeroUsize::MIN,
};

/// The first 16 bytes of a record's keyed hash: enough to compare one record with.
pub(super) type ShortMac = [u8; 16];

/// The first half of a record's keyed hash.
pub(super) fn short(mac: &[u8; 32]) -> ShortMac {
    let (half, _) = mac.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
    *half
}

/// The records of one directory, valid for one set hash only.
pub(super) struct DirectoryIndex {
    set_hash: SetHash,
    entries: HashMap<NameTag, ShortMac>,
}

/// One entry's change: its tag, and its record's hash from now on.
pub(super) type EntryChange = (NameTag, Option<ShortMac>);

/// The indexes of all tenants' directories, the least recently used dropped first.
pub(super) struct Indexes {
    pub(super) listings: Listings,
    inner: Mutex<Inner>,
}

struct Inner {
    directories: LruCache<(TenantId, NodeId), Arc<Mutex<DirectoryIndex>>>,
    entries: usize,
}

impl Indexes {
    pub(super) fn new() -> Self {
        Self {
            listings: Listings::new(),
            inner: Mutex::new(Inner {
                directories: LruCache::new(DIRECTORIES_MAX),
                entries: 0,
            }),
        }
    }

    /// The hash that the record of `name` must have, if the directory is remembered at
    /// `set_hash`: `Some(None)` says that there is no such record.
    pub(super) fn expected(
        &self,
        directory: (TenantId, NodeId),
        set_hash: &SetHash,
        name: NameTag,
    ) -> Option<Option<ShortMac>> {
        let index = self.lock().directories.get(&directory).map(Arc::clone)?;
        let index = index.lock().unwrap_or_else(PoisonError::into_inner);
        (index.set_hash == *set_hash).then(|| index.entries.get(&name).copied())
    }

    /// Remembers a directory that was checked as a whole.
    pub(super) fn insert(
        &self,
        directory: (TenantId, NodeId),
        set_hash: SetHash,
        entries: HashMap<NameTag, ShortMac>,
    ) {
        let added = entries.len();
        let index = Arc::new(Mutex::new(DirectoryIndex { set_hash, entries }));
        let mut inner = self.lock();
        if let Some((_, old)) = inner.directories.push(directory, index) {
            inner.entries = inner.entries.saturating_sub(size(&old));
        }
        inner.entries += added;
        while inner.entries > ENTRIES_MAX && inner.directories.len() > 1 {
            let Some((_, dropped)) = inner.directories.pop_lru() else {
                break;
            };
            inner.entries = inner.entries.saturating_sub(size(&dropped));
        }
    }

    /// Follows a commit that took a directory from one set hash to the next.
    pub(super) fn follow(
        &self,
        directory: (TenantId, NodeId),
        from: &SetHash,
        to: SetHash,
        changes: &[EntryChange],
    ) {
        let mut inner = self.lock();
        let Some(index) = inner.directories.get(&directory).map(Arc::clone) else {
            return;
        };
        let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
        if index.set_hash != *from {
            inner.entries = inner.entries.saturating_sub(index.entries.len());
            inner.directories.pop(&directory);
            return;
        }
        let before = index.entries.len();
        for (name, mac) in changes {
            match mac {
                Some(mac) => index.entries.insert(*name, *mac),
                None => index.entries.remove(name),
            };
        }
        index.set_hash = to;
        inner.entries = (inner.entries + index.entries.len()).saturating_sub(before);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(index: &Mutex<DirectoryIndex>) -> usize {
    index
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entries
        .len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(number: u8) -> (TenantId, NodeId) {
        (TenantId([1; 16]), NodeId([number; 16]))
    }

    /// A directory of so many entries, remembered.
    fn insert(indexes: &Indexes, number: u8, entries: usize) {
        let tag = |at: usize| {
            let mut tag = NameTag([0; 16]);
            tag.0[..8].copy_from_slice(&at.to_le_bytes());
            (tag, [0; 16])
        };
        indexes.insert(
            directory(number),
            SetHash([number; 32]),
            (0..entries).map(tag).collect(),
        );
    }

    fn remembers(indexes: &Indexes, number: u8) -> bool {
        let hash = SetHash([number; 32]);
        indexes
            .expected(directory(number), &hash, NameTag([0; 16]))
            .is_some()
    }

    #[test]
    fn the_longest_unused_directories_go_until_their_entries_fit() {
        let indexes = Indexes::new();
        insert(&indexes, 1, ENTRIES_MAX / 2);
        insert(&indexes, 2, ENTRIES_MAX / 2);
        assert!(remembers(&indexes, 1) && remembers(&indexes, 2));
        assert!(remembers(&indexes, 1), "it was used later");
        insert(&indexes, 3, 1);
        assert!(!remembers(&indexes, 2), "one entry too many");
        // There is room for what the dropped one had, and for what is replaced.
        insert(&indexes, 3, 10);
        insert(&indexes, 4, ENTRIES_MAX / 2 - 10);
        assert!([1, 3, 4].iter().all(|number| remembers(&indexes, *number)));
        insert(&indexes, 5, ENTRIES_MAX + 1);
        assert!(remembers(&indexes, 5), "the last one stays, however large");
        assert!([1, 3, 4].iter().all(|number| !remembers(&indexes, *number)));
    }

    #[test]
    fn a_followed_directory_counts_what_it_has_now() {
        let indexes = Indexes::new();
        insert(&indexes, 1, 2_000);
        let mut name = NameTag([0; 16]);
        name.0[15] = 1;
        let changes = [(name, Some([1; 16])), (NameTag([0; 16]), None)];
        indexes.follow(directory(1), &SetHash([1; 32]), SetHash([9; 32]), &changes);
        insert(&indexes, 2, 1);
        let now = SetHash([9; 32]);
        let of = |name| indexes.expected(directory(1), &now, name);
        assert_eq!(of(name), Some(Some([1; 16])));
        assert_eq!(of(NameTag([0; 16])), Some(None));
        assert!(remembers(&indexes, 2));
        // One that is no longer at the hash that a change begins with is forgotten.
        indexes.follow(directory(1), &SetHash([1; 32]), SetHash([8; 32]), &changes);
        assert_eq!(of(name), None);
    }
}
