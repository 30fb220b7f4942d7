//! Reads audit chains back, checks every link, and prunes what is older than the policy keeps.

use base64ct::{Base64UrlUnpadded, Encoding};

use crate::audit::{Chain, Entry, entry_hash, hex};
use crate::backend::Batch;
use crate::clock::UnixMillis;
use crate::key::{FileTag, TenantId};
use crate::record::RecordKey;
use crate::seal;

use super::audit::STORE_CHAIN;
use super::core::Core;
use super::tenant::{Tenant, TenantCrypto};
use super::{Abort, StoreError};

/// How many entries one batch prunes.
const PRUNED_PER_BATCH: usize = 400;

/// An entry as it was read back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditRecord {
    /// The entry.
    pub entry: Entry,
    /// Its bytes, over which its hash goes.
    pub json: String,
    /// The path in plain, while the tenant has keys.
    pub path: Option<String>,
    /// The destination of a rename in plain, likewise.
    pub to: Option<String>,
}

impl Core {
    /// Reads a chain, oldest entry first, and checks every link against what the head or
    /// root says of it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when an entry is missing, altered, or out of its place.
    pub(super) fn read_chain(
        &self,
        tenant: TenantId,
        crypto: Option<&TenantCrypto>,
        chain: &Chain,
        mut each: impl FnMut(AuditRecord),
    ) -> Result<(), StoreError> {
        let damaged = StoreError::Damaged("the audit log");
        let mut prev = chain.first_prev;
        for seq in chain.first..=chain.last {
            let key = RecordKey::Audit(tenant, seq).to_bytes();
            let Some(sealed) = self.backend.get(&key)? else {
                return Err(damaged);
            };
            let place = self.audit_place(&key);
            let json = seal::open_record(&place, &self.crypto.audit, &sealed)
                .map_err(|_| StoreError::Damaged("the audit log"))?;
            let entry =
                Entry::from_json(&json).map_err(|_| StoreError::Damaged("the audit log"))?;
            if entry.seq != seq || entry.prev != hex(&prev) || entry.tenant != tenant.to_string() {
                return Err(damaged);
            }
            prev = entry_hash(&json);
            let open = |sealed: &Option<String>| -> Option<String> {
                let sealed = Base64UrlUnpadded::decode_vec(sealed.as_deref()?).ok()?;
                let plain = seal::open_record(&place, &crypto?.audit_paths, &sealed).ok()?;
                String::from_utf8(plain.to_vec()).ok()
            };
            each(AuditRecord {
                path: open(&entry.path),
                to: open(&entry.to),
                json: String::from_utf8_lossy(&json).into_owned(),
                entry,
            });
        }
        if prev == chain.tip {
            Ok(())
        } else {
            Err(damaged)
        }
    }

    /// Removes entries older than `before` from the beginning of a chain. The head or root
    /// then vouches for the hash of the last one removed, which is the link to what is kept.
    pub(super) fn prune_audit(
        &self,
        tenant: Option<&Tenant>,
        before: UnixMillis,
    ) -> Result<u64, StoreError> {
        let mut pruned = 0;
        // A tenant's chain is pruned under its lock; so is the store's own.
        let _held = tenant.is_none().then(|| self.audit.lock_chain());
        loop {
            let step = match tenant {
                None => {
                    let mut batch = Batch::default();
                    let chain =
                        self.prune_step(STORE_CHAIN, self.root().audit, before, &mut batch)?;
                    let count = batch.deletes.len();
                    if count > 0 {
                        let extra = super::core::Extra {
                            pruned: Some(chain),
                            ..Default::default()
                        };
                        self.commit_with(extra, batch, Vec::new())?;
                    }
                    count
                }
                Some(tenant) => {
                    let done = self.write_soon(tenant, |change| match change.prune(before)? {
                        0 => Err(Abort::Refused(())),
                        count => Ok(count),
                    });
                    match done {
                        Ok(count) => count,
                        Err(Abort::Refused(())) => 0,
                        Err(Abort::Failed(error)) => return Err(error),
                    }
                }
            };
            pruned += step as u64;
            if step < PRUNED_PER_BATCH {
                return Ok(pruned);
            }
        }
    }

    /// Plans to remove some entries; the newest one always stays. Returns what is left.
    pub(super) fn prune_step(
        &self,
        tenant: TenantId,
        mut chain: Chain,
        before: UnixMillis,
        batch: &mut Batch,
    ) -> Result<Chain, StoreError> {
        while chain.first < chain.last && batch.deletes.len() < PRUNED_PER_BATCH {
            let (time, hash) = self.entry_at(tenant, chain.first)?;
            if self.jumps().settle(time) >= before {
                break;
            }
            let key = RecordKey::Audit(tenant, chain.first).to_bytes();
            batch.deletes.push(key);
            chain.first += 1;
            chain.first_prev = hash;
        }
        Ok(chain)
    }

    /// Whether pruning a chain would remove something, or find damage.
    pub(super) fn is_first_entry_older(
        &self,
        tenant: TenantId,
        chain: &Chain,
        before: UnixMillis,
    ) -> bool {
        let first = self.entry_at(tenant, chain.first);
        !first.is_ok_and(|(time, _)| self.jumps().settle(time) >= before)
    }

    /// The time and hash of one entry.
    fn entry_at(&self, tenant: TenantId, seq: u64) -> Result<(UnixMillis, [u8; 32]), StoreError> {
        let damaged = || StoreError::Damaged("the audit log");
        let key = RecordKey::Audit(tenant, seq).to_bytes();
        let sealed = self.backend.get(&key)?.ok_or_else(damaged)?;
        let json = seal::open_record(&self.audit_place(&key), &self.crypto.audit, &sealed)?;
        let entry = Entry::from_json(&json).map_err(|_| damaged())?;
        Ok((entry.time, entry_hash(&json)))
    }

    /// Reads the store's own chain. It is not pruned meanwhile.
    pub(super) fn read_store_chain(
        &self,
        each: impl FnMut(AuditRecord),
    ) -> Result<Chain, StoreError> {
        let _held = self.audit.lock_chain();
        let chain = self.root().audit;
        self.read_chain(STORE_CHAIN, None, &chain, each)?;
        Ok(chain)
    }

    /// The chain of one tenant by its file tag, or (`None`) the store's own.
    pub(super) fn audit_chain(
        &self,
        tag: Option<FileTag>,
        each: impl FnMut(AuditRecord),
    ) -> Result<Chain, StoreError> {
        self.flush_audit()?;
        let Some(tag) = tag else {
            return self.read_store_chain(each);
        };
        let Some(tenant) = self.listed_tenant(tag)? else {
            return Ok(Chain::EMPTY);
        };
        // Under the lock, so that pruning cannot take away what is being read.
        let _lock = tenant.lock();
        let Some(live) = tenant.live() else {
            return Ok(Chain::EMPTY);
        };
        self.read_chain(live.crypto.id, Some(&live.crypto), &live.head.audit, each)?;
        Ok(live.head.audit)
    }
}
