//! What the store keeps, as typed records: their keys in the backend and their bytes before sealing.
//!
//! Nothing here encrypts; `seal` does. The byte layout is in `docs/FORMAT.md`.

use thiserror::Error;

mod codec;
mod dirent;
mod ids;
mod job;
mod root;
mod set_hash;
mod summary;
mod token;

pub use dirent::{
    Dirent, DirentBody, FileKind, FileMeta, HOLD_REASON_BYTES_MAX, Hold, padded_content_bytes,
};
pub use ids::{ContentId, JobId, NameTag, NodeId, RecordKey, TokenId};

pub use crate::key::TenantId;
pub use job::{
    Erasure, ErasureStage, JOB_DIRECTORIES_MAX, Job, Removal, Rotation, TRACE_BYTES, Trail,
    TrashDirectory,
};
pub use root::{Head, Jumps, LastRuns, Root, Run};
pub use set_hash::SetHash;
pub use summary::{Share, Summary};
pub use token::{Access, TOKEN_TENANTS_MAX, Token};

/// Bytes of padded content in one chunk: with the envelope it stays below the engine's 6 KiB.
pub const CHUNK_BYTES: usize = 5_888;

/// Why stored bytes are no record. Never carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The record ends too early, goes on too long, or a field is out of range.
    #[error("read a record: its {0} is malformed")]
    Malformed(&'static str),
}

#[cfg(test)]
mod tests;
