//! Plans and commits one change of a tenant's tree: entries, summaries up to the head, contents.
//!
//! A change is planned in memory on checked records. Nothing is written before
//! [`Core::write`] commits it as one batch (a large content is stored ahead of that, under
//! an id to which nothing refers yet and with a job that would remove it again).

mod commit;
mod reseal;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::audit::{Chain, Draft};
use crate::backend::Batch;
use crate::clock::UnixMillis;
use crate::key::TenantKeys;
use crate::path::MemoryPath;
use crate::record::{
    ContentId, Dirent, DirentBody, FileKind, FileMeta, Job, JobId, NameTag, NodeId, RecordKey,
    Removal, Share, Summary, TrashDirectory,
};

use super::StoreError;
use super::reader::Reader;
use super::sweep::Bounds;
use super::tenant::{Tenant, TenantCrypto};
use super::walk::Directory;

/// Up to this many chunks of content ride in the batch of the change itself.
pub(super) const CHUNKS_INLINE_MAX: u32 = 300;

/// A change in the making. Reads through [`Change::reader`] see the tree before it.
pub(crate) struct Change<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) crypto: Arc<TenantCrypto>,
    tenant: &'a Tenant,
    new_keys: Option<TenantKeys>,
    directories: BTreeMap<NodeId, Planned>,
    batch: Batch,
    chunk_deletes: u32,
    jobs: Vec<(JobId, Option<Job>, Option<[u8; 32]>)>,
    drafts: Vec<(Draft, UnixMillis)>,
    audit: Chain,
    /// Entries for the store's own chain.
    events: Vec<Draft>,
    /// The epoch of new records, and the last one that is retired.
    epochs: (u32, u32),
    pub(super) now: UnixMillis,
}

/// A directory on the way to a changed entry.
struct Planned {
    depth: usize,
    stored: Directory,
    parent: Option<Own>,
    entries: BTreeMap<NameTag, Edit>,
    /// New lower bounds, where all below was looked at.
    bounds: Option<Bounds>,
}

/// The directory's own entry in its parent.
struct Own {
    parent: NodeId,
    tag: NameTag,
    entry: Dirent,
    mac: Option<[u8; 32]>,
}

/// An entry as the plan has it, and the hash of its stored record if it has one.
type Stored = (Dirent, Option<[u8; 32]>);

/// What an entry was (with its record's hash) and what it becomes.
struct Edit {
    old: Option<(Share, [u8; 32])>,
    new: Option<Dirent>,
}

/// Content to be stored under a path.
pub(crate) struct NewFile<'a> {
    pub(crate) kind: FileKind,
    pub(crate) bytes: &'a [u8],
    pub(crate) lines: u64,
    pub(crate) policy_digest: [u8; 32],
}

impl<'a> Change<'a> {
    /// The tree as it is before this change.
    pub(crate) fn reader(&self) -> &Reader<'a> {
        &self.reader
    }

    /// The keyed digest by which a removed value is known within this tenant.
    pub(crate) fn pseudonym(&self, value: &[u8]) -> [u8; 32] {
        self.crypto.pseudonym(value)
    }

    /// Adds an audit entry to this change: it is written with it or not at all.
    pub(crate) fn audit(&mut self, draft: Draft) {
        self.audit_at(draft, self.now);
    }

    /// As [`Change::audit`], for something that happened a moment ago.
    pub(super) fn audit_at(&mut self, draft: Draft, time: UnixMillis) {
        self.drafts.push((draft, time));
    }

    /// Removes audit entries older than `before`, some at a time. Says how many.
    pub(super) fn prune(&mut self, before: UnixMillis) -> Result<usize, StoreError> {
        let core = self.reader.core;
        let was = self.batch.deletes.len();
        self.audit = core.prune_step(self.crypto.id, self.audit, before, &mut self.batch)?;
        Ok(self.batch.deletes.len() - was)
    }

    /// Stores a file, in place of the one that may be there; missing directories are made.
    pub(crate) fn put_file(
        &mut self,
        path: &MemoryPath,
        file: &NewFile<'_>,
    ) -> Result<(), StoreError> {
        let (directory, name) = self.enter_parent(path)?;
        let tag = self.crypto.name_tag(directory, name);
        let old = self.entry(directory, name)?;
        let previous = match &old {
            None => None,
            Some((entry, _)) => match &entry.body {
                DirentBody::File(meta) => Some((entry.node, *meta)),
                DirentBody::Directory { .. } | DirentBody::Hold(_) => {
                    return Err(StoreError::Limit(
                        "a directory stands where the file would go",
                    ));
                }
            },
        };
        let content = self.write_content(file.bytes)?;
        if let Some((_, meta)) = &previous {
            self.drop_content(meta)?;
        }
        let meta = FileMeta {
            kind: file.kind,
            content,
            bytes: file.bytes.len() as u64,
            lines: file.lines,
            created: previous.as_ref().map_or(self.now, |(_, meta)| meta.created),
            modified: self.now,
            accessed: self.now,
            policy_digest: file.policy_digest,
        };
        let node = match previous {
            Some((node, _)) => node,
            None => NodeId(self.random_id()?),
        };
        let body = DirentBody::File(meta);
        let entry = Dirent {
            name: name.to_owned(),
            directory,
            node,
            body,
        };
        self.set_entry(directory, tag, old, Some(entry))
    }

    /// Notes under which policy a file was scanned, and changes nothing else of it.
    pub(crate) fn set_policy_digest(
        &mut self,
        path: &MemoryPath,
        digest: [u8; 32],
    ) -> Result<(), StoreError> {
        self.change_meta(path, |meta| meta.policy_digest = digest)
    }

    /// Sets a file's last access, and changes nothing else of it.
    pub(crate) fn set_accessed(
        &mut self,
        path: &MemoryPath,
        accessed: UnixMillis,
    ) -> Result<(), StoreError> {
        self.change_meta(path, |meta| meta.accessed = accessed)
    }

    fn change_meta(
        &mut self,
        path: &MemoryPath,
        change: impl FnOnce(&mut FileMeta),
    ) -> Result<(), StoreError> {
        let (directory, name) = self.enter_parent(path)?;
        let tag = self.crypto.name_tag(directory, name);
        let old = self.entry(directory, name)?;
        let Some((entry, _)) = &old else {
            return Err(StoreError::Damaged("a directory"));
        };
        let mut new = entry.clone();
        if let DirentBody::File(meta) = &mut new.body {
            change(meta);
        }
        self.set_entry(directory, tag, old, Some(new))
    }

    /// Notes a file's last access, and changes nothing else of it. It may be gone by now.
    pub(crate) fn touch_if_there(&mut self, path: &MemoryPath) -> Result<(), StoreError> {
        let now = self.now;
        match self.reader.walk(path)?.target() {
            Some(Dirent {
                body: DirentBody::File(_),
                ..
            }) => self.change_meta(path, |meta| meta.accessed = now),
            _ => Ok(()),
        }
    }

    /// Takes away an expired file.
    pub(super) fn purge(&mut self, path: &MemoryPath) -> Result<(), StoreError> {
        let (directory, name) = self.enter_parent(path)?;
        self.entry(directory, name).map(drop)
    }

    /// Raises the lower bounds of a directory: accesses and removals leave them too low, and
    /// what looks as if it held something expired is walked again and again.
    pub(super) fn tighten(
        &mut self,
        directory: &MemoryPath,
        bounds: Bounds,
    ) -> Result<(), StoreError> {
        self.enter_top(self.reader.root());
        let mut at = NodeId::ROOT;
        for (depth, component) in directory.components().enumerate() {
            at = self.enter(at, component, depth + 1)?;
        }
        self.planned(at)?.bounds = Some(bounds);
        Ok(())
    }

    /// How many operations the batch will about have.
    pub(super) fn operations(&self) -> usize {
        let entries: usize = self
            .directories
            .values()
            .map(|planned| planned.entries.len() + 1)
            .sum();
        entries + self.batch.operations()
    }

    /// Removes a directory whose entries this change has all removed already.
    pub(crate) fn remove_emptied(&mut self, path: &MemoryPath) -> Result<(), StoreError> {
        let (directory, name) = self.enter_parent(path)?;
        let tag = self.crypto.name_tag(directory, name);
        let old = self.entry(directory, name)?;
        self.set_entry(directory, tag, old, None)
    }

    /// Removes a file, or a directory with all that is below it.
    pub(crate) fn remove(&mut self, path: &MemoryPath) -> Result<(), StoreError> {
        let (directory, name) = self.enter_parent(path)?;
        let tag = self.crypto.name_tag(directory, name);
        let old = self.entry(directory, name)?;
        let Some((entry, _)) = &old else {
            return Err(StoreError::Damaged("a directory"));
        };
        match &entry.body {
            DirentBody::File(meta) => self.drop_content(&meta.clone())?,
            DirentBody::Directory { summary, .. } if summary.entries > 0 => {
                let unchecked = Some((summary.entries, summary.set_hash));
                let directories = vec![TrashDirectory {
                    id: entry.node,
                    unchecked,
                }];
                self.add_job(Removal {
                    tag: self.tenant.tag,
                    tenant: self.crypto.id,
                    directories,
                    content: None,
                })?;
            }
            DirentBody::Directory { .. } | DirentBody::Hold(_) => {}
        }
        self.set_entry(directory, tag, old, None)
    }

    /// Moves a file or directory; missing directories on the way are made.
    pub(crate) fn rename(&mut self, from: &MemoryPath, to: &MemoryPath) -> Result<(), StoreError> {
        let (old_directory, old_name) = self.enter_parent(from)?;
        let old_tag = self.crypto.name_tag(old_directory, old_name);
        let old = self.entry(old_directory, old_name)?;
        let Some((entry, _)) = &old else {
            return Err(StoreError::Damaged("a directory"));
        };
        let mut moved = entry.clone();
        self.set_entry(old_directory, old_tag, old, None)?;
        let (directory, name) = self.enter_parent(to)?;
        moved.name = name.to_owned();
        moved.directory = directory;
        match &mut moved.body {
            DirentBody::Directory { moved_at, .. } => *moved_at = self.now,
            DirentBody::File(meta) => meta.accessed = self.now,
            DirentBody::Hold(_) => {}
        }
        let tag = self.crypto.name_tag(directory, name);
        let taken = self.entry(directory, name)?;
        self.set_entry(directory, tag, taken, Some(moved))
    }

    /// Loads the directories along a path into the plan and returns the last one and the name in it.
    fn enter_parent<'p>(&mut self, path: &'p MemoryPath) -> Result<(NodeId, &'p str), StoreError> {
        let name = path
            .name()
            .ok_or(StoreError::Limit("the root is no file"))?;
        self.enter_top(self.reader.root());
        let mut at = NodeId::ROOT;
        let parents = path.depth().saturating_sub(1);
        for (depth, component) in path.components().take(parents).enumerate() {
            at = self.enter(at, component, depth + 1)?;
        }
        Ok((at, name))
    }

    /// Loads a directory that has no entry of its own into the plan.
    pub(super) fn enter_top(&mut self, stored: Directory) {
        self.directories
            .entry(stored.id)
            .or_insert_with(|| Planned {
                depth: 0,
                stored,
                parent: None,
                entries: BTreeMap::new(),
                bounds: None,
            });
    }

    fn enter(&mut self, parent: NodeId, name: &str, depth: usize) -> Result<NodeId, StoreError> {
        let tag = self.crypto.name_tag(parent, name);
        let (entry, mac) = match self.entry(parent, name)? {
            Some((entry, mac)) => (entry, mac),
            None => {
                let node = NodeId(self.random_id()?);
                let body = DirentBody::Directory {
                    summary: Summary::EMPTY,
                    moved_at: self.now,
                };
                let entry = Dirent {
                    name: name.to_owned(),
                    directory: parent,
                    node,
                    body,
                };
                self.set_entry(parent, tag, None, Some(entry.clone()))?;
                (entry, None)
            }
        };
        let above = self.planned(parent)?;
        let Some(directory) = above.stored.child(&entry) else {
            return Err(StoreError::Limit(
                "a file stands where a directory would go",
            ));
        };
        self.directories
            .entry(directory.id)
            .or_insert_with(|| Planned {
                depth,
                stored: directory.clone(),
                parent: Some(Own {
                    parent,
                    tag,
                    entry,
                    mac,
                }),
                entries: BTreeMap::new(),
                bounds: None,
            });
        Ok(directory.id)
    }

    fn planned(&mut self, directory: NodeId) -> Result<&mut Planned, StoreError> {
        self.directories
            .get_mut(&directory)
            .ok_or(StoreError::Damaged("a directory"))
    }

    /// An entry as the plan has it so far; the hash is that of its stored record, if it has
    /// one. An expired file does not exist: the plan takes it away here.
    pub(super) fn entry(
        &mut self,
        directory: NodeId,
        name: &str,
    ) -> Result<Option<Stored>, StoreError> {
        let tag = self.crypto.name_tag(directory, name);
        let planned = self.planned(directory)?;
        if let Some(edit) = planned.entries.get(&tag) {
            let mac = edit.old.as_ref().map(|(_, mac)| *mac);
            return Ok(edit.new.clone().map(|entry| (entry, mac)));
        }
        let stored = planned.stored.clone();
        let Some(found) = self.reader.lookup(&stored, name)? else {
            return Ok(None);
        };
        let old = Some((found.entry, Some(found.mac)));
        let expired = match &old {
            Some((entry, _)) if self.reader.is_expired(&stored, entry) => file_of(entry),
            _ => None,
        };
        if let Some(meta) = expired {
            self.drop_content(&meta)?;
            self.set_entry(directory, tag, old, None)?;
            return Ok(None);
        }
        Ok(old)
    }

    pub(super) fn set_entry(
        &mut self,
        directory: NodeId,
        tag: NameTag,
        old: Option<Stored>,
        new: Option<Dirent>,
    ) -> Result<(), StoreError> {
        let planned = self.planned(directory)?;
        let stored = old.and_then(|(entry, mac)| Some((entry.share(), mac?)));
        planned
            .entries
            .entry(tag)
            .and_modify(|edit| edit.new.clone_from(&new))
            .or_insert(Edit { old: stored, new });
        Ok(())
    }

    pub(super) fn random_id(&self) -> Result<[u8; 16], StoreError> {
        let mut id = [0; 16];
        self.reader.core.random.fill(&mut id)?;
        Ok(id)
    }

    fn add_job(&mut self, job: Removal) -> Result<(), StoreError> {
        let id = JobId(self.random_id()?);
        self.jobs.push((id, Some(Job::Remove(job)), None));
        Ok(())
    }

    /// Seals content into chunks under a new id.
    fn write_content(&mut self, bytes: &[u8]) -> Result<ContentId, StoreError> {
        let content = ContentId(self.random_id()?);
        let core = self.reader.core;
        let chunks = super::content::chunks(bytes);
        let count = chunks.len();
        if count <= CHUNKS_INLINE_MAX as usize {
            for (number, chunk) in chunks.enumerate() {
                let pair = super::content::seal(core, &self.crypto, content, number, &chunk)?;
                self.batch.puts.push(pair);
            }
            return Ok(content);
        }
        let (job, mac) = super::content::stage(core, self.tenant, &self.crypto, content, bytes)?;
        self.jobs.push((job, None, Some(mac)));
        Ok(content)
    }

    /// Removes the chunks of a content: with this batch, or by a job when there are many.
    fn drop_content(&mut self, meta: &FileMeta) -> Result<(), StoreError> {
        let chunks = meta.chunks();
        if self.chunk_deletes.saturating_add(chunks) > CHUNKS_INLINE_MAX {
            let content = Some((meta.content, chunks));
            return self.add_job(Removal {
                tag: self.tenant.tag,
                tenant: self.crypto.id,
                directories: Vec::new(),
                content,
            });
        }
        self.chunk_deletes += chunks;
        for number in 0..chunks {
            let key = RecordKey::Chunk(self.crypto.id, meta.content, number);
            self.batch.deletes.push(key.to_bytes());
        }
        Ok(())
    }
}

/// What is known of a file, if the entry is one.
fn file_of(entry: &Dirent) -> Option<FileMeta> {
    match &entry.body {
        DirentBody::File(meta) => Some(*meta),
        DirentBody::Directory { .. } | DirentBody::Hold(_) => None,
    }
}

impl Change<'_> {
    fn staged(&self) -> impl Iterator<Item = JobId> + '_ {
        self.jobs
            .iter()
            .filter(|(_, job, _)| job.is_none())
            .map(|(id, ..)| *id)
    }

    /// Hands what was stored ahead of a change that does not happen to the reaper.
    fn abandon(self) {
        let staged: Vec<JobId> = self.staged().collect();
        self.reader.core.release_staged(&staged);
    }
}
