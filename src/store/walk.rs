//! What a reader finds along a path: directories as their parents know them, and how far the path exists.

use crate::clock::UnixMillis;
use crate::record::{Dirent, DirentBody, NodeId, Summary};

/// A directory, as its parent knows it.
#[derive(Clone)]
pub(crate) struct Directory {
    pub(crate) id: NodeId,
    pub(crate) summary: Summary,
    /// Its canonical path.
    pub(crate) path: String,
    /// When it, or a directory above it, was last moved: an access to all below.
    pub(crate) moved_at: UnixMillis,
}

impl Directory {
    /// The directory that one of this directory's entries is, if it is one.
    pub(crate) fn child(&self, entry: &Dirent) -> Option<Self> {
        let DirentBody::Directory { summary, moved_at } = &entry.body else {
            return None;
        };
        Some(Self {
            id: entry.node,
            summary: *summary,
            path: self.path_of(&entry.name),
            moved_at: self.moved_at.max(*moved_at),
        })
    }

    /// The path of an entry.
    pub(crate) fn path_of(&self, name: &str) -> String {
        [&*self.path, "/", name].concat()
    }
}

/// When a write must be durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// With the next read or write of the tenant, or when the store closes.
    Soon,
    /// Before the reply.
    Now,
}

/// What lies along a path.
pub(crate) struct Walk {
    /// The entries from the root on, as far as they exist.
    pub(crate) entries: Vec<Dirent>,
    /// The last directory on the way: the target itself, if it is one.
    pub(crate) directory: Directory,
    /// How many components the path has.
    pub(super) depth: usize,
}

impl Walk {
    /// The entry that the whole path names (`None` also for the root, which has no entry).
    pub(crate) fn target(&self) -> Option<&Dirent> {
        if self.entries.len() == self.depth {
            self.entries.last()
        } else {
            None
        }
    }

    /// The directory that the whole path names.
    pub(crate) fn target_directory(&self) -> Option<&Directory> {
        let is_file = matches!(
            self.entries.last(),
            Some(Dirent {
                body: DirentBody::File(_),
                ..
            })
        );
        (self.entries.len() == self.depth && !is_file).then_some(&self.directory)
    }

    /// How many components lead to a file that stands in the way of the rest of the path.
    pub(crate) fn blocked_at(&self) -> Option<usize> {
        let last = self.entries.last()?;
        let is_file = matches!(last.body, DirentBody::File(_));
        (is_file && self.entries.len() < self.depth).then_some(self.entries.len())
    }
}
