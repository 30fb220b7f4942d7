//! Writes audit entries into the batches of the changes they tell of, and reads chains back.
//!
//! A change and its entry are one batch: no entry, no change. Entries of views and of
//! refusals wait in a buffer for at most a second, unless the policy wants them durable
//! before the reply.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use base64ct::{Base64UrlUnpadded, Encoding};

use crate::audit::{Chain, Draft, Entry, entry_hash, hex};
use crate::backend::{Batch, Pair};
use crate::clock::UnixMillis;
use crate::key::aead::Cipher;
use crate::key::{FileTag, TenantId};
use crate::policy::{Audit, AuditReads};
use crate::record::RecordKey;
use crate::seal::{self, Place};

use super::core::Core;
use super::tenant::{Tenant, TenantCrypto};
use super::{Abort, StoreError};

/// How many entries wait at most.
const BUFFER_MAX: usize = 256;

/// How long an entry waits at most.
const BUFFER_TIME: Duration = Duration::from_secs(1);

/// How many entries one batch prunes.
const PRUNED_PER_BATCH: usize = 400;

/// Under which id the store's own chain lies.
pub(super) const STORE_CHAIN: TenantId = TenantId([0; 16]);

/// The audit settings in force, and the entries that wait.
pub(super) struct AuditState {
    settings: RwLock<Audit>,
    buffer: Mutex<Vec<Waiting>>,
    filled: Condvar,
}

struct Waiting {
    tenant: Arc<Tenant>,
    draft: Draft,
    time: UnixMillis,
}

impl AuditState {
    pub(super) fn new() -> Self {
        Self {
            settings: RwLock::new(Audit::default()),
            buffer: Mutex::new(Vec::new()),
            filled: Condvar::new(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread that empties the buffer, for the last time.
    pub(super) fn wake(&self) {
        drop(self.lock());
        self.filled.notify_all();
    }
}

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

/// Seals entries for a chain, in order.
pub(super) struct ChainWriter<'a> {
    core: &'a Core,
    tenant: TenantId,
    paths: Option<&'a Cipher>,
    pub(super) chain: Chain,
}

impl<'a> ChainWriter<'a> {
    pub(super) fn new(
        core: &'a Core,
        tenant: TenantId,
        paths: Option<&'a Cipher>,
        chain: Chain,
    ) -> Self {
        Self {
            core,
            tenant,
            paths,
            chain,
        }
    }

    /// The record of the next entry.
    pub(super) fn append(&mut self, draft: Draft, time: UnixMillis) -> Result<Pair, StoreError> {
        let seq = self.chain.last + 1;
        let key = RecordKey::Audit(self.tenant, seq).to_bytes();
        let entry = Entry {
            seq,
            time,
            tenant: self.tenant.to_string(),
            actor: draft.actor,
            session: draft.session,
            command: draft.command,
            path: self.seal_path(&key, draft.path)?,
            to: self.seal_path(&key, draft.to)?,
            outcome: draft.outcome,
            rules: draft.rules,
            bytes: draft.bytes,
            detail: draft.detail,
            prev: hex(&self.chain.tip),
        };
        let json = entry.to_json();
        let place = self.core.audit_place(&key);
        let sealed = seal::seal_record(
            &place,
            &self.core.crypto.audit,
            &*self.core.random,
            json.as_bytes(),
        )?;
        self.chain.last = seq;
        self.chain.tip = entry_hash(json.as_bytes());
        Ok((key, sealed))
    }

    fn seal_path(&self, key: &[u8], path: Option<String>) -> Result<Option<String>, StoreError> {
        let (Some(path), Some(cipher)) = (path, self.paths) else {
            return Ok(None);
        };
        let place = self.core.audit_place(key);
        let sealed = seal::seal_record(&place, cipher, &*self.core.random, path.as_bytes())?;
        Ok(Some(Base64UrlUnpadded::encode_string(&sealed)))
    }
}

impl Core {
    pub(super) fn set_audit(&self, settings: Audit) {
        *self
            .audit
            .settings
            .write()
            .unwrap_or_else(PoisonError::into_inner) = settings;
    }

    pub(super) fn audit_settings(&self) -> Audit {
        self.audit
            .settings
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn audit_place<'k>(&self, key: &'k [u8]) -> Place<'k> {
        Place {
            store: self.crypto.id,
            epoch: 0,
            key,
        }
    }

    /// Notes an operation that changed nothing: a view or a refusal.
    pub(super) fn note(
        &self,
        tenant: &Arc<Tenant>,
        draft: Draft,
        is_view: bool,
    ) -> Result<(), StoreError> {
        let settings = self.audit_settings();
        if !settings.enabled || (is_view && settings.reads == AuditReads::Off) {
            return Ok(());
        }
        if self.mode != super::OpenMode::ReadWrite {
            return Ok(());
        }
        let waiting = Waiting {
            tenant: Arc::clone(tenant),
            draft,
            time: self.now(),
        };
        if settings.reads == AuditReads::Durable {
            return self.write_waiting(vec![waiting], true);
        }
        let mut buffer = self.audit.lock();
        buffer.push(waiting);
        let is_full = buffer.len() >= BUFFER_MAX;
        drop(buffer);
        self.audit.filled.notify_all();
        // Whoever fills the buffer empties it, so that it never grows beyond its bound.
        if is_full { self.flush_audit() } else { Ok(()) }
    }

    /// Writes all entries that wait. What cannot be written waits on.
    pub(super) fn flush_audit(&self) -> Result<(), StoreError> {
        let waiting = std::mem::take(&mut *self.audit.lock());
        if waiting.is_empty() {
            return Ok(());
        }
        self.write_waiting(waiting, false)
    }

    fn write_waiting(&self, mut waiting: Vec<Waiting>, is_urgent: bool) -> Result<(), StoreError> {
        while let Some(first) = waiting.first() {
            let tenant = Arc::clone(&first.tenant);
            let (own, others): (Vec<_>, Vec<_>) = waiting
                .into_iter()
                .partition(|entry| entry.tenant.tag == tenant.tag);
            let drafts: Vec<_> = own
                .iter()
                .map(|entry| (entry.draft.clone(), entry.time))
                .collect();
            let written = if tenant.live().is_some() {
                let plan = |change: &mut super::Change<'_>| -> Result<(), Abort<()>> {
                    for (draft, time) in drafts {
                        change.audit_at(draft, time);
                    }
                    Ok(())
                };
                let done = if is_urgent {
                    self.write(&tenant, plan)
                } else {
                    self.write_soon(&tenant, plan)
                };
                match done {
                    Err(Abort::Failed(error)) => Err(error),
                    _ => Ok(()),
                }
            } else {
                // A tenant that does not exist has no chain, and must not come to exist by it.
                let drafts = drafts
                    .into_iter()
                    .map(|(draft, _)| {
                        Draft {
                            path: None,
                            to: None,
                            ..draft
                        }
                        .detail(format!("no such tenant: {}", tenant.tag))
                    })
                    .collect();
                match self.commit_noted(drafts) {
                    Ok(seq) if is_urgent => self.wait_durable(seq),
                    noted => noted.map(drop),
                }
            };
            if let Err(error) = written {
                self.audit
                    .lock()
                    .splice(0..0, own.into_iter().chain(others));
                return Err(error);
            }
            waiting = others;
        }
        Ok(())
    }

    /// Commits entries of the store's own chain, and nothing else.
    pub(super) fn commit_noted(&self, drafts: Vec<Draft>) -> Result<u64, StoreError> {
        self.commit_with(
            super::core::Extra {
                drafts,
                ..Default::default()
            },
            Batch::default(),
            Vec::new(),
        )
    }

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
            let key = RecordKey::Audit(tenant, chain.first).to_bytes();
            let sealed = self
                .backend
                .get(&key)?
                .ok_or(StoreError::Damaged("the audit log"))?;
            let json = seal::open_record(&self.audit_place(&key), &self.crypto.audit, &sealed)?;
            let entry =
                Entry::from_json(&json).map_err(|_| StoreError::Damaged("the audit log"))?;
            if entry.time >= before {
                break;
            }
            batch.deletes.push(key);
            chain.first += 1;
            chain.first_prev = entry_hash(&json);
        }
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
            let chain = self.root().audit;
            self.read_chain(STORE_CHAIN, None, &chain, each)?;
            return Ok(chain);
        };
        let tenant = self.tenant_by_tag(tag)?;
        // Under the lock, so that pruning cannot take away what is being read.
        let _lock = tenant.lock();
        let Some(live) = tenant.live() else {
            return Ok(Chain::EMPTY);
        };
        self.read_chain(live.crypto.id, Some(&live.crypto), &live.head.audit, each)?;
        Ok(live.head.audit)
    }
}

/// Empties the buffer at the latest a second after an entry came. Runs on a thread of its own.
pub(super) fn write_entries(core: &Core) {
    loop {
        let mut buffer = core.audit.lock();
        while buffer.is_empty() && !core.jobs.closing.load(Ordering::Acquire) {
            buffer = core
                .audit
                .filled
                .wait(buffer)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if core.jobs.closing.load(Ordering::Acquire) {
            return;
        }
        let (guard, _) = core
            .audit
            .filled
            .wait_timeout_while(buffer, BUFFER_TIME, |_| {
                !core.jobs.closing.load(Ordering::Acquire)
            })
            .unwrap_or_else(PoisonError::into_inner);
        drop(guard);
        // What could not be written is back in the buffer; readers and writers report why.
        let _flushed = core.flush_audit();
    }
}
