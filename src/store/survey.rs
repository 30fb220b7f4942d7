//! Says which tenants a sweep must open at all: by their heads, without their keys.

use std::collections::HashSet;

use crate::clock::UnixMillis;
use crate::key::FileTag;
use crate::path::ROOT;
use crate::record::{Head, RecordKey};

use super::StoreError;
use super::core::Core;
use super::index::short;

/// A tenant as its head shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surveyed {
    pub(crate) tag: FileTag,
    /// The moment before which nothing of it expires; `None` is never.
    pub(crate) due: Option<UnixMillis>,
    /// Whether its audit chain may hold an entry that is older than was asked for.
    pub(crate) has_old_entries: bool,
}

impl Core {
    /// All tenants, the first to have something due first. One that does not check out comes
    /// as due at once, so that whoever opens it sees why.
    pub(super) fn survey(&self, kept_since: UnixMillis) -> Result<Vec<Surveyed>, StoreError> {
        let keyed: HashSet<[u8; 16]> = self.keys.tenants()?.into_iter().collect();
        let mut found: Vec<Surveyed> = self
            .known_heads()
            .into_iter()
            .map(|tag| {
                let head = self.surveyed_head(tag).filter(|_| keyed.contains(&tag.0));
                match head {
                    Some(head) => self.surveyed(tag, &head, kept_since),
                    None => Surveyed {
                        tag,
                        due: Some(0),
                        has_old_entries: true,
                    },
                }
            })
            .collect();
        found.sort_unstable_by_key(|one| (one.due.unwrap_or(UnixMillis::MAX), one.tag.0));
        Ok(found)
    }

    fn surveyed(&self, tag: FileTag, head: &Head, kept_since: UnixMillis) -> Surveyed {
        let chain = &head.audit;
        // No entry is older than its tenant, and the newest one stays in any case.
        let has_old_entries = chain.first < chain.last
            && head.created < kept_since
            && self.is_first_entry_older(head.tenant, chain, kept_since);
        Surveyed {
            tag,
            due: self.schedules().next_due(ROOT, &head.root.below),
            has_old_entries,
        }
    }

    /// The head as it is stored, if the root vouches for it. A writer may be at work.
    fn surveyed_head(&self, tag: FileTag) -> Option<Head> {
        let key = RecordKey::Head(tag);
        let sealed = self.backend.get(&key.to_bytes()).ok().flatten()?;
        let is_known = self.known_head(tag) == Some(short(&self.top_mac(&key, &sealed)));
        self.open_head(tag, &sealed).ok().filter(|_| is_known)
    }
}
