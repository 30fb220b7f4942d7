//! The summary of a directory: what its parent knows of everything below it.

use crate::clock::UnixMillis;

use super::codec::{Decoder, Encoder};
use super::{RecordError, SetHash};

/// What a directory holds, and a keyed hash over its entries' records.
///
/// It lies in the directory's own entry (the tenant's root directory's in the head), so
/// all summaries together are one hash tree from every record up to the root record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Entries right in this directory, hidden ones included.
    pub entries: u64,
    /// The hash over their records.
    pub set_hash: SetHash,
    /// What lies below, all depths.
    pub below: Share,
}

impl Summary {
    /// An empty directory.
    pub const EMPTY: Self = Self {
        entries: 0,
        set_hash: SetHash([0; 32]),
        below: Share::NOTHING,
    };

    pub(super) fn encode(&self, out: &mut Encoder) {
        out.u64(self.entries)
            .array(&self.set_hash.0)
            .u64(self.below.files)
            .u64(self.below.directories)
            .u64(self.below.bytes)
            .u64(self.below.oldest)
            .u64(self.below.born)
            .u64(self.below.height)
            .u64(self.below.reach);
    }

    pub(super) fn decode(from: &mut Decoder<'_>) -> Result<Self, RecordError> {
        Ok(Self {
            entries: from.u64()?,
            set_hash: SetHash(from.array()?),
            below: Share {
                files: from.u64()?,
                directories: from.u64()?,
                bytes: from.u64()?,
                oldest: from.u64()?,
                born: from.u64()?,
                height: from.u64()?,
                reach: from.u64()?,
            },
        })
    }
}

/// What one entry adds to the totals of the directories above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Bytes of their contents, unpadded.
    pub bytes: u64,
    /// A lower bound of the last access of any of them ([`UnixMillis::MAX`] if there is none).
    pub oldest: UnixMillis,
    /// A lower bound of the creation of any of them ([`UnixMillis::MAX`] if there is none).
    pub born: UnixMillis,
    /// An upper bound of the levels below: 1 for a file or an empty directory.
    pub height: u64,
    /// An upper bound of the bytes that a path below adds, its slashes included.
    pub reach: u64,
}

impl Share {
    /// What an empty directory adds.
    pub const NOTHING: Self = Self {
        files: 0,
        directories: 0,
        bytes: 0,
        oldest: UnixMillis::MAX,
        born: UnixMillis::MAX,
        height: 0,
        reach: 0,
    };

    /// These totals with `new` in place of `old`.
    ///
    /// Returns `None` when they cannot be right: a total would fall below zero.
    #[must_use]
    pub fn replace(self, old: Self, new: Self) -> Option<Self> {
        let files = self.files.checked_sub(old.files)?.checked_add(new.files)?;
        let least = |own: UnixMillis, new| {
            if files == 0 {
                UnixMillis::MAX
            } else {
                own.min(new)
            }
        };
        Some(Self {
            files,
            directories: self
                .directories
                .checked_sub(old.directories)?
                .checked_add(new.directories)?,
            bytes: self.bytes.checked_sub(old.bytes)?.checked_add(new.bytes)?,
            oldest: least(self.oldest, new.oldest),
            born: least(self.born, new.born),
            height: self.height.max(new.height),
            reach: self.reach.max(new.reach),
        })
    }
}
