//! Takes away what is expired: walks down from a head and skips whatever cannot hold anything due.

use crate::audit::Draft;
use crate::clock::UnixMillis;
use crate::path::{Guard, GuardError, MemoryPath};
use crate::record::{DirentBody, Share};

use super::change::Change;
use super::clock::ClockState;
use super::core::Core;
use super::tenant::Tenant;
use super::walk::Directory;
use super::{Abort, StoreError};

/// A batch of a sweep stops growing at this many operations.
const OPERATIONS_MAX: usize = 400;

/// What a sweep of one tenant took away, or would take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// Files.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
    /// Directories that were empty afterwards.
    pub directories: u64,
    /// The files' paths, at most 1,000 of them.
    pub paths: Vec<String>,
}

/// How many paths a report names.
const PATHS_MAX: usize = 1_000;

impl Core {
    /// Takes away all expired files at or below `under`, in batches. Each batch is planned
    /// under the tenant's lock, so an interrupted sweep simply starts again. Durable only
    /// after [`Core::wait_durable`], so that many tenants' sweeps share one sync.
    ///
    /// Lowers `soonest` to the moment at which the next file there expires.
    ///
    /// While the clock is not believed, nothing is due.
    pub(super) fn sweep(
        &self,
        tenant: &Tenant,
        under: &MemoryPath,
        dry_run: bool,
        soonest: &mut Option<UnixMillis>,
    ) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        let is_never = tenant.schedule(self.schedules()).is_never();
        if is_never || tenant.live().is_none() || self.clock_state() != ClockState::Trusted {
            return Ok(swept);
        }
        if dry_run {
            let counted = self.read(tenant, |reader| {
                let walk = reader.walk(under)?;
                let mut swept = Swept::default();
                if let Some(directory) = walk.target_directory() {
                    reader.count_expired(directory, &mut swept)?;
                }
                Ok::<_, Abort<()>>(swept)
            });
            *soonest = self.next_expiry(tenant, *soonest)?;
            return unrefused(counted);
        }
        loop {
            let known = *soonest;
            let batch = self.write_soon(tenant, |change| {
                let walk = change.reader().walk(under)?;
                let mut batch = Batch {
                    soonest: known,
                    ..Batch::default()
                };
                if let Some(directory) = walk.target_directory() {
                    batch.directory(change, directory)?;
                }
                if !batch.has_work {
                    return Err(Abort::Refused(batch.soonest));
                }
                // Raised bounds alone change nothing that anyone could see.
                if batch.swept.files > 0 || batch.swept.directories > 0 {
                    let detail = format!("{} files", batch.swept.files);
                    let mut draft = Draft::new("expire").detail(detail);
                    draft.bytes = batch.swept.bytes;
                    change.audit(draft);
                }
                Ok(batch)
            });
            let batch = match batch {
                Ok(batch) => batch,
                Err(Abort::Refused(next)) => {
                    *soonest = next;
                    break;
                }
                Err(Abort::Failed(error)) => return Err(error),
            };
            swept.add(batch.swept);
            if !batch.is_full {
                *soonest = batch.soonest;
                break;
            }
        }
        Ok(swept)
    }

    /// When the tenant's next file expires, if that is sooner than `known`; else `known`. To
    /// be told to nobody before [`Core::wait_durable`].
    pub(super) fn next_expiry(
        &self,
        tenant: &Tenant,
        known: Option<UnixMillis>,
    ) -> Result<Option<UnixMillis>, StoreError> {
        let mut soonest = known;
        // Under the lock, where nothing changes meanwhile, and without waiting until what it
        // sees is durable: after a sweep that would be a sync for each tenant.
        let _lock = tenant.lock();
        let looked = self
            .reader(tenant, tenant.live())
            .and_then(|reader| reader.next_expiry(&reader.root(), &mut soonest));
        match looked {
            Ok(()) => Ok(soonest),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Notes in the root that it is now at least this late.
    pub(super) fn advance_clock(&self) -> Result<(), StoreError> {
        if self.clock_state() != ClockState::Trusted {
            return Ok(());
        }
        let seq = self.commit_noted(vec![Draft::new("expire")])?;
        self.wait_durable(seq)
    }
}

impl Swept {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.directories += other.directories;
        let room = PATHS_MAX.saturating_sub(self.paths.len());
        self.paths.extend(other.paths.into_iter().take(room));
    }

    pub(super) fn file(&mut self, path: String, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
        if self.paths.len() < PATHS_MAX {
            self.paths.push(path);
        }
    }
}

#[derive(Default)]
struct Batch {
    swept: Swept,
    has_work: bool,
    is_full: bool,
    /// When the next file expires, of those that were looked at and stay.
    soonest: Option<UnixMillis>,
}

impl Batch {
    /// Plans to remove what is expired below a directory, and to raise the bounds in its
    /// summary to what is left.
    fn directory(
        &mut self,
        change: &mut Change<'_>,
        directory: &Directory,
    ) -> Result<Left, StoreError> {
        let bounds = Bounds::of(&directory.summary.below);
        if !change.reader().may_hold_expired(directory) {
            change.reader().next_expiry(directory, &mut self.soonest)?;
            return Ok(Left::Something(bounds));
        }
        let mut left = Bounds::of(&Share::NOTHING);
        let mut is_emptied = true;
        let mut removed_any = false;
        for entry in change.reader().all_children(directory)? {
            if change.operations() > OPERATIONS_MAX {
                self.is_full = true;
                return Ok(Left::Something(bounds));
            }
            let path = directory.path_of(&entry.name);
            // The name was accepted once, under whatever rule on portable names.
            let Ok(target) = checked(&path) else {
                left = left.least(Bounds::of(&entry.share()));
                is_emptied = false;
                continue;
            };
            if let DirentBody::File(meta) = &entry.body
                && change.reader().is_expired(directory, &entry)
            {
                change.purge(&target)?;
                self.swept.file(path, meta.bytes);
                // At once: the batch may be full before this directory is at its end.
                self.has_work = true;
                removed_any = true;
                continue;
            }
            let below = match directory.child(&entry) {
                Some(below) => self.directory(change, &below)?,
                None => {
                    let reader = change.reader();
                    reader.next_expiry_of(directory, &entry, &mut self.soonest);
                    Left::Something(Bounds::of(&entry.share()))
                }
            };
            match below {
                Left::Something(bounds) => {
                    left = left.least(bounds);
                    is_emptied = false;
                }
                Left::Nothing => {
                    change.remove_emptied(&target)?;
                    self.swept.directories += 1;
                    self.has_work = true;
                    removed_any = true;
                }
            }
        }
        if is_emptied && removed_any {
            return Ok(Left::Nothing);
        }
        if left != bounds
            && let Ok(path) = checked(&directory.path)
        {
            change.tighten(&path, left)?;
            self.has_work = true;
        }
        Ok(Left::Something(left))
    }
}

/// What a batch leaves of a directory.
enum Left {
    /// All of it went.
    Nothing,
    /// Files and directories with these bounds.
    Something(Bounds),
}

/// The earliest last access and the earliest creation of all files below a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) oldest: UnixMillis,
    pub(super) born: UnixMillis,
}

impl Bounds {
    fn of(share: &Share) -> Self {
        Self {
            oldest: share.oldest,
            born: share.born,
        }
    }

    fn least(self, other: Self) -> Self {
        Self {
            oldest: self.oldest.min(other.oldest),
            born: self.born.min(other.born),
        }
    }
}

fn checked(path: &str) -> Result<MemoryPath, GuardError> {
    Guard::new().portable_names(false).check(path)
}

fn unrefused<T>(done: Result<T, Abort<()>>) -> Result<T, StoreError> {
    match done {
        Ok(value) => Ok(value),
        Err(Abort::Failed(error)) => Err(error),
        Err(Abort::Refused(())) => Err(StoreError::Limit("nothing was done")),
    }
}
