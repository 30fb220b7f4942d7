//! Kills a process at random moments while it rotates keys, erases and compacts, and stops it at
//! every single step: the store opens with the old or the new key, nothing acknowledged is lost,
//! and the work goes on.
//!
//! `STRONGROOM_KILL_ROUNDS=200 cargo test --release --test kill_keys -- --nocapture` for the long run.
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
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use strongroom::backend::{
    Backend, BackendError, BackendStats, Batch, Copy, Item, KeyStore, MemoryBackend,
    MemoryKeyStore, Pair,
};
use strongroom::key::{KdfParams, KeySource};
use strongroom::{ErasureState, Error, NewKey, Vault, VaultBuilder};
use zeroize::Zeroizing;

use support::rng::Rng;
use support::tree::{Tree, difference, read_tree};
use support::workload::Worker;
use support::{assert_whole, count_from_env, plain_policy};

const PLAN: &str = "STRONGROOM_TEST_KEYS_PLAN";
const TOP: &str = "/memories/w";
const GONE_FILES: usize = 40;

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
enum Work {
    Rotate,
    Master,
    Full,
    Erase,
    Compact,
}

#[derive(Serialize, Deserialize)]
struct Plan {
    store: PathBuf,
    keys: [PathBuf; 2],
    /// Which of the keys opens the store.
    at: usize,
    work: Work,
    seed: u64,
    tree: Tree,
}

fn builder(plan: &Plan, at: usize) -> VaultBuilder {
    Vault::builder()
        .path(&plan.store)
        .key_file(&plan.keys[at])
        .policy(plain_policy())
        .create(true)
}

fn say(line: &str) {
    let _written = std::io::stderr().write_all(format!("\n{line}\n").as_bytes());
}

fn fail(what: &str) -> ! {
    say(&format!("E {}", what.replace('\n', " ")));
    std::process::exit(1);
}

/// Carries out one command of the worker and says so, before and after.
fn step(vault: &Vault, worker: &mut Worker, count: &mut u64) {
    let tenant = vault.tenant("one").unwrap();
    let op = worker.step();
    say(&format!("B {count}"));
    match op.run(&tenant) {
        Ok(reply) if !reply.is_error => say(&format!("A {count}")),
        other => fail(&format!("{op:.60?}: {other:.200?}")),
    }
    *count += 1;
}

/// The child: works until it is killed. Does nothing when it is run as a test.
#[test]
fn child_entry() {
    let Ok(path) = std::env::var(PLAN) else {
        return;
    };
    let plan: Plan = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut at = plan.at;
    let mut count = 0;
    let mut worker = Worker::small(plan.seed, TOP, plan.tree.clone());
    let credentials = plan
        .keys
        .each_ref()
        .map(|key| KeySource::KeyFile(key.clone()).resolve(None).unwrap());
    let new = |at: usize| NewKey {
        credential: &credentials[at],
        label: "",
        params: KdfParams::FLOOR,
    };
    if plan.work == Work::Full {
        say("O");
        loop {
            let vault = builder(&plan, at)
                .open()
                .unwrap_or_else(|error| fail(&error.to_string()));
            for _ in 0..3 {
                step(&vault, &mut worker, &mut count);
            }
            vault.close().unwrap();
            say("K");
            if let Err(error) = builder(&plan, at).rotate_full(Some(&new(1 - at)), false, |_, _| ())
            {
                fail(&error.to_string());
            }
            at = 1 - at;
            say("L");
        }
    }
    let vault = builder(&plan, at)
        .open()
        .unwrap_or_else(|error| fail(&error.to_string()));
    say("O");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                step(&vault, &mut worker, &mut count);
            }
        });
        loop {
            if plan.work == Work::Erase {
                let tenant = vault.tenant("gone").unwrap();
                for number in 0..GONE_FILES {
                    let path = format!("/memories/d/{number}.md");
                    let _made = tenant.create(&path, "marker-of-the-gone\n");
                }
            }
            say("K");
            let done = match plan.work {
                Work::Rotate => vault.rotate_keys(None, |_, _, _| ()).map(drop),
                Work::Master => vault
                    .rotate_master(Some(&new(1 - at)), false, |_, _| ())
                    .map(drop),
                Work::Erase => vault.erase_tenant("gone", |_, _| ()).map(drop),
                Work::Compact => vault.compact(|_, _| ()).map(drop),
                Work::Full => Ok(()),
            };
            if let Err(error) = done {
                fail(&error.to_string());
            }
            at = 1 - at;
            say("L");
        }
    });
}

#[derive(Default, Debug, Clone)]
struct Seen {
    opened: bool,
    begun: u64,
    acknowledged: u64,
    works_begun: u64,
    works_done: u64,
    error: Option<String>,
}

/// Runs the child and kills it `wait` after its work has begun `works` times.
fn run_and_kill(home: &Path, plan: &Plan, works: u64, wait: Duration) -> Seen {
    let path = home.join("plan.json");
    fs::write(&path, serde_json::to_vec(plan).unwrap()).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_entry", "--exact", "--nocapture", "--test-threads=1"])
        .env(PLAN, &path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            let _sent = tell.send(line);
        }
    });
    let mut seen = Seen::default();
    let end = Instant::now() + Duration::from_secs(120);
    while seen.works_begun < works && seen.error.is_none() {
        assert!(Instant::now() < end, "the child does not get on: {seen:?}");
        if let Ok(line) = told.recv_timeout(Duration::from_millis(100)) {
            seen.take(&line);
        }
    }
    std::thread::sleep(wait);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    told.try_iter().for_each(|line| seen.take(&line));
    assert!(seen.error.is_none(), "{:?}: {seen:?}", plan.work);
    seen
}

impl Seen {
    fn take(&mut self, line: &str) {
        let mut words = line.split(' ');
        let word = words.next().unwrap_or_default();
        let number = words.next().and_then(|text| text.parse::<u64>().ok());
        match (word, number) {
            ("O", _) => self.opened = true,
            ("B", Some(number)) => self.begun = number + 1,
            ("A", Some(number)) => self.acknowledged = number + 1,
            ("K", None) => self.works_begun += 1,
            ("L", None) => self.works_done += 1,
            ("E", _) => self.error = Some(line.to_owned()),
            _ => {}
        }
    }
}

/// Opens the store with whichever key opens it.
fn open_either(plan: &Plan, round: &str) -> (Vault, usize) {
    let mut errors = Vec::new();
    for at in [plan.at, 1 - plan.at] {
        match builder(plan, at).open() {
            Ok(vault) => return (vault, at),
            Err(error) => errors.push(error.to_string()),
        }
    }
    panic!("{round}: the store opens with neither key: {errors:?}");
}

fn rounds(work: Work) {
    let rounds = count_from_env("STRONGROOM_KILL_ROUNDS", 6);
    let mut rng = Rng::from_time();
    let (mut inside, mut acknowledged) = (0, 0);
    let mut home = tempfile::tempdir().unwrap();
    let (mut tree, mut at) = (Tree::new(), 0);
    // Kills are to come while the work is done, however long it takes on this machine.
    let mut delay_max = 150_000;
    let mut round = 0;
    while round < rounds || inside * 2 < rounds {
        assert!(round < 10 * rounds + 20, "{inside} of {round} kills inside");
        if round % 25 == 0 {
            home = tempfile::tempdir().unwrap();
            (tree, at) = (Tree::new(), 0);
            for name in ["k0", "k1"] {
                strongroom::generate_key_file(home.path().join(name)).unwrap();
            }
        }
        let plan = Plan {
            store: home.path().join("store"),
            keys: ["k0", "k1"].map(|name| home.path().join(name)),
            at,
            work,
            seed: rng.next() >> 1,
            tree: tree.clone(),
        };
        if round % 25 == 0 {
            let vault = builder(&plan, 0).open().unwrap();
            for name in ["two", "team/three"] {
                let tenant = vault.tenant(name).unwrap();
                for number in 0..30 {
                    let path = format!("/memories/{number}.md");
                    assert!(!tenant.create(&path, "text\n").unwrap().is_error);
                }
            }
            vault.close().unwrap();
        }
        let works = 1 + rng.below(2);
        let seen = run_and_kill(
            home.path(),
            &plan,
            works,
            Duration::from_micros(rng.below(delay_max)),
        );
        let is_inside = seen.works_begun > seen.works_done;
        inside += u64::from(is_inside);
        delay_max = match is_inside {
            true => (delay_max * 2).min(150_000),
            false => (delay_max / 2).max(2_000),
        };
        acknowledged += seen.acknowledged;

        let name = format!("{work:?}, round {round}, seed {}: {seen:?}", plan.seed);
        let (vault, opened) = open_either(&plan, &name);
        if matches!(work, Work::Rotate | Work::Erase | Work::Compact) {
            assert_eq!(opened, plan.at, "{name}");
        }
        at = opened;
        tree = check_tree(&vault, &plan, &seen, &name);
        if work == Work::Erase {
            check_gone(&vault, &name);
        }
        assert_whole(&vault, &name);
        check_ended(&vault, &plan.store, &name);
        vault.close().unwrap();
        // Whatever the next open repairs, the key that opened it still does.
        builder(&plan, at).open().unwrap().close().unwrap();
        round += 1;
    }
    println!(
        "{work:?}: {round} kills, {inside} inside; {acknowledged} acknowledged writes, 0 lost"
    );
}

fn check_tree(vault: &Vault, plan: &Plan, seen: &Seen, name: &str) -> Tree {
    let mut worker = Worker::small(plan.seed, TOP, plan.tree.clone());
    for _ in 0..seen.acknowledged {
        worker.step();
    }
    let found = read_tree(&vault.tenant("one").unwrap(), TOP).unwrap();
    if found != *worker.tree() {
        let sure = worker.tree().clone();
        if seen.begun > seen.acknowledged {
            worker.step();
        }
        assert!(
            found == *worker.tree(),
            "{name}: {}",
            difference(&found, &sure)
        );
    }
    found
}

/// All of the tenant or nothing.
fn check_gone(vault: &Vault, name: &str) {
    support::wait_for_removals(vault);
    let tenant = vault.tenant("gone").unwrap();
    let stats = vault.stats().unwrap();
    let is_there = stats.tenants.iter().any(|tenant| tenant.name == "gone");
    let listing = tenant.view("/memories", None).unwrap();
    assert!(!listing.is_error, "{name}");
    for erased in vault.erased() {
        let certificate = vault.certificate(&erased, None).to_string();
        assert!(
            vault.verify_erasure(&certificate).unwrap().holds(),
            "{name}, there: {is_there}"
        );
    }
}

/// The work has ended: one record key a tenant, no former wrapping key, one generation.
fn check_ended(vault: &Vault, store: &Path, name: &str) {
    support::wait_for_removals(vault);
    for shard in fs::read_dir(store.join("keys")).unwrap() {
        for file in fs::read_dir(shard.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let bytes = fs::read(&path).unwrap().len();
            let is_aside = path.extension().is_some();
            assert!(
                is_aside || bytes == 2 * (40 + 256 + 16 + 32),
                "{name}: {bytes} bytes"
            );
        }
    }
    for entry in fs::read_dir(store).unwrap() {
        let found = entry.unwrap().file_name();
        let found = found.to_string_lossy();
        assert!(
            !found.starts_with("rekey") && found != "keys.old",
            "{name}: {found}"
        );
    }
}

#[test]
fn a_kill_while_record_keys_are_rotated_does_no_harm() {
    rounds(Work::Rotate);
}

#[test]
fn a_kill_while_the_master_key_is_rotated_does_no_harm() {
    rounds(Work::Master);
}

#[test]
fn a_kill_while_every_key_is_made_new_does_no_harm() {
    rounds(Work::Full);
}

#[test]
fn a_kill_while_a_tenant_is_erased_does_no_harm() {
    rounds(Work::Erase);
}

#[test]
fn a_kill_while_the_store_is_compacted_does_no_harm() {
    rounds(Work::Compact);
}

/// After so many steps nothing reaches the disk any more: a crash at one step's boundary.
struct Crash {
    left: AtomicI64,
}

impl Crash {
    fn pass(&self) -> Result<(), BackendError> {
        if self.left.fetch_sub(1, Ordering::SeqCst) > 0 {
            Ok(())
        } else {
            Err(BackendError::Io(std::io::ErrorKind::Other))
        }
    }

    fn has_struck(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 0
    }
}

struct CrashingBackend(Arc<MemoryBackend>, Arc<Crash>);

impl Backend for CrashingBackend {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.0.get(key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Pair>, BackendError> {
        self.0.scan(prefix, after, limit)
    }

    fn apply(&self, batch: Batch) -> Result<u64, BackendError> {
        self.1.pass()?;
        self.0.apply(batch)
    }

    fn wait_durable(&self, applied: u64) -> Result<(), BackendError> {
        self.0.wait_durable(applied)
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        self.0.stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        self.0.close()
    }
}

struct CrashingKeys(Arc<MemoryKeyStore>, Arc<Crash>);

impl KeyStore for CrashingKeys {
    fn read(&self, item: Item, copy: Copy) -> Result<Option<Vec<u8>>, BackendError> {
        self.0.read(item, copy)
    }

    fn write(&self, item: Item, copy: Copy, bytes: &[u8]) -> Result<(), BackendError> {
        self.1.pass()?;
        self.0.write(item, copy, bytes)
    }

    fn destroy(&self, item: Item) -> Result<(), BackendError> {
        self.1.pass()?;
        self.0.destroy(item)
    }

    fn tenants(&self) -> Result<Vec<[u8; 16]>, BackendError> {
        self.0.tenants()
    }
}

/// Lets the work crash after 0, 1, 2 … steps, until it comes to its end.
fn at_every_step(work: Work) {
    let home = tempfile::tempdir().unwrap();
    let lines = ["k0", "k1"].map(|name| {
        let path = home.path().join(name);
        strongroom::generate_key_file(&path).unwrap();
        Zeroizing::new(fs::read_to_string(path).unwrap())
    });
    let mut steps = 0;
    for left in 0.. {
        let (memory, keys) = (
            Arc::new(MemoryBackend::new()),
            Arc::new(MemoryKeyStore::new()),
        );
        let crash = Arc::new(Crash {
            left: AtomicI64::new(i64::MAX),
        });
        let builder = |backend: Arc<dyn Backend>, keys: Arc<dyn KeyStore>, at: usize| {
            Vault::builder()
                .on(backend, keys)
                .key_source(KeySource::Line(lines[at].clone()))
                .policy(plain_policy())
                .create(true)
        };
        let vault = builder(
            Arc::new(CrashingBackend(memory.clone(), crash.clone())),
            Arc::new(CrashingKeys(keys.clone(), crash.clone())),
            0,
        )
        .open()
        .unwrap();
        let mut worker = Worker::small(left as u64, TOP, Tree::new());
        for name in ["one", "two"] {
            let mut worker = Worker::small(left as u64, TOP, Tree::new());
            let tenant = vault.tenant(name).unwrap();
            for _ in 0..15 {
                assert!(!worker.step().run(&tenant).unwrap().is_error);
            }
        }
        for _ in 0..15 {
            worker.step();
        }
        support::wait_for_removals(&vault);
        crash.left.store(left, Ordering::SeqCst);
        let new = KeySource::Line(lines[1].clone()).resolve(None).unwrap();
        let new = NewKey {
            credential: &new,
            label: "",
            params: KdfParams::FLOOR,
        };
        let done: Result<(), Error> = match work {
            Work::Rotate => vault.rotate_keys(Some("one"), |_, _, _| ()).map(drop),
            Work::Master => vault.rotate_master(Some(&new), false, |_, _| ()).map(drop),
            _ => vault.erase_tenant("one", |_, _| ()).map(drop),
        };
        let has_struck = crash.has_struck();
        crash.left.store(0, Ordering::SeqCst);
        drop(vault);
        assert!(has_struck || done.is_ok());

        let name = format!("{work:?} crashed after {left} steps");
        let opened = [0, 1]
            .into_iter()
            .find_map(|at| builder(memory.clone(), keys.clone(), at).open().ok());
        let vault = opened.unwrap_or_else(|| panic!("{name}: opens with neither key"));
        assert_whole(&vault, &name);
        let read = |tenant: &str| read_tree(&vault.tenant(tenant).unwrap(), TOP).unwrap();
        assert!(read("two") == *worker.tree(), "{name}");
        let is_erased = !vault.erased().is_empty();
        if work == Work::Erase && is_erased {
            assert!(read("one").is_empty(), "{name}");
            assert_eq!(vault.erased()[0].state, ErasureState::Deleted, "{name}");
            assert_eq!(keys.tenants().unwrap().len(), 1, "{name}");
        } else {
            assert!(read("one") == *worker.tree(), "{name}");
            assert_eq!(keys.tenants().unwrap().len(), 2, "{name}");
        }
        assert!(done.is_err() || work != Work::Erase || is_erased);
        let longest = keys.tenants().unwrap().into_iter().map(|tag| {
            keys.read(Item::Tenant(tag), Copy::A)
                .unwrap()
                .unwrap()
                .len()
        });
        assert_eq!(longest.max(), Some(2 * (40 + 256 + 16 + 32)), "{name}");
        steps = left;
        if !has_struck {
            break;
        }
    }
    println!("{work:?}: crashed after each of {steps} steps");
    assert!(steps >= 4);
}

#[test]
fn a_rotation_of_record_keys_may_crash_at_every_step() {
    at_every_step(Work::Rotate);
}

#[test]
fn a_rotation_of_the_master_key_may_crash_at_every_step() {
    at_every_step(Work::Master);
}

#[test]
fn an_erasure_may_crash_at_every_step() {
    at_every_step(Work::Erase);
}
