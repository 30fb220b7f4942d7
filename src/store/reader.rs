//! Reads a tenant's tree at one head, and checks every answer against the summary above it.
//!
//! A reader takes no lock. A record that does not fit may be damage, or a write that
//! happened meanwhile; [`Core::read`] tells them apart.

use std::collections::HashMap;
use std::sync::Arc;

use crate::key::Plain;
use crate::path::{MemoryPath, ROOT};
use crate::record::{
    CHUNK_BYTES, Dirent, DirentBody, FileMeta, NameTag, NodeId, RecordKey, SetHash, Share, Summary,
    padded_content_bytes,
};
use crate::seal;

use super::core::Core;
use super::expiry::Expiry;
use super::index::{ShortMac, short};
use super::tenant::{Live, Tenant};
use super::walk::{Directory, Urgency, Walk};
use super::{Abort, StoreError};

/// How often a read is tried without the tenant's lock.
const TRIES_WITHOUT_LOCK: u32 = 3;

/// Records that one scan step asks for.
pub(super) const SCAN_RECORDS: usize = 1_000;

/// For so many entries of a directory room is made before they are read.
const ENTRIES_AHEAD: usize = 16_384;

/// A tenant's tree at one head. What is expired does not exist in it.
pub(crate) struct Reader<'a> {
    pub(super) core: &'a Core,
    pub(super) live: Option<Arc<Live>>,
    pub(super) expiry: Option<Expiry>,
}

/// A record of a directory, with the hash under which the directory counts it.
pub(super) struct Checked {
    pub(super) entry: Dirent,
    pub(super) mac: [u8; 32],
}

impl Reader<'_> {
    /// The tenant's `/memories`; empty for a tenant that does not exist yet.
    pub(crate) fn root(&self) -> Directory {
        let summary = self
            .live
            .as_ref()
            .map_or(Summary::EMPTY, |live| live.head.root);
        Directory {
            id: NodeId::ROOT,
            summary,
            path: ROOT.to_owned(),
            moved_at: 0,
        }
    }

    /// Whether a view of the file at the end of this walk should write its access time.
    pub(crate) fn access_write(&self, walk: &Walk, file: &FileMeta) -> Option<Urgency> {
        let expiry = self.expiry.as_ref()?;
        let path = walk.directory.path_of(&walk.target()?.name);
        let accessed = file.accessed.max(walk.directory.moved_at);
        if !expiry.schedule.should_touch(&path, accessed, expiry.now) {
            return None;
        }
        let is_urgent = expiry.schedule.is_urgent(&path, accessed, expiry.now);
        Some(if is_urgent {
            Urgency::Now
        } else {
            Urgency::Soon
        })
    }

    /// The tenant's list of holds, as a directory.
    pub(super) fn hold_list(&self) -> Directory {
        let summary = self
            .live
            .as_ref()
            .map_or(Summary::EMPTY, |live| live.head.holds);
        Directory {
            id: NodeId::HOLDS,
            summary,
            path: String::new(),
            moved_at: 0,
        }
    }

    /// The keyed digest by which a removed value is known within this tenant.
    pub(crate) fn pseudonym(&self, value: &[u8]) -> [u8; 32] {
        self.live
            .as_ref()
            .map_or([0; 32], |live| live.crypto.pseudonym(value))
    }

    /// Follows a path from the root as far as it exists.
    pub(crate) fn walk(&self, path: &MemoryPath) -> Result<Walk, StoreError> {
        let mut walk = Walk {
            entries: Vec::new(),
            directory: self.root(),
            depth: path.depth(),
        };
        for name in path.components() {
            let Some(found) = self.lookup(&walk.directory, name)? else {
                break;
            };
            if self.is_expired(&walk.directory, &found.entry) {
                break;
            }
            let next = walk.directory.child(&found.entry);
            walk.entries.push(found.entry);
            match next {
                Some(next) => walk.directory = next,
                None => break,
            }
        }
        Ok(walk)
    }

    /// One entry of a directory.
    pub(super) fn lookup(
        &self,
        directory: &Directory,
        name: &str,
    ) -> Result<Option<Checked>, StoreError> {
        let Some(live) = &self.live else {
            return Ok(None);
        };
        if directory.summary.entries == 0 {
            return Ok(None);
        }
        let crypto = &live.crypto;
        let tag = crypto.name_tag(directory.id, name);
        let at = (crypto.id, directory.id);
        let set_hash = &directory.summary.set_hash;
        let expected = match self.core.indexes.expected(at, set_hash, tag) {
            Some(expected) => expected,
            None => self.check_directory(directory, Some(tag), |_, _| Ok(()))?,
        };
        let key = RecordKey::Dirent(crypto.id, directory.id, tag).to_bytes();
        let value = self.core.backend.get(&key)?;
        let (expected, value) = match (expected, value) {
            (None, None) => return Ok(None),
            (Some(expected), Some(value)) => (expected, value),
            _ => return Err(StoreError::Damaged("a directory")),
        };
        let mac = seal::record_mac(&crypto.inventory, &key, &value);
        if short(&mac) != expected {
            return Err(StoreError::Damaged("a directory"));
        }
        let entry = crypto.open_entry(&key, &value)?;
        if entry.name != name || entry.directory != directory.id {
            return Err(StoreError::Damaged("a directory"));
        }
        Ok(Some(Checked { entry, mac }))
    }

    /// The entries of a directory that exist, in byte order of their names.
    pub(crate) fn children(&self, directory: &Directory) -> Result<Vec<Dirent>, StoreError> {
        let mut entries = self.all_children(directory)?;
        if self.may_hold_expired(directory) {
            entries.retain(|entry| !self.is_expired(directory, entry));
        }
        Ok(entries)
    }

    /// Totals of what exists below a directory.
    pub(crate) fn totals(&self, directory: &Directory) -> Result<Share, StoreError> {
        if !self.may_hold_expired(directory) {
            return Ok(directory.summary.below);
        }
        let mut totals = Share::NOTHING;
        for entry in self.children(directory)? {
            let share = match directory.child(&entry) {
                Some(below) => {
                    let below = self.totals(&below)?;
                    Share {
                        directories: below.directories + 1,
                        ..below
                    }
                }
                None => entry.share(),
            };
            totals = totals.replace(Share::NOTHING, share).unwrap_or(totals);
        }
        Ok(totals)
    }

    /// All entries of a directory, expired ones too, in byte order of their names.
    pub(super) fn all_children(&self, directory: &Directory) -> Result<Vec<Dirent>, StoreError> {
        let Some(live) = &self.live else {
            return Ok(Vec::new());
        };
        let mut entries = Vec::new();
        self.check_directory(directory, None, |key, value| {
            let entry = live.crypto.open_entry(key, value)?;
            if entry.directory != directory.id {
                return Err(StoreError::Damaged("a directory"));
            }
            entries.push(entry);
            Ok(())
        })?;
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// How many levels lie below a directory, and the most bytes a path below it adds:
    /// exactly, by walking all of it.
    pub(crate) fn extent(&self, directory: &Directory) -> Result<(u64, u64), StoreError> {
        let (mut height, mut reach) = (0, 0);
        for entry in self.children(directory)? {
            let below = match directory.child(&entry) {
                Some(below) => self.extent(&below)?,
                None => (0, 0),
            };
            height = height.max(below.0 + 1);
            reach = reach.max(below.1 + 1 + entry.name.len() as u64);
        }
        Ok((height, reach))
    }

    /// A file's content, checked to its last byte of padding.
    pub(crate) fn content(&self, file: &FileMeta) -> Result<Plain, StoreError> {
        let damaged = StoreError::Damaged("a file's content");
        let Some(live) = &self.live else {
            return Err(damaged);
        };
        let padded_bytes = usize::try_from(padded_content_bytes(file.bytes))
            .map_err(|_| StoreError::Damaged("a file's content"))?;
        let mut content = Plain::default();
        for number in 0..file.chunks() {
            let key = RecordKey::Chunk(live.crypto.id, file.content, number).to_bytes();
            let Some(value) = self.core.backend.get(&key)? else {
                return Err(damaged);
            };
            let chunk = live.crypto.open_chunk(&key, &value)?;
            let expected = CHUNK_BYTES.min(padded_bytes.saturating_sub(content.len()));
            if chunk.len() != expected {
                return Err(damaged);
            }
            if chunk.len() == padded_bytes {
                content = chunk;
                continue;
            }
            if number == 0 {
                // At once, so that growing leaves no copies behind.
                content.reserve_exact(padded_bytes);
            }
            content.extend_from_slice(&chunk);
        }
        let bytes = usize::try_from(file.bytes).unwrap_or(usize::MAX);
        let is_padded = content
            .get(bytes..)
            .is_some_and(|padding| padding.iter().all(|byte| *byte == 0));
        if content.len() != padded_bytes || !is_padded {
            return Err(damaged);
        }
        content.truncate(bytes);
        Ok(content)
    }

    /// Reads every record of a directory, hands each to `each`, and checks that together
    /// they are what the summary says. Remembers their hashes, and returns that of `asked`.
    pub(super) fn check_directory(
        &self,
        directory: &Directory,
        asked: Option<NameTag>,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<Option<ShortMac>, StoreError> {
        let damaged = || StoreError::Damaged("a directory");
        let Some(live) = &self.live else {
            return Ok(None);
        };
        let crypto = &live.crypto;
        let prefix = RecordKey::dirents_of(crypto.id, directory.id);
        let mut set_hash = SetHash::default();
        // The summary was checked; still, what it says is not worth more room than a page at once.
        let expected = usize::try_from(directory.summary.entries).unwrap_or(usize::MAX);
        let mut records = HashMap::with_capacity(expected.min(ENTRIES_AHEAD));
        let mut count: u64 = 0;
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = self
                .core
                .backend
                .scan(&prefix, after.as_deref(), SCAN_RECORDS)?;
            let page_len = page.len();
            for (key, value) in page {
                if after.as_ref().is_some_and(|after| *after >= key) {
                    return Err(damaged());
                }
                let Some(RecordKey::Dirent(_, _, tag)) = RecordKey::from_bytes(&key) else {
                    return Err(damaged());
                };
                let mac = seal::record_mac(&crypto.inventory, &key, &value);
                set_hash.add(&mac);
                count += 1;
                if count > directory.summary.entries {
                    return Err(damaged());
                }
                records.insert(tag, short(&mac));
                each(&key, &value)?;
                after = Some(key);
            }
            if page_len < SCAN_RECORDS {
                break;
            }
        }
        if count != directory.summary.entries || set_hash != directory.summary.set_hash {
            return Err(damaged());
        }
        let found = asked.and_then(|tag| records.get(&tag).copied());
        let at = (crypto.id, directory.id);
        self.core.indexes.insert(at, set_hash, records);
        Ok(found)
    }
}

impl Core {
    /// Runs `read` on the tenant's newest tree, and returns once all that it saw is durable.
    ///
    /// A check that fails counts as damage only if no write can be the reason: it is
    /// tried again a few times, the last time under the tenant's lock.
    pub(super) fn read<T, R>(
        &self,
        tenant: &Tenant,
        read: impl Fn(&Reader<'_>) -> Result<T, Abort<R>>,
    ) -> Result<T, Abort<R>> {
        self.read_through(tenant, |live| self.reader(tenant, live), read)
    }

    /// As [`Core::read`], but without a look at the holds: nothing counts as expired.
    pub(super) fn read_all<T, R>(
        &self,
        tenant: &Tenant,
        read: impl Fn(&Reader<'_>) -> Result<T, Abort<R>>,
    ) -> Result<T, Abort<R>> {
        let reader = |live| {
            Ok(Reader {
                core: self,
                live,
                expiry: None,
            })
        };
        self.read_through(tenant, reader, read)
    }

    fn read_through<'a, T, R>(
        &'a self,
        tenant: &Tenant,
        reader: impl Fn(Option<Arc<Live>>) -> Result<Reader<'a>, StoreError>,
        read: impl Fn(&Reader<'_>) -> Result<T, Abort<R>>,
    ) -> Result<T, Abort<R>> {
        self.check_open()?;
        for _ in 0..TRIES_WITHOUT_LOCK {
            let live = tenant.live();
            let before = live.as_ref().map(|live| live.seq);
            match self.read_at(tenant, live, &reader, &read) {
                Err(Abort::Failed(StoreError::Damaged(_)))
                    if tenant.live().map(|live| live.seq) != before => {}
                Err(Abort::Failed(StoreError::Damaged(_))) => break,
                done => return done,
            }
        }
        let lock = tenant.lock();
        let done = self.read_at(tenant, tenant.live(), &reader, &read);
        drop(lock);
        match done {
            Err(Abort::Failed(error)) => Err(self.failed(error).into()),
            done => done,
        }
    }

    fn read_at<'a, T, R>(
        &'a self,
        tenant: &Tenant,
        live: Option<Arc<Live>>,
        reader: &impl Fn(Option<Arc<Live>>) -> Result<Reader<'a>, StoreError>,
        read: &impl Fn(&Reader<'_>) -> Result<T, Abort<R>>,
    ) -> Result<T, Abort<R>> {
        let seq = live.as_ref().map_or(0, |live| live.seq);
        self.check_head(tenant, live.as_deref())?;
        let result = reader(live)
            .map_err(Abort::from)
            .and_then(|reader| read(&reader));
        if !matches!(result, Err(Abort::Failed(_))) {
            self.wait_durable(seq)?;
        }
        result
    }

    /// A reader at this head, now.
    pub(super) fn reader(
        &self,
        tenant: &Tenant,
        live: Option<Arc<Live>>,
    ) -> Result<Reader<'_>, StoreError> {
        let mut reader = Reader {
            core: self,
            live,
            expiry: None,
        };
        let now = self.now();
        // After the time, which is told after them.
        let jumps = self.jumps();
        let mut holds = Vec::new();
        let list = reader.hold_list();
        // Most tenants have none, and the summary in the checked head says so.
        if list.summary.entries > 0 {
            for entry in reader.all_children(&list)? {
                if let DirentBody::Hold(hold) = entry.body
                    && hold.until.is_none_or(|until| now < until)
                {
                    holds.push((entry.name, hold));
                }
            }
        }
        let schedule = tenant.schedule(self.schedules());
        reader.expiry = Some(Expiry {
            schedule,
            now,
            jumps,
            holds,
        });
        Ok(reader)
    }

    /// The stored head must be the one that this process holds.
    fn check_head(&self, tenant: &Tenant, live: Option<&Live>) -> Result<(), StoreError> {
        let stored = self.backend.get(&RecordKey::Head(tenant.tag).to_bytes())?;
        if stored.as_deref() == live.map(|live| live.sealed.as_slice()) {
            Ok(())
        } else {
            Err(StoreError::Damaged("a tenant's head"))
        }
    }
}
