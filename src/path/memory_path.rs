//! `MemoryPath`: a canonical path, which only the guard can make.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::ROOT;

/// A canonical path: `/memories`, or `/memories/` and components in NFC joined by single slashes.
///
/// Only [`Guard::check`](super::Guard::check) makes one from text, so whoever holds one need not
/// look at it again. Names are case-sensitive. Paths are ordered component by component, in byte
/// order, so a directory is directly followed by everything below it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MemoryPath(Arc<str>);

impl MemoryPath {
    /// `/memories` itself.
    #[must_use]
    pub fn root() -> Self {
        Self(Arc::from(ROOT))
    }

    /// Takes text that the guard has found canonical.
    pub(super) fn from_canonical(text: &str) -> Self {
        debug_assert!(
            text == ROOT
                || text
                    .strip_prefix(ROOT)
                    .is_some_and(|rest| rest.starts_with('/') && !rest.ends_with('/'))
        );
        Self(Arc::from(text))
    }

    /// The whole path, from `/memories` on.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `/memories` itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.below_root().is_empty()
    }

    /// The names below `/memories`, from the top down; none for the root.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        // A canonical path has no empty component, so this drops only what stands before the
        // first slash.
        self.below_root()
            .split('/')
            .filter(|component| !component.is_empty())
    }

    /// The number of components: 0 for the root, at most [`DEPTH_MAX`](super::DEPTH_MAX).
    #[must_use]
    pub fn depth(&self) -> usize {
        self.below_root()
            .bytes()
            .filter(|byte| *byte == b'/')
            .count()
    }

    /// The last component; none for the root.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.components().next_back()
    }

    /// The directory this path lies in; none for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let (parent, _) = self.0.rsplit_once('/')?;
        Some(Self::from_canonical(parent))
    }

    /// Whether `other` is this path or lies below it: `/memories/a` contains `/memories/a/b`, and
    /// does not contain `/memories/ab`.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        other
            .0
            .strip_prefix(&*self.0)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn below_root(&self) -> &str {
        self.0.strip_prefix(ROOT).unwrap_or_default()
    }
}

impl Ord for MemoryPath {
    fn cmp(&self, other: &Self) -> Ordering {
        // No canonical path holds a control character, so zero sorts before all of a name.
        let separator_first = |byte: u8| if byte == b'/' { 0 } else { byte };
        let own = self.0.bytes().map(separator_first);
        own.cmp(other.0.bytes().map(separator_first))
    }
}

impl PartialOrd for MemoryPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for MemoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MemoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryPath({:?})", &*self.0)
    }
}
