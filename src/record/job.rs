//! Unfinished work that must survive a restart: what is to be removed.

use crate::key::FileTag;

use super::codec::{Decoder, Encoder};
use super::{ContentId, NodeId, RecordError, SetHash, TenantId};

/// The most directories that a job remembers: it walks depth first, one path at a time.
pub const JOB_DIRECTORIES_MAX: usize = 64;

/// A directory that nothing refers to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrashDirectory {
    /// Under which id its entries lie.
    pub id: NodeId,
    /// Its entries and their hash when it was deleted, until they were checked: an older
    /// entry that damage brought back could name a content that is still in use elsewhere.
    pub unchecked: Option<(u64, SetHash)>,
}

/// Something that nothing refers to any more, to be removed in small batches.
///
/// Also written before a large content is stored in several batches: if that never
/// finishes, the job removes what it left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Whose records these are, by file tag.
    pub tag: FileTag,
    /// The id under which they lie. It outlives the tenant, and removing a content needs no key.
    pub tenant: TenantId,
    /// Directories to empty; the last one first.
    pub directories: Vec<TrashDirectory>,
    /// A content to remove, and how many chunks of it are left.
    pub content: Option<(ContentId, u32)>,
}

impl Job {
    /// The record's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(self.directories.len() <= JOB_DIRECTORIES_MAX);
        let mut out = Encoder::default();
        out.array(&self.tag.0).array(&self.tenant.0);
        out.u32(u32::try_from(self.directories.len()).unwrap_or(u32::MAX));
        for directory in &self.directories {
            out.array(&directory.id.0);
            match &directory.unchecked {
                None => out.u8(0),
                Some((entries, set_hash)) => out.u8(1).u64(*entries).array(&set_hash.0),
            };
        }
        match &self.content {
            None => out.u8(0),
            Some((content, chunks)) => out.u8(1).array(&content.0).u32(*chunks),
        };
        out.finish()
    }

    /// The job that these bytes are.
    ///
    /// # Errors
    /// [`RecordError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut from = Decoder::new("job", bytes);
        let tag = FileTag(from.array()?);
        let tenant = TenantId(from.array()?);
        let count = from.u32()? as usize;
        if count > JOB_DIRECTORIES_MAX {
            return Err(from.malformed());
        }
        let mut directories = Vec::with_capacity(count);
        for _ in 0..count {
            let id = NodeId(from.array()?);
            let unchecked = match from.u8()? {
                0 => None,
                1 => Some((from.u64()?, SetHash(from.array()?))),
                _ => return Err(from.malformed()),
            };
            directories.push(TrashDirectory { id, unchecked });
        }
        let content = match from.u8()? {
            0 => None,
            1 => Some((ContentId(from.array()?), from.u32()?)),
            _ => return Err(from.malformed()),
        };
        from.finish()?;
        Ok(Self {
            tag,
            tenant,
            directories,
            content,
        })
    }
}
