//! The contents' part of `verify`: all chunks of a tenant in the engine's order.
//!
//! In the order of the tree a large store's chunks lie anywhere, and each would cost the engine a page.

use std::collections::{HashMap, HashSet};

use crate::record::{
    CHUNK_BYTES, ContentId, DirentBody, FileMeta, RecordKey, padded_content_bytes,
};

use super::StoreError;
use super::reader::Reader;
use super::tenant::{Tenant, TenantCrypto};
use super::verify::VerifyReport;
use super::walk::Directory;

/// The contents that a tenant's tree and its unfinished removals name, and what was seen of them.
#[derive(Default)]
pub(super) struct Contents(HashMap<ContentId, Content>);

struct Content {
    /// The length of the file; `None` for what is only to be removed.
    bytes: Option<u64>,
    chunks: u32,
    /// How many of the chunks were seen and are what they must be.
    whole: u32,
}

impl Contents {
    /// Notes a file of the tree.
    pub(super) fn file(&mut self, file: &FileMeta) {
        let content = Content {
            bytes: Some(file.bytes),
            chunks: file.chunks(),
            whole: 0,
        };
        if let Some(other) = self.0.insert(file.content, content)
            && let Some(content) = self.0.get_mut(&file.content)
            && other.bytes.is_some()
        {
            // No two files share a content.
            content.chunks = u32::MAX;
        }
    }

    /// Notes what may be left of a content that is to be removed.
    pub(super) fn removal(&mut self, id: ContentId, chunks: u32) {
        self.0.entry(id).or_insert(Content {
            bytes: None,
            chunks,
            whole: 0,
        });
    }

    /// Looks at a chunk. Says whether it belongs to anything.
    pub(super) fn see(&mut self, crypto: &TenantCrypto, key: &[u8], value: &[u8]) -> bool {
        let Some(RecordKey::Chunk(_, id, number)) = RecordKey::from_bytes(key) else {
            return false;
        };
        let Some(content) = self.0.get_mut(&id) else {
            return false;
        };
        if number >= content.chunks {
            return false;
        }
        if let Some(bytes) = content.bytes
            && is_whole(crypto, key, value, bytes, number)
        {
            content.whole += 1;
        }
        true
    }

    /// The files' contents of which not all chunks are what they must be.
    pub(super) fn damaged(&self) -> HashSet<ContentId> {
        let damaged = self
            .0
            .iter()
            .filter(|(_, content)| content.bytes.is_some() && content.whole != content.chunks);
        damaged.map(|(id, _)| *id).collect()
    }

    /// The bytes of all files whose chunks are all what they must be.
    pub(super) fn whole_bytes(&self) -> u64 {
        let whole = self
            .0
            .values()
            .filter(|content| content.whole == content.chunks);
        whole.filter_map(|content| content.bytes).sum()
    }
}

/// Names the files whose contents are damaged.
pub(super) fn name_damaged(
    reader: &Reader<'_>,
    tenant: &Tenant,
    directory: &Directory,
    damaged: &HashSet<ContentId>,
    report: &mut VerifyReport,
) {
    // One that cannot be read has been named already.
    for entry in reader.children(directory).unwrap_or_default() {
        match &entry.body {
            DirentBody::File(meta) if damaged.contains(&meta.content) => {
                let error = reader.content(meta).err();
                let error = error.unwrap_or(StoreError::Damaged("a file's content"));
                let path = directory.path_of(&entry.name);
                report.problem(Some(tenant), Some(&path), &error);
            }
            _ => {
                if let Some(below) = directory.child(&entry) {
                    name_damaged(reader, tenant, &below, damaged, report);
                }
            }
        }
    }
}

/// Whether a chunk opens and is as long as it must be, with zeros behind the file's last byte.
fn is_whole(crypto: &TenantCrypto, key: &[u8], value: &[u8], bytes: u64, number: u32) -> bool {
    let start = u64::from(number) * CHUNK_BYTES as u64;
    let length = padded_content_bytes(bytes)
        .saturating_sub(start)
        .min(CHUNK_BYTES as u64);
    let used = usize::try_from(bytes.saturating_sub(start)).unwrap_or(usize::MAX);
    crypto.open_chunk(key, value).is_ok_and(|chunk| {
        let padding = chunk.get(used.min(chunk.len())..).unwrap_or_default();
        chunk.len() as u64 == length && padding.iter().all(|byte| *byte == 0)
    })
}
