//! Cuts contents into padded, sealed chunks; stores large ones ahead of the change that refers to them.

use std::sync::PoisonError;

use crate::backend::{Batch, Pair};
use crate::key::Plain;
use crate::record::{CHUNK_BYTES, ContentId, Job, JobId, RecordKey, Removal, padded_content_bytes};

use super::StoreError;
use super::change::CHUNKS_INLINE_MAX;
use super::core::{Core, TopChange};
use super::job_list::StoredJob;
use super::tenant::{Tenant, TenantCrypto};

/// The chunks of a content, the last one padded with zeros.
pub(super) fn chunks(bytes: &[u8]) -> impl ExactSizeIterator<Item = Plain> + '_ {
    let padded = usize::try_from(padded_content_bytes(bytes.len() as u64)).unwrap_or(usize::MAX);
    (0..padded.div_ceil(CHUNK_BYTES)).map(move |number| {
        let start = number * CHUNK_BYTES;
        let chunk_bytes = CHUNK_BYTES.min(padded - start);
        let end = bytes.len().min(start + chunk_bytes);
        let mut chunk = Plain::with_capacity(chunk_bytes);
        chunk.extend_from_slice(bytes.get(start..end).unwrap_or_default());
        chunk.resize(chunk_bytes, 0);
        chunk
    })
}

/// Seals one chunk for its place.
pub(super) fn seal(
    core: &Core,
    crypto: &TenantCrypto,
    content: ContentId,
    number: usize,
    chunk: &[u8],
) -> Result<Pair, StoreError> {
    let number =
        u32::try_from(number).map_err(|_| StoreError::Limit("the content is too large"))?;
    let key = RecordKey::Chunk(crypto.id, content, number).to_bytes();
    let value = crypto.seal_chunk(&*core.random, &key, chunk)?;
    Ok((key, value))
}

/// Stores a large content in several batches. The first holds a job that removes it
/// again unless the change that refers to it also removes the job.
pub(super) fn stage(
    core: &Core,
    tenant: &Tenant,
    crypto: &TenantCrypto,
    content: ContentId,
    bytes: &[u8],
) -> Result<(JobId, [u8; 32]), StoreError> {
    let chunks = chunks(bytes);
    let count =
        u32::try_from(chunks.len()).map_err(|_| StoreError::Limit("the content is too large"))?;
    let mut id = [0; 16];
    core.random.fill(&mut id)?;
    let id = JobId(id);
    let job = Job::Remove(Removal {
        tag: tenant.tag,
        tenant: crypto.id,
        directories: Vec::new(),
        content: Some((content, count)),
    });
    let key = RecordKey::Job(id);
    let sealed = core.seal_top(&key, &job.encode())?;
    let mac = core.top_mac(&key, &sealed);
    core.jobs
        .staging
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(id);
    core.jobs
        .waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(id, StoredJob { job, mac });
    let stored = store(
        core,
        crypto,
        content,
        chunks,
        TopChange {
            key,
            old: None,
            new: Some(sealed),
        },
    );
    if let Err(error) = stored {
        core.release_staged(&[id]);
        return Err(error);
    }
    Ok((id, mac))
}

fn store(
    core: &Core,
    crypto: &TenantCrypto,
    content: ContentId,
    chunks: impl Iterator<Item = Plain>,
    job: TopChange,
) -> Result<(), StoreError> {
    let mut job = vec![job];
    let mut batch = Batch::default();
    for (number, chunk) in chunks.enumerate() {
        batch
            .puts
            .push(seal(core, crypto, content, number, &chunk)?);
        if batch.puts.len() >= CHUNKS_INLINE_MAX as usize {
            core.commit(std::mem::take(&mut batch), std::mem::take(&mut job))?;
        }
    }
    core.commit(batch, job)?;
    Ok(())
}
