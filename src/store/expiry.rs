//! What exists at one moment: the schedule, the time and the holds under which a reader reads.

use std::sync::Arc;

use crate::clock::UnixMillis;
use crate::record::{FileMeta, Hold};
use crate::retention::Schedule;

/// The schedule, the trusted time, and the holds in force then.
pub(crate) struct Expiry {
    pub(super) schedule: Arc<Schedule>,
    pub(super) now: UnixMillis,
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
        let accessed = file.accessed.max(moved_at);
        let due = self.schedule.due_at(path, file, accessed)?;
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

/// Whether a canonical path is `directory` or lies below it.
fn lies_in(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
