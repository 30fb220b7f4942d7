//! Unfinished work that must survive a restart, and what remains of erased tenants.

use crate::audit::Chain;
use crate::clock::UnixMillis;
use crate::key::FileTag;

use super::root::{decode_chain, encode_chain};

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
pub struct Removal {
    /// Whose records these are, by file tag.
    pub tag: FileTag,
    /// The id under which they lie. It outlives the tenant, and removing a content needs no key.
    pub tenant: TenantId,
    /// Directories to empty; the last one first.
    pub directories: Vec<TrashDirectory>,
    /// A content to remove, and how many chunks of it are left.
    pub content: Option<(ContentId, u32)>,
}

/// A tenant whose records are to be sealed anew under the record key of `epoch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Whose records, by file tag.
    pub tag: FileTag,
    /// The tenant's id.
    pub tenant: TenantId,
    /// The epoch to come to; all before it are then retired.
    pub epoch: u32,
}

/// How far the erasure of a tenant is. Its head is gone from the first of these on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ErasureStage {
    /// The key file is to be destroyed.
    KeyFile = 0,
    /// The keys are gone; records are being removed.
    Records = 1,
    /// No record is left, but the engine's files may still hold old bytes of some.
    Deleted = 2,
    /// The engine's files were written anew since.
    Purged = 3,
    /// Not erased: the tenant lives on under another id, with every key new. Its audit chain
    /// up to then lies under this one.
    Rekeyed = 4,
}

/// Bytes of a trace: what is looked for in raw files to tell that a wrapped key is gone.
pub const TRACE_BYTES: usize = 24;

/// What else is known of a tenant that is no more. Erasures from before this was written lack it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trail {
    /// Nothing.
    None,
    /// The id that the tenant got when all keys were made new.
    Next(TenantId),
    /// What tells whether a name was the tenant's, see [`TenantId::name_check`].
    Name([u8; 16]),
}

/// The erasure of a tenant, and for good what remains of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The tenant's file tag, under the store's keys of the time. Another tenant may have the
    /// name, and so the tag, by now.
    pub tag: FileTag,
    /// The id that the tenant had.
    pub tenant: TenantId,
    /// How far it is.
    pub stage: ErasureStage,
    /// When it began.
    pub started: UnixMillis,
    /// When no record was left; 0 before.
    pub deleted: UnixMillis,
    /// When the engine's files had been written anew; 0 before.
    pub purged: UnixMillis,
    /// The tenant's audit chain, which stays.
    pub audit: Chain,
    /// Parts of the key file that hold no key material and occur nowhere else: at most 4.
    pub traces: Vec<[u8; TRACE_BYTES]>,
    /// What leads to the tenant's next id, or from its name.
    pub trail: Trail,
}

/// The most traces of one erasure.
const TRACES_MAX: usize = 4;

/// A job record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Something to remove.
    Remove(Removal),
    /// A tenant to seal anew.
    Rotate(Rotation),
    /// A tenant to erase, or erased.
    Erase(Erasure),
}

impl Job {
    const REMOVE: u8 = 1;
    const ROTATE: u8 = 2;
    const ERASE: u8 = 3;

    /// The tenant under whose id the work is.
    #[must_use]
    pub fn tenant(&self) -> TenantId {
        match self {
            Self::Remove(job) => job.tenant,
            Self::Rotate(job) => job.tenant,
            Self::Erase(job) => job.tenant,
        }
    }

    /// What it removes, if that is what it does.
    #[must_use]
    pub fn removal(&self) -> Option<&Removal> {
        match self {
            Self::Remove(job) => Some(job),
            Self::Rotate(_) | Self::Erase(_) => None,
        }
    }

    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(
            self,
            Self::Erase(Erasure {
                stage: ErasureStage::Purged | ErasureStage::Rekeyed,
                ..
            })
        )
    }

    /// The record's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        match self {
            Self::Remove(job) => {
                out.u8(Self::REMOVE);
                job.encode(&mut out);
            }
            Self::Rotate(job) => {
                out.u8(Self::ROTATE).array(&job.tag.0).array(&job.tenant.0);
                out.u32(job.epoch);
            }
            Self::Erase(job) => {
                out.u8(Self::ERASE);
                job.encode(&mut out);
            }
        }
        out.finish()
    }

    /// The job that these bytes are.
    ///
    /// # Errors
    /// [`RecordError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut from = Decoder::new("job", bytes);
        let job = match from.u8()? {
            Self::REMOVE => Self::Remove(Removal::decode(&mut from)?),
            Self::ROTATE => Self::Rotate(Rotation {
                tag: FileTag(from.array()?),
                tenant: TenantId(from.array()?),
                epoch: from.u32()?,
            }),
            Self::ERASE => Self::Erase(Erasure::decode(&mut from)?),
            _ => return Err(from.malformed()),
        };
        from.finish()?;
        Ok(job)
    }
}

impl Removal {
    fn encode(&self, out: &mut Encoder) {
        debug_assert!(self.directories.len() <= JOB_DIRECTORIES_MAX);
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
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, RecordError> {
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
        Ok(Self {
            tag,
            tenant,
            directories,
            content,
        })
    }
}

impl Erasure {
    fn encode(&self, out: &mut Encoder) {
        debug_assert!(self.traces.len() <= TRACES_MAX);
        out.array(&self.tag.0)
            .array(&self.tenant.0)
            .u8(self.stage as u8)
            .u64(self.started)
            .u64(self.deleted)
            .u64(self.purged);
        encode_chain(&self.audit, out);
        out.u8(u8::try_from(self.traces.len()).unwrap_or(u8::MAX));
        for trace in &self.traces {
            out.array(trace);
        }
        match &self.trail {
            Trail::None => {}
            Trail::Next(tenant) => {
                out.u8(1).array(&tenant.0);
            }
            Trail::Name(check) => {
                out.u8(2).array(check);
            }
        }
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, RecordError> {
        let tag = FileTag(from.array()?);
        let tenant = TenantId(from.array()?);
        let stage = match from.u8()? {
            0 => ErasureStage::KeyFile,
            1 => ErasureStage::Records,
            2 => ErasureStage::Deleted,
            3 => ErasureStage::Purged,
            4 => ErasureStage::Rekeyed,
            _ => return Err(from.malformed()),
        };
        let (started, deleted, purged) = (from.u64()?, from.u64()?, from.u64()?);
        let audit = decode_chain(from)?;
        let count = usize::from(from.u8()?);
        if count > TRACES_MAX {
            return Err(from.malformed());
        }
        let mut traces = Vec::with_capacity(count);
        for _ in 0..count {
            traces.push(from.array()?);
        }
        let trail = match from.has_more() {
            false => Trail::None,
            true => match from.u8()? {
                1 => Trail::Next(TenantId(from.array()?)),
                2 => Trail::Name(from.array()?),
                _ => return Err(from.malformed()),
            },
        };
        Ok(Self {
            tag,
            tenant,
            stage,
            started,
            deleted,
            purged,
            audit,
            traces,
            trail,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn erasure(trail: Trail) -> Erasure {
        Erasure {
            tag: FileTag([1; 16]),
            tenant: TenantId([2; 16]),
            stage: ErasureStage::Purged,
            started: 3,
            deleted: 4,
            purged: 5,
            audit: Chain::EMPTY,
            traces: vec![[6; TRACE_BYTES]; TRACES_MAX],
            trail,
        }
    }

    #[test]
    fn an_erasure_is_read_as_it_was_written() {
        for trail in [
            Trail::None,
            Trail::Next(TenantId([7; 16])),
            Trail::Name([8; 16]),
        ] {
            let job = Job::Erase(erasure(trail));
            assert_eq!(Job::decode(&job.encode()), Ok(job));
        }
    }

    /// The first builds ended the record behind the traces.
    #[test]
    fn an_erasure_without_a_trail_is_what_the_first_builds_wrote() {
        let without = Job::Erase(erasure(Trail::None)).encode();
        let with = Job::Erase(erasure(Trail::Name([8; 16]))).encode();
        assert_eq!(with.len(), without.len() + 17);
        assert!(with.starts_with(&without));
        for length in without.len() + 1..with.len() {
            let cut = with.get(..length).unwrap();
            assert!(Job::decode(cut).is_err(), "{length}");
        }
        let unknown = [without.as_slice(), &[3], &[8; 16]].concat();
        assert!(Job::decode(&unknown).is_err());
    }
}
