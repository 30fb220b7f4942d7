//! Builds the same store with every key new, tenants' keys and ids included, and puts it in
//! place of the old one.
//!
//! Everything is read through the checks of every read, so damage ends it and changes nothing.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use crate::audit::Chain;
use crate::backend::{Backend, Batch, FileKeyStore, SledBackend};
use crate::key::{FileTag, Keyring, TenantKeys};
use crate::record::{
    Dirent, DirentBody, Erasure, ErasureStage, Head, Job, JobId, RecordKey, Root, SetHash, Summary,
    TenantId, Trail,
};
use crate::seal;

use super::audit::STORE_CHAIN;
use super::core::{Core, Extra, TopChange};
use super::directory::{generation_name, make_directory, sync_directory};
use super::lineage::Lineage;
use super::open::{self, Ground};
use super::reader::Reader;
use super::tenant::{Live, TenantCrypto};
use super::walk::Directory;
use super::{Depth, Store, StoreError, content, keyring, rekey_files, verify};

/// A batch stops growing at this many operations.
const OPERATIONS_MAX: usize = 256;

/// The epoch of a new tenant's records; none is retired.
const NEW_EPOCHS: (u32, u32) = (1, 0);

/// Builds the store anew under `keyring`, and closes this one. From the moment that this
/// returns on, and from one moment before, only the new one counts.
///
/// # Errors
/// The store is unchanged then, and still open, unless the very last steps failed: those are
/// finished by the next open.
pub(crate) fn rekey(
    store: &Store,
    keyring: Keyring,
    mut progress: impl FnMut(u64, u64),
) -> Result<(), StoreError> {
    let core = &*store.core;
    let path = store
        .path()
        .ok_or(StoreError::Limit("the store does not lie in a directory"))?;
    core.check_writable()?;
    core.flush_audit()?;
    let new = rekey_files::unfinished(&path);
    let built = build(store, &new, keyring, &mut progress);
    if built.is_err() {
        // Nothing counts on it; and it takes room.
        let _cleared = std::fs::remove_dir_all(&new);
    }
    built?;
    let held = store.take_directory();
    store.close()?;
    rekey_files::switch(&path).map_err(|error| StoreError::io(&error))?;
    drop(held);
    Ok(())
}

fn build(
    store: &Store,
    new: &Path,
    keyring: Keyring,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), StoreError> {
    let core = &*store.core;
    let generation = core.generation() + 1;
    let live = new.join(generation_name(generation));
    make_directory(new)?;
    make_directory(&new.join("keys"))?;
    for shard in 0..=u8::MAX {
        make_directory(&new.join("keys").join(format!("{shard:02x}")))?;
    }
    sync_directory(&new.join("keys"))?;
    make_directory(&live)?;
    let backend: Arc<dyn Backend> = Arc::new(SledBackend::open(&live)?);
    let ground = Ground {
        backend,
        keys: Arc::new(FileKeyStore::new(new)),
        clock: Arc::clone(&core.clock),
        random: Arc::clone(&core.random),
        place: None,
    };
    keyring::write(&*ground.keys, &keyring)?;
    let old = core.root();
    let root = Root {
        seq: old.seq,
        era: old.era,
        records: 0,
        set_hash: SetHash::default(),
        keyring_counter: keyring.counter(),
        trusted_time: old.trusted_time,
        audit: old.audit,
        runs: old.runs,
        jumps: old.jumps,
    };
    let next = open::begin(&ground, keyring, generation, root)?;
    let mut copy = Copying {
        old: core,
        new: &next,
        batch: Batch::default(),
        ids: HashMap::new(),
        done: 0,
        all: 0,
        progress,
    };
    copy.chain(STORE_CHAIN, &old.audit)?;
    copy.tenants()?;
    copy.erasures()?;
    copy.tokens()?;
    copy.flush()?;
    next.set_audit((*core.audit_settings()).clone());
    next.put_policy("key rotate --full", &store.policy())?;
    // The old store goes, so this one must be whole.
    if !verify::verify(&next, Depth::Full)?.problems.is_empty() {
        return Err(StoreError::Damaged("the store that was built anew"));
    }
    next.close()?;
    drop(next);
    drop(ground);
    sync_directory(&live)?;
    File::open(new)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| StoreError::io(&error))
}

struct Copying<'a> {
    old: &'a Core,
    new: &'a Core,
    batch: Batch,
    /// The ids that tenants have in the old store, by their file tags there.
    ids: HashMap<FileTag, TenantId>,
    done: u64,
    all: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

/// One tenant on its way.
struct Moving<'a> {
    reader: Reader<'a>,
    from: Arc<TenantCrypto>,
    to: TenantCrypto,
}

impl Copying<'_> {
    fn tenants(&mut self) -> Result<(), StoreError> {
        let mut tenants = HashMap::new();
        for tag in self.old.known_heads() {
            let tenant = self.old.tenant_by_tag(tag)?;
            if let Some(live) = tenant.live() {
                self.all += live.head.root.below.files;
                tenants.insert(tag, tenant);
            }
        }
        for (tag, tenant) in tenants {
            let lock = tenant.lock();
            if let Some(live) = tenant.live() {
                self.ids.insert(tag, live.crypto.id);
                self.tenant(tenant.name.as_str(), live)?;
            }
            drop(lock);
        }
        Ok(())
    }

    fn tenant(&mut self, name: &str, live: Arc<Live>) -> Result<(), StoreError> {
        let keys = TenantKeys::create(name, &*self.new.random)?;
        let tag = FileTag::of(&self.new.crypto.tag, name);
        self.new.write_tenant_keys(tag, &keys)?;
        let moving = Moving {
            from: Arc::clone(&live.crypto),
            to: TenantCrypto::new(self.new.crypto.id, &keys, NEW_EPOCHS)?,
            reader: Reader {
                core: self.old,
                live: Some(Arc::clone(&live)),
                expiry: None,
            },
        };
        let root = self.directory(&moving, &moving.reader.root())?;
        let holds = self.directory(&moving, &moving.reader.hold_list())?;
        // The entries name the id that the tenant had, and their paths are sealed under keys
        // that go: they stay, under that id, as an erased tenant's do.
        self.chain(moving.from.id, &live.head.audit)?;
        let head = Head {
            tenant: moving.to.id,
            root,
            holds,
            created: live.head.created,
            audit: Chain::EMPTY,
            epoch: NEW_EPOCHS.0,
            retired: NEW_EPOCHS.1,
        };
        let key = RecordKey::Head(tag);
        let sealed = self.new.seal_top(&key, &head.encode())?;
        self.top(key, sealed)?;
        let now = self.old.now();
        self.tombstone(Erasure {
            tag,
            tenant: moving.from.id,
            stage: ErasureStage::Rekeyed,
            started: now,
            deleted: now,
            purged: now,
            audit: live.head.audit,
            traces: Vec::new(),
            trail: Trail::Next(moving.to.id),
        })
    }

    /// Copies a directory with all below it. Returns its new summary.
    fn directory(
        &mut self,
        moving: &Moving<'_>,
        directory: &Directory,
    ) -> Result<Summary, StoreError> {
        let mut summary = directory.summary;
        summary.set_hash = SetHash::default();
        for entry in moving.reader.all_children(directory)? {
            let entry = self.entry(moving, directory, entry)?;
            let tag = moving.to.name_tag(directory.id, &entry.name);
            let key = RecordKey::Dirent(moving.to.id, directory.id, tag).to_bytes();
            let sealed = moving.to.seal_entry(&*self.new.random, &key, &entry)?;
            let mac = seal::record_mac(&moving.to.inventory, &key, &sealed);
            summary.set_hash.add(&mac);
            self.put(key, sealed)?;
        }
        Ok(summary)
    }

    fn entry(
        &mut self,
        moving: &Moving<'_>,
        directory: &Directory,
        mut entry: Dirent,
    ) -> Result<Dirent, StoreError> {
        let below = directory.child(&entry);
        match &mut entry.body {
            DirentBody::Directory { summary, .. } => {
                if let Some(below) = below {
                    *summary = self.directory(moving, &below)?;
                }
            }
            DirentBody::File(meta) => {
                let bytes = moving.reader.content(meta)?;
                for (number, chunk) in content::chunks(&bytes).enumerate() {
                    let (key, sealed) =
                        content::seal(self.new, &moving.to, meta.content, number, &chunk)?;
                    self.put(key, sealed)?;
                }
                self.done += 1;
                (self.progress)(self.done, self.all);
            }
            DirentBody::Hold(_) => {}
        }
        Ok(entry)
    }

    /// Copies the entries of an audit chain, to the same place.
    fn chain(&mut self, tenant: TenantId, chain: &Chain) -> Result<(), StoreError> {
        let mut entries = Vec::new();
        self.old.read_chain(tenant, None, chain, |record| {
            entries.push((record.entry.seq, record.json));
        })?;
        for (seq, json) in entries {
            let pair = self.new.seal_audit_entry(tenant, seq, &json)?;
            self.put(pair.0, pair.1)?;
        }
        Ok(())
    }

    /// Copies what remains of erased tenants, and all former ids: an older backup may know a
    /// tenant under any of them. The erased ones' records are not copied, so the new files hold
    /// nothing of them.
    fn erasures(&mut self) -> Result<(), StoreError> {
        let all = self.old.erasures();
        let lineage = Lineage::of(&all);
        for job in all {
            if job.stage < ErasureStage::Deleted {
                return Err(StoreError::Limit(
                    "an erasure has not ended; try again later",
                ));
            }
            self.chain(job.tenant, &job.audit)?;
            let is_new = job.stage == ErasureStage::Deleted;
            // Here for the last time the tag of an older record still says whose it is.
            let next = lineage.next(job.tenant).or(self.ids.get(&job.tag).copied());
            let trail = match (job.stage, job.trail, next) {
                (ErasureStage::Rekeyed, Trail::None, Some(next)) => Trail::Next(next),
                (_, trail, _) => trail,
            };
            self.tombstone(Erasure {
                stage: if is_new {
                    ErasureStage::Purged
                } else {
                    job.stage
                },
                purged: if is_new { self.old.now() } else { job.purged },
                trail,
                ..job
            })?;
        }
        Ok(())
    }

    /// Copies the access tokens, of which only hashes are stored.
    fn tokens(&mut self) -> Result<(), StoreError> {
        let tokens = self.old.tokens.read();
        let tokens = tokens.unwrap_or_else(PoisonError::into_inner).clone();
        for (id, stored) in tokens {
            let key = RecordKey::Token(id);
            let sealed = self.new.seal_top(&key, &stored.token.encode())?;
            self.top(key, sealed)?;
        }
        Ok(())
    }

    fn tombstone(&mut self, erasure: Erasure) -> Result<(), StoreError> {
        let mut id = [0; 16];
        self.new.random.fill(&mut id)?;
        let key = RecordKey::Job(JobId(id));
        let sealed = self.new.seal_top(&key, &Job::Erase(erasure).encode())?;
        self.top(key, sealed)
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreError> {
        self.batch.puts.push((key, value));
        if self.batch.puts.len() >= OPERATIONS_MAX {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let batch = std::mem::take(&mut self.batch);
        self.new.commit(batch, Vec::new()).map(drop)
    }

    fn top(&mut self, key: RecordKey, sealed: Vec<u8>) -> Result<(), StoreError> {
        let change = TopChange {
            key,
            old: None,
            new: Some(sealed),
        };
        self.new
            .commit_with(Extra::default(), Batch::default(), vec![change])
            .map(drop)
    }
}

impl Core {
    /// The record of an entry that exists already, by its JSON text.
    fn seal_audit_entry(
        &self,
        tenant: TenantId,
        seq: u64,
        json: &str,
    ) -> Result<(Vec<u8>, Vec<u8>), StoreError> {
        let key = RecordKey::Audit(tenant, seq).to_bytes();
        let place = self.audit_place(&key);
        let sealed = seal::seal_record(&place, &self.crypto.audit, &*self.random, json.as_bytes())?;
        Ok((key, sealed))
    }
}
