//! The parts that all of a store's work shares, and the one way a batch reaches the backend.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use sha2::{Digest, Sha256};

use crate::audit::{Chain, Draft};
use crate::backend::{Backend, BackendError, Batch, KeyStore};
use crate::clock::{Clock, UnixMillis};
use crate::key::aead::Cipher;
use crate::key::mac::MacKey;
use crate::key::{FileTag, Keyring, Random, StoreId};
use crate::record::{Job, JobId, Jumps, RecordKey, Root, Run, TokenId};
use crate::retention::Schedules;
use crate::seal::{self, Place};

use super::audit::{AuditState, ChainWriter, STORE_CHAIN};
use super::backup::Journal;
use super::clock::ClockState;
use super::durability::{Applied, Durability};
use super::growth::Growth;
use super::index::{Indexes, ShortMac, short};
use super::job_list::{Jobs, StoredJob};
use super::state::{self, State};
use super::tenant::Tenant;
use super::tokens::StoredToken;
use super::{OpenMode, StoreError};

/// The store's own keys, ready for use.
pub(super) struct StoreCrypto {
    pub(super) id: StoreId,
    pub(super) top: Cipher,
    pub(super) policy: Cipher,
    pub(super) audit: Cipher,
    pub(super) inventory: MacKey,
    pub(super) state: MacKey,
    pub(super) tag: MacKey,
    pub(super) certificate: MacKey,
}

/// Everything that the store's callers and its reaper share.
pub(super) struct Core {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) keys: Arc<dyn KeyStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) crypto: StoreCrypto,
    pub(super) keyring: Mutex<Keyring>,
    master: Mutex<()>,
    compacting: Mutex<()>,
    pub(super) growth: Growth,
    /// The store's directory, if it lies in one.
    pub(super) place: Option<PathBuf>,
    pub(super) mode: OpenMode,
    pub(super) indexes: Indexes,
    pub(super) tenants: Mutex<HashMap<FileTag, Weak<Tenant>>>,
    /// The hash of each head's record, as the root counts it.
    pub(super) heads: RwLock<HashMap<FileTag, ShortMac>>,
    pub(super) jobs: Jobs,
    pub(super) tokens: RwLock<BTreeMap<TokenId, StoredToken>>,
    pub(super) audit: AuditState,
    pub(super) journal: Journal,
    top: Mutex<Top>,
    state: Mutex<State>,
    /// When files expire, by the policy in force.
    pub(super) schedules: RwLock<Arc<Schedules>>,
    /// The root's trusted time.
    pub(super) trusted: AtomicU64,
    /// Where it was moved forward, as the root has it.
    pub(super) jumps: RwLock<Jumps>,
    /// Whether STATE says already that the store is in use.
    in_use: AtomicBool,
    /// The counter of the keyring that is on the disk: what the root may name.
    keyring_counter: AtomicU64,
    pub(super) durability: Durability,
    damaged: AtomicBool,
    state_writes: AtomicU64,
    process: u32,
}

/// The root record as it was last applied.
pub(super) struct Top {
    pub(super) root: Root,
    pub(super) sealed: Vec<u8>,
}

/// A change of one of the records that the root counts: head, policy part or job.
pub(super) struct TopChange {
    pub(super) key: RecordKey,
    /// The hash of the record that is replaced, if there is one.
    pub(super) old: Option<[u8; 32]>,
    /// The sealed record from now on, if there is one.
    pub(super) new: Option<Vec<u8>>,
}

/// What a commit carries besides its records.
#[derive(Default)]
pub(super) struct Extra {
    /// Entries for the store's own audit chain.
    pub(super) drafts: Vec<Draft>,
    /// The time that the operator has confirmed.
    pub(super) confirmed_time: Option<UnixMillis>,
    /// A run of the operator's that ends with this commit.
    pub(super) run: Option<Run>,
    /// Where the store's own audit chain begins from here on.
    pub(super) pruned: Option<Chain>,
}

/// What [`Core::new`] is made of.
pub(super) struct CoreParts {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) keys: Arc<dyn KeyStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) crypto: StoreCrypto,
    pub(super) keyring: Keyring,
    pub(super) mode: OpenMode,
    pub(super) heads: HashMap<FileTag, ShortMac>,
    pub(super) jobs: HashMap<JobId, StoredJob>,
    pub(super) tokens: BTreeMap<TokenId, StoredToken>,
    pub(super) top: Top,
    pub(super) state: State,
    pub(super) place: Option<PathBuf>,
}

impl Core {
    pub(super) fn new(parts: CoreParts) -> Self {
        let applied = Applied {
            seq: parts.top.root.seq,
            batch: 0,
            root_digest: digest(&parts.top.sealed),
        };
        let durable = match parts.mode {
            OpenMode::ReadWrite => parts.state.seq,
            // Nothing is written, so STATE stays as it is; the engine's file was synced.
            OpenMode::ReadOnly => applied.seq,
        };
        let in_use = AtomicBool::new(!parts.state.clean);
        let trusted = AtomicU64::new(parts.top.root.trusted_time);
        let jumps = RwLock::new(parts.top.root.jumps);
        let keyring_counter = AtomicU64::new(parts.keyring.counter());
        Self {
            backend: parts.backend,
            keys: parts.keys,
            clock: parts.clock,
            random: parts.random,
            crypto: parts.crypto,
            keyring: Mutex::new(parts.keyring),
            master: Mutex::new(()),
            compacting: Mutex::new(()),
            growth: Growth::default(),
            place: parts.place,
            mode: parts.mode,
            indexes: Indexes::new(),
            tenants: Mutex::default(),
            heads: RwLock::new(parts.heads),
            jobs: Jobs::new(parts.jobs),
            tokens: RwLock::new(parts.tokens),
            audit: AuditState::new(),
            journal: Journal::default(),
            top: Mutex::new(parts.top),
            // A crash may have left commits that STATE does not name yet.
            durability: Durability::new(applied, durable),
            state: Mutex::new(parts.state),
            schedules: RwLock::new(Arc::new(Schedules::new(Arc::default()))),
            trusted,
            jumps,
            in_use,
            keyring_counter,
            damaged: AtomicBool::new(false),
            state_writes: AtomicU64::new(0),
            process: std::process::id(),
        }
    }

    /// Refuses a write that cannot end well, before anything is touched.
    pub(super) fn check_writable(&self) -> Result<(), StoreError> {
        self.check_open()?;
        if self.mode != OpenMode::ReadWrite {
            return Err(StoreError::ReadOnly);
        }
        if self.durability.is_failed() {
            return Err(StoreError::OutcomeUnknown);
        }
        if self.damaged.load(Ordering::Acquire) {
            return Err(StoreError::WritesStopped);
        }
        Ok(())
    }

    /// A handle carried through `fork` shares files with its parent and must not be used.
    pub(super) fn check_process(&self) -> Result<(), StoreError> {
        if self.process == std::process::id() {
            Ok(())
        } else {
            Err(StoreError::Forked)
        }
    }

    /// Refuses all work on a handle that was closed, or came here by `fork`.
    pub(super) fn check_open(&self) -> Result<(), StoreError> {
        self.check_process()?;
        if self.jobs.closing.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        Ok(())
    }

    /// What an error means for the store: damage stops writes and keeps reads. On a handle
    /// that was closed, or on which a write failed, what is stored may rightly differ from
    /// what is in memory.
    pub(super) fn failed(&self, error: StoreError) -> StoreError {
        if !error.is_damage() {
            return error;
        }
        if let Err(closed) = self.check_open() {
            return closed;
        }
        if self.durability.is_failed() {
            return StoreError::OutcomeUnknown;
        }
        // One tenant's lost keys are no reason to stop the others' writes.
        if !error.is_lost_key() {
            self.note_damage();
        }
        error
    }

    /// Damage found on a read stops writes and keeps reads.
    pub(super) fn note_damage(&self) {
        self.damaged.store(true, Ordering::Release);
    }

    /// Ends writing for this handle: what is stored is no longer known.
    pub(super) fn fail(&self) {
        self.durability.fail();
    }

    /// Notes that the keyring with this counter is on the disk.
    pub(super) fn keyring_written(&self, counter: u64) {
        self.keyring_counter.store(counter, Ordering::Release);
    }

    /// Whether a write failed, so that what is stored is not known.
    pub(super) fn is_failed(&self) -> bool {
        self.durability.is_failed()
    }

    /// Seals a head or job under the store's own key.
    pub(super) fn seal_top(&self, key: &RecordKey, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        let key = key.to_bytes();
        let place = Place {
            store: self.crypto.id,
            epoch: 0,
            key: &key,
        };
        let cipher = match RecordKey::from_bytes(&key) {
            Some(RecordKey::Policy(_)) => &self.crypto.policy,
            _ => &self.crypto.top,
        };
        Ok(seal::seal_record(&place, cipher, &*self.random, plain)?)
    }

    /// The hash of a record that the root counts.
    pub(super) fn top_mac(&self, key: &RecordKey, sealed: &[u8]) -> [u8; 32] {
        seal::record_mac(&self.crypto.inventory, &key.to_bytes(), sealed)
    }

    /// Applies a batch: the one way that anything is written.
    ///
    /// Adds the changed head, policy or job records and the new root to the batch, with
    /// the old root as its condition. Returns the commit's number; it is durable only
    /// after [`Core::wait_durable`].
    pub(super) fn commit(&self, batch: Batch, changes: Vec<TopChange>) -> Result<u64, StoreError> {
        self.commit_with(Extra::default(), batch, changes)
    }

    /// As [`Core::commit`], with entries for the store's own audit chain and the like.
    pub(super) fn commit_with(
        &self,
        extra: Extra,
        mut batch: Batch,
        changes: Vec<TopChange>,
    ) -> Result<u64, StoreError> {
        self.check_room(&batch, &changes)?;
        let mut top = self.lock_top();
        // Under the lock: whoever closes the store, or fails, does so under it too.
        self.check_writable()?;
        self.mark_in_use()?;
        let mut root = top.root;
        let mut heads = Vec::new();
        for change in changes {
            let key = change.key.to_bytes();
            if let Some(old) = &change.old {
                root.set_hash.remove(old);
                root.records = root.records.saturating_sub(1);
            }
            let mac = match change.new {
                Some(sealed) => {
                    let mac = seal::record_mac(&self.crypto.inventory, &key, &sealed);
                    root.set_hash.add(&mac);
                    root.records += 1;
                    batch.puts.push((key, sealed));
                    Some(mac)
                }
                None => {
                    batch.deletes.push(key);
                    None
                }
            };
            if let RecordKey::Head(tag) = change.key {
                heads.push((tag, mac));
            }
        }
        root.seq += 1;
        if let Some(time) = extra.confirmed_time {
            root.jumps.note(root.trusted_time.saturating_add(1), time);
            root.trusted_time = time;
        } else if self.clock_state() == ClockState::Trusted {
            root.trusted_time = self.now();
        }
        if let Some(run) = extra.run {
            root.runs.note(run, root.trusted_time);
        }
        if self.audit_settings().enabled {
            let mut writer = ChainWriter::new(self, STORE_CHAIN, None, root.audit);
            for draft in extra.drafts {
                batch.puts.push(writer.append(draft, root.trusted_time)?);
            }
            root.audit = writer.chain;
        }
        if let Some(chain) = extra.pruned {
            root.audit = Chain {
                last: root.audit.last,
                tip: root.audit.tip,
                ..chain
            };
        }
        root.keyring_counter = self.keyring_counter.load(Ordering::Acquire);
        let sealed = self.seal_top(&RecordKey::Root, &root.encode())?;
        let root_key = RecordKey::Root.to_bytes();
        batch
            .expect
            .push((root_key.clone(), Some(top.sealed.clone())));
        batch.puts.push((root_key, sealed.clone()));
        self.count_written(&batch);
        let changed = self.journal.keys_of(&batch);
        let applied = self
            .backend
            .apply(batch)
            .map_err(|error| self.apply_failed(error))?;
        self.journal.note(changed);
        let mut known = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        for (tag, mac) in heads {
            match mac {
                Some(mac) => known.insert(tag, short(&mac)),
                None => known.remove(&tag),
            };
        }
        drop(known);
        self.durability.applied(Applied {
            seq: root.seq,
            batch: applied,
            root_digest: digest(&sealed),
        });
        if extra.confirmed_time.is_some() {
            // Before the time: nobody may see the one without the other.
            *self.jumps.write().unwrap_or_else(PoisonError::into_inner) = root.jumps;
        }
        self.trusted.store(root.trusted_time, Ordering::Release);
        *top = Top { root, sealed };
        Ok(root.seq)
    }

    /// Returns once commit `seq` survives power loss and STATE says so.
    pub(super) fn wait_durable(&self, seq: u64) -> Result<(), StoreError> {
        self.durability.wait(seq, |applied| {
            self.backend.wait_durable(applied.batch)?;
            self.write_state(|state| {
                state.seq = applied.seq;
                state.root_digest = applied.root_digest;
                state.clean = false;
            })
        })
    }

    /// Makes everything durable and marks the store as closed in order.
    pub(super) fn close(&self) -> Result<(), StoreError> {
        if self.mode != OpenMode::ReadWrite {
            return Ok(self.backend.close()?);
        }
        let top = self.lock_top();
        let seq = top.root.seq;
        let synced = self.wait_durable(seq);
        let closed = self.backend.close();
        synced?;
        closed?;
        let is_clean = self.lock_state().clean;
        if is_clean || self.damaged.load(Ordering::Acquire) || self.is_failed() {
            return Ok(());
        }
        self.write_state(|state| state.clean = true)
    }

    /// Opens a job's record.
    pub(super) fn open_job(&self, key: &[u8], sealed: &[u8]) -> Result<Job, StoreError> {
        let place = Place {
            store: self.crypto.id,
            epoch: 0,
            key,
        };
        let plain = seal::open_record(&place, &self.crypto.top, sealed)?;
        Ok(Job::decode(&plain)?)
    }

    pub(super) fn root(&self) -> Root {
        self.lock_top().root
    }

    /// The root and its sealed bytes, for `verify` to compare with what is stored.
    pub(super) fn lock_top(&self) -> MutexGuard<'_, Top> {
        self.top.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held while the engine's files are written anew.
    pub(super) fn lock_compacting(&self) -> MutexGuard<'_, ()> {
        self.compacting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest commit that was applied.
    pub(super) fn applied_seq(&self) -> u64 {
        self.durability.applied_seq()
    }

    /// Held while the master key is being rotated.
    pub(super) fn lock_master(&self) -> MutexGuard<'_, ()> {
        self.master.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock_keyring(&self) -> MutexGuard<'_, Keyring> {
        self.keyring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the engine's directory.
    pub(super) fn generation(&self) -> u32 {
        self.lock_state().generation
    }

    /// How often STATE was written, for the test that counts syncs.
    pub(super) fn state_writes(&self) -> u64 {
        self.state_writes.load(Ordering::Relaxed)
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says in STATE, before the first write, that the store is no longer closed in order.
    fn mark_in_use(&self) -> Result<(), StoreError> {
        if !self.in_use.load(Ordering::Acquire) {
            self.write_state(|state| state.clean = false)?;
            self.in_use.store(true, Ordering::Release);
        }
        Ok(())
    }

    pub(super) fn write_state(&self, change: impl FnOnce(&mut State)) -> Result<(), StoreError> {
        let mut state = self.lock_state();
        let mut next = *state;
        change(&mut next);
        next.counter += 1;
        state::write(&*self.keys, self.crypto.id, &self.crypto.state, &next)?;
        self.state_writes.fetch_add(1, Ordering::Relaxed);
        *state = next;
        Ok(())
    }

    fn apply_failed(&self, error: BackendError) -> StoreError {
        match error {
            // Nothing was written; but somebody else changed the root behind our back.
            BackendError::Conflict => self.note_damage(),
            BackendError::TooLarge => {}
            _ => {
                self.fail();
                return StoreError::OutcomeUnknown;
            }
        }
        error.into()
    }
}

/// SHA-256, by which STATE knows a root record.
pub(super) fn digest(sealed: &[u8]) -> [u8; 32] {
    Sha256::digest(sealed).into()
}
