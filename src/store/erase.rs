//! Erases a tenant: the head goes with a record of the erasure in one batch, then the keys are
//! destroyed, then the records are removed in small batches. The record stays for good.

use std::sync::{Arc, PoisonError};

use crate::audit::{Chain, Draft, hex};
use crate::backend::Batch;
use crate::clock::UnixMillis;
use crate::key::{FileTag, TenantId};
use crate::path::TenantName;
use crate::record::{Erasure, ErasureStage, Head, Job, JobId, RecordKey, TRACE_BYTES, Trail};

use super::core::{Core, Extra, TopChange};
use super::index::short;
use super::job_list::StoredJob;
use super::lineage::Lineage;
use super::tenant::Tenant;
use super::{Abort, AuditRecord, Store, StoreError};

/// The most records that one batch removes: no reader waits long for it.
const RECORDS_PER_BATCH: usize = 256;

/// How far an erasure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErasureState {
    /// The tenant is gone for everybody; its keys or records are still being removed.
    Running,
    /// Keys and records are gone. The engine's files may still hold old bytes, which no key
    /// opens any more.
    Deleted,
    /// The engine's files were written anew since: no byte of the tenant's is in them.
    Purged,
    /// Not erased: a rotation of all keys gave the tenant another id. Its audit entries up to
    /// then lie under this one.
    Rekeyed,
}

/// A tenant that was erased.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erased {
    /// The id that the tenant had, in hexadecimal.
    pub tenant_id: String,
    /// The ids that it had before rotations of all keys, in hexadecimal: older backups know it
    /// under these.
    pub former_ids: Vec<String>,
    /// The file tag of its name, in hexadecimal: the same for every tenant of that name, until
    /// all keys are made new.
    pub file_tag: String,
    /// How far the erasure is.
    pub state: ErasureState,
    /// When it began, in milliseconds since 1970.
    pub started: UnixMillis,
    /// When keys and records were gone.
    pub deleted: Option<UnixMillis>,
    /// When the engine's files had been written anew.
    pub purged: Option<UnixMillis>,
    /// The number of the last entry of its audit chain; 0 without entries.
    pub audit_last: u64,
    /// The hash of that entry, in hexadecimal.
    pub audit_tip: String,
    pub(crate) traces: Vec<[u8; TRACE_BYTES]>,
    trail: Trail,
    id: TenantId,
}

impl Erased {
    fn of(job: &Erasure, lineage: &Lineage) -> Self {
        let at = |time: UnixMillis| (time > 0).then_some(time);
        Self {
            tenant_id: job.tenant.to_string(),
            former_ids: lineage
                .former(job.tenant)
                .iter()
                .map(ToString::to_string)
                .collect(),
            file_tag: job.tag.to_string(),
            state: match job.stage {
                ErasureStage::KeyFile | ErasureStage::Records => ErasureState::Running,
                ErasureStage::Deleted => ErasureState::Deleted,
                ErasureStage::Purged => ErasureState::Purged,
                ErasureStage::Rekeyed => ErasureState::Rekeyed,
            },
            started: job.started,
            deleted: at(job.deleted),
            purged: at(job.purged),
            audit_last: job.audit.last,
            audit_tip: hex(&job.audit.tip),
            traces: job.traces.clone(),
            trail: job.trail,
            id: job.tenant,
        }
    }
}

impl Store {
    /// Begins to erase a tenant: from here on it does not exist, and nothing stops the rest.
    ///
    /// # Errors
    /// `Refused` with the held path where there is a hold; `Refused(None)` where there is no
    /// such tenant.
    pub(crate) fn begin_erasure(&self, name: &TenantName) -> Result<JobId, Abort<Option<String>>> {
        match self.core.tenant(name) {
            Ok(tenant) => self.core.begin_erasure(&tenant),
            Err(error) if error.is_lost_key() => self.core.begin_erasure_without_keys(name),
            Err(error) => Err(error.into()),
        }
    }

    /// All erasures, the oldest first.
    pub(crate) fn erased(&self) -> Vec<Erased> {
        let mut all = self.core.erasures();
        all.sort_unstable_by_key(|job| (job.started, job.tenant));
        let lineage = Lineage::of(&all);
        all.iter().map(|job| Erased::of(job, &lineage)).collect()
    }

    /// The erasure of a job.
    pub(crate) fn erased_by(&self, id: JobId) -> Option<Erased> {
        let all = self.core.erasures();
        let waiting = lock(&self.core.jobs.waiting);
        let erased = lock(&self.core.jobs.erased);
        let stored = erased.get(&id).or_else(|| waiting.get(&id))?;
        match &stored.job {
            Job::Erase(job) => Some(Erased::of(job, &Lineage::of(&all))),
            _ => None,
        }
    }

    /// Whether this was an erased tenant's name.
    pub(crate) fn was_named(&self, erased: &Erased, name: &str) -> bool {
        match erased.trail {
            Trail::Name(check) => erased.id.name_check(name) == check,
            // The tag holds until all keys are made new.
            _ => self.core.tag_of(name).to_string() == erased.file_tag,
        }
    }

    /// A keyed hash by which a certificate of this store is known.
    pub(crate) fn certify(&self, text: &[u8]) -> [u8; 32] {
        self.core.crypto.certificate.mac(&[text])
    }

    /// Whether [`Store::certify`] made this for the same text.
    pub(crate) fn is_certified(&self, text: &[u8], mac: &[u8; 32]) -> bool {
        self.core.crypto.certificate.verify(&[text], mac)
    }

    /// Whether the engine, or any key file, still has something of an erased tenant.
    pub(crate) fn has_remains(&self, tenant: &str) -> Result<bool, StoreError> {
        let core = &self.core;
        core.check_open()?;
        let Some(tenant) = core
            .erasures()
            .into_iter()
            .find(|job| job.tenant.to_string() == tenant)
        else {
            return Ok(false);
        };
        for prefix in spaces(tenant.tenant) {
            if !core.backend.scan(&prefix, None, 1)?.is_empty() {
                return Ok(true);
            }
        }
        core.has_tenant_keys(tenant.tag, tenant.tenant)
    }

    /// Reads the audit chain of an erased tenant and checks every link.
    pub(crate) fn erased_chain(
        &self,
        tenant: &str,
        each: impl FnMut(AuditRecord),
    ) -> Result<Chain, StoreError> {
        let core = &self.core;
        let erasures = core.erasures();
        let Some(job) = erasures.iter().find(|job| job.tenant.to_string() == tenant) else {
            return Ok(Chain::EMPTY);
        };
        core.read_chain(job.tenant, None, &job.audit, each)?;
        Ok(job.audit)
    }
}

/// Where the records of a tenant lie that an erasure removes; its audit entries stay.
fn spaces(tenant: TenantId) -> [Vec<u8>; 2] {
    [
        RecordKey::dirents_of_tenant(tenant),
        RecordKey::chunks_of_tenant(tenant),
    ]
}

fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    /// The file tag that a tenant of this name has.
    fn tag_of(&self, name: &str) -> FileTag {
        FileTag::of(&self.crypto.tag, name)
    }

    /// All erasures, finished or not.
    pub(super) fn erasures(&self) -> Vec<Erasure> {
        let waiting = lock(&self.jobs.waiting);
        let erased = lock(&self.jobs.erased);
        let stored = erased.values().chain(waiting.values());
        stored
            .filter_map(|stored| match &stored.job {
                Job::Erase(job) => Some(job.clone()),
                _ => None,
            })
            .collect()
    }

    fn begin_erasure(&self, tenant: &Tenant) -> Result<JobId, Abort<Option<String>>> {
        // Views that wait to be noted belong to the chain whose end is written down.
        self.flush_audit()?;
        // Until the keys are destroyed, a new tenant of this name has to wait.
        let _held = tenant.lock();
        self.check_writable()?;
        let Some(live) = tenant.live() else {
            return Err(Abort::Refused(None));
        };
        let reader = self.reader(tenant, Some(Arc::clone(&live)));
        let reader = reader.map_err(|error| self.failed(error))?;
        if let Some((path, _)) = reader.holds().first() {
            return Err(Abort::Refused(Some(path.clone())));
        }
        let name = Some(tenant.name.as_str());
        let withdraw = || tenant.withdraw();
        Ok(self.erase_head(tenant.tag, name, &live.head, &live.sealed, withdraw)?)
    }

    /// Erases a tenant whose key file is lost. Whether its holds have ended cannot be read.
    fn begin_erasure_without_keys(
        &self,
        name: &TenantName,
    ) -> Result<JobId, Abort<Option<String>>> {
        self.check_writable()?;
        let tag = self.tag_of(name.as_str());
        let key = RecordKey::Head(tag);
        let sealed = self
            .backend
            .get(&key.to_bytes())
            .map_err(StoreError::from)?;
        let Some(sealed) = sealed else {
            return Err(Abort::Refused(None));
        };
        if self.known_head(tag) != Some(short(&self.top_mac(&key, &sealed))) {
            return Err(self.failed(StoreError::Damaged("a tenant's head")).into());
        }
        let head = self.open_head(tag, &sealed)?;
        if head.holds.entries > 0 {
            return Err(Abort::Refused(Some(String::new())));
        }
        Ok(self.erase_head(tag, Some(name.as_str()), &head, &sealed, || ())?)
    }

    /// Takes the head away in one batch with the record of the erasure, then destroys the keys.
    pub(super) fn erase_head(
        &self,
        tag: FileTag,
        name: Option<&str>,
        head: &Head,
        sealed_head: &[u8],
        withdraw: impl FnOnce(),
    ) -> Result<JobId, StoreError> {
        let mut id = [0; 16];
        self.random.fill(&mut id)?;
        let id = JobId(id);
        let erasure = Erasure {
            tag,
            tenant: head.tenant,
            stage: ErasureStage::KeyFile,
            started: self.now(),
            deleted: 0,
            purged: 0,
            audit: head.audit,
            traces: self.key_file_traces(tag)?,
            trail: name.map_or(Trail::None, |name| {
                Trail::Name(head.tenant.name_check(name))
            }),
        };
        let draft = Draft::new("tenant erase").detail(format!(
            "tenant {}, file tag {tag}, last entry {}, its hash {}",
            erasure.tenant,
            erasure.audit.last,
            hex(&erasure.audit.tip)
        ));
        let (job_key, head_key) = (RecordKey::Job(id), RecordKey::Head(tag));
        let job = Job::Erase(erasure.clone());
        let sealed = self.seal_top(&job_key, &job.encode())?;
        let mac = self.top_mac(&job_key, &sealed);
        let old = Some(self.top_mac(&head_key, sealed_head));
        let batch = Batch {
            expect: vec![(head_key.to_bytes(), Some(sealed_head.to_vec()))],
            ..Batch::default()
        };
        let change = |key, old, new| TopChange { key, old, new };
        let changes = vec![
            change(head_key, old, None),
            change(job_key, None, Some(sealed)),
        ];
        let extra = Extra {
            drafts: vec![draft],
            ..Extra::default()
        };
        let seq = self.commit_with(extra, batch, changes)?;
        withdraw();
        self.indexes.listings.forget(head.tenant);
        // The reaper destroys the keys too, should this not get that far.
        lock(&self.jobs.staging).insert(id);
        let below = &head.root.below;
        let all = 2 * below.files + below.directories;
        lock(&self.jobs.reports).entry(id).or_default().progress = (0, all);
        self.start_job(id, StoredJob { job, mac });
        let destroyed = self
            .wait_durable(seq)
            .and_then(|()| self.step_key_file(id, erasure, mac));
        self.release_staged(&[id]);
        destroyed?;
        Ok(id)
    }

    /// Does one batch of an erasure.
    pub(super) fn step_erasure(
        &self,
        id: JobId,
        job: Erasure,
        mac: [u8; 32],
    ) -> Result<(), StoreError> {
        match job.stage {
            ErasureStage::KeyFile => self.step_key_file(id, job, mac),
            ErasureStage::Records => self.step_records(id, job, mac),
            ErasureStage::Deleted => self.compact(|_, _| ()).map(drop),
            ErasureStage::Purged | ErasureStage::Rekeyed => Ok(()),
        }
    }

    fn step_key_file(&self, id: JobId, job: Erasure, mac: [u8; 32]) -> Result<(), StoreError> {
        self.destroy_tenant_keys(job.tag, job.tenant)?;
        let next = Job::Erase(Erasure {
            stage: ErasureStage::Records,
            ..job
        });
        self.replace_job(id, mac, Some(next), Batch::default())
    }

    fn step_records(&self, id: JobId, job: Erasure, mac: [u8; 32]) -> Result<(), StoreError> {
        for prefix in spaces(job.tenant) {
            let page = self.backend.scan(&prefix, None, RECORDS_PER_BATCH)?;
            if !page.is_empty() {
                if let Some(report) = lock(&self.jobs.reports).get_mut(&id) {
                    let (done, all) = report.progress;
                    report.progress = ((done + page.len() as u64).min(all), all);
                }
                let batch = Batch {
                    deletes: page.into_iter().map(|(key, _)| key).collect(),
                    ..Batch::default()
                };
                let seq = self.commit(batch, Vec::new())?;
                return self.wait_durable(seq);
            }
        }
        let draft = Draft::new("tenant erase").detail(format!("tenant {}, deleted", job.tenant));
        let next = Job::Erase(Erasure {
            stage: ErasureStage::Deleted,
            deleted: self.now().max(1),
            ..job
        });
        self.replace_job_noted(id, mac, Some(next), Batch::default(), vec![draft])
    }

    /// The erasures of which only old bytes are left in the engine's files. To be asked for
    /// before those are written anew.
    pub(super) fn deleted_erasures(&self) -> Vec<JobId> {
        let waiting = lock(&self.jobs.waiting);
        let deleted = waiting.iter().filter(|(_, stored)| {
            matches!(&stored.job, Job::Erase(job) if job.stage == ErasureStage::Deleted)
        });
        deleted.map(|(id, _)| *id).collect()
    }

    /// Notes of these erasures that the engine's files have been written anew.
    pub(super) fn purged(&self, ids: &[JobId]) -> Result<(), StoreError> {
        for id in ids {
            let stored = lock(&self.jobs.waiting).get(id).cloned();
            let Some(StoredJob {
                job: Job::Erase(job),
                mac,
            }) = stored
            else {
                continue;
            };
            let draft = Draft::new("tenant erase").detail(format!("tenant {}, purged", job.tenant));
            let next = Job::Erase(Erasure {
                stage: ErasureStage::Purged,
                purged: self.now().max(1),
                ..job
            });
            self.replace_job_noted(*id, mac, Some(next), Batch::default(), vec![draft])?;
        }
        self.wait_durable(self.root().seq)
    }
}
