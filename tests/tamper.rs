//! Deliberate tampering with records, STATE, keyring and key files: all of it is refused.
//!
//! A tamperer holds no key, but may move, remove, replay and insert stored bytes at will.
//! For each stored record the tests first learn, by removing it, which answers depend on
//! it; from then on exactly those answers, and no others, must be refused whenever the
//! record is not the one written last.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

mod store_kit;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use store_kit::{Life, Model, Rng, Seen, builder, copy_directory, questions};
use strongroom::backend::{
    Backend, BackendError, BackendStats, Batch, Copy, Item, KeyStore, MemoryBackend, MemoryKeyStore,
};
use strongroom::key::{KdfParams, KeyError, KeySource};
use strongroom::{Depth, Error, StoreError, Vault};

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// The names of all questions that were refused.
type Refusals = BTreeSet<String>;

const HEADS: u8 = 2;
const ENTRIES: u8 = 3;
const CHUNKS: u8 = 4;
const JOBS: u8 = 6;
const TOKENS: u8 = 8;

/// A store in memory: its records and key store, what it must answer, and how it was before.
struct Scene {
    _home: tempfile::TempDir,
    key: PathBuf,
    keys: MemoryKeyStore,
    records: Records,
    model: Model,
    earlier: Vec<Records>,
}

impl Scene {
    /// A store of two tenants with `files` files each, in three directories, and with
    /// deletions, renames and edits behind it.
    fn new(files: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        let key = home.path().join("k");
        strongroom::generate_key_file(&key).unwrap();
        let keys = Arc::new(MemoryKeyStore::new());
        let backend = Arc::new(MemoryBackend::new());
        let vault = Vault::builder()
            .on(backend.clone(), keys.clone())
            .key_file(&key)
            .create(true)
            .open()
            .unwrap();
        let mut life = Life {
            vault,
            model: Model::default(),
        };
        let mut rng = Rng(files as u64);
        let mut earlier = Vec::new();
        for tenant in ["one", "team/two"] {
            for number in 0..files {
                let lines = [0, 3, 40, 300][number % 4];
                let path = format!("/memories/d{}/{number}.md", number % 3);
                life.create(tenant, &path, &store_kit::text(&mut rng, lines));
            }
            earlier.push(backend.records());
        }
        for tenant in ["one", "team/two"] {
            life.insert(tenant, "/memories/d0/0.md", "later\n");
            life.insert(tenant, "/memories/d1/1.md", "later\n");
            life.create(tenant, "/memories/brief.md", "brief\n");
            earlier.push(backend.records());
            life.rename(tenant, "/memories/d2", "/memories/d1/moved");
            life.delete(tenant, "/memories/brief.md");
            earlier.push(backend.records());
            life.insert(tenant, "/memories/d0/0.md", "last\n");
        }
        life.vault.close().unwrap();
        Self {
            _home: home,
            key,
            keys: MemoryKeyStore::clone(&keys),
            records: backend.records(),
            model: life.model,
            earlier,
        }
    }

    fn open(&self, records: Records) -> (Result<Vault, Error>, Arc<MemoryBackend>) {
        let backend = Arc::new(MemoryBackend::with_records(records));
        let opened = Vault::builder()
            .on(backend.clone(), Arc::new(self.keys.clone()))
            .key_file(&self.key)
            .open();
        (opened, backend)
    }

    fn of_space(&self, space: u8) -> Vec<Vec<u8>> {
        let is_in = |key: &&Vec<u8>| key.first() == Some(&space);
        self.records.keys().filter(is_in).cloned().collect()
    }

    /// For each entry and chunk: what is refused when it is missing.
    fn dependents(&self) -> BTreeMap<Vec<u8>, Refusals> {
        let mut dependents = BTreeMap::new();
        for key in [self.of_space(ENTRIES), self.of_space(CHUNKS)].concat() {
            let mut records = self.records.clone();
            records.remove(&key);
            let (vault, _) = self.open(records);
            let refused = ask(&vault.unwrap(), &self.model);
            let what: Vec<&String> = refused.iter().collect();
            if key[0] == CHUNKS {
                assert_eq!(what.len(), 1, "a chunk belongs to one file: {what:?}");
            } else {
                assert!(what.iter().any(|name| name.ends_with('/')), "{what:?}");
            }
            dependents.insert(key, refused);
        }
        dependents
    }
}

/// Asks everything. No answer may be wrong; the refused ones are returned.
fn ask(vault: &Vault, model: &Model) -> Refusals {
    let mut refused = Refusals::new();
    for question in questions(model) {
        match question.ask(vault) {
            Seen::Right => {}
            Seen::Refused => {
                refused.insert(question.name());
            }
            Seen::Wrong(why) => panic_with(&format!("{}: {why}", question.name())),
        }
    }
    refused
}

#[expect(clippy::panic, reason = "a test fails by panicking")]
fn panic_with(why: &str) {
    panic!("{why}");
}

fn problems(vault: &Vault) -> Vec<String> {
    let report = vault.verify(Depth::Full).unwrap();
    report
        .problems
        .into_iter()
        .map(|problem| format!("{problem:?}"))
        .collect()
}

#[test]
fn any_two_swapped_records_are_refused() {
    let scene = Scene::new(10);
    let dependents = scene.dependents();
    let mut pairs = 0;
    for space in 0..=u8::MAX {
        let keys = scene.of_space(space);
        for (at, a) in keys.iter().enumerate() {
            for b in &keys[at + 1..] {
                pairs += 1;
                let mut records = scene.records.clone();
                let [value_a, value_b] = [a, b].map(|key| records[key].clone());
                records.insert(a.clone(), value_b);
                records.insert(b.clone(), value_a);
                let (vault, _) = scene.open(records);
                if !matches!(space, ENTRIES | CHUNKS) {
                    assert!(vault.is_err(), "{a:?} {b:?}");
                    continue;
                }
                let vault = vault.unwrap();
                let touched = &dependents[a] | &dependents[b];
                assert_eq!(ask(&vault, &scene.model), touched, "{a:?} {b:?}");
            }
        }
    }
    assert!(pairs > 500, "only {pairs} pairs");
}

#[test]
fn any_two_records_swapped_inside_the_engine_are_refused() {
    let disk = Disk::new();
    let records = disk.records(&disk.now);
    let mut pairs = 0;
    for space in [1, HEADS, ENTRIES, CHUNKS, 5, 6] {
        let keys: Vec<_> = records.keys().filter(|key| key[0] == space).collect();
        for (at, a) in keys.iter().enumerate() {
            for b in &keys[at + 1..] {
                pairs += 1;
                let store = disk.copy(&disk.now);
                change_engine(store.path(), |db| {
                    db.insert(a, records[*b].clone()).unwrap();
                    db.insert(b, records[*a].clone()).unwrap();
                });
                match disk.open(store.path()) {
                    Err(error) => assert!(is_integrity(&error), "{error}"),
                    Ok(vault) => {
                        assert!(!ask(&vault, &disk.model).is_empty(), "{a:?} {b:?}");
                        assert!(!problems(&vault).is_empty(), "{a:?} {b:?}");
                    }
                }
            }
        }
    }
    assert!(pairs > 20, "only {pairs} pairs");
}

#[test]
fn a_record_removed_under_a_running_store_is_refused_and_named() {
    let scene = Scene::new(8);
    let dependents = scene.dependents();
    tamper_while_running(&scene, &dependents, |key, _| vec![(key.to_vec(), None)]);
}

#[test]
fn an_older_record_put_back_under_a_running_store_is_refused_and_named() {
    let scene = Scene::new(8);
    let dependents = scene.dependents();
    let mut replays = 0;
    tamper_while_running(&scene, &dependents, |key, value| {
        let older = scene
            .earlier
            .iter()
            .filter_map(|records| records.get(key))
            .filter(|older| *older != value);
        let changes: Vec<_> = older
            .map(|older| (key.to_vec(), Some(older.clone())))
            .collect();
        replays += changes.len();
        changes
    });
    assert!(replays >= 20, "only {replays} records ever changed");
}

/// Puts each change in while the store runs, once before it has read anything and once
/// after it has read everything, and takes it out again.
fn tamper_while_running(
    scene: &Scene,
    dependents: &BTreeMap<Vec<u8>, Refusals>,
    mut changes: impl FnMut(&[u8], &Vec<u8>) -> Vec<(Vec<u8>, Option<Vec<u8>>)>,
) {
    for (key, value) in &scene.records {
        for (key, changed) in changes(key, value) {
            for has_read in [false, true] {
                let (vault, backend) = scene.open(scene.records.clone());
                let vault = vault.unwrap();
                if has_read {
                    assert!(ask(&vault, &scene.model).is_empty());
                }
                backend.tamper(&key, changed.clone());
                let refused = ask(&vault, &scene.model);
                if let Some(touched) = dependents.get(&key) {
                    // A store that has checked a directory before compares single entries:
                    // what does not touch the record may still be answered.
                    assert!(refused.is_subset(touched), "{key:?}");
                    assert!(!refused.is_empty(), "{key:?}");
                    assert!(has_read || refused == *touched, "{key:?}");
                } else if key[0] == HEADS {
                    assert!(!refused.is_empty(), "{key:?}");
                }
                let problems = problems(&vault);
                assert!(!problems.is_empty(), "verify is silent about {key:?}");
                assert_writes_end(&vault, &key);
                backend.tamper(&key, Some(value.clone()));
                assert_eq!(ask(&vault, &scene.model), Refusals::new(), "{key:?}");
            }
        }
    }
}

/// Once damage was found, the store takes no more writes.
fn assert_writes_end(vault: &Vault, key: &[u8]) {
    for tenant in ["one", "team/two"] {
        let Ok(tenant) = vault.tenant(tenant) else {
            continue;
        };
        let written = tenant.create("/memories/more.md", "more\n");
        let is_refused = written.as_ref().is_err_and(is_integrity);
        assert!(is_refused, "{key:?}: {written:?}");
    }
}

fn is_integrity(error: &Error) -> bool {
    error.code() == strongroom::Code::Integrity
}

#[test]
fn a_removed_record_put_back_under_a_running_store_is_named() {
    let scene = Scene::new(8);
    let mut ghosts = Records::new();
    for earlier in &scene.earlier {
        for (key, value) in earlier {
            if !scene.records.contains_key(key) {
                ghosts.insert(key.clone(), value.clone());
            }
        }
    }
    assert!(
        ghosts.keys().any(|key| key[0] == ENTRIES),
        "no entry was ever removed"
    );
    assert!(
        ghosts.keys().any(|key| key[0] == CHUNKS),
        "no chunk was ever removed"
    );
    assert_inserts_are_named(&scene, &ghosts);
}

#[test]
fn a_foreign_record_inserted_under_a_running_store_is_named() {
    let scene = Scene::new(8);
    let other = Scene::new(4);
    let mut foreign = Records::new();
    for (key, value) in &other.records {
        // The other store has a root record and policy under the same keys.
        if !scene.records.contains_key(key) {
            foreign.insert(key.clone(), value.clone());
        }
    }
    // One of each space under keys that this store could have used itself, and some that
    // no store uses.
    let mut numbers = Rng(1);
    for (key, value) in &scene.records {
        let mut near = key.clone();
        match near.last_mut() {
            Some(last) if key.len() > 1 => *last ^= 0x40,
            _ => near.push(0),
        }
        if !scene.records.contains_key(&near) {
            foreign.insert(near, value.clone());
        }
        let mut longer = key.clone();
        longer.extend_from_slice(&[0xFF; 80]);
        foreign.insert(longer, value.clone());
        let mut shorter = key.clone();
        shorter.truncate(1 + numbers.below(key.len()));
        if !scene.records.contains_key(&shorter) {
            foreign.insert(shorter, value.clone());
        }
    }
    let a_head = scene.records[&scene.of_space(HEADS)[0]].clone();
    foreign.insert([&[JOBS][..], &[9; 16]].concat(), a_head);
    foreign.insert(Vec::new(), vec![1]);
    foreign.insert(vec![0], vec![1]);
    foreign.insert(vec![7, 7, 7], vec![1]);
    foreign.insert(vec![0xFF; 40], vec![1]);
    for space in [1, HEADS, ENTRIES, CHUNKS, 5, 6] {
        assert!(
            foreign.keys().any(|key| key.first() == Some(&space)),
            "{space}"
        );
    }
    assert_inserts_are_named(&scene, &foreign);
}

/// Inserts each record alone: no answer is wrong, and `verify` finds something.
fn assert_inserts_are_named(scene: &Scene, inserts: &Records) {
    let mut silent = Vec::new();
    for (key, value) in inserts {
        let (vault, backend) = scene.open(scene.records.clone());
        let vault = vault.unwrap();
        ask(&vault, &scene.model);
        backend.tamper(key, Some(value.clone()));
        ask(&vault, &scene.model);
        if problems(&vault).is_empty() {
            silent.push(key);
        } else {
            assert_writes_end(&vault, key);
        }
    }
    assert!(
        silent.is_empty(),
        "verify is silent about {} of {}: {silent:?}",
        silent.len(),
        inserts.len()
    );
}

#[test]
fn one_tenant_put_back_as_a_whole_is_refused() {
    let scene = Scene::new(8);
    // The tenant of a head stands in no key; the ids of both tenants do.
    let heads = scene.of_space(HEADS);
    let ids: BTreeSet<Vec<u8>> = scene
        .of_space(ENTRIES)
        .iter()
        .map(|key| key[1..17].to_vec())
        .collect();
    assert_eq!((heads.len(), ids.len()), (2, 2));
    let mut tried = 0;
    for earlier in &scene.earlier {
        for head in &heads {
            for id in &ids {
                let is_theirs =
                    |key: &[u8]| key == head || key.get(1..17).is_some_and(|own| own == id);
                let mut records = scene.records.clone();
                records.retain(|key, _| !is_theirs(key));
                for (key, value) in earlier.iter().filter(|(key, _)| is_theirs(key)) {
                    records.insert(key.clone(), value.clone());
                }
                if records == scene.records {
                    continue;
                }
                tried += 1;
                let (opened, _) = scene.open(records.clone());
                if earlier.get(head) != scene.records.get(head) {
                    let error = opened.err().unwrap();
                    assert!(
                        matches!(error, Error::Store(StoreError::Damaged(_))),
                        "{error}"
                    );
                }
                // The same under a running store, which holds the newest head.
                let (vault, backend) = scene.open(scene.records.clone());
                let vault = vault.unwrap();
                ask(&vault, &scene.model);
                for key in scene.records.keys().chain(records.keys()) {
                    backend.tamper(key, records.get(key).cloned());
                }
                assert!(!ask(&vault, &scene.model).is_empty());
                assert!(!problems(&vault).is_empty());
            }
        }
    }
    assert!(tried >= 8, "only {tried} tried");
}

#[test]
fn a_tampered_policy_or_job_does_not_spread() {
    let scene = Scene::new(4);
    for key in scene.of_space(5) {
        let (vault, backend) = scene.open(scene.records.clone());
        let vault = vault.unwrap();
        let mut value = scene.records[&key].clone();
        value[20] ^= 1;
        backend.tamper(&key, Some(value));
        // Replacing the policy relies on the stored one: it must not be taken for genuine.
        let replaced = vault.set_policy(&store_kit::roomy_policy());
        assert!(replaced.as_ref().is_err_and(is_integrity), "{replaced:?}");
        backend.tamper(&key, Some(scene.records[&key].clone()));
        drop(vault);
        let (again, _) = scene.open(backend.records());
        assert!(ask(&again.unwrap(), &scene.model).is_empty());
    }
}

/// Answers for each job with the first record it ever had, as a replay would.
#[derive(Default)]
struct JobReplay {
    inner: MemoryBackend,
    first: Mutex<Records>,
}

impl Backend for JobReplay {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        let value = self.inner.get(key)?;
        if key.first() != Some(&JOBS) {
            return Ok(value);
        }
        let mut first = self.first.lock().unwrap();
        if let Some(value) = value {
            first.entry(key.to_vec()).or_insert(value);
        }
        Ok(first.get(key).cloned())
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, BackendError> {
        self.inner.scan(prefix, after, limit)
    }

    fn apply(&self, batch: Batch) -> Result<u64, BackendError> {
        self.inner.apply(batch)
    }

    fn wait_durable(&self, applied: u64) -> Result<(), BackendError> {
        self.inner.wait_durable(applied)
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        self.inner.stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        self.inner.close()
    }
}

/// The reaper once took the stored job's hash out of the root without asking whether it was
/// the one that the root counts; after a replayed job the store could not be opened again.
#[test]
fn a_replayed_job_does_not_spread() {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("k");
    strongroom::generate_key_file(&key).unwrap();
    let keys = Arc::new(MemoryKeyStore::new());
    let backend = Arc::new(JobReplay::default());
    let open = |backend: Arc<dyn Backend>| {
        Vault::builder()
            .on(backend, keys.clone())
            .key_file(&key)
            .create(true)
            .open()
            .unwrap()
    };
    let mut life = Life {
        vault: open(backend.clone()),
        model: Model::default(),
    };
    life.create("one", "/memories/kept.md", "kept\n");
    for number in 0..200 {
        life.create("one", &format!("/memories/d/{number}.md"), "x\n");
    }
    life.delete("one", "/memories/d");
    life.settle();
    assert!(
        !backend.first.lock().unwrap().is_empty(),
        "no job was ever read"
    );
    life.vault.close().unwrap();

    let honest = MemoryBackend::with_records(backend.inner.records());
    let life = Life {
        vault: open(Arc::new(honest)),
        model: life.model,
    };
    life.settle();
    assert_eq!(ask(&life.vault, &life.model), Refusals::new());
    assert_eq!(problems(&life.vault), Vec::<String>::new());
}

/// Stores on disk: one directory as it is now, and as it was earlier.
struct Disk {
    home: tempfile::TempDir,
    key: PathBuf,
    now: PathBuf,
    earlier: PathBuf,
    model: Model,
}

impl Disk {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let key = home.path().join("k");
        strongroom::generate_key_file(&key).unwrap();
        let now = home.path().join("now");
        let earlier = home.path().join("earlier");
        let open = |model| Life {
            vault: builder(&now, &key).create(true).open().unwrap(),
            model,
        };
        let mut rng = Rng(3);
        let mut life = open(Model::default());
        for tenant in ["one", "team/two"] {
            life.create(tenant, "/memories/d/a.md", &store_kit::text(&mut rng, 300));
            life.create(tenant, "/memories/b.md", "b\n");
        }
        life.vault.close().unwrap();
        copy_directory(&now, &earlier);
        let mut life = open(life.model);
        life.insert("one", "/memories/b.md", "now\n");
        life.create("three", "/memories/c.md", "c\n");
        life.vault.close().unwrap();
        Self {
            home,
            key,
            now,
            earlier,
            model: life.model,
        }
    }

    fn copy(&self, of: &Path) -> tempfile::TempDir {
        let copy = tempfile::tempdir_in(&self.home).unwrap();
        copy_directory(of, copy.path());
        copy
    }

    fn open(&self, store: &Path) -> Result<Vault, Error> {
        builder(store, &self.key).open()
    }

    fn records(&self, of: &Path) -> Records {
        let copy = self.copy(of);
        let mut records = Records::new();
        change_engine(copy.path(), |db| {
            for pair in db.iter() {
                let (key, value) = pair.unwrap();
                records.insert(key.to_vec(), value.to_vec());
            }
        });
        records
    }

    /// Opens, and asks everything; nothing may be refused.
    fn assert_whole(&self, store: &Path) {
        let vault = self.open(store).unwrap();
        assert_eq!(ask(&vault, &self.model), Refusals::new());
        assert_eq!(problems(&vault), Vec::<String>::new());
        vault.close().unwrap();
    }

    fn error(&self, store: &Path) -> Error {
        self.open(store).err().unwrap()
    }

    /// The key file of a tenant, by trial: only that tenant fails without it.
    fn key_file(&self, tenant: &str) -> PathBuf {
        let files = store_kit::files_below(&self.now.join("keys"));
        let is_of = |file: &&PathBuf| {
            let store = self.copy(&self.now);
            fs::remove_file(store.path().join("keys").join(file)).unwrap();
            self.open(store.path()).unwrap().tenant(tenant).is_err()
        };
        Path::new("keys").join(files.iter().find(is_of).unwrap())
    }
}

/// Works on the engine's data behind the store's back.
fn change_engine(store: &Path, change: impl FnOnce(&sled::Db)) {
    let engine = store.join("gen-000001");
    // sled's threads may hold the files a moment longer than the vault that was closed.
    let db = (0..1_000).find_map(|_| sled::open(&engine).ok()).unwrap();
    change(&db);
    db.flush().unwrap();
}

fn put_back(from: &Path, store: &Path, name: &str) {
    let target = store.join(name);
    if from.join(name).is_dir() {
        fs::remove_dir_all(&target).unwrap();
        copy_directory(&from.join(name), &target);
    } else {
        fs::copy(from.join(name), target).unwrap();
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn an_older_engine_directory_is_a_rollback() {
    let disk = Disk::new();
    let store = disk.copy(&disk.now);
    put_back(&disk.earlier, store.path(), "gen-000001");
    let error = disk.error(store.path());
    assert!(
        matches!(error, Error::Store(StoreError::RolledBack)),
        "{error}"
    );
    // With the newer engine back it opens again: nothing was lost by trying.
    put_back(&disk.now, store.path(), "gen-000001");
    disk.assert_whole(store.path());
    fs::remove_dir_all(store.path().join("gen-000001")).unwrap();
    let error = disk.error(store.path());
    assert!(
        matches!(error, Error::Store(StoreError::RolledBack)),
        "{error}"
    );
}

#[test]
fn a_lost_state_is_refused_and_an_older_one_is_not_believed() {
    let disk = Disk::new();
    let store = disk.copy(&disk.now);
    put_back(&disk.earlier, store.path(), "STATE");
    disk.assert_whole(store.path());

    let lost = |damage: &dyn Fn(&Path)| {
        let store = disk.copy(&disk.now);
        damage(&store.path().join("STATE"));
        let error = disk.error(store.path());
        assert!(
            matches!(error, Error::Store(StoreError::StateLost)),
            "{error}"
        );
    };
    lost(&|state| fs::remove_file(state).unwrap());
    lost(&|state| fs::write(state, b"").unwrap());
    lost(&|state| fs::write(state, [0; 8_192]).unwrap());
    lost(&|state| {
        flip(state, 30);
        flip(state, 4_096 + 30);
    });

    // One torn slot, whichever it is: the other one holds.
    for at in [30, 4_096 + 30] {
        let store = disk.copy(&disk.now);
        flip(&store.path().join("STATE"), at);
        disk.assert_whole(store.path());
    }
    let store = disk.copy(&disk.now);
    let state = fs::read(store.path().join("STATE")).unwrap();
    fs::write(store.path().join("STATE"), &state[..5_000]).unwrap();
    disk.assert_whole(store.path());
}

#[test]
fn a_damaged_keyring_copy_is_repaired_and_two_are_refused() {
    let disk = Disk::new();
    let [a, b] = ["keyring.a", "keyring.b"];
    for (damaged, other) in [(a, b), (b, a)] {
        for at in [0, 9, 15, 60, 200, 300, 400, 562] {
            let store = disk.copy(&disk.now);
            flip(&store.path().join(damaged), at);
            disk.assert_whole(store.path());
            let read = |name| fs::read(store.path().join(name)).unwrap();
            assert_eq!(read(damaged), read(other), "byte {at} of {damaged}");
        }
        let store = disk.copy(&disk.now);
        fs::remove_file(store.path().join(damaged)).unwrap();
        disk.assert_whole(store.path());
        assert!(store.path().join(damaged).exists());
    }
    let both = |at: usize| {
        let store = disk.copy(&disk.now);
        flip(&store.path().join(a), at);
        flip(&store.path().join(b), at);
        disk.error(store.path())
    };
    for at in [0, 8, 15, 25, 310, 400, 562] {
        let error = both(at);
        assert!(
            matches!(error, Error::Key(KeyError::DamagedHeader)),
            "{at}: {error}"
        );
    }
    for at in [37, 45, 140, 250, 298] {
        let error = both(at);
        let is_slot = matches!(error, Error::Key(KeyError::DamagedSlot { position: 0 }));
        assert!(is_slot, "{at}: {error}");
    }
    let store = disk.copy(&disk.now);
    fs::remove_file(store.path().join(a)).unwrap();
    fs::remove_file(store.path().join(b)).unwrap();
    assert!(matches!(
        disk.error(store.path()),
        Error::Key(KeyError::NoKeyring)
    ));
}

#[test]
fn a_keyring_of_a_newer_format_is_left_alone() {
    let disk = Disk::new();
    for names in [
        &["keyring.a"][..],
        &["keyring.b"],
        &["keyring.a", "keyring.b"],
    ] {
        let store = disk.copy(&disk.now);
        for name in names {
            let mut bytes = fs::read(store.path().join(name)).unwrap();
            (bytes[8], bytes[10]) = (2, !2);
            fs::write(store.path().join(name), bytes).unwrap();
        }
        let before = fs::read(store.path().join(names[0])).unwrap();
        let error = disk.error(store.path());
        let is_newer = matches!(error, Error::Key(KeyError::UnknownFormat { format: 2, .. }));
        assert!(is_newer, "{error}");
        assert_eq!(fs::read(store.path().join(names[0])).unwrap(), before);
    }
}

#[test]
fn a_wrong_key_opens_nothing() {
    let disk = Disk::new();
    let other = disk.home.path().join("other");
    strongroom::generate_key_file(&other).unwrap();
    let error = builder(&disk.now, &other).open().err().unwrap();
    assert!(
        matches!(error, Error::Key(KeyError::WrongCredential)),
        "{error}"
    );
    let passphrase = KeySource::Passphrase("no such thing".to_owned().into());
    let error = Vault::builder()
        .path(&disk.now)
        .key_source(passphrase)
        .open()
        .err()
        .unwrap();
    assert!(
        matches!(error, Error::Key(KeyError::NoSlotForSource { .. })),
        "{error}"
    );
    disk.assert_whole(&disk.now);
}

#[test]
fn a_removed_key_slot_cannot_be_put_back() {
    let disk = Disk::new();
    let store = disk.copy(&disk.now);
    let second = disk.home.path().join("second");
    strongroom::generate_key_file(&second).unwrap();
    let vault = disk.open(store.path()).unwrap();
    let credential = KeySource::KeyFile(second.clone()).resolve(None).unwrap();
    let slot = vault
        .add_key(&credential, "second", KdfParams::FLOOR)
        .unwrap();
    vault.close().unwrap();
    let with_slot = disk.copy(store.path());
    builder(store.path(), &second)
        .open()
        .unwrap()
        .close()
        .unwrap();
    let vault = disk.open(store.path()).unwrap();
    vault.remove_key(slot).unwrap();
    vault.close().unwrap();
    let error = builder(store.path(), &second).open().err().unwrap();
    assert!(
        matches!(error, Error::Key(KeyError::WrongCredential)),
        "{error}"
    );

    // One older copy beside the newer one lets nobody in and is repaired.
    for name in ["keyring.a", "keyring.b"] {
        let one = disk.copy(store.path());
        put_back(with_slot.path(), one.path(), name);
        let error = builder(one.path(), &second).open().err().unwrap();
        assert!(
            matches!(error, Error::Key(KeyError::WrongCredential)),
            "{error}"
        );
        disk.assert_whole(one.path());
        assert!(builder(one.path(), &second).open().is_err());
    }
    put_back(with_slot.path(), store.path(), "keyring.a");
    put_back(with_slot.path(), store.path(), "keyring.b");
    for key in [&second, &disk.key] {
        let error = builder(store.path(), key).open().err().unwrap();
        assert!(
            matches!(error, Error::Store(StoreError::KeyringOlder)),
            "{error}"
        );
    }
}

#[test]
fn a_tenant_without_its_key_file_is_never_made_anew() {
    let disk = Disk::new();
    let file = disk.key_file("one");
    let store = disk.copy(&disk.now);
    fs::remove_file(store.path().join(&file)).unwrap();
    let vault = disk.open(store.path()).unwrap();
    for _ in 0..2 {
        let error = vault.tenant("one").err().unwrap();
        assert!(
            matches!(error, Error::Store(StoreError::KeyFileMissing)),
            "{error}"
        );
    }
    let refused = ask(&vault, &disk.model);
    assert!(
        refused.iter().all(|name| name.starts_with("one:")) && refused.len() == 4,
        "{refused:?}"
    );
    let problems = problems(&vault);
    assert!(
        problems
            .iter()
            .any(|problem| problem.contains("key file is missing")),
        "{problems:?}"
    );
    vault.close().unwrap();
    assert!(!store.path().join(&file).exists());
    // The file found again brings the tenant back.
    put_back(&disk.now, store.path(), file.to_str().unwrap());
    disk.assert_whole(store.path());
}

#[test]
fn other_tenants_work_beside_one_without_keys() {
    let disk = Disk::new();
    let store = disk.copy(&disk.now);
    fs::remove_file(store.path().join(disk.key_file("one"))).unwrap();
    let vault = disk.open(store.path()).unwrap();
    assert!(vault.tenant("one").is_err());
    let tenant = vault.tenant("team/two").unwrap();
    assert!(
        !tenant
            .create("/memories/more.md", "more\n")
            .unwrap()
            .is_error
    );
    assert!(
        !vault
            .tenant("four")
            .unwrap()
            .create("/memories/4.md", "4\n")
            .unwrap()
            .is_error
    );
    vault.close().unwrap();
    let vault = disk.open(store.path()).unwrap();
    let view = vault
        .tenant("team/two")
        .unwrap()
        .view("/memories/more.md", None)
        .unwrap();
    assert!(view.as_text().unwrap().ends_with("\tmore"));
}

#[test]
fn a_half_damaged_key_file_is_repaired_and_a_whole_one_refused() {
    let disk = Disk::new();
    let file = disk.key_file("one");
    let length = fs::read(disk.now.join(&file)).unwrap().len();
    for at in [0, 50, length / 2 - 1, length / 2, length - 1] {
        let store = disk.copy(&disk.now);
        flip(&store.path().join(&file), at);
        disk.assert_whole(store.path());
        // Repaired: now the other half may break.
        flip(&store.path().join(&file), (at + length / 2) % length);
        disk.assert_whole(store.path());
    }
    let store = disk.copy(&disk.now);
    flip(&store.path().join(&file), 50);
    flip(&store.path().join(&file), length - 1);
    let vault = disk.open(store.path()).unwrap();
    let error = vault.tenant("one").err().unwrap();
    assert!(
        matches!(error, Error::Store(StoreError::KeyFileDamaged)),
        "{error}"
    );
    let refused = ask(&vault, &disk.model);
    assert!(refused.iter().all(|name| name.starts_with("one:")) && !refused.is_empty());
}

#[test]
fn another_tenants_key_file_opens_nothing() {
    let disk = Disk::new();
    let [one, two] = ["one", "team/two"].map(|tenant| disk.key_file(tenant));
    let store = disk.copy(&disk.now);
    fs::copy(disk.now.join(&two), store.path().join(&one)).unwrap();
    let vault = disk.open(store.path()).unwrap();
    let error = vault.tenant("one").err().unwrap();
    assert!(
        matches!(error, Error::Store(StoreError::KeyFileDamaged)),
        "{error}"
    );
    let refused = ask(&vault, &disk.model);
    assert!(refused.iter().all(|name| name.starts_with("one:")) && !refused.is_empty());
}

#[test]
fn a_key_file_without_a_head_is_removed_at_open() {
    let disk = Disk::new();
    let store = disk.copy(&disk.now);
    let stray = "0123456789abcdef0123456789abcdef";
    let stray = store.path().join("keys").join("01").join(stray);
    fs::create_dir_all(stray.parent().unwrap()).unwrap();
    fs::copy(disk.now.join(disk.key_file("one")), &stray).unwrap();
    builder(store.path(), &disk.key)
        .read_only(true)
        .open()
        .unwrap()
        .close()
        .unwrap();
    assert!(stray.exists(), "reading removes nothing");
    disk.assert_whole(store.path());
    assert!(!stray.exists());
}

#[test]
fn a_record_removed_from_the_engine_after_a_clean_close_is_refused() {
    let disk = Disk::new();
    for key in disk.records(&disk.now).keys() {
        let store = disk.copy(&disk.now);
        change_engine(store.path(), |db| {
            db.remove(key).unwrap();
        });
        match disk.open(store.path()) {
            Err(error) => assert!(is_integrity(&error), "{error}"),
            Ok(vault) => {
                assert!(!ask(&vault, &disk.model).is_empty(), "{key:?}");
                assert!(!problems(&vault).is_empty(), "{key:?}");
            }
        }
    }
}

/// The key store of a running store in memory is only read, never trusted.
#[test]
fn keys_of_another_store_open_nothing() {
    let scene = Scene::new(4);
    let other = Scene::new(4);
    for item in [Item::Keyring, Item::State] {
        let mixed = scene.keys.clone();
        for copy in [Copy::A, Copy::B] {
            if let Some(bytes) = other.keys.read(item, copy).unwrap() {
                mixed.write(item, copy, &bytes).unwrap();
            }
        }
        let opened = Vault::builder()
            .on(
                Arc::new(MemoryBackend::with_records(scene.records.clone())),
                Arc::new(mixed),
            )
            .key_file(&scene.key)
            .open();
        assert!(opened.is_err(), "{item:?}");
    }
}

#[test]
fn tokens_are_under_the_root_like_everything_else() {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("k");
    strongroom::generate_key_file(&key).unwrap();
    let keys = Arc::new(MemoryKeyStore::new());
    let backend = Arc::new(MemoryBackend::new());
    let builder = |records| {
        Vault::builder()
            .on(Arc::new(MemoryBackend::with_records(records)), keys.clone())
            .key_file(&key)
    };
    let vault = Vault::builder()
        .on(backend.clone(), keys.clone())
        .key_file(&key)
        .create(true)
        .open()
        .unwrap();
    let new = |label: &str| strongroom::NewToken {
        label: label.to_owned(),
        access: strongroom::Access::ReadWrite,
        tenants: vec![strongroom::policy::TenantPattern::parse("**").unwrap()],
        expires: None,
    };
    let texts = ["a", "b", "c"].map(|label| vault.create_token(&new(label)).unwrap().1);
    let before = backend.records();
    vault.revoke_token("c").unwrap().unwrap();
    vault.close().unwrap();
    let after = backend.records();
    let of = |records: &Records| -> Vec<Vec<u8>> {
        let is_token = |key: &&Vec<u8>| key.first() == Some(&TOKENS);
        records.keys().filter(is_token).cloned().collect()
    };
    let opened = builder(after.clone()).open().unwrap();
    let is_known = |n: usize| opened.token(&texts[n]).is_some();
    assert!(is_known(0) && is_known(1) && !is_known(2));
    assert!(opened.verify(Depth::Full).unwrap().problems.is_empty());
    drop(opened);
    assert_eq!((of(&before).len(), of(&after).len()), (3, 2));
    let mut tampered = Vec::new();
    for key in of(&before) {
        let mut records = after.clone();
        if records.remove(&key).is_none() {
            // The revoked one, put back.
            records.insert(key.clone(), before[&key].clone());
        }
        tampered.push(records);
    }
    let [a, b] = of(&after).try_into().unwrap();
    let mut swapped = after.clone();
    swapped.insert(a.clone(), after[&b].clone());
    swapped.insert(b, after[&a].clone());
    tampered.push(swapped);
    for records in tampered {
        let error = builder(records).open().err().unwrap();
        assert!(is_integrity(&error), "{error}");
    }
}
