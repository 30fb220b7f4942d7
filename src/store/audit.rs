//! Writes audit entries into the batches of the changes they tell of.
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
use crate::key::TenantId;
use crate::key::aead::Cipher;
use crate::policy::{Audit, AuditReads};
use crate::record::{RecordKey, Run};
use crate::seal::{self, Place};

use super::core::Core;
use super::tenant::Tenant;
use super::{Abort, StoreError};

/// How many entries wait at most.
const BUFFER_MAX: usize = 256;

/// How long an entry waits at most.
const BUFFER_TIME: Duration = Duration::from_secs(1);

/// Under which id the store's own chain lies.
pub(super) const STORE_CHAIN: TenantId = TenantId([0; 16]);

/// The audit settings in force, and the entries that wait.
pub(super) struct AuditState {
    settings: RwLock<Arc<Audit>>,
    buffer: Mutex<Vec<Waiting>>,
    filled: Condvar,
    /// Held while the store's own chain is read or pruned.
    chain: Mutex<()>,
}

struct Waiting {
    tenant: Arc<Tenant>,
    draft: Draft,
    time: UnixMillis,
}

impl AuditState {
    pub(super) fn new() -> Self {
        Self {
            settings: RwLock::default(),
            buffer: Mutex::new(Vec::new()),
            filled: Condvar::new(),
            chain: Mutex::new(()),
        }
    }

    pub(super) fn lock_chain(&self) -> std::sync::MutexGuard<'_, ()> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
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
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    pub(super) fn audit_settings(&self) -> Arc<Audit> {
        let settings = self.audit.settings.read();
        Arc::clone(&settings.unwrap_or_else(PoisonError::into_inner))
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

    /// As [`Core::note`], but durable when this returns, whatever the policy says of views.
    pub(super) fn note_now(&self, tenant: &Arc<Tenant>, draft: Draft) -> Result<(), StoreError> {
        if !self.audit_settings().enabled || self.mode != super::OpenMode::ReadWrite {
            return Ok(());
        }
        let waiting = Waiting {
            tenant: Arc::clone(tenant),
            draft,
            time: self.now(),
        };
        self.write_waiting(vec![waiting], true)
    }

    /// Notes the end of a run of the operator's, and what the store's own chain says of it.
    pub(super) fn note_run(&self, run: Run, draft: Option<Draft>) -> Result<(), StoreError> {
        let extra = super::core::Extra {
            drafts: draft.into_iter().collect(),
            run: Some(run),
            ..Default::default()
        };
        let seq = self.commit_with(extra, Batch::default(), Vec::new())?;
        self.wait_durable(seq)
    }

    /// Notes an event in the store's own chain. Durable when it returns.
    pub(super) fn note_event(&self, draft: Draft) -> Result<(), StoreError> {
        let seq = self.commit_noted(vec![draft])?;
        self.wait_durable(seq)
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

#[cfg(test)]
mod tests {
    use super::super::tests::{core, put, tenant};
    use super::*;

    #[test]
    fn entries_of_views_wait_until_the_buffer_is_full() {
        let core = core();
        core.set_audit(Audit {
            enabled: true,
            ..Audit::default()
        });
        let tenant = tenant(&core, "a");
        put(&core, &tenant, "/memories/a.md");
        for waiting in 1..BUFFER_MAX {
            core.note(&tenant, Draft::new("view"), true).unwrap();
            assert_eq!(core.audit.lock().len(), waiting);
        }
        core.note(&tenant, Draft::new("view"), true).unwrap();
        assert_eq!(core.audit.lock().len(), 0);
        let chain = tenant.live().unwrap().head.audit;
        assert_eq!(chain.len(), BUFFER_MAX as u64);
    }
}
