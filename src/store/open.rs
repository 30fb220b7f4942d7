//! Creates a store on an empty backend, and opens one: every check before the first answer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::audit::{Chain, Draft};
use crate::backend::{Backend, Batch, KeyStore};
use crate::clock::Clock;
use crate::key::aead::Cipher;
use crate::key::mac::MacKey;
use crate::key::{FileTag, Keyring, Random};
use crate::record::{Head, Job, JobId, Jumps, LastRuns, RecordKey, Root, SetHash, Token, TokenId};
use crate::seal::{self, Place};

use super::core::{Core, CoreParts, StoreCrypto, Top, digest};
use super::index::{ShortMac, short};
use super::job_list::StoredJob;
use super::reader::SCAN_RECORDS;
use super::state::{self, State};
use super::tokens::StoredToken;
use super::{OpenMode, Store, StoreError, tenant_keys};

/// What a store runs on.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) keys: Arc<dyn KeyStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    /// The store's directory, if it lies in one.
    pub(crate) place: Option<std::path::PathBuf>,
}

/// Writes the first root and the policy of a new store.
pub(crate) fn create(
    ground: &Ground,
    keyring: Keyring,
    policy: &str,
    generation: u32,
) -> Result<(), StoreError> {
    let root = Root {
        seq: 0,
        era: 0,
        records: 0,
        set_hash: SetHash::default(),
        keyring_counter: keyring.counter(),
        trusted_time: ground.clock.now(),
        audit: Chain::EMPTY,
        runs: LastRuns::default(),
        jumps: Jumps::default(),
    };
    let core = begin(ground, keyring, generation, root)?;
    // So that the store's own chain begins with the store.
    if let Ok(policy) = crate::policy::load(policy, "the new store's policy") {
        core.set_audit(policy.audit);
    }
    core.put_policy("init", policy)?;
    core.close()
}

/// Writes the first root of a new store, which is not closed yet.
pub(super) fn begin(
    ground: &Ground,
    keyring: Keyring,
    generation: u32,
    root: Root,
) -> Result<Core, StoreError> {
    let crypto = crypto(&keyring);
    let key = RecordKey::Root.to_bytes();
    let place = Place {
        store: crypto.id,
        epoch: 0,
        key: &key,
    };
    let sealed = seal::seal_record(&place, &crypto.top, &*ground.random, &root.encode())?;
    let first = State {
        counter: 1,
        generation,
        seq: root.seq,
        root_digest: digest(&sealed),
        clean: false,
    };
    let batch = Batch {
        expect: vec![(key.clone(), None)],
        puts: vec![(key, sealed.clone())],
        deletes: Vec::new(),
    };
    let applied = ground.backend.apply(batch)?;
    ground.backend.wait_durable(applied)?;
    state::write(&*ground.keys, crypto.id, &crypto.state, &first)?;
    Ok(Core::new(CoreParts {
        backend: Arc::clone(&ground.backend),
        keys: Arc::clone(&ground.keys),
        clock: Arc::clone(&ground.clock),
        random: Arc::clone(&ground.random),
        crypto,
        keyring,
        mode: OpenMode::ReadWrite,
        heads: HashMap::new(),
        jobs: HashMap::new(),
        tokens: BTreeMap::new(),
        top: Top { root, sealed },
        state: first,
        place: None,
    }))
}

/// A store that passed every check of its opening, with nothing written yet.
pub(crate) struct Checked {
    ground: Ground,
    crypto: StoreCrypto,
    state: State,
    top: Top,
    listed: Listed,
    /// What the operator accepts that it lost.
    loss: Option<StoreError>,
}

/// Holds the backend's data against STATE and the keyring.
pub(crate) fn check(ground: Ground, keyring: &Keyring) -> Result<Checked, StoreError> {
    check_or_accept(ground, keyring, None)
}

/// As [`check`], but where a number of a generation is given, data that is whole in itself counts
/// even if it is not what STATE and the keyring say.
pub(super) fn check_or_accept(
    ground: Ground,
    keyring: &Keyring,
    accepted: Option<u32>,
) -> Result<Checked, StoreError> {
    let crypto = crypto(keyring);
    let state = match state::read(&*ground.keys, crypto.id, &crypto.state) {
        Err(StoreError::StateLost) if accepted.is_some() => None,
        found => Some(found?),
    };
    let top = read_root(&*ground.backend, &crypto)?;
    let loss = match &state {
        Some(state) => hold_against(&top, state, keyring).err(),
        None => Some(StoreError::StateLost),
    };
    let (state, loss) = match (loss, accepted, state) {
        (None, _, Some(state)) => (state, None),
        (Some(loss), Some(generation), state) => {
            let next = State {
                counter: state.map_or(1, |state| state.counter + 1),
                generation,
                seq: top.root.seq,
                root_digest: digest(&top.sealed),
                clean: false,
            };
            (next, Some(loss))
        }
        (loss, ..) => return Err(loss.unwrap_or(StoreError::StateLost)),
    };
    let listed = open_listed(&*ground.backend, &crypto, &top.root)?;
    Ok(Checked {
        ground,
        crypto,
        state,
        top,
        listed,
        loss,
    })
}

/// Neither older than STATE nor another one of the same age; and the keyring no older.
fn hold_against(top: &Top, state: &State, keyring: &Keyring) -> Result<(), StoreError> {
    if top.root.seq < state.seq {
        return Err(StoreError::RolledBack);
    }
    if top.root.seq == state.seq && digest(&top.sealed) != state.root_digest {
        return Err(StoreError::Damaged("the root record"));
    }
    if keyring.counter() < top.root.keyring_counter {
        return Err(StoreError::KeyringOlder);
    }
    Ok(())
}

/// Starts a store that passed its checks.
pub(crate) fn start(
    checked: Checked,
    keyring: Keyring,
    mode: OpenMode,
) -> Result<Store, StoreError> {
    let Checked {
        ground,
        crypto,
        state,
        mut top,
        listed,
        loss,
    } = checked;
    if mode == OpenMode::ReadWrite {
        settle_keys(&ground, &crypto, &keyring, &listed)?;
    }
    if loss.is_some() {
        // The next commit says so; with it STATE is written anew.
        top.root.era += 1;
    }
    let core = Arc::new(Core::new(CoreParts {
        backend: ground.backend,
        keys: ground.keys,
        clock: ground.clock,
        random: ground.random,
        crypto,
        keyring,
        mode,
        heads: listed.heads,
        jobs: listed.jobs,
        tokens: listed.tokens,
        top,
        state,
        place: ground.place,
    }));
    let mut store = Store::start(core, listed.policy)?;
    store.loss = Mutex::new(loss);
    Ok(store)
}

impl Store {
    /// Ends what the open has begun, once it is known what is audited: a new era after an
    /// accepted loss, and the erasures that a restore has left.
    pub(crate) fn finish_open(&self) -> Result<(), StoreError> {
        let loss = self.loss.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loss) = &*loss {
            let era = self.core.root().era;
            let draft = Draft::new("accept loss").detail(format!("era {era}; failed to {loss}"));
            self.core.note_event(draft)?;
        }
        drop(loss);
        self.finish_restore()
    }
}

/// The generation that STATE names, read before any backend is open.
pub(crate) fn generation(
    keys: &dyn KeyStore,
    keyring: &Keyring,
) -> Result<(u32, bool), StoreError> {
    let crypto = crypto(keyring);
    let state = state::read(keys, crypto.id, &crypto.state)?;
    Ok((state.generation, state.clean))
}

pub(super) fn crypto(keyring: &Keyring) -> StoreCrypto {
    let keys = keyring.store_keys();
    StoreCrypto {
        id: keyring.store_id(),
        top: Cipher::new(&keys.root),
        policy: Cipher::new(&keys.policy),
        audit: Cipher::new(&keys.audit),
        inventory: MacKey::new(&keys.root.derive("strongroom/v1/store-inventory")),
        state: MacKey::new(&keys.state),
        tag: MacKey::new(&keys.tag.derive("strongroom/v1/file-tag")),
        certificate: MacKey::new(&keys.audit.derive("strongroom/v1/erasure-certificate")),
    }
}

/// The root record.
fn read_root(backend: &dyn Backend, crypto: &StoreCrypto) -> Result<Top, StoreError> {
    let key = RecordKey::Root.to_bytes();
    let Some(sealed) = backend.get(&key)? else {
        return Err(StoreError::RolledBack);
    };
    let place = Place {
        store: crypto.id,
        epoch: 0,
        key: &key,
    };
    let plain = seal::open_record(&place, &crypto.top, &sealed)
        .map_err(|_| StoreError::Damaged("the root record"))?;
    let root = Root::decode(&plain)?;
    Ok(Top { root, sealed })
}

/// The records that the root counts.
struct Listed {
    heads: HashMap<FileTag, ShortMac>,
    jobs: HashMap<JobId, StoredJob>,
    tokens: BTreeMap<TokenId, StoredToken>,
    policy: String,
}

fn open_listed(
    backend: &dyn Backend,
    crypto: &StoreCrypto,
    root: &Root,
) -> Result<Listed, StoreError> {
    let mut listed = Listed {
        heads: HashMap::new(),
        jobs: HashMap::new(),
        tokens: BTreeMap::new(),
        policy: String::new(),
    };
    let mut policy = Vec::new();
    let mut set_hash = SetHash::default();
    let mut records = 0;
    for prefix in listed_spaces() {
        scan_all(backend, &prefix, |bytes, value| {
            let mac = seal::record_mac(&crypto.inventory, bytes, value);
            set_hash.add(&mac);
            records += 1;
            let place = Place {
                store: crypto.id,
                epoch: 0,
                key: bytes,
            };
            match RecordKey::from_bytes(bytes) {
                Some(RecordKey::Head(tag)) => {
                    listed.heads.insert(tag, short(&mac));
                }
                Some(RecordKey::Policy(_)) => {
                    let part = seal::open_record(&place, &crypto.policy, value)
                        .map_err(|_| StoreError::Damaged("the policy"))?;
                    policy.extend_from_slice(&part);
                }
                Some(RecordKey::Job(id)) => {
                    let job = seal::open_record(&place, &crypto.top, value)
                        .map_err(|_| StoreError::Damaged("the list of unfinished work"))?;
                    let job = Job::decode(&job)?;
                    listed.jobs.insert(id, StoredJob { job, mac });
                }
                Some(RecordKey::Token(id)) => {
                    let token = seal::open_record(&place, &crypto.top, value)
                        .map_err(|_| StoreError::Damaged("the list of tokens"))?;
                    let token = Arc::new(Token::decode(&token)?);
                    listed.tokens.insert(id, StoredToken { token, mac });
                }
                _ => return Err(StoreError::Damaged("the list of tenants")),
            }
            Ok(())
        })?;
    }
    if records != root.records || set_hash != root.set_hash {
        return Err(StoreError::Damaged("the list of tenants"));
    }
    listed.policy = String::from_utf8(policy).map_err(|_| StoreError::Damaged("the policy"))?;
    Ok(listed)
}

/// What the keys of all records that the root counts start with.
pub(super) fn listed_spaces() -> [Vec<u8>; 4] {
    [
        RecordKey::heads(),
        RecordKey::policies(),
        RecordKey::jobs(),
        RecordKey::tokens(),
    ]
}

/// The number and set hash of all records that the root counts, as they are stored; each
/// key and its record's hash also goes to `each`.
pub(super) fn sum_listed(
    backend: &dyn Backend,
    inventory: &MacKey,
    mut each: impl FnMut(&[u8], [u8; 32]),
) -> Result<(u64, SetHash), StoreError> {
    let mut records = 0;
    let mut set_hash = SetHash::default();
    for prefix in listed_spaces() {
        scan_all(backend, &prefix, |key, value| {
            let mac = seal::record_mac(inventory, key, value);
            set_hash.add(&mac);
            records += 1;
            each(key, mac);
            Ok(())
        })?;
    }
    Ok((records, set_hash))
}

/// Hands every record under a prefix to `each`, in key order.
pub(super) fn scan_all(
    backend: &dyn Backend,
    prefix: &[u8],
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let page = backend.scan(prefix, after.as_deref(), SCAN_RECORDS)?;
        let is_last = page.len() < SCAN_RECORDS;
        for (key, value) in page {
            if after.as_ref().is_some_and(|after| *after >= key) {
                return Err(StoreError::Damaged("the engine's order of records"));
            }
            each(&key, &value)?;
            after = Some(key);
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Sorts out the key files that no head names: those of erased tenants are destroyed, all
/// others set aside; and brings back what was set aside for a head that is there again.
fn settle_keys(
    ground: &Ground,
    crypto: &StoreCrypto,
    keyring: &Keyring,
    listed: &Listed,
) -> Result<(), StoreError> {
    let keys = &*ground.keys;
    for stored in listed.jobs.values() {
        if let Job::Erase(job) = &stored.job {
            let is_reused = listed.heads.contains_key(&job.tag);
            tenant_keys::destroy(keys, keyring, job.tag, job.tenant, is_reused)?;
        }
    }
    let there: HashSet<[u8; 16]> = keys.tenants()?.into_iter().collect();
    for tag in &there {
        if !listed.heads.contains_key(&FileTag(*tag)) {
            tenant_keys::set_aside(keys, *tag)?;
        }
    }
    for tag in listed.heads.keys().filter(|tag| !there.contains(&tag.0)) {
        let key = RecordKey::Head(*tag).to_bytes();
        let Some(sealed) = ground.backend.get(&key)? else {
            continue;
        };
        let place = Place {
            store: crypto.id,
            epoch: 0,
            key: &key,
        };
        let head = Head::decode(&seal::open_record(&place, &crypto.top, &sealed)?)?;
        tenant_keys::bring_back(keys, keyring, *tag, head.tenant)?;
    }
    Ok(())
}

impl Core {
    /// The file tags of all tenants that exist.
    pub(super) fn known_heads(&self) -> Vec<FileTag> {
        let heads = self.heads.read().unwrap_or_else(PoisonError::into_inner);
        heads.keys().copied().collect()
    }

    /// The hash that a tenant's head must have, if it exists.
    pub(super) fn known_head(&self, tag: FileTag) -> Option<ShortMac> {
        self.heads
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&tag)
            .copied()
    }
}
