//! New keys for a store in use: nothing is lost, nothing is answered wrongly, and the keys
//! before are of no use afterwards.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use strongroom::backend::{
    Copy, Fault, FaultBackend, Item, KeyStore, MemoryBackend, MemoryKeyStore,
};
use strongroom::key::{KdfParams, KeyError, KeySource};
use strongroom::{Code, Error, NewKey, StoreError, Vault};
use zeroize::Zeroizing;

use support::ground::{Point, Watch, WatchedKeys};
use support::rng::Rng;
use support::tree::{Tree, difference, read_tree};
use support::workload::Worker;
use support::{assert_whole, plain_policy};

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        strongroom::generate_key_file(home.path().join("key")).unwrap();
        Self(home)
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("store")
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("key")
    }

    fn open(&self) -> Vault {
        self.try_open(&self.key()).unwrap()
    }

    fn try_open(&self, key: &Path) -> Result<Vault, Error> {
        Vault::builder()
            .path(self.store())
            .key_file(key)
            .policy(plain_policy())
            .create(true)
            .open()
    }

    fn other_key(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        strongroom::generate_key_file(&path).unwrap();
        path
    }
}

fn credential(key: &Path) -> strongroom::key::Credential {
    KeySource::KeyFile(key.to_path_buf()).resolve(None).unwrap()
}

fn new_key(credential: &strongroom::key::Credential) -> NewKey<'_> {
    NewKey {
        credential,
        label: "new",
        params: KdfParams::FLOOR,
    }
}

/// Fills a tenant by random commands. Returns what must be there.
fn fill(vault: &Vault, tenant: &str, seed: u64, commands: usize) -> Tree {
    let tenant = vault.tenant(tenant).unwrap();
    let mut worker = Worker::new(seed, "/memories/w", Tree::new());
    for _ in 0..commands {
        let op = worker.step();
        let reply = op.run(&tenant).unwrap();
        assert!(!reply.is_error, "{op:.80?}: {:?}", reply.as_text());
    }
    worker.tree().clone()
}

fn assert_holds(vault: &Vault, tenant: &str, tree: &Tree) {
    let found = read_tree(&vault.tenant(tenant).unwrap(), "/memories/w").unwrap();
    assert!(found == *tree, "{}", difference(&found, tree));
}

fn key_files(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for shard in fs::read_dir(store.join("keys")).unwrap() {
        for file in fs::read_dir(shard.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            files.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    files
}

#[test]
fn a_rotation_seals_everything_anew_and_retires_the_key_before() {
    let home = Home::new();
    let vault = home.open();
    let one = fill(&vault, "one", 1, 150);
    let two = fill(&vault, "team/two", 2, 60);
    assert!(
        !vault
            .tenant("one")
            .unwrap()
            .add_hold("/memories/w", "audit", None)
            .unwrap()
            .is_error
    );
    for epoch in 2..5 {
        let mut calls = 0;
        let rotated = vault.rotate_keys(None, |_, _, _| calls += 1).unwrap();
        assert_eq!(rotated.len(), 2);
        assert!(rotated.iter().all(|rotated| rotated.epoch == epoch));
        assert_holds(&vault, "one", &one);
        assert_holds(&vault, "team/two", &two);
        assert_whole(&vault, "after a rotation");
    }
    // One record key is left in each file, so each has the length that it had at first.
    assert!(
        key_files(&home.store())
            .values()
            .all(|file| file.len() == 2 * (40 + 256 + 16 + 32))
    );
    vault.close().unwrap();
    let vault = home.open();
    assert_holds(&vault, "one", &one);
    assert_whole(&vault, "after opening again");
}

#[test]
fn a_key_file_from_before_a_rotation_opens_nothing_and_is_named() {
    let home = Home::new();
    let vault = home.open();
    fill(&vault, "one", 1, 20);
    let before = key_files(&home.store());
    vault.rotate_keys(Some("one"), |_, _, _| ()).unwrap();
    let after = key_files(&home.store());
    vault.close().unwrap();
    for (path, bytes) in &before {
        fs::write(path, bytes).unwrap();
    }
    let vault = home.open();
    match vault.tenant("one").map(drop) {
        Err(Error::Store(StoreError::KeyFileOlder)) => {}
        other => panic!("{other:?}"),
    }
    // Others go on.
    assert!(
        !vault
            .tenant("two")
            .unwrap()
            .create("/memories/a.md", "a\n")
            .unwrap()
            .is_error
    );
    vault.close().unwrap();
    for (path, bytes) in &after {
        fs::write(path, bytes).unwrap();
    }
    assert_whole(&home.open(), "with the right key file");
}

/// A file from the middle of a rotation has the key before and the new one.
#[test]
fn a_retired_key_that_comes_back_is_forgotten_again() {
    let (memory, keys) = (
        Arc::new(MemoryBackend::new()),
        Arc::new(MemoryKeyStore::new()),
    );
    let written = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&written);
    let watch = Watch::new(move |point| {
        if let Point::Write(item @ Item::Tenant(_), _, bytes) = point {
            into.lock().unwrap().push((*item, bytes.clone()));
        }
    });
    let line = Zeroizing::new(key_line());
    let open = || {
        let inner: Arc<dyn KeyStore> = keys.clone();
        let watch = Arc::clone(&watch);
        Vault::builder()
            .on(memory.clone(), Arc::new(WatchedKeys { inner, watch }))
            .key_source(KeySource::Line(line.clone()))
            .policy(plain_policy())
            .create(true)
            .open()
            .unwrap()
    };
    let vault = open();
    let tree = fill(&vault, "one", 1, 40);
    vault.rotate_keys(Some("one"), |_, _, _| ()).unwrap();
    vault.close().unwrap();
    // Made with the tenant, with the second key in it, without the first.
    let files = written.lock().unwrap().clone();
    assert_eq!(files.len(), 3);
    let (item, middle) = &files[1];
    keys.write(*item, Copy::A, middle).unwrap();
    let vault = open();
    assert_holds(&vault, "one", &tree);
    assert_eq!(written.lock().unwrap().len(), 4);
    assert_whole(&vault, "with a retired key that came back");
}

#[test]
fn verify_names_a_key_file_that_was_put_back_under_a_running_store() {
    let home = Home::new();
    let vault = home.open();
    fill(&vault, "one", 1, 10);
    let before = key_files(&home.store());
    vault.rotate_keys(Some("one"), |_, _, _| ()).unwrap();
    for (path, bytes) in &before {
        fs::write(path, bytes).unwrap();
    }
    let report = vault.verify(strongroom::Depth::Quick).unwrap();
    assert_eq!(report.problems.len(), 1);
    assert!(report.problems[0].what.contains("older"), "{report:?}");
}

#[test]
fn a_rotation_of_no_tenant_is_an_error_and_makes_none() {
    let vault = Vault::builder().in_memory().open().unwrap();
    let error = vault.rotate_keys(Some("nobody"), |_, _, _| ()).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert!(vault.stats().unwrap().tenants.is_empty());
    assert!(vault.rotate_keys(None, |_, _, _| ()).unwrap().is_empty());
}

#[test]
fn two_rotations_at_once_both_end_and_the_newest_epoch_stays() {
    let home = Home::new();
    let vault = home.open();
    let tree = fill(&vault, "one", 3, 120);
    let epochs: Vec<u32> = std::thread::scope(|scope| {
        let rotate = || {
            let vault = vault.clone();
            scope.spawn(move || vault.rotate_keys(Some("one"), |_, _, _| ()).unwrap()[0].epoch)
        };
        let threads = [rotate(), rotate(), rotate()];
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(epochs.iter().max(), Some(&4));
    assert_holds(&vault, "one", &tree);
    assert_whole(&vault, "after three at once");
    assert!(
        key_files(&home.store())
            .values()
            .all(|file| file.len() == 2 * (40 + 256 + 16 + 32))
    );
}

#[test]
fn readers_and_writers_see_nothing_wrong_while_keys_are_rotated() {
    let home = Home::new();
    let vault = home.open();
    let seeds = [11, 12, 13, 14];
    let end = AtomicBool::new(false);
    let steps = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = seeds
            .iter()
            .map(|seed| {
                let (vault, end, steps) = (vault.clone(), &end, &steps);
                scope.spawn(move || {
                    let tenant = vault.tenant("one").unwrap();
                    let top = format!("/memories/w{seed}");
                    let mut worker = Worker::small(*seed, &top, Tree::new());
                    while !end.load(Ordering::Relaxed) {
                        let op = worker.step();
                        let reply = op.run(&tenant).unwrap();
                        assert!(!reply.is_error, "{op:.80?}: {:?}", reply.as_text());
                        if steps.fetch_add(1, Ordering::Relaxed) % 16 == 0 {
                            let found = read_tree(&tenant, &top).unwrap();
                            assert!(
                                found == *worker.tree(),
                                "{}",
                                difference(&found, worker.tree())
                            );
                        }
                    }
                    let found = read_tree(&tenant, &top).unwrap();
                    assert!(
                        found == *worker.tree(),
                        "{}",
                        difference(&found, worker.tree())
                    );
                })
            })
            .collect();
        while steps.load(Ordering::Relaxed) < 40 {
            std::thread::yield_now();
        }
        for _ in 0..6 {
            vault.rotate_keys(Some("one"), |_, _, _| ()).unwrap();
        }
        end.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_whole(&vault, "after rotations under load");
}

#[test]
fn a_new_master_key_leaves_the_credential_and_voids_old_key_files() {
    let home = Home::new();
    let vault = home.open();
    let tree = fill(&vault, "one", 4, 30);
    fill(&vault, "two", 5, 5);
    let before = key_files(&home.store());
    let rotated = vault.rotate_master(None, false, |_, _| ()).unwrap();
    assert_eq!((rotated.kept, rotated.dropped), (vec![1], vec![]));
    let after = key_files(&home.store());
    assert!(before.iter().all(|(path, bytes)| after[path] != *bytes));
    assert_holds(&vault, "one", &tree);
    vault.close().unwrap();
    let vault = home.open();
    assert_holds(&vault, "one", &tree);
    assert_whole(&vault, "after a new master key");
    vault.close().unwrap();
    // A key file from before, put back, is not opened by what the keyring holds now.
    for (path, bytes) in &before {
        fs::write(path, bytes).unwrap();
    }
    let vault = home.open();
    assert!(matches!(
        vault.tenant("one").map(drop),
        Err(Error::Store(StoreError::KeyFileDamaged))
    ));
}

#[test]
fn a_keyring_from_before_a_new_master_key_is_refused() {
    let home = Home::new();
    let vault = home.open();
    fill(&vault, "one", 4, 5);
    let names = ["keyring.a", "keyring.b"].map(|name| home.store().join(name));
    let before = names.each_ref().map(|name| fs::read(name).unwrap());
    vault.rotate_master(None, false, |_, _| ()).unwrap();
    vault.close().unwrap();
    for (name, bytes) in names.iter().zip(&before) {
        fs::write(name, bytes).unwrap();
    }
    let error = home.try_open(&home.key()).map(drop).unwrap_err();
    assert!(
        matches!(error, Error::Store(StoreError::KeyringOlder)),
        "{error}"
    );
}

#[test]
fn other_slots_are_dropped_only_when_that_is_said() {
    let home = Home::new();
    let vault = home.open();
    fill(&vault, "one", 4, 5);
    let spare = home.other_key("spare");
    vault
        .add_key(&credential(&spare), "spare", KdfParams::FLOOR)
        .unwrap();
    // Added by this handle, so it can be renewed too.
    assert_eq!(
        vault
            .rotate_master(None, false, |_, _| ())
            .unwrap()
            .kept
            .len(),
        2
    );
    vault.close().unwrap();
    home.try_open(&spare).unwrap().close().unwrap();

    let vault = home.open();
    let error = vault.rotate_master(None, false, |_, _| ()).unwrap_err();
    assert!(matches!(error, Error::Key(KeyError::OtherSlots)), "{error}");
    let next = home.other_key("next");
    let credential = credential(&next);
    let error = vault
        .rotate_master(Some(&new_key(&credential)), false, |_, _| ())
        .unwrap_err();
    assert!(matches!(error, Error::Key(KeyError::OtherSlots)), "{error}");
    assert_eq!(vault.key_slots().len(), 2);
    let rotated = vault
        .rotate_master(Some(&new_key(&credential)), true, |_, _| ())
        .unwrap();
    assert_eq!((rotated.kept.len(), rotated.dropped.len()), (1, 1));
    vault.close().unwrap();
    for old in [home.key(), spare] {
        let error = home.try_open(&old).map(drop).unwrap_err();
        assert!(
            matches!(error, Error::Key(KeyError::WrongCredential)),
            "{error}"
        );
    }
    assert_whole(&home.try_open(&next).unwrap(), "with the new key");
}

#[test]
fn a_changed_key_takes_the_place_of_the_one_before() {
    let home = Home::new();
    let vault = home.open();
    let next = home.other_key("next");
    let id = vault
        .change_key(None, &new_key(&credential(&next)))
        .unwrap();
    assert_eq!(
        vault
            .key_slots()
            .iter()
            .map(|slot| slot.id)
            .collect::<Vec<_>>(),
        [id]
    );
    // The handle goes on with the new slot as its own.
    let third = home.other_key("third");
    vault
        .change_key(None, &new_key(&credential(&third)))
        .unwrap();
    vault.close().unwrap();
    for old in [home.key(), next] {
        assert!(matches!(
            home.try_open(&old).map(drop).unwrap_err(),
            Error::Key(KeyError::WrongCredential)
        ));
    }
    home.try_open(&third).unwrap();
}

/// Each backend operation of a rotation fails once, in turn: what was stored stays readable, and
/// the next open ends the rotation.
#[test]
fn every_backend_operation_of_a_rotation_may_fail() {
    let mut rng = Rng::from_time();
    let mut fails = 0;
    for at in (0..60).map(|at| at * 3 + rng.below(3)) {
        let memory = Arc::new(MemoryBackend::new());
        let keys = Arc::new(MemoryKeyStore::new());
        let line = Zeroizing::new(key_line());
        let builder = |backend: Arc<dyn strongroom::backend::Backend>| {
            Vault::builder()
                .on(backend, keys.clone())
                .key_source(KeySource::Line(line.clone()))
                .policy(plain_policy())
                .create(true)
        };
        let vault = builder(memory.clone()).open().unwrap();
        let tree = fill(&vault, "one", at, 20);
        vault.close().unwrap();
        let fault = [Fault::Before, Fault::After, Fault::NoSpace][(at % 3) as usize];
        let faulty = Arc::new(FaultBackend::new(memory.clone(), fault));
        let vault = builder(faulty.clone()).open().unwrap();
        faulty.fail_at(faulty.operations() + at);
        fails += u64::from(vault.rotate_keys(None, |_, _, _| ()).is_err());
        drop(vault);
        let vault = builder(memory.clone()).open().unwrap();
        assert_holds(&vault, "one", &tree);
        assert_whole(&vault, &format!("failed at {at}"));
    }
    assert!(fails > 10, "{fails}");
}

fn key_line() -> String {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("key");
    strongroom::generate_key_file(&path).unwrap();
    fs::read_to_string(path).unwrap()
}

#[test]
fn every_key_is_new_after_a_full_rotation() {
    let home = Home::new();
    let vault = home.open();
    let trees = ["one", "team/two"].map(|name| (name, fill(&vault, name, 21, 80)));
    let held = vault.tenant("one").unwrap();
    assert!(
        !held
            .add_hold("/memories/w", "audit", None)
            .unwrap()
            .is_error
    );
    assert!(
        !vault
            .tenant("gone")
            .unwrap()
            .create("/memories/a.md", "a\n")
            .unwrap()
            .is_error
    );
    let erased = vault.erase_tenant("gone", |_, _| ()).unwrap();
    let new = strongroom::NewToken {
        label: "agents".to_owned(),
        access: strongroom::Access::ReadWrite,
        tenants: vec![strongroom::policy::TenantPattern::parse("**").unwrap()],
        expires: None,
    };
    let (_, token) = vault.create_token(&new).unwrap();
    let checkpoint = vault
        .policy()
        .audit
        .enabled
        .then(|| vault.checkpoint().unwrap());
    let before = vault.stats().unwrap();
    drop(held);
    vault.close().unwrap();
    let names = ["keyring.a", "keyring.b", "STATE"].map(|name| home.store().join(name));
    let old = names.each_ref().map(|name| fs::read(name).unwrap());
    let old_keys = key_files(&home.store());

    let next = home.other_key("next");
    let credential = credential(&next);
    let mut calls = 0;
    let rotated = Vault::builder()
        .path(home.store())
        .key_file(home.key())
        .rotate_full(Some(&new_key(&credential)), false, |_, _| calls += 1)
        .unwrap();
    assert_eq!((rotated.kept.len(), rotated.dropped.len()), (1, 0));
    assert!(calls > 10);

    let error = home.try_open(&home.key()).map(drop).unwrap_err();
    assert!(
        matches!(error, Error::Key(KeyError::WrongCredential)),
        "{error}"
    );
    let vault = home.try_open(&next).unwrap();
    for (name, tree) in &trees {
        assert_holds(&vault, name, tree);
    }
    assert_whole(&vault, "after a full rotation");
    let after = vault.stats().unwrap();
    let totals = |stats: &strongroom::StoreStats| {
        stats
            .tenants
            .iter()
            .map(|one| (one.name.clone(), one.files, one.bytes, one.created))
            .collect::<Vec<_>>()
    };
    assert_eq!(totals(&after), totals(&before));
    assert_eq!(vault.tenant("one").unwrap().holds().unwrap().len(), 1);
    assert!(vault.token(&token).is_some());
    assert!(
        vault
            .erased()
            .iter()
            .any(|one| one.tenant_id == erased.tenant_id)
    );
    assert!(checkpoint.is_none_or(|line| vault.has_checkpoint(&line).unwrap()));
    assert!(
        !vault
            .tenant("team/two")
            .unwrap()
            .create("/memories/new.md", "n\n")
            .unwrap()
            .is_error
    );
    vault.close().unwrap();

    // What somebody kept of before opens none of the new files.
    let new_keys = key_files(&home.store());
    assert!(old_keys.keys().all(|path| !new_keys.contains_key(path)));
    let new = names.each_ref().map(|name| fs::read(name).unwrap());
    for (name, bytes) in names.iter().zip(&old).take(2) {
        fs::write(name, bytes).unwrap();
    }
    let error = home.try_open(&home.key()).map(drop).unwrap_err();
    assert_eq!(error.code(), Code::Integrity, "{error}");
    for (name, bytes) in names.iter().zip(&old) {
        fs::write(name, bytes).unwrap();
    }
    let error = home.try_open(&home.key()).map(drop).unwrap_err();
    assert_eq!(error.code(), Code::Integrity, "{error}");
    for (name, bytes) in names.iter().zip(&new) {
        fs::write(name, bytes).unwrap();
    }
    assert_whole(&home.try_open(&next).unwrap(), "with the files of now");
}

#[test]
fn a_full_rotation_of_a_damaged_store_changes_nothing() {
    let home = Home::new();
    let vault = home.open();
    let tree = fill(&vault, "one", 22, 30);
    fill(&vault, "two", 23, 10);
    vault.close().unwrap();
    let keys = key_files(&home.store());
    let (path, bytes) = keys.iter().next().unwrap();
    fs::remove_file(path).unwrap();
    let builder = || Vault::builder().path(home.store()).key_file(home.key());
    let error = builder().rotate_full(None, false, |_, _| ()).unwrap_err();
    assert_eq!(error.code(), Code::Key, "{error}");
    fs::write(path, bytes).unwrap();
    let vault = home.open();
    assert_holds(&vault, "one", &tree);
    assert_whole(&vault, "unchanged");
    assert!(!home.store().join("rekey").exists());
    vault.close().unwrap();
    // While somebody else holds the store it does not start.
    let held = home.open();
    let error = builder().rotate_full(None, false, |_, _| ()).unwrap_err();
    assert_eq!(error.code(), Code::Locked);
    drop(held);
}
