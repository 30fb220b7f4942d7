//! The list of unfinished work: what waits, what a running write still owns, who waits for it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::record::{ErasureStage, Job, JobId};

use super::core::Core;
use super::{Store, StoreError};

/// How often whoever waits for a job looks how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Unfinished work: what waits, and what a running write still owns.
#[derive(Default)]
pub(super) struct Jobs {
    pub(super) waiting: Mutex<HashMap<JobId, StoredJob>>,
    pub(super) staging: Mutex<HashSet<JobId>>,
    pub(super) changed: Condvar,
    pub(super) closing: AtomicBool,
    /// How far a rotation is, and why a job stopped, for whoever waits for it.
    pub(super) reports: Mutex<HashMap<JobId, JobReport>>,
    /// Erased tenants: nothing is left to do, but that they were stays.
    pub(super) erased: Mutex<HashMap<JobId, StoredJob>>,
}

/// What a job in the making has to say.
#[derive(Default)]
pub(super) struct JobReport {
    /// Steps of how many.
    pub(super) progress: (u64, u64),
    /// Why it does not go on.
    pub(super) stopped: Option<StoreError>,
}

/// A job, and the hash of its record as the root counts it.
#[derive(Clone)]
pub(super) struct StoredJob {
    pub(super) job: Job,
    pub(super) mac: [u8; 32],
}

impl Jobs {
    pub(super) fn new(stored: HashMap<JobId, StoredJob>) -> Self {
        let (erased, waiting) = stored
            .into_iter()
            .partition(|(_, stored)| stored.job.is_done());
        Self {
            waiting: Mutex::new(waiting),
            erased: Mutex::new(erased),
            ..Self::default()
        }
    }
}

impl StoredJob {
    /// Whether there is more to do than to write the engine's files anew.
    pub(super) fn has_work(&self) -> bool {
        !matches!(&self.job, Job::Erase(job) if job.stage >= ErasureStage::Deleted)
    }

    /// Erasures first, and removals before rotations, which wait for them.
    pub(super) fn turn(&self) -> u8 {
        match &self.job {
            Job::Erase(job) if job.stage >= ErasureStage::Deleted => 3,
            Job::Erase(_) => 0,
            Job::Remove(_) => 1,
            Job::Rotate(_) => 2,
        }
    }
}

impl Store {
    /// Ends all unfinished work, or fails as the first that cannot be ended does.
    pub(crate) fn finish_jobs(&self) -> Result<(), StoreError> {
        self.core.finish_master_rotation()?;
        loop {
            let waiting = self
                .core
                .jobs
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let ready = waiting.iter().find(|(_, stored)| stored.has_work());
            let Some(id) = ready.map(|(id, _)| *id) else {
                return Ok(());
            };
            drop(waiting);
            self.wait_for_job(id, |_, _| ())?;
        }
    }

    /// Waits until a job is done.
    ///
    /// # Errors
    /// Why it does not go on. It is tried again when the store is next opened.
    pub(crate) fn wait_for_job(
        &self,
        id: JobId,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        let core = &self.core;
        loop {
            core.check_open()?;
            let waiting = core
                .jobs
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let is_pending = core.is_pending(id, waiting.get(&id));
            let mut reports = core
                .jobs
                .reports
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let report = reports.entry(id).or_default();
            if let Some(error) = report.stopped.take() {
                return Err(error);
            }
            let (done, all) = report.progress;
            if !is_pending {
                reports.remove(&id);
                drop(reports);
                drop(waiting);
                // Somebody else's sync may have failed since.
                return core.wait_durable(core.root().seq);
            }
            drop(reports);
            let woken = core
                .jobs
                .changed
                .wait_timeout(waiting, LOOK_EVERY)
                .unwrap_or_else(PoisonError::into_inner);
            drop(woken);
            progress(done, all);
        }
    }
}

impl Core {
    /// Whether the reaper has something to do for a job.
    pub(super) fn is_ready(&self, stored: &StoredJob) -> bool {
        stored.has_work() || self.can_compact()
    }

    /// Leaves a job alone until the store is next opened.
    pub(super) fn park(&self, id: JobId) {
        self.jobs
            .staging
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id);
        self.jobs.changed.notify_all();
    }

    /// Whether a job only waits for the engine's files to be written anew.
    pub(super) fn is_purge(&self, id: JobId) -> bool {
        let waiting = self
            .jobs
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        waiting.get(&id).is_some_and(|stored| !stored.has_work())
    }

    /// Whether the reaper works, or will, on this job.
    pub(super) fn is_pending(&self, id: JobId, stored: Option<&StoredJob>) -> bool {
        let staging = self
            .jobs
            .staging
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        stored.is_some_and(|stored| {
            stored.has_work() || (self.can_compact() && !staging.contains(&id))
        })
    }

    /// Hands a job that a commit has stored to the reaper.
    pub(super) fn start_job(&self, id: JobId, job: StoredJob) {
        let mut reports = self
            .jobs
            .reports
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // What stopped it before does not any more.
        if let Some(report) = reports.get_mut(&id) {
            report.stopped = None;
        }
        drop(reports);
        let mut waiting = self
            .jobs
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if job.job.is_done() {
            waiting.remove(&id);
            self.jobs
                .erased
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(id, job);
        } else {
            waiting.insert(id, job);
        }
        drop(waiting);
        self.jobs.changed.notify_all();
    }

    /// Drops a job that a commit has removed.
    pub(super) fn forget_job(&self, id: JobId) {
        self.jobs
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id);
        self.jobs
            .staging
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id);
    }

    /// Lets the reaper have jobs whose writes did not happen.
    pub(super) fn release_staged(&self, ids: &[JobId]) {
        let waiting = self
            .jobs
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut staging = self
            .jobs
            .staging
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            staging.remove(id);
        }
        drop(staging);
        drop(waiting);
        self.jobs.changed.notify_all();
    }

    /// How many jobs are not done yet. An erasure that only waits for the engine's files to
    /// be written anew is not counted.
    pub(super) fn pending_jobs(&self) -> usize {
        self.jobs
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .filter(|stored| stored.has_work())
            .count()
    }

    /// Notes why a job does not go on, and wakes whoever waits for it.
    pub(super) fn report_stopped(&self, id: JobId, error: StoreError) {
        let mut reports = self
            .jobs
            .reports
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        reports.entry(id).or_default().stopped = Some(error);
        drop(reports);
        self.jobs.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Chain;
    use crate::key::FileTag;
    use crate::record::{Erasure, Removal, Rotation, TenantId, Trail};

    const TAG: FileTag = FileTag([1; 16]);
    const TENANT: TenantId = TenantId([2; 16]);

    fn erasure(stage: ErasureStage) -> Job {
        Job::Erase(Erasure {
            tag: TAG,
            tenant: TENANT,
            stage,
            started: 1,
            deleted: 0,
            purged: 0,
            audit: Chain::EMPTY,
            traces: Vec::new(),
            trail: Trail::None,
        })
    }

    #[test]
    fn erasures_come_first_and_waiting_for_the_engines_files_last() {
        let in_order = [
            erasure(ErasureStage::Records),
            Job::Remove(Removal {
                tag: TAG,
                tenant: TENANT,
                directories: Vec::new(),
                content: None,
            }),
            Job::Rotate(Rotation {
                tag: TAG,
                tenant: TENANT,
                epoch: 2,
            }),
            erasure(ErasureStage::Deleted),
        ];
        let stored = in_order.map(|job| StoredJob { job, mac: [0; 32] });
        assert!(stored.is_sorted_by(|one, next| one.turn() < next.turn()));
        let has_work = stored.each_ref().map(StoredJob::has_work);
        assert_eq!(has_work, [true, true, true, false]);
    }
}
