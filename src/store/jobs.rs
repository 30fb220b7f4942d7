//! The reaper: does unfinished work in small batches; removes what nothing refers to any more.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::audit::Draft;
use crate::backend::Batch;
use crate::record::{
    Dirent, DirentBody, JOB_DIRECTORIES_MAX, Job, JobId, NodeId, RecordKey, Removal, SetHash,
    TrashDirectory,
};
use crate::seal;

use super::StoreError;
use super::core::{Core, Extra, TopChange};
use super::job_list::StoredJob;
use super::open::scan_all;
use super::tenant::TenantCrypto;

/// The most directory entries that one batch of the reaper removes.
const ENTRIES_PER_BATCH: usize = 64;

/// The most records that one batch of the reaper removes: no reader waits long for it.
const OPERATIONS_PER_BATCH: usize = 256;

/// How long the reaper waits before it tries a full disk again.
const ROOM_WAIT: Duration = Duration::from_secs(1);

/// Works through the jobs until the store closes. Runs on a thread of its own.
pub(super) fn reap(core: &Core) {
    let mut walks = Walks::default();
    if core.finish_master_rotation().is_err() {
        // It is tried again at the next open; until then both keys open the key files.
    }
    while let Some(next) = next(core) {
        let Next::Job(id) = next else {
            // Nothing depends on it, and it is tried again when more has been written.
            let _compacted = core.compact_if_grown();
            continue;
        };
        match core.step_job(id, &mut walks) {
            Ok(()) => std::thread::yield_now(),
            Err(StoreError::NoSpace) if !core.is_purge(id) => {
                core.report_stopped(id, StoreError::NoSpace);
                wait_for_room(core);
            }
            // It stays in the store and is tried again when the store is next opened;
            // writers and readers report what is wrong, `verify` names it.
            Err(error) => {
                core.report_stopped(id, error);
                if core.is_purge(id) {
                    // It still waits for whoever writes the files anew.
                    core.park(id);
                    continue;
                }
                core.jobs
                    .waiting
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&id);
                core.jobs.changed.notify_all();
            }
        }
    }
}

/// Where rotations are in their tenants' trees. Only a matter of time: what is sealed already
/// says so itself.
pub(super) type Walks = HashMap<JobId, super::rotate::Walk>;

/// A full disk may empty again; until then there is nothing to do.
fn wait_for_room(core: &Core) {
    let waiting = core
        .jobs
        .waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if !core.jobs.closing.load(Ordering::Acquire) {
        let _woken = core.jobs.changed.wait_timeout(waiting, ROOM_WAIT);
    }
}

/// What the reaper does next.
enum Next {
    /// A step of a job.
    Job(JobId),
    /// A look at the size of the engine's files.
    Look,
}

/// Waits for something to do. `None`: the store closes.
fn next(core: &Core) -> Option<Next> {
    let mut waiting = core
        .jobs
        .waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    loop {
        if core.jobs.closing.load(Ordering::Acquire) {
            return None;
        }
        let staging = core
            .jobs
            .staging
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let ready = waiting
            .iter()
            .filter(|(id, stored)| !staging.contains(*id) && core.is_ready(stored))
            .min_by_key(|(_, stored)| stored.turn())
            .map(|(id, _)| *id);
        drop(staging);
        if ready.is_some() {
            return ready.map(Next::Job);
        }
        if core.growth.take_look() {
            return Some(Next::Look);
        }
        waiting = core
            .jobs
            .changed
            .wait(waiting)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

impl Core {
    /// Whether a job's record was written anew since the job was looked at. Only a rotation's
    /// is, under its tenant's lock, when another one is asked for meanwhile.
    fn has_changed(&self, id: JobId, job: &Job, mac: [u8; 32]) -> Result<bool, StoreError> {
        let Job::Rotate(job) = job else {
            return Ok(false);
        };
        let tenant = self.tenant_by_tag(job.tag)?;
        let _held = tenant.lock();
        let waiting = self.jobs.waiting.lock();
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        Ok(waiting.get(&id).is_none_or(|stored| stored.mac != mac))
    }

    /// Does one batch of a job's work.
    fn step_job(&self, id: JobId, walks: &mut Walks) -> Result<(), StoreError> {
        let job = self
            .jobs
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned();
        let Some(StoredJob { job, mac }) = job else {
            return Ok(());
        };
        let key = RecordKey::Job(id);
        // A job may have been noted for a write that failed before anything was stored.
        let Some(sealed) = self.backend.get(&key.to_bytes())? else {
            self.forget_job(id);
            return Ok(());
        };
        // What is counted out of the root's hash must be the record that was counted in.
        if self.top_mac(&key, &sealed) != mac {
            if self.has_changed(id, &job, mac)? {
                return Ok(());
            }
            self.note_damage();
            return Err(StoreError::Damaged("the list of unfinished work"));
        }
        let job = match job {
            Job::Remove(job) => job,
            Job::Rotate(job) => return self.step_rotation(id, job, walks.entry(id).or_default()),
            Job::Erase(job) => return self.step_erasure(id, job, mac),
        };
        self.step_removal(id, job, mac)
    }

    fn step_removal(&self, id: JobId, job: Removal, mac: [u8; 32]) -> Result<(), StoreError> {
        // Contents go without keys: a tenant whose first write never finished has none, nor has
        // one that was erased.
        let tenant = match self.tenant_by_tag(job.tag) {
            Err(_) if job.directories.is_empty() || self.known_head(job.tag).is_none() => None,
            tenant => Some(tenant?),
        };
        let _lock = tenant.as_ref().map(|tenant| tenant.lock());
        let live = tenant
            .as_ref()
            .and_then(|tenant| tenant.live())
            .filter(|live| live.crypto.id == job.tenant);
        let mut batch = Batch::default();
        let next = plan_content(job, &mut batch);
        let next = match (next, live) {
            (Step::Descend(job), Some(live)) => {
                self.plan_directory(&live.crypto, job, &mut batch)?
            }
            // The tenant is erased, and all of its records are taken away without looking.
            (Step::Descend(_), None) => None,
            (Step::Left(job), _) => job,
        };
        self.replace_job(id, mac, next.map(Job::Remove), batch)
    }

    /// Commits a batch with a job's record anew, or without it when it is done.
    pub(super) fn replace_job(
        &self,
        id: JobId,
        mac: [u8; 32],
        next: Option<Job>,
        batch: Batch,
    ) -> Result<(), StoreError> {
        self.replace_job_noted(id, mac, next, batch, Vec::new())
    }

    /// As [`Core::replace_job`], with entries for the store's own audit chain.
    pub(super) fn replace_job_noted(
        &self,
        id: JobId,
        mac: [u8; 32],
        next: Option<Job>,
        batch: Batch,
        drafts: Vec<Draft>,
    ) -> Result<(), StoreError> {
        let key = RecordKey::Job(id);
        let new = match &next {
            Some(job) => Some(self.seal_top(&key, &job.encode())?),
            None => None,
        };
        let next_mac = new.as_ref().map(|new| self.top_mac(&key, new));
        let old = Some(mac);
        let extra = Extra {
            drafts,
            ..Extra::default()
        };
        self.commit_with(extra, batch, vec![TopChange { key, old, new }])?;
        match next.zip(next_mac) {
            Some((job, mac)) => self.start_job(id, StoredJob { job, mac }),
            None => self.forget_job(id),
        }
        Ok(())
    }

    /// Whether a deleted directory is still what it was when it was deleted.
    pub(super) fn is_trash_whole(
        &self,
        crypto: &TenantCrypto,
        directory: NodeId,
        expected: (u64, SetHash),
    ) -> Result<bool, StoreError> {
        let (mut entries, mut set_hash) = (0, SetHash::default());
        let prefix = RecordKey::dirents_of(crypto.id, directory);
        scan_all(&*self.backend, &prefix, |key, value| {
            entries += 1;
            set_hash.add(&seal::record_mac(&crypto.inventory, key, value));
            Ok(())
        })?;
        Ok((entries, set_hash) == expected)
    }

    /// Fills a batch with deletes of a directory's entries. Returns what remains of the job.
    fn plan_directory(
        &self,
        crypto: &Arc<TenantCrypto>,
        mut job: Removal,
        batch: &mut Batch,
    ) -> Result<Option<Removal>, StoreError> {
        let Some(last) = job.directories.last_mut() else {
            return Ok(None);
        };
        let directory = last.id;
        if let Some(expected) = last.unchecked.take()
            && !self.is_trash_whole(crypto, directory, expected)?
        {
            self.note_damage();
            return Err(StoreError::Damaged("a deleted directory"));
        }
        let prefix = RecordKey::dirents_of(crypto.id, directory);
        let page = self.backend.scan(&prefix, None, ENTRIES_PER_BATCH)?;
        let is_last_page = page.len() < ENTRIES_PER_BATCH;
        for (key, value) in page {
            // What cannot be opened is removed all the same: it is trash.
            let entry = crypto.open_entry(&key, &value).ok();
            batch.deletes.push(key);
            match entry {
                Some(Dirent {
                    body: DirentBody::File(meta),
                    ..
                }) => {
                    let chunks = meta.chunks();
                    if batch.operations() + chunks as usize > OPERATIONS_PER_BATCH {
                        job.content = Some((meta.content, chunks));
                        return Ok(Some(job));
                    }
                    for number in 0..chunks {
                        let chunk = RecordKey::Chunk(crypto.id, meta.content, number);
                        batch.deletes.push(chunk.to_bytes());
                    }
                }
                Some(Dirent {
                    body: DirentBody::Directory { summary, .. },
                    node,
                    ..
                }) if summary.entries > 0 && job.directories.len() < JOB_DIRECTORIES_MAX => {
                    let unchecked = Some((summary.entries, summary.set_hash));
                    job.directories.push(TrashDirectory {
                        id: node,
                        unchecked,
                    });
                    return Ok(Some(job));
                }
                _ => {}
            }
        }
        if is_last_page {
            job.directories.pop();
        }
        Ok((!job.directories.is_empty()).then_some(job))
    }
}

/// What is to be done with a job after its content was looked at.
enum Step {
    /// There are directories to empty.
    Descend(Removal),
    /// This remains of it.
    Left(Option<Removal>),
}

/// Fills a batch with deletes of a content's chunks, from the last one down.
fn plan_content(mut job: Removal, batch: &mut Batch) -> Step {
    let Some((content, left)) = job.content else {
        return if job.directories.is_empty() {
            Step::Left(None)
        } else {
            Step::Descend(job)
        };
    };
    let from = left.saturating_sub(u32::try_from(OPERATIONS_PER_BATCH).unwrap_or(u32::MAX));
    for number in from..left {
        batch
            .deletes
            .push(RecordKey::Chunk(job.tenant, content, number).to_bytes());
    }
    job.content = (from > 0).then_some((content, from));
    Step::Left((job.content.is_some() || !job.directories.is_empty()).then_some(job))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{core, put, put_bytes, remove, tenant};
    use super::*;
    use crate::backend::Item;

    #[test]
    fn a_deleted_directory_goes_with_contents_larger_than_a_batch() {
        let core = core();
        let one = tenant(&core, "a");
        let large = vec![b'x'; 2 << 20];
        put_bytes(&core, &one, "/memories/d/a.md", &large);
        put_bytes(&core, &one, "/memories/d/b.md", &large);
        put(&core, &one, "/memories/d/below/c.md");
        remove(&core, &one, "/memories/d");
        let id = *core.jobs.waiting.lock().unwrap().keys().next().unwrap();
        let mut steps = 0;
        while core.pending_jobs() > 0 {
            core.step_job(id, &mut Walks::default()).unwrap();
            steps += 1;
            assert!(steps < 20, "it never ends");
        }
        assert!(steps > 3, "{steps} steps");
        let tenant = one.live().unwrap().crypto.id;
        for space in [
            RecordKey::dirents_of_tenant(tenant),
            RecordKey::chunks_of_tenant(tenant),
        ] {
            assert!(core.backend.scan(&space, None, 1).unwrap().is_empty());
        }
    }

    #[test]
    fn a_removal_stays_while_its_tenants_keys_are_lost() {
        let core = core();
        let one = tenant(&core, "a");
        put(&core, &one, "/memories/d/a.md");
        remove(&core, &one, "/memories/d");
        let tag = one.tag;
        drop(one);
        core.keys.destroy(Item::Tenant(tag.0)).unwrap();
        let id = *core.jobs.waiting.lock().unwrap().keys().next().unwrap();
        for _ in 0..3 {
            let step = core.step_job(id, &mut Walks::default());
            assert!(step.is_err_and(|error| error.is_lost_key()));
        }
        assert_eq!(core.pending_jobs(), 1);
    }
}
