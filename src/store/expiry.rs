//! What exists at one moment: the schedule, the time and the holds under which a reader reads.

use std::sync::{Arc, PoisonError};

use crate::clock::UnixMillis;
use crate::path::MemoryPath;
use crate::record::{Dirent, DirentBody, FileMeta, Hold, Jumps};
use crate::retention::{Schedule, Schedules};

use super::StoreError;
use super::core::Core;
use super::reader::Reader;
use super::sweep::Swept;
use super::walk::Directory;

/// The schedule, the trusted time, and the holds in force then.
pub(crate) struct Expiry {
    pub(super) schedule: Arc<Schedule>,
    pub(super) now: UnixMillis,
    pub(super) jumps: Jumps,
    pub(super) holds: Vec<(String, Hold)>,
}

impl Expiry {
    /// Whether the file at `path` is expired. A hold beats expiry.
    pub(super) fn is_expired(&self, path: &str, file: &FileMeta, moved_at: UnixMillis) -> bool {
        self.due_at(path, file, moved_at)
            .is_some_and(|due| due <= self.now)
    }

    /// From when on the file does not exist; `None` is never. A hold that ends puts it off,
    /// one without an end makes it never.
    pub(super) fn due_at(
        &self,
        path: &str,
        file: &FileMeta,
        moved_at: UnixMillis,
    ) -> Option<UnixMillis> {
        let accessed = self.jumps.settle(file.accessed.max(moved_at));
        let created = self.jumps.settle(file.created);
        let due = self.schedule.due_at(path, created, accessed)?;
        self.put_off(path, due)
    }

    /// Until when the holds on a path, and on directories above it, put off what is due then.
    fn put_off(&self, path: &str, due: UnixMillis) -> Option<UnixMillis> {
        self.holds
            .iter()
            .filter(|(held, _)| lies_in(path, held))
            .try_fold(due, |due, (_, hold)| Some(due.max(hold.until?)))
    }

    /// The hold that keeps `path`: on it, or on a directory above it.
    pub(crate) fn hold_on(&self, path: &str) -> Option<&(String, Hold)> {
        self.holds.iter().find(|(held, _)| lies_in(path, held))
    }

    /// The hold on something in this directory, or on it.
    pub(crate) fn hold_in(&self, directory: &str) -> Option<&(String, Hold)> {
        self.holds
            .iter()
            .find(|(held, _)| lies_in(held, directory) || lies_in(directory, held))
    }
}

impl Core {
    pub(super) fn schedules(&self) -> Arc<Schedules> {
        let schedules = self.schedules.read();
        Arc::clone(&schedules.unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_schedules(&self, schedules: Schedules) {
        let current = self.schedules.write();
        *current.unwrap_or_else(PoisonError::into_inner) = Arc::new(schedules);
    }
}

impl Reader<'_> {
    /// Whether a file is expired, and so does not exist.
    pub(super) fn is_expired(&self, directory: &Directory, entry: &Dirent) -> bool {
        match (&self.expiry, &entry.body) {
            (Some(expiry), DirentBody::File(meta)) => {
                expiry.is_expired(&directory.path_of(&entry.name), meta, directory.moved_at)
            }
            _ => false,
        }
    }

    /// The holds that are in force.
    pub(crate) fn holds(&self) -> &[(String, Hold)] {
        self.expiry.as_ref().map_or(&[], |expiry| &expiry.holds)
    }

    /// Whether anything below a directory may be expired. Without that, its summary counts
    /// what exists.
    pub(crate) fn may_hold_expired(&self, directory: &Directory) -> bool {
        let below = &directory.summary.below;
        self.expiry.as_ref().is_some_and(|expiry| {
            let schedule = &expiry.schedule;
            schedule.may_hold_expired(&directory.path, below, expiry.now)
                && expiry.hold_on(&directory.path).is_none()
        })
    }

    /// Counts the expired files below a directory, and the directories that would be empty
    /// without them. Says whether this is one of those.
    pub(super) fn count_expired(
        &self,
        directory: &Directory,
        swept: &mut Swept,
    ) -> Result<bool, StoreError> {
        if !self.may_hold_expired(directory) {
            return Ok(false);
        }
        let mut goes = false;
        let mut stays = false;
        for entry in self.all_children(directory)? {
            if self.is_expired(directory, &entry) {
                swept.file(directory.path_of(&entry.name), entry.share().bytes);
                goes = true;
                continue;
            }
            match directory.child(&entry) {
                Some(below) if self.count_expired(&below, swept)? => {
                    swept.directories += 1;
                    goes = true;
                }
                _ => stays = true,
            }
        }
        Ok(goes && !stays)
    }

    /// Lowers `soonest` to the moment at which the next file below a directory expires. What
    /// is expired already does not count.
    pub(super) fn next_expiry(
        &self,
        directory: &Directory,
        soonest: &mut Option<UnixMillis>,
    ) -> Result<(), StoreError> {
        let Some(expiry) = &self.expiry else {
            return Ok(());
        };
        let below = &directory.summary.below;
        let due = expiry.schedule.next_due(&directory.path, below);
        let bound = due.and_then(|due| expiry.put_off(&directory.path, due));
        if !bound.is_some_and(|bound| soonest.is_none_or(|soonest| bound < soonest)) {
            return Ok(());
        }
        for entry in self.all_children(directory)? {
            match directory.child(&entry) {
                Some(below) => self.next_expiry(&below, soonest)?,
                None => self.next_expiry_of(directory, &entry, soonest),
            }
        }
        Ok(())
    }

    /// As [`Reader::next_expiry`], for one file.
    pub(super) fn next_expiry_of(
        &self,
        directory: &Directory,
        entry: &Dirent,
        soonest: &mut Option<UnixMillis>,
    ) {
        let (Some(expiry), DirentBody::File(meta)) = (&self.expiry, &entry.body) else {
            return;
        };
        let path = directory.path_of(&entry.name);
        let due = expiry.due_at(&path, meta, directory.moved_at);
        if let Some(due) = due.filter(|due| *due > expiry.now) {
            *soonest = Some(soonest.map_or(due, |soonest| soonest.min(due)));
        }
    }

    /// The hold on a path or on a directory above it.
    pub(crate) fn hold_on(&self, path: &MemoryPath) -> Option<&Hold> {
        let (_, hold) = self.expiry.as_ref()?.hold_on(path.as_str())?;
        Some(hold)
    }

    /// The held path at, above or below a directory.
    pub(crate) fn held_in(&self, directory: &MemoryPath) -> Option<&str> {
        let (path, _) = self.expiry.as_ref()?.hold_in(directory.as_str())?;
        Some(path)
    }
}

/// Whether a canonical path is `directory` or lies below it.
fn lies_in(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
