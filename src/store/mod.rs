//! The store: tenants' trees in sealed records, one batch a change, every answer checked.
//!
//! Down: [`Core::write`] plans a change on checked records and [`Core::commit`] applies it,
//! the new head and the new root as one batch; [`Durability`] acknowledges it once it and
//! STATE are synced. Up: [`Reader`] follows the summaries from the head and refuses
//! whatever does not fit.
//!
//! [`Core::write`]: core::Core
//! [`Core::commit`]: core::Core
//! [`Durability`]: durability::Durability

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use crate::audit::{Chain, Draft};
use crate::clock::UnixMillis;
use crate::path::{MemoryPath, TenantName};
use crate::record::Run;
use crate::retention::Schedules;

mod audit;
mod audit_chain;
mod backup;
mod change;
mod clock;
mod compact;
mod content;
mod core;
#[cfg(test)]
mod derivation_tests;
mod directory;
mod durability;
mod erase;
mod error;
mod expiry;
mod growth;
mod holds;
mod index;
mod job_list;
mod jobs;
mod keyring;
mod lineage;
mod listings;
mod open;
mod picture;
mod policy_parts;
mod raw;
mod reader;
mod rekey;
mod rekey_files;
mod rotate;
mod safety_copy;
mod state;
mod stats;
mod survey;
mod sweep;
mod tenant;
mod tenant_keys;
#[cfg(test)]
mod tests;
mod tokens;
mod verify;
mod verify_contents;
mod walk;

pub use audit_chain::AuditRecord;
pub use backup::{BackedUp, BackupCheck, BackupError, BackupKind, Restored, Step};
pub(crate) use backup::{check_backup, erased_in, open_tenant, restore};
pub(crate) use change::{Change, NewFile};
pub(crate) use directory::{StoreDirectory, keyring_copies};
pub use erase::{Erased, ErasureState};
pub use error::{Abort, StoreError};
pub(crate) use open::{Ground, check, create, start};
pub use picture::{Amount, Band, Picture};
pub(crate) use reader::Reader;
pub(crate) use rekey::rekey;
#[cfg(fuzzing)]
pub(crate) use state::{is_state_slot, new_state_slot};
pub use stats::{StoreStats, TenantStats};
pub(crate) use survey::Surveyed;
pub use sweep::Swept;
pub(crate) use tenant::Tenant;
pub use verify::{Depth, Problem, VerifyReport};
pub(crate) use walk::{Directory, Urgency, Walk};

use self::core::Core;
pub use clock::ClockState;
pub use compact::Compacted;

/// Whether a store may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// Reads and writes.
    #[default]
    ReadWrite,
    /// Reads only: no record is written, nothing is repaired.
    ReadOnly,
}

/// An open store, shared by any number of threads.
pub(crate) struct Store {
    core: Arc<Core>,
    policy: RwLock<Arc<str>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Keeps the directory locked for as long as the store is open.
    directory: Mutex<Option<StoreDirectory>>,
    /// What the operator has accepted that it lost, at this open.
    loss: Mutex<Option<StoreError>>,
}

impl Store {
    /// Ties a directory's lock to this store.
    fn holding(self, directory: StoreDirectory) -> Self {
        *self
            .directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(directory);
        self
    }

    /// Keeps the directory locked beyond the closing of the store.
    fn take_directory(&self) -> Option<StoreDirectory> {
        self.directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Where the store lies, if it lies in a directory.
    fn path(&self) -> Option<std::path::PathBuf> {
        let directory = self
            .directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        directory
            .as_ref()
            .map(|directory| directory.path().to_path_buf())
    }

    fn start(core: Arc<Core>, policy: String) -> Result<Self, StoreError> {
        let mut threads = Vec::new();
        if core.mode == OpenMode::ReadWrite {
            threads.push(spawn("strongroom-reaper", &core, jobs::reap)?);
            threads.push(spawn("strongroom-audit", &core, audit::write_entries)?);
        }
        Ok(Self {
            core,
            policy: RwLock::new(policy.into()),
            threads: Mutex::new(threads),
            directory: Mutex::new(None),
            loss: Mutex::new(None),
        })
    }

    /// The shared handle of a tenant. Opening one creates nothing.
    pub(crate) fn tenant(&self, name: &TenantName) -> Result<Arc<Tenant>, StoreError> {
        self.core.tenant(name)
    }

    /// Reads at the tenant's newest state; what it saw is durable when this returns.
    pub(crate) fn read<T, R>(
        &self,
        tenant: &Tenant,
        read: impl Fn(&Reader<'_>) -> Result<T, Abort<R>>,
    ) -> Result<T, Abort<R>> {
        self.core.read(tenant, read)
    }

    /// As [`Store::read`], but without a look at the holds: nothing counts as expired.
    pub(crate) fn read_all<T, R>(
        &self,
        tenant: &Tenant,
        read: impl Fn(&Reader<'_>) -> Result<T, Abort<R>>,
    ) -> Result<T, Abort<R>> {
        self.core.read_all(tenant, read)
    }

    /// Plans a change and commits it; durable when this returns. Nothing is written when
    /// the plan refuses.
    pub(crate) fn write<T, R>(
        &self,
        tenant: &Tenant,
        plan: impl FnOnce(&mut Change<'_>) -> Result<T, Abort<R>>,
    ) -> Result<T, Abort<R>> {
        self.core.write(tenant, plan)
    }

    /// As [`Store::write`], but durable only with the next read or write of the tenant.
    pub(crate) fn write_soon<T, R>(
        &self,
        tenant: &Tenant,
        plan: impl FnOnce(&mut Change<'_>) -> Result<T, Abort<R>>,
    ) -> Result<T, Abort<R>> {
        self.core.write_soon(tenant, plan)
    }

    /// What is audited from here on.
    pub(crate) fn set_audit(&self, settings: crate::policy::Audit) {
        self.core.set_audit(settings);
    }

    /// Notes an operation that changed nothing, if the policy says so.
    pub(crate) fn note(
        &self,
        tenant: &Arc<Tenant>,
        draft: Draft,
        is_view: bool,
    ) -> Result<(), StoreError> {
        self.core.note(tenant, draft, is_view)
    }

    /// As [`Store::note`], for what must be in the log before it happens.
    pub(crate) fn note_now(&self, tenant: &Arc<Tenant>, draft: Draft) -> Result<(), StoreError> {
        self.core.note_now(tenant, draft)
    }

    /// Notes that a run of the operator's has come to its end, and what the store's own audit
    /// chain is to say of it.
    pub(crate) fn note_run(&self, run: Run, draft: Option<Draft>) -> Result<(), StoreError> {
        self.core.note_run(run, draft)
    }

    /// Notes an event in the store's own audit chain. Durable when it returns.
    pub(crate) fn note_event(&self, draft: Draft) -> Result<(), StoreError> {
        self.core.note_event(draft)
    }

    /// Reads the audit chain of one tenant, or the store's own, and checks every link.
    pub(crate) fn audit_chain(
        &self,
        tag: Option<crate::key::FileTag>,
        each: impl FnMut(AuditRecord),
    ) -> Result<Chain, StoreError> {
        self.core.audit_chain(tag, each)
    }

    /// Removes audit entries older than `before` from a tenant's chain, or the store's own.
    pub(crate) fn prune_audit(
        &self,
        tenant: Option<&Tenant>,
        before: crate::clock::UnixMillis,
    ) -> Result<u64, StoreError> {
        self.core.prune_audit(tenant, before)
    }

    /// Refuses what no write could do now.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        self.core.check_writable()
    }

    /// The store's random id.
    pub(crate) fn id(&self) -> crate::key::StoreId {
        self.core.crypto.id
    }

    /// Takes away what is expired at or below a path, or only counts it, and lowers `soonest`
    /// to the moment at which the next file there expires. Durable with the
    /// tenant's next read or write, or by [`Store::settle`].
    pub(crate) fn sweep(
        &self,
        tenant: &Tenant,
        under: &MemoryPath,
        dry_run: bool,
        soonest: &mut Option<UnixMillis>,
    ) -> Result<Swept, StoreError> {
        self.core.sweep(tenant, under, dry_run, soonest)
    }

    /// When the tenant's next file expires, if that is sooner than `known`; else `known`.
    /// `None` is never.
    pub(crate) fn next_expiry(
        &self,
        tenant: &Tenant,
        known: Option<UnixMillis>,
    ) -> Result<Option<UnixMillis>, StoreError> {
        self.core.next_expiry(tenant, known)
    }

    /// All tenants as their heads show them, the first to have something due first.
    pub(crate) fn survey(&self, kept_since: UnixMillis) -> Result<Vec<Surveyed>, StoreError> {
        self.core.survey(kept_since)
    }

    /// Returns once all that was committed so far is durable.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        self.core.wait_durable(self.core.root().seq)
    }

    /// Notes that it is now at least this late, unless the clock is not believed.
    pub(crate) fn advance_clock(&self) -> Result<(), StoreError> {
        self.core.advance_clock()
    }

    /// The text of the store's policy.
    pub(crate) fn policy(&self) -> Arc<str> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The time that counts.
    pub(crate) fn now(&self) -> UnixMillis {
        self.core.now()
    }

    /// Whether the wall clock is believed.
    pub(crate) fn clock_state(&self) -> ClockState {
        self.core.clock_state()
    }

    /// Believes the wall clock from here on, wherever it stands.
    pub(crate) fn confirm_clock(&self) -> Result<(), StoreError> {
        self.core.confirm_clock()
    }

    /// When files expire from here on.
    pub(crate) fn set_schedules(&self, schedules: Schedules) {
        self.core.set_schedules(schedules);
    }

    /// The file tags of all tenants.
    pub(crate) fn tenant_tags(&self) -> Vec<crate::key::FileTag> {
        self.core.known_heads()
    }

    /// The tenant with this file tag. `None`: it has been erased since its tag was listed.
    pub(crate) fn listed_tenant(
        &self,
        tag: crate::key::FileTag,
    ) -> Result<Option<Arc<Tenant>>, StoreError> {
        self.core.listed_tenant(tag)
    }

    /// Replaces the store's policy.
    pub(crate) fn set_policy(&self, text: &str) -> Result<(), StoreError> {
        // What was seen under the old policy is logged by it.
        self.core.flush_audit()?;
        let mut current = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        self.core.put_policy("policy set", text)?;
        *current = text.into();
        Ok(())
    }

    /// The engine's files' size, for `store_max_bytes`.
    pub(crate) fn disk_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.core.backend.stats()?.disk_bytes)
    }

    /// Adds up one tenant: sizes by directory, ages, and when what expires.
    pub(crate) fn picture(&self, tenant: &Tenant, picture: &mut Picture) -> Result<(), StoreError> {
        self.core.picture(tenant, picture)
    }

    /// The bytes of all stored records, by reading them.
    pub(crate) fn live_bytes(&self) -> Result<u64, StoreError> {
        self.core.live_bytes()
    }

    /// Checks everything that is stored and names what is damaged.
    pub(crate) fn verify(&self, depth: Depth) -> Result<VerifyReport, StoreError> {
        verify::verify(&self.core, depth)
    }

    /// Ends the reaper, makes everything durable, marks the store as closed in order and
    /// unlocks it. Handles that are left refuse all further work.
    pub(crate) fn close(&self) -> Result<(), StoreError> {
        self.core.check_process()?;
        // Entries that wait are written while the store still takes writes.
        let _flushed = self.core.flush_audit();
        if self.core.jobs.closing.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        // Under the lock, so that the reaper cannot miss it between its check and its wait.
        drop(
            self.core
                .jobs
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        self.core.jobs.changed.notify_all();
        self.core.audit.wake();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ended = thread.join();
        }
        let closed = self.core.close();
        drop(
            self.directory
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        closed
    }
}

fn spawn(
    name: &str,
    core: &Arc<Core>,
    work: impl FnOnce(&Core) + Send + 'static,
) -> Result<JoinHandle<()>, StoreError> {
    let core = Arc::clone(core);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(&core))
        .map_err(|error| StoreError::io(&error))
}

impl Drop for Store {
    fn drop(&mut self) {
        let _closed = self.close();
    }
}
