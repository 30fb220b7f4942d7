//! Takes away what is expired: walks down from a head and skips whatever cannot hold anything due.

use crate::audit::Draft;
use crate::clock::UnixMillis;
use crate::path::{Guard, MemoryPath};
use crate::record::DirentBody;

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
    /// Nothing that is left expires before this moment, in milliseconds since 1970.
    pub next_due: Option<UnixMillis>,
}

/// How many paths a report names.
const PATHS_MAX: usize = 1_000;

impl Core {
    /// Takes away all expired files at or below `under`, in batches. Each batch is planned
    /// under the tenant's lock, so an interrupted sweep simply starts again.
    ///
    /// While the clock is not believed, nothing is due.
    pub(super) fn sweep(
        &self,
        tenant: &Tenant,
        under: &MemoryPath,
        dry_run: bool,
    ) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        let is_idle = self.schedule().is_never() || tenant.live().is_none();
        if is_idle || self.clock_state() != ClockState::Trusted {
            return Ok(swept);
        }
        if dry_run {
            let counted = self.read(tenant, |reader| {
                let walk = reader.walk(under)?;
                let mut swept = Swept::default();
                match walk.target_directory() {
                    Some(directory) => reader.count_expired(directory, &mut swept)?,
                    None if under.is_root() => reader.count_expired(&reader.root(), &mut swept)?,
                    None => {}
                }
                Ok::<_, Abort<()>>(swept)
            });
            return unrefused(counted);
        }
        loop {
            let batch = self.write(tenant, |change| {
                let walk = change.reader().walk(under)?;
                let mut batch = Batch::default();
                if let Some(directory) = walk.target_directory() {
                    batch.directory(change, directory)?;
                }
                // Without anything to remove there is nothing to commit.
                if batch.swept.files == 0 && batch.swept.directories == 0 {
                    return Err(Abort::Refused(()));
                }
                let mut draft = Draft::new("expire").detail(format!("{} files", batch.swept.files));
                draft.bytes = batch.swept.bytes;
                change.audit(draft);
                Ok(batch)
            });
            let batch = match batch {
                Ok(batch) => batch,
                Err(Abort::Refused(())) => break,
                Err(Abort::Failed(error)) => return Err(error),
            };
            swept.add(batch.swept);
            if !batch.is_full {
                break;
            }
        }
        swept.next_due = tenant.live().and_then(|live| {
            self.schedule()
                .next_due(under.as_str(), &live.head.root.below)
        });
        Ok(swept)
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
    is_full: bool,
}

impl Batch {
    /// Plans to remove what is expired below a directory. Says whether nothing is left in it.
    fn directory(
        &mut self,
        change: &mut Change<'_>,
        directory: &Directory,
    ) -> Result<bool, StoreError> {
        if !change.reader().may_hold_expired(directory) {
            return Ok(false);
        }
        let mut is_emptied = true;
        let mut removed_any = false;
        for entry in change.reader().all_children(directory)? {
            if change.operations() > OPERATIONS_MAX {
                self.is_full = true;
                return Ok(false);
            }
            let path = directory.path_of(&entry.name);
            // The name was accepted once, under whatever rule on portable names.
            let Ok(target) = Guard::new().portable_names(false).check(&path) else {
                is_emptied = false;
                continue;
            };
            match (&entry.body, directory.child(&entry)) {
                (DirentBody::File(meta), _) if change.reader().is_expired(directory, &entry) => {
                    change.purge(&target)?;
                    self.swept.file(path, meta.bytes);
                    removed_any = true;
                }
                (_, Some(below)) if self.directory(change, &below)? => {
                    change.remove_emptied(&target)?;
                    self.swept.directories += 1;
                    removed_any = true;
                }
                _ => is_emptied = false,
            }
        }
        Ok(is_emptied && removed_any)
    }
}

fn unrefused<T>(done: Result<T, Abort<()>>) -> Result<T, StoreError> {
    match done {
        Ok(value) => Ok(value),
        Err(Abort::Failed(error)) => Err(error),
        Err(Abort::Refused(())) => Err(StoreError::Limit("nothing was done")),
    }
}
