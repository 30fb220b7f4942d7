//! Cuts the power at random moments: in a model that loses unsynced batches, and in the
//! engine's real files, of which each unsynced block may or may not have reached the disk.
//! Meanwhile an operator rotates keys, erases tenants, changes the policy, adds holds and
//! sweeps: what was done stays done.
//!
//! `STRONGROOM_POWER_SEEDS=1000 STRONGROOM_POWER_COMMANDS=200 cargo test --test power_loss -- --nocapture` for a long run,
//! which `STRONGROOM_POWER_FIRST_SEED` begins elsewhere than at 0.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod support;

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use strongroom::backend::{
    Backend, FileKeyStore, Item, KeyStore, MemoryBackend, MemoryKeyStore, PowerLossBackend,
    SledBackend,
};
use strongroom::key::KeySource;
use strongroom::policy::{self, Policy};
use strongroom::{Vault, VaultBuilder};
use zeroize::Zeroizing;

use support::ground::{Point, Watch, WatchedBackend, WatchedKeys};
use support::rng::Rng;
use support::tree::{Tree, difference, read_tree};
use support::workload::Worker;
use support::{assert_whole, count_from_env};

const TENANTS: [&str; 3] = ["one", "one", "two"];
const POLICY_BASE: u64 = 10_000;

/// How far each worker is.
#[derive(Default)]
struct Progress {
    begun: [AtomicU64; TENANTS.len()],
    acknowledged: [AtomicU64; TENANTS.len()],
    operator: Operator,
}

/// How far the operator is, who does everything under a new number: first begun, then done.
#[derive(Default)]
struct Operator {
    erased: [AtomicU64; 2],
    policies: [AtomicU64; 2],
    holds: [AtomicU64; 2],
}

/// The same at one moment.
#[derive(Clone, Copy)]
struct Operated {
    erased: [u64; 2],
    policies: [u64; 2],
    holds: [u64; 2],
}

impl Operator {
    fn now(&self) -> Operated {
        let load = |of: &[AtomicU64; 2]| [0, 1].map(|at| of[at].load(Ordering::SeqCst));
        Operated {
            erased: load(&self.erased),
            policies: load(&self.policies),
            holds: load(&self.holds),
        }
    }
}

impl Operated {
    /// What was done at the earlier moment, and what was begun by the later one.
    fn between(from: Self, to: Self) -> Self {
        Self {
            erased: [to.erased[0], from.erased[1]],
            policies: [to.policies[0], from.policies[1]],
            holds: [to.holds[0], from.holds[1]],
        }
    }
}

/// One round of the operator's.
fn operate(vault: &Vault, operator: &Operator, number: u64) {
    let counted = |of: &[AtomicU64; 2], work: &mut dyn FnMut()| {
        of[0].fetch_add(1, Ordering::SeqCst);
        work();
        of[1].fetch_add(1, Ordering::SeqCst);
    };
    let name = format!("gone/{number}");
    let doomed = vault.tenant(&name).unwrap();
    assert!(!doomed.create("/memories/a", "a\n").unwrap().is_error);
    counted(&operator.erased, &mut || {
        vault.erase_tenant(&name, |_, _| ()).unwrap();
    });
    counted(&operator.policies, &mut || {
        vault.set_policy(&numbered_policy(number + 1)).unwrap();
    });
    let kept = vault.tenant("kept").unwrap();
    let path = format!("/memories/{number}");
    assert!(!kept.create(&path, "kept\n").unwrap().is_error);
    counted(&operator.holds, &mut || {
        let reply = kept.add_hold(&path, "kept", None).unwrap();
        assert!(!reply.is_error);
    });
    vault.rotate_keys(None, |_, _, _| ()).unwrap();
    vault.expire(None, false, |_, _| ()).unwrap();
}

/// A policy that says which one it is.
fn numbered_policy(number: u64) -> Policy {
    let files = POLICY_BASE + number;
    let text = format!(
        "schema = 1\nextends = [\"default\"]\n[limits]\nmax_files = {files}\n[redaction]\nrule_packs = []\n"
    );
    policy::load(&text, "the test's policy").unwrap()
}

/// The operator's acknowledged work is there, and nothing that was not begun.
fn check_operated(vault: &Vault, operated: &Operated, when: &str) {
    for number in 0..operated.erased[1] {
        let name = format!("gone/{number}");
        assert!(
            !vault.erased_as(&name).unwrap().is_empty(),
            "{when}: {name} is not erased"
        );
        let reply = vault
            .tenant(&name)
            .unwrap()
            .view("/memories/a", None)
            .unwrap();
        assert!(reply.is_error, "{when}: {name} is there again");
    }
    let policy = vault.policy().limits.max_files.saturating_sub(POLICY_BASE);
    let [begun, done] = operated.policies;
    assert!(
        (done..=begun).contains(&policy),
        "{when}: policy {policy}, of {done} to {begun}"
    );
    let holds = vault.tenant("kept").unwrap().holds().unwrap().len() as u64;
    let [begun, done] = operated.holds;
    assert!(
        (done..=begun).contains(&holds),
        "{when}: {holds} holds, of {done} to {begun}"
    );
}

/// The seeds of this run, so many unless the environment says otherwise.
fn seeds(default: u64) -> Range<u64> {
    let first = count_from_env("STRONGROOM_POWER_FIRST_SEED", 0);
    first..first + count_from_env("STRONGROOM_POWER_SEEDS", default)
}

fn load(counts: &[AtomicU64; TENANTS.len()]) -> [u64; TENANTS.len()] {
    std::array::from_fn(|at| counts[at].load(Ordering::SeqCst))
}

fn worker(seed: u64, number: usize) -> Worker {
    Worker::new(seed * 10 + number as u64, &top(number), Tree::new())
}

fn top(number: usize) -> String {
    format!("/memories/w{number}")
}

fn key_line() -> Zeroizing<String> {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("key");
    strongroom::generate_key_file(&path).unwrap();
    Zeroizing::new(fs::read_to_string(path).unwrap())
}

fn builder(line: &Zeroizing<String>) -> VaultBuilder {
    Vault::builder()
        .key_source(KeySource::Line(line.clone()))
        .policy(numbered_policy(0))
}

/// One worker's commands on an open store.
fn work(vault: &Vault, progress: &Progress, seed: u64, number: usize, commands: u64) {
    let tenant = vault.tenant(TENANTS[number]).unwrap();
    let mut worker = worker(seed, number);
    for _ in 0..commands {
        let op = worker.step();
        progress.begun[number].fetch_add(1, Ordering::SeqCst);
        let reply = op.run(&tenant).unwrap();
        assert!(!reply.is_error, "{op:.80?}: {:?}", reply.as_text());
        progress.acknowledged[number].fetch_add(1, Ordering::SeqCst);
    }
}

/// All that was acknowledged by `from` is there, and at most what was begun by `to`.
fn check(vault: &Vault, seed: u64, from: &[u64], to: &[u64], when: &str) {
    for (number, tenant) in TENANTS.iter().enumerate() {
        let tenant = vault.tenant(tenant).unwrap();
        let found = read_tree(&tenant, &top(number)).unwrap();
        let mut worker = worker(seed, number);
        for _ in 0..from[number] {
            worker.step();
        }
        let sure = worker.tree().clone();
        let mut is_legal = found == sure;
        for _ in from[number]..to[number] {
            worker.step();
            is_legal |= found == *worker.tree();
        }
        assert!(
            is_legal,
            "{when}: worker {number}, {} to {}: found / acknowledged\n{}",
            from[number],
            to[number],
            difference(&found, &sure)
        );
    }
    assert_whole(vault, when);
}

/// What a machine would find after a power cut.
struct Cut {
    backend: MemoryBackend,
    keys: MemoryKeyStore,
    acknowledged: [u64; TENANTS.len()],
    begun: [u64; TENANTS.len()],
    operated: Operated,
    lost: usize,
}

#[test]
fn a_power_cut_loses_nothing_that_was_acknowledged() {
    let seeds = seeds(100);
    let line = key_line();
    let (mut cuts, mut losing, mut lost) = (0, 0, 0);
    for seed in seeds.clone() {
        for cut in run_and_cut(seed, &line) {
            cuts += 1;
            losing += u64::from(cut.lost > 0);
            lost += cut.lost;
            let when = format!("seed {seed}, cut {cuts}");
            let vault = builder(&line)
                .on(Arc::new(cut.backend), Arc::new(cut.keys))
                .open()
                .unwrap_or_else(|error| panic!("{when}: {error}"));
            check(&vault, seed, &cut.acknowledged, &cut.begun, &when);
            check_operated(&vault, &cut.operated, &when);
            // It goes on from there.
            let reply = vault.tenant("new").unwrap().create("/memories/a", "a\n");
            assert!(!reply.unwrap().is_error);
            vault.close().unwrap();
        }
    }
    println!(
        "seeds {seeds:?}: {cuts} power cuts, {losing} of them lost unsynced batches ({lost} in all); \
         0 acknowledged writes lost"
    );
    assert!(losing * 10 > cuts, "too few cuts lose anything");
}

/// Lets three workers run, and cuts the power at a few random points below the store.
fn run_and_cut(seed: u64, line: &Zeroizing<String>) -> Vec<Cut> {
    let power = Arc::new(PowerLossBackend::new());
    let memory = Arc::new(MemoryKeyStore::new());
    let progress = Arc::new(Progress::default());
    let cuts: Arc<Mutex<Vec<Cut>>> = Arc::default();
    let rng = Mutex::new(Rng::new(seed));
    let watch = {
        let (power, memory, progress, cuts) = (
            Arc::clone(&power),
            Arc::clone(&memory),
            Arc::clone(&progress),
            Arc::clone(&cuts),
        );
        Arc::new_cyclic(|watch: &std::sync::Weak<Watch>| {
            let watch = watch.clone();
            Watch::with_hook(move |point| {
                let mut rng = rng.lock().unwrap();
                let per_mille = match point {
                    Point::Applied(_) | Point::Sync(_) => 12,
                    _ => 2,
                };
                if rng.below(1_000) >= per_mille {
                    return;
                }
                let acknowledged = load(&progress.acknowledged);
                let operated = progress.operator.now();
                let watch = watch.upgrade().unwrap();
                let gate = watch.gate.write().unwrap();
                let unsynced = power.unsynced();
                let kept = match rng.percent(50) {
                    true => 0,
                    false => rng.below(unsynced as u64 + 1) as usize,
                };
                let (backend, keys) = (power.after_power_loss(kept), (*memory).clone());
                drop(gate);
                cuts.lock().unwrap().push(Cut {
                    backend,
                    keys,
                    acknowledged,
                    begun: load(&progress.begun),
                    operated: Operated::between(operated, progress.operator.now()),
                    lost: unsynced - kept,
                });
            })
        })
    };
    let vault = builder(line)
        .on(
            Arc::new(WatchedBackend {
                inner: power,
                watch: Arc::clone(&watch),
            }),
            Arc::new(WatchedKeys {
                inner: memory,
                watch,
            }),
        )
        .create(true)
        .open()
        .unwrap();
    cuts.lock().unwrap().clear(); // Those before the store was there.
    std::thread::scope(|scope| {
        for number in 0..TENANTS.len() {
            let (vault, progress) = (&vault, &progress);
            scope.spawn(move || work(vault, progress, seed, number, 25));
        }
        for number in 0..2 {
            operate(&vault, &progress.operator, number);
        }
    });
    vault.close().unwrap();
    std::mem::take(&mut cuts.lock().unwrap())
}

/// A store directory as a power cut may leave it, with what must be in it.
struct Image {
    directory: tempfile::TempDir,
    acknowledged: [u64; TENANTS.len()],
    begun: [u64; TENANTS.len()],
    operated: Operated,
    mixed_blocks: u64,
}

/// The directory of a store whose engine's file is watched.
struct Disk {
    home: std::path::PathBuf,
    /// The engine's file as of the last sync that ended: all of it is on the disk.
    durable: Mutex<Vec<u8>>,
    images: Mutex<Vec<Image>>,
    rng: Mutex<Rng>,
}

impl Disk {
    fn db(&self) -> Vec<u8> {
        fs::read(self.home.join("gen-000001/db")).unwrap()
    }

    /// The durable file, each differing block of it from the live one or not.
    fn torn_db(&self, rng: &mut Rng) -> (Vec<u8>, u64) {
        let (durable, live) = (self.durable.lock().unwrap().clone(), self.db());
        let block = [512, 4_096, 65_536][rng.below(3) as usize];
        let newer_percent = [10, 50, 90][rng.below(3) as usize];
        let longest = durable.len().max(live.len());
        let mut file = durable.clone();
        file.resize(longest, 0);
        let mut mixed = 0;
        for at in (0..longest).step_by(block) {
            let end = (at + block).min(longest);
            let old = file[at..end].to_vec();
            let mut new = live.get(at..end.min(live.len())).unwrap_or(&[]).to_vec();
            new.resize(end - at, 0);
            if old != new {
                mixed += 1;
                if rng.percent(newer_percent) {
                    file[at..end].copy_from_slice(&new);
                }
            }
        }
        let length = if rng.percent(50) {
            durable.len()
        } else {
            live.len()
        };
        file.truncate(length.max(durable.len().min(live.len())));
        (file, mixed)
    }

    /// Takes an image of the whole store with this content of the engine's file.
    fn image(&self, db: &[u8], progress: &Progress, acknowledged: [u64; 3], mixed: u64) -> Image {
        let directory = tempfile::tempdir().unwrap();
        copy_all_but_db(&self.home, directory.path());
        fs::write(directory.path().join("gen-000001/db"), db).unwrap();
        Image {
            directory,
            acknowledged,
            begun: load(&progress.begun),
            operated: progress.operator.now(),
            mixed_blocks: mixed,
        }
    }
}

fn copy_all_but_db(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy_all_but_db(&entry.path(), &target);
        } else if entry.file_name() != "db" {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_power_cut_in_the_engines_files_loses_nothing_that_was_acknowledged() {
    let seeds = seeds(30);
    let line = key_line();
    let (mut images, mut torn, mut refused) = (0, 0, Vec::new());
    for seed in seeds.clone() {
        for image in run_and_tear(seed, &line) {
            images += 1;
            torn += u64::from(image.mixed_blocks > 0);
            let when = format!("seed {seed}, image {images}");
            let opened = builder(&line).path(image.directory.path()).open();
            match opened {
                Ok(vault) => {
                    check(&vault, seed, &image.acknowledged, &image.begun, &when);
                    check_operated(&vault, &image.operated, &when);
                    vault.close().unwrap();
                }
                Err(error) => refused.push(format!("{when}: {error}")),
            }
        }
    }
    println!(
        "seeds {seeds:?}: {images} images, {torn} of them torn, {} refused: {refused:#?}",
        refused.len()
    );
    assert!(torn * 2 > images, "too few images are torn");
    assert!(
        refused.is_empty(),
        "a store does not open after a power cut"
    );
}

/// One worker on real files. At random syncs, images of the directory in which some
/// blocks of the engine's file are as before the sync, or a slot of STATE is torn.
fn run_and_tear(seed: u64, line: &Zeroizing<String>) -> Vec<Image> {
    let parent = tempfile::tempdir().unwrap();
    let home = parent.path().join("store");
    let made = builder(line).path(&home).create(true).open().unwrap();
    made.close().unwrap();
    let sled = Arc::new(SledBackend::open(&home.join("gen-000001")).unwrap());
    let keys = Arc::new(FileKeyStore::new(&home));
    let progress = Arc::new(Progress::default());
    let disk = Arc::new(Disk {
        home: home.clone(),
        durable: Mutex::default(),
        images: Mutex::default(),
        rng: Mutex::new(Rng::new(seed)),
    });
    let watch = {
        let (disk, progress, sled) = (
            Arc::clone(&disk),
            Arc::clone(&progress),
            Arc::clone(&sled) as Arc<dyn Backend>,
        );
        Watch::new(move |point| cut_at(&disk, &progress, &*sled, point))
    };
    let vault = builder(line)
        .on(
            Arc::new(WatchedBackend {
                inner: sled,
                watch: Arc::clone(&watch),
            }),
            Arc::new(WatchedKeys { inner: keys, watch }),
        )
        .open()
        .unwrap();
    *disk.durable.lock().unwrap() = disk.db();
    let commands = count_from_env("STRONGROOM_POWER_COMMANDS", 40);
    for number in 0..TENANTS.len() {
        work(&vault, &progress, seed, number, commands);
        operate(&vault, &progress.operator, number as u64);
    }
    vault.close().unwrap();
    std::mem::take(&mut disk.images.lock().unwrap())
}

fn cut_at(disk: &Disk, progress: &Progress, sled: &dyn Backend, point: &Point) {
    let mut rng = disk.rng.lock().unwrap();
    let acknowledged = load(&progress.acknowledged);
    let image = match point {
        // Before any sync: what the engine wrote by itself may be there or not.
        Point::Sync(_) if rng.percent(2) => {
            let (db, mixed) = disk.torn_db(&mut rng);
            Some(disk.image(&db, progress, acknowledged, mixed))
        }
        // In the middle of the sync, whose end the store has not seen.
        Point::Sync(applied) if rng.percent(4) => {
            sled.wait_durable(*applied).unwrap();
            let (db, mixed) = disk.torn_db(&mut rng);
            Some(disk.image(&db, progress, acknowledged, mixed))
        }
        Point::Synced(_) => {
            *disk.durable.lock().unwrap() = disk.db();
            None
        }
        Point::Write(Item::State, copy, bytes) if rng.percent(2) => {
            let db = disk.durable.lock().unwrap().clone();
            let image = disk.image(&db, progress, acknowledged, 0);
            let path = image.directory.path();
            let keys = FileKeyStore::new(path);
            let mut slot = keys.read(Item::State, *copy).unwrap().unwrap_or_default();
            slot.resize(4_096, 0);
            let cut = rng.below(bytes.len() as u64) as usize;
            match rng.percent(50) {
                true => slot[..cut].copy_from_slice(&bytes[..cut]),
                false => slot[cut..bytes.len()].copy_from_slice(&bytes[cut..]),
            }
            keys.write(Item::State, *copy, &slot).unwrap();
            Some(image)
        }
        _ => None,
    };
    disk.images.lock().unwrap().extend(image);
}
