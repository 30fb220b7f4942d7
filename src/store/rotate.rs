//! Rotates a tenant's record key: a new epoch at once, everything stored sealed anew in small
//! batches, the epochs before retired once a scan proves that nothing is sealed under them.
//!
//! Each record says in which epoch it is sealed, so a rotation that was interrupted goes on
//! with what is left. Entries are in the sums of their directories and are sealed anew along
//! the tree; chunks are in no sum and are sealed anew where they lie.

use std::sync::PoisonError;
use std::time::Duration;

use crate::backend::Batch;
use crate::key::TenantId;
use crate::record::{Job, JobId, RecordKey, Rotation};
use crate::seal;

use super::core::Core;
use super::open::scan_all;
use super::tenant::{Tenant, TenantCrypto};
use super::walk::Directory;
use super::{Abort, Change, Reader, Store, StoreError, verify};

/// The most entries that one batch seals anew.
const ENTRIES_PER_BATCH: usize = 32;

/// The most chunks that one batch seals anew.
const CHUNKS_PER_BATCH: usize = 32;

/// After so many walks of a tree it is looked whether what is left are strays.
const WALKS_PER_LOOK: u32 = 5;

/// How often a tree is walked in one run.
const WALKS_MAX: u32 = 8 * WALKS_PER_LOOK;

/// For so many times as long as it has worked, a rotation lets others work.
const REST_SHARE: u32 = 3;

/// Where a rotation is.
#[derive(Default)]
pub(super) struct Walk {
    phase: Phase,
    walks: u32,
    sealed: u64,
    all: u64,
    /// The epoch that this walk is for: a newer rotation begins anew.
    epoch: u32,
}

#[derive(Default)]
enum Phase {
    #[default]
    Begin,
    /// Directories still to be listed, and the entries to seal in the one at hand.
    Entries {
        directories: Vec<Vec<String>>,
        at: Vec<String>,
        names: Vec<String>,
    },
    /// All chunks behind this key.
    Chunks(Option<Vec<u8>>),
    Prove,
}

impl Store {
    /// Begins a new epoch of a tenant's record key. Returns the epoch.
    pub(crate) fn begin_rotation(&self, tenant: &Tenant) -> Result<(JobId, u32), StoreError> {
        let core = &self.core;
        let begun = core.write(tenant, |change| {
            let Some(live) = tenant.live() else {
                return Err(Abort::Refused(()));
            };
            // Under the tenant's lock, under which alone the job changes.
            Ok(change.begin_epoch(core.rotation_of(live.crypto.id))?)
        });
        match begun {
            Ok(begun) => Ok(begun),
            Err(Abort::Failed(error)) => Err(error),
            Err(Abort::Refused(())) => Err(StoreError::NoSuchTenant),
        }
    }
}

impl Core {
    /// The rotation of this tenant that has not ended, with its record's hash. One of an erased
    /// tenant of the same name is another's: the reaper drops it, and nobody else may change it.
    pub(super) fn rotation_of(&self, tenant: TenantId) -> Option<(JobId, [u8; 32])> {
        let waiting = self
            .jobs
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        waiting
            .iter()
            .find(|(_, stored)| matches!(&stored.job, Job::Rotate(job) if job.tenant == tenant))
            .map(|(id, stored)| (*id, stored.mac))
    }

    /// Seals one batch anew.
    pub(super) fn step_rotation(
        &self,
        id: JobId,
        job: Rotation,
        walk: &mut Walk,
    ) -> Result<(), StoreError> {
        let Some(tenant) = self.listed_tenant(job.tag)? else {
            return self.drop_rotation(id, job.tenant);
        };
        let is_gone = tenant
            .live()
            .is_none_or(|live| live.crypto.id != job.tenant);
        if is_gone {
            return self.drop_rotation(id, job.tenant);
        }
        if walk.epoch != job.epoch {
            *walk = Walk {
                epoch: job.epoch,
                ..Walk::default()
            };
        }
        let began = std::time::Instant::now();
        let done = self.step_phase(id, job, &tenant, walk);
        let mut reports = self
            .jobs
            .reports
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(report) = reports.get_mut(&id) {
            report.progress = (walk.sealed.min(walk.all), walk.all);
        }
        drop(reports);
        // Others' work goes on at the side: this thread rests for as long as it has worked.
        self.rest(began.elapsed() * REST_SHARE);
        done
    }

    fn step_phase(
        &self,
        id: JobId,
        job: Rotation,
        tenant: &Tenant,
        walk: &mut Walk,
    ) -> Result<(), StoreError> {
        match std::mem::take(&mut walk.phase) {
            Phase::Begin => {
                walk.walks += 1;
                // What is left may have been moved out of each walk's way, or be waiting for a
                // removal that stopped.
                if walk.walks > 1 && walk.walks % WALKS_PER_LOOK == 1 {
                    if verify::is_damaged(self, tenant) {
                        self.note_damage();
                        return Err(StoreError::Damaged("a record that belongs to no file"));
                    }
                    if walk.walks > WALKS_MAX {
                        return Err(StoreError::Limit(
                            "other work on the tenant keeps the rotation from its end",
                        ));
                    }
                }
                if let Some(live) = tenant.live() {
                    let below = &live.head.root.below;
                    walk.all = 2 * below.files + below.directories;
                }
                walk.sealed = 0;
                self.reseal_hold_list(tenant, job.epoch)?;
                walk.phase = Phase::Entries {
                    directories: vec![Vec::new()],
                    at: Vec::new(),
                    names: Vec::new(),
                };
            }
            Phase::Entries {
                mut directories,
                mut at,
                mut names,
            } => {
                if names.is_empty() {
                    let Some(next) = directories.pop() else {
                        walk.phase = Phase::Chunks(None);
                        return Ok(());
                    };
                    let listed = self.list_stale(tenant, &next, job.epoch)?;
                    for name in listed.directories {
                        let below = next.iter().cloned().chain([name]).collect();
                        directories.push(below);
                    }
                    (at, names) = (next, listed.stale);
                }
                let batch = names.split_off(names.len().saturating_sub(ENTRIES_PER_BATCH));
                if !batch.is_empty() {
                    self.write_resealed(tenant, |change| change.reseal(&at, &batch))?;
                    walk.sealed += batch.len() as u64;
                }
                walk.phase = Phase::Entries {
                    directories,
                    at,
                    names,
                };
            }
            Phase::Chunks(after) => {
                walk.phase = match self.reseal_chunks(tenant, job, after, &mut walk.sealed)? {
                    Some(after) => Phase::Chunks(Some(after)),
                    None => Phase::Prove,
                };
            }
            // What was moved while the tree was walked, or deleted and not yet removed.
            Phase::Prove => {
                if self.is_epoch_in_use(job)? {
                    return Ok(());
                }
                return self.retire(id, job, tenant);
            }
        }
        Ok(())
    }

    fn write_resealed(
        &self,
        tenant: &Tenant,
        plan: impl FnOnce(&mut Change<'_>) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let written = self.write(tenant, |change| {
            if plan(change)? {
                Ok(())
            } else {
                Err(Abort::Refused(()))
            }
        });
        match written {
            Err(Abort::Failed(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn reseal_hold_list(&self, tenant: &Tenant, epoch: u32) -> Result<(), StoreError> {
        let listed = unrefused(self.read_all(tenant, |reader| {
            let list = reader.hold_list();
            Ok::<_, Abort<()>>(reader.stale_children(&list, epoch)?)
        }))?;
        for names in listed.stale.chunks(ENTRIES_PER_BATCH) {
            self.write_resealed(tenant, |change| change.reseal_holds(names))?;
        }
        Ok(())
    }

    fn list_stale(&self, tenant: &Tenant, at: &[String], epoch: u32) -> Result<Stale, StoreError> {
        unrefused(self.read_all(tenant, |reader| {
            let mut directory = reader.root();
            for name in at {
                let found = reader.lookup(&directory, name)?;
                match found.and_then(|found| directory.child(&found.entry)) {
                    Some(below) => directory = below,
                    // Moved or deleted since: found again by the next walk, if at all.
                    None => return Ok(Stale::default()),
                }
            }
            Ok::<_, Abort<()>>(reader.stale_children(&directory, epoch)?)
        }))
    }

    /// Seals the next chunks anew. `None`: there are no more.
    fn reseal_chunks(
        &self,
        tenant: &Tenant,
        job: Rotation,
        after: Option<Vec<u8>>,
        sealed: &mut u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let prefix = RecordKey::chunks_of_tenant(job.tenant);
        let page = self
            .backend
            .scan(&prefix, after.as_deref(), CHUNKS_PER_BATCH)?;
        let Some((last, _)) = page.last() else {
            return Ok(None);
        };
        let last = last.clone();
        let stale: Vec<Vec<u8>> = page
            .into_iter()
            .filter(|(_, value)| is_stale(value, job.epoch))
            .map(|(key, _)| key)
            .collect();
        if stale.is_empty() {
            return Ok(Some(last));
        }
        // Under the tenant's lock: nothing of what is sealed anew is deleted meanwhile.
        let lock = tenant.lock();
        self.check_writable()?;
        let Some(live) = tenant.live().filter(|live| live.crypto.id == job.tenant) else {
            return Ok(None);
        };
        let mut batch = Batch::default();
        for key in stale {
            if let Some(value) = self.backend.get(&key)?
                && is_stale(&value, job.epoch)
            {
                *sealed += u64::from(key.ends_with(&[0; 4]));
                batch.puts.push(self.resealed(&live.crypto, key, &value)?);
            }
        }
        let seq = if batch.puts.is_empty() {
            None
        } else {
            Some(self.commit(batch, Vec::new())?)
        };
        drop(lock);
        if let Some(seq) = seq {
            self.wait_durable(seq)?;
        }
        Ok(Some(last))
    }

    fn resealed(
        &self,
        crypto: &TenantCrypto,
        key: Vec<u8>,
        value: &[u8],
    ) -> Result<(Vec<u8>, Vec<u8>), StoreError> {
        let opened = crypto.open_chunk(&key, value);
        let plain = opened.map_err(|error| self.failed(error))?;
        let sealed = crypto.seal_chunk(&*self.random, &key, &plain)?;
        Ok((key, sealed))
    }

    /// Whether any record of the tenant is sealed in an epoch before the job's. New ones are
    /// not, and none moves, so what this scan does not see is not there.
    fn is_epoch_in_use(&self, job: Rotation) -> Result<bool, StoreError> {
        let mut is_used = false;
        for prefix in [
            RecordKey::dirents_of_tenant(job.tenant),
            RecordKey::chunks_of_tenant(job.tenant),
        ] {
            scan_all(&*self.backend, &prefix, |_, value| {
                is_used |= is_stale(value, job.epoch);
                Ok(())
            })?;
        }
        Ok(is_used)
    }

    /// Retires the epochs before the job's: first in the head, then in the key file, then the
    /// job is done.
    fn retire(&self, id: JobId, job: Rotation, tenant: &Tenant) -> Result<(), StoreError> {
        let is_retired = |live: &super::tenant::Live| live.head.retired + 1 >= job.epoch;
        if !tenant.live().is_some_and(|live| is_retired(&live)) {
            self.write_resealed(tenant, |change| {
                // Under the lock: it may have been erased meanwhile.
                let live = tenant.live();
                if live.is_none_or(|live| live.crypto.id != job.tenant) {
                    return Ok(false);
                }
                change.retire_before(job.epoch)?;
                Ok(true)
            })?;
        }
        let _lock = tenant.lock();
        let Some(live) = tenant.live().filter(|live| live.crypto.id == job.tenant) else {
            return Ok(());
        };
        let keys = self.read_tenant_keys(job.tag)?;
        self.forget_retired(job.tag, keys, live.head.retired)?;
        // A newer rotation may have taken the job over.
        match self.rotation_of(job.tenant) {
            Some((_, mac)) if live.head.epoch == job.epoch => {
                self.replace_job(id, mac, None, Batch::default())
            }
            _ => Ok(()),
        }
    }

    fn drop_rotation(&self, id: JobId, tenant: TenantId) -> Result<(), StoreError> {
        match self.rotation_of(tenant) {
            Some((found, mac)) if found == id => self.replace_job(id, mac, None, Batch::default()),
            _ => Ok(()),
        }
    }

    /// Lets others work. Ends at once when the store closes.
    fn rest(&self, time: Duration) {
        let waiting = self
            .jobs
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let rested = self.jobs.changed.wait_timeout_while(waiting, time, |_| {
            !self.jobs.closing.load(std::sync::atomic::Ordering::Acquire)
        });
        drop(rested);
    }
}

/// A directory's entries that are sealed in an older epoch, and its directories.
#[derive(Default)]
pub(super) struct Stale {
    stale: Vec<String>,
    directories: Vec<String>,
}

impl Reader<'_> {
    fn stale_children(&self, directory: &Directory, epoch: u32) -> Result<Stale, StoreError> {
        let mut listed = Stale::default();
        let Some(live) = &self.live else {
            return Ok(listed);
        };
        self.check_directory(directory, None, |key, value| {
            let entry = live.crypto.open_entry(key, value)?;
            if directory.child(&entry).is_some() {
                listed.directories.push(entry.name.clone());
            }
            if is_stale(value, epoch) {
                listed.stale.push(entry.name);
            }
            Ok(())
        })?;
        Ok(listed)
    }
}

fn is_stale(value: &[u8], epoch: u32) -> bool {
    seal::epoch_of(value).is_none_or(|sealed| sealed < epoch)
}

fn unrefused<T>(done: Result<T, Abort<()>>) -> Result<T, StoreError> {
    match done {
        Ok(value) => Ok(value),
        Err(Abort::Failed(error)) => Err(error),
        Err(Abort::Refused(())) => Err(StoreError::Limit("nothing was done")),
    }
}
