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
use crate::backend::BackendStats;
use crate::clock::UnixMillis;
use crate::path::{MemoryPath, ROOT, TenantName};
use crate::retention::Schedule;

mod audit;
mod backup;
mod change;
mod clock;
mod compact;
mod content;
mod core;
mod directory;
mod durability;
mod erase;
mod error;
mod expiry;
mod holds;
mod index;
mod job_list;
mod jobs;
mod keyring;
mod open;
mod policy_parts;
mod raw;
mod reader;
mod rekey;
mod rekey_files;
mod rotate;
mod safety_copy;
mod state;
mod sweep;
mod tenant;
mod tenant_keys;
mod verify;
mod walk;

pub use audit::AuditRecord;
pub use backup::{BackedUp, BackupCheck, BackupError, BackupKind, Restored, Step};
pub(crate) use backup::{check_backup, erased_in, open_tenant, restore};
pub(crate) use change::{Change, NewFile};
pub(crate) use directory::{StoreDirectory, keyring_copies};
pub use erase::{Erased, ErasureState};
pub use error::{Abort, StoreError};
pub(crate) use open::{Ground, check, create, start};
pub(crate) use reader::Reader;
pub(crate) use rekey::rekey;
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

/// Totals over a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// Every tenant's totals, by name.
    pub tenants: Vec<TenantStats>,
    /// File tags of tenants that cannot be opened, because their key file is missing or damaged.
    pub unreadable: Vec<String>,
    /// No file was last accessed before this moment; `None` where there are no files. In
    /// milliseconds since 1970. A lower bound: accesses leave it as it is, a sweep raises it.
    pub oldest_access: Option<UnixMillis>,
    /// No file expires before this moment, by the same bounds; `None` is never. Holds do not
    /// count.
    pub due_after: Option<UnixMillis>,
    /// Whether the wall clock is believed.
    pub clock: ClockState,
    /// How many commits were made so far.
    pub commits: u64,
    /// Removals, rotations and erasures that are not finished yet.
    pub pending_removals: u64,
    /// Tenants that were erased, the oldest first.
    pub erased: Vec<Erased>,
    /// The engine's figures.
    pub backend: BackendStats,
    /// How often STATE was written since the store was opened.
    pub state_writes: u64,
}

/// Totals over one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TenantStats {
    /// Its name.
    pub name: String,
    /// Files.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created: u64,
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

    /// Notes an operation of the operator's in the store's own chain.
    pub(crate) fn note_event(&self, draft: Draft) -> Result<(), StoreError> {
        let seq = self.core.commit_noted(vec![draft])?;
        self.core.wait_durable(seq)
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

    /// The store's random id.
    pub(crate) fn id(&self) -> crate::key::StoreId {
        self.core.crypto.id
    }

    /// Takes away what is expired at or below a path, or only counts it.
    pub(crate) fn sweep(
        &self,
        tenant: &Tenant,
        under: &MemoryPath,
        dry_run: bool,
    ) -> Result<Swept, StoreError> {
        self.core.sweep(tenant, under, dry_run)
    }

    /// When the tenant's next file expires; `None` is never.
    pub(crate) fn next_expiry(&self, tenant: &Tenant) -> Result<Option<UnixMillis>, StoreError> {
        self.core.next_expiry(tenant)
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
    pub(crate) fn set_schedule(&self, schedule: Schedule) {
        self.core.set_schedule(schedule);
    }

    /// The file tags of all tenants.
    pub(crate) fn tenant_tags(&self) -> Vec<crate::key::FileTag> {
        self.core.known_heads()
    }

    /// The tenant with this file tag.
    pub(crate) fn tenant_by_tag(
        &self,
        tag: crate::key::FileTag,
    ) -> Result<Arc<Tenant>, StoreError> {
        self.core.tenant_by_tag(tag)
    }

    /// Replaces the store's policy.
    pub(crate) fn set_policy(&self, text: &str) -> Result<(), StoreError> {
        let mut current = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        self.core.put_policy(text)?;
        *current = text.into();
        Ok(())
    }

    /// The engine's files' size, for `store_max_bytes`.
    pub(crate) fn disk_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.core.backend.stats()?.disk_bytes)
    }

    /// Totals over the store and each tenant, sorted by name.
    pub(crate) fn stats(&self) -> Result<StoreStats, StoreError> {
        self.core.check_open()?;
        let mut tenants = Vec::new();
        let mut unreadable = Vec::new();
        let (mut oldest_access, mut due_after) = (None, None);
        let schedule = self.core.schedule();
        for tag in self.core.known_heads() {
            let Ok(tenant) = self.core.tenant_by_tag(tag) else {
                unreadable.push(tag.to_string());
                continue;
            };
            let Some(live) = tenant.live() else { continue };
            let below = &live.head.root.below;
            let oldest = (below.files > 0).then_some(below.oldest);
            oldest_access = earlier(oldest_access, oldest);
            due_after = earlier(due_after, schedule.next_due(ROOT, below));
            tenants.push(TenantStats {
                name: tenant.name.as_str().to_owned(),
                files: below.files,
                bytes: below.bytes,
                created: live.head.created,
            });
        }
        tenants.sort_by(|a, b| a.name.cmp(&b.name));
        unreadable.sort();
        Ok(StoreStats {
            tenants,
            unreadable,
            oldest_access,
            due_after,
            clock: self.core.clock_state(),
            commits: self.core.root().seq,
            pending_removals: self.core.pending_jobs() as u64,
            erased: self
                .erased()
                .into_iter()
                .filter(|erased| erased.state != ErasureState::Rekeyed)
                .collect(),
            backend: self.core.backend.stats()?,
            state_writes: self.core.state_writes(),
        })
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

/// The earlier of two moments, where `None` is never.
pub(crate) fn earlier(a: Option<UnixMillis>, b: Option<UnixMillis>) -> Option<UnixMillis> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
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
