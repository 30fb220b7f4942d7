//! Lets every operation below the store fail once, one after the other.
//!
//! A failed command is not acknowledged. After a failed apply or sync the handle takes no
//! more writes; after any other failure it goes on. A store that is opened again holds
//! all that was acknowledged, nothing half applied, and verifies.
//!
//! Every 12th of the operations of 200 commands; `STRONGROOM_FAULT_STEP=1` for all of them.
//! The system calls below have a sweep of their own (tests/file_faults.rs).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use strongroom::backend::{
    Backend, BackendError, BackendStats, Batch, Copy, Fault, FaultBackend, Item, KeyStore,
    MemoryBackend, MemoryKeyStore, Pair,
};
use strongroom::key::{KeyError, KeySource, OsRandom, Random};
use strongroom::{Code, Error, StoreError, Tenant, Vault};
use zeroize::Zeroizing;

use support::rng::Rng;
use support::tree::{Tree, difference, read_tree};
use support::workload::Worker;
use support::{assert_whole, count_from_env, plain_policy};

const COMMANDS: usize = 200;

/// Every so many operations of the script fail in turn, unless the environment says otherwise.
const STEP: u64 = 12;
const TENANTS: [&str; 2] = ["one", "two"];

/// A new store, to start every run from.
struct Base {
    records: BTreeMap<Vec<u8>, Vec<u8>>,
    keys: MemoryKeyStore,
    line: Zeroizing<String>,
}

impl Base {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("key");
        strongroom::generate_key_file(&path).unwrap();
        let line = Zeroizing::new(fs::read_to_string(path).unwrap());
        let (backend, keys) = (
            Arc::new(MemoryBackend::new()),
            Arc::new(MemoryKeyStore::new()),
        );
        let vault = Vault::builder()
            .key_source(KeySource::Line(line.clone()))
            .on(
                Arc::clone(&backend) as Arc<dyn Backend>,
                Arc::clone(&keys) as Arc<dyn KeyStore>,
            )
            .policy(plain_policy())
            .create(true)
            .open()
            .unwrap();
        vault.close().unwrap();
        Self {
            records: backend.records(),
            keys: (*keys).clone(),
            line,
        }
    }

    fn open(&self, ground: &Ground) -> Result<Vault, Error> {
        Vault::builder()
            .key_source(KeySource::Line(self.line.clone()))
            .on(Arc::clone(&ground.backend), Arc::clone(&ground.keys))
            .random(Arc::clone(&ground.random))
            .open()
    }
}

/// What a store runs on, one part of which may fail.
struct Ground {
    backend: Arc<dyn Backend>,
    keys: Arc<dyn KeyStore>,
    random: Arc<dyn Random>,
}

/// The kinds of operations that [`Noted`] tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Apply,
    Sync,
}

/// Notes which operation of a backend failed, and whether the reaper had asked for it.
struct Noted {
    inner: Arc<dyn Backend>,
    failed: Arc<Mutex<Vec<(Kind, bool)>>>,
}

impl Noted {
    fn note<T>(&self, kind: Kind, result: Result<T, BackendError>) -> Result<T, BackendError> {
        if result.is_err() {
            let by_reaper = std::thread::current().name() == Some("strongroom-reaper");
            self.failed.lock().unwrap().push((kind, by_reaper));
        }
        result
    }
}

impl Backend for Noted {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.note(Kind::Read, self.inner.get(key))
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Pair>, BackendError> {
        self.note(Kind::Read, self.inner.scan(prefix, after, limit))
    }

    fn apply(&self, batch: Batch) -> Result<u64, BackendError> {
        self.note(Kind::Apply, self.inner.apply(batch))
    }

    fn wait_durable(&self, applied: u64) -> Result<(), BackendError> {
        self.note(Kind::Sync, self.inner.wait_durable(applied))
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        self.inner.stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        self.inner.close()
    }
}

/// A key store whose write with a chosen number fails.
struct FailingKeys {
    inner: Arc<MemoryKeyStore>,
    writes: AtomicU64,
    fail_at: u64,
    tear: Tear,
    failed: Mutex<Option<Item>>,
}

/// How a write of a small file fails.
#[derive(Debug, Clone, Copy)]
enum Tear {
    Before,
    After,
    NoSpace,
    /// A slot of STATE is written half; other files are replaced whole or not at all.
    Half,
}

impl KeyStore for FailingKeys {
    fn read(&self, item: Item, copy: Copy) -> Result<Option<Vec<u8>>, BackendError> {
        self.inner.read(item, copy)
    }

    fn write(&self, item: Item, copy: Copy, bytes: &[u8]) -> Result<(), BackendError> {
        if self.writes.fetch_add(1, Ordering::SeqCst) != self.fail_at {
            return self.inner.write(item, copy, bytes);
        }
        *self.failed.lock().unwrap() = Some(item);
        match self.tear {
            Tear::Before => {}
            Tear::NoSpace => return Err(BackendError::NoSpace),
            Tear::After => self.inner.write(item, copy, bytes)?,
            Tear::Half if item == Item::State => {
                let mut slot = self.inner.read(item, copy)?.unwrap_or_default();
                slot.resize(bytes.len(), 0);
                let half = bytes.len() / 2;
                slot[..half].copy_from_slice(&bytes[..half]);
                self.inner.write(item, copy, &slot)?;
            }
            Tear::Half => {}
        }
        Err(BackendError::Io(ErrorKind::Other))
    }

    fn destroy(&self, item: Item) -> Result<(), BackendError> {
        self.inner.destroy(item)
    }

    fn tenants(&self) -> Result<Vec<[u8; 16]>, BackendError> {
        self.inner.tenants()
    }
}

/// A random source that fails once.
struct FailingRandom {
    fills: AtomicU64,
    fail_at: u64,
}

impl Random for FailingRandom {
    fn fill(&self, out: &mut [u8]) -> Result<(), KeyError> {
        if self.fills.fetch_add(1, Ordering::SeqCst) == self.fail_at {
            return Err(KeyError::Random);
        }
        OsRandom.fill(out)
    }
}

/// What became of a script.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Nothing failed that a caller saw.
    Whole,
    /// A command failed, was tried again, and all went on.
    WentOn(Code),
    /// A command's outcome is unknown; the handle refused all writes from then on.
    Unknown,
    /// The store did not open.
    NotOpened(Code),
}

/// Runs the script on a ground that fails, then looks at it on one that does not.
fn run(base: &Base, failing: &Ground, sound: &Ground, when: &str) -> Outcome {
    let mut workers: Vec<Worker> = (0..TENANTS.len())
        .map(|at| Worker::small(at as u64 + 7, "/memories/w", Tree::new()))
        .collect();
    let mut legal: Vec<Vec<Tree>> = vec![vec![Tree::new()]; TENANTS.len()];
    let outcome = match base.open(failing) {
        Err(error) => Outcome::NotOpened(error.code()),
        Ok(vault) => {
            let outcome = script(&vault, &mut workers, &mut legal, when);
            let _closed = vault.close();
            outcome
        }
    };
    let vault = base
        .open(sound)
        .unwrap_or_else(|error| panic!("{when}: it does not open again: {error}"));
    for (tenant, legal) in TENANTS.iter().zip(&legal) {
        let found = read_tree(&vault.tenant(tenant).unwrap(), "/memories/w").unwrap();
        assert_legal(&found, legal, when);
    }
    assert_whole(&vault, when);
    vault.close().unwrap();
    outcome
}

fn assert_legal(found: &Tree, legal: &[Tree], when: &str) {
    assert!(
        legal.contains(found),
        "{when}: found / acknowledged\n{}",
        difference(found, &legal[0])
    );
}

/// Carries out the commands of two workers in turn. `legal`: what may be stored for each.
fn script(vault: &Vault, workers: &mut [Worker], legal: &mut [Vec<Tree>], when: &str) -> Outcome {
    let mut outcome = Outcome::Whole;
    for command in 0..COMMANDS {
        let at = command % TENANTS.len();
        let op = workers[at].step();
        let attempt = || {
            let tenant = vault.tenant(TENANTS[at])?;
            let reply = op.run(&tenant)?;
            assert!(!reply.is_error, "{when}: {op:.80?}: {:?}", reply.as_text());
            Ok::<_, Error>(())
        };
        match attempt() {
            Ok(()) => legal[at] = vec![workers[at].tree().clone()],
            Err(Error::Store(StoreError::OutcomeUnknown)) => {
                legal[at].push(workers[at].tree().clone());
                refuses_everything_unsure(vault, legal, when);
                return Outcome::Unknown;
            }
            Err(error) => {
                assert_eq!(outcome, Outcome::Whole, "{when}: fails twice: {error}");
                outcome = Outcome::WentOn(error.code());
                attempt().unwrap_or_else(|error| {
                    panic!("{when}: command {command} does not go on: {error}")
                });
                legal[at] = vec![workers[at].tree().clone()];
            }
        }
    }
    outcome
}

/// After an unknown outcome: no write, and reads that are right or refused.
fn refuses_everything_unsure(vault: &Vault, legal: &[Vec<Tree>], when: &str) {
    let is_unknown = |error: &Error| matches!(error, Error::Store(StoreError::OutcomeUnknown));
    for (name, legal) in TENANTS.iter().zip(legal) {
        let tenant: Tenant = match vault.tenant(name) {
            Ok(tenant) => tenant,
            Err(error) => {
                assert!(is_unknown(&error), "{when}: {error}");
                continue;
            }
        };
        for path in ["/memories/x.md", "/memories/w/x.md"] {
            let error = tenant.create(path, "x\n").unwrap_err();
            assert!(is_unknown(&error), "{when}: a write says {error}");
        }
        match read_tree(&tenant, "/memories/w") {
            Ok(found) => assert_legal(&found, legal, when),
            Err(error) => assert!(is_unknown(&error), "{when}: a read says {error}"),
        }
    }
}

#[test]
fn every_backend_operation_may_fail() {
    let base = Base::new();
    let step = count_from_env("STRONGROOM_FAULT_STEP", STEP);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (kind, fault) in [Fault::Before, Fault::After, Fault::NoSpace]
        .into_iter()
        .enumerate()
    {
        // With a step, each kind of fault has operations of its own.
        let mut number = kind as u64 % step;
        loop {
            let inner = Arc::new(MemoryBackend::with_records(base.records.clone()));
            let faults = Arc::new(FaultBackend::new(
                Arc::clone(&inner) as Arc<dyn Backend>,
                fault,
            ));
            faults.fail_at(number);
            let failed = Arc::default();
            let keys: Arc<dyn KeyStore> = Arc::new(base.keys.clone());
            let failing = Ground {
                backend: Arc::new(Noted {
                    inner: Arc::clone(&faults) as Arc<dyn Backend>,
                    failed: Arc::clone(&failed),
                }),
                keys: Arc::clone(&keys),
                random: Arc::new(OsRandom),
            };
            let sound = Ground {
                backend: inner,
                keys,
                random: Arc::new(OsRandom),
            };
            let when = format!("operation {number} {fault:?}");
            let outcome = run(&base, &failing, &sound, &when);
            let failed = failed.lock().unwrap().clone();
            let Some((what, by_reaper)) = failed.first().copied() else {
                assert_eq!(outcome, Outcome::Whole, "{when}");
                break; // The script has fewer operations.
            };
            let code = match fault {
                Fault::NoSpace => Code::NoSpace,
                _ => Code::Other,
            };
            match (&outcome, what, by_reaper) {
                (Outcome::WentOn(found) | Outcome::NotOpened(found), Kind::Read, false) => {
                    assert_eq!(*found, code, "{when}");
                }
                // Also where it is the sync of `close` that fails, which answers nobody.
                (Outcome::Unknown, Kind::Apply | Kind::Sync, _) => {}
                (Outcome::Whole, _, true) => {}
                (Outcome::Whole, Kind::Sync, false) => {}
                _ => panic!("{when}: {outcome:?} after a failed {what:?}, reaper: {by_reaper}"),
            }
            *counts
                .entry(format!("{fault:?} {what:?}: {outcome:?}"))
                .or_default() += 1;
            number += step;
        }
    }
    println!("{counts:#?}");
    assert!(counts.values().sum::<u64>() > 150);
}

#[test]
fn every_write_of_a_small_file_may_fail() {
    let base = Base::new();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let step = count_from_env("STRONGROOM_FAULT_STEP", STEP);
    let tears = [Tear::Before, Tear::After, Tear::NoSpace, Tear::Half];
    for (kind, tear) in (0..).zip(tears) {
        for number in (0..2).chain((2 + kind % step..).step_by(step as usize)) {
            let backend: Arc<dyn Backend> =
                Arc::new(MemoryBackend::with_records(base.records.clone()));
            let inner = Arc::new(base.keys.clone());
            let keys = Arc::new(FailingKeys {
                inner: Arc::clone(&inner),
                writes: AtomicU64::new(0),
                fail_at: number,
                tear,
                failed: Mutex::new(None),
            });
            let failing = Ground {
                backend: Arc::clone(&backend),
                keys: Arc::clone(&keys) as Arc<dyn KeyStore>,
                random: Arc::new(OsRandom),
            };
            let sound = Ground {
                backend,
                keys: inner,
                random: Arc::new(OsRandom),
            };
            let when = format!("write {number} {tear:?}");
            let outcome = run(&base, &failing, &sound, &when);
            let Some(item) = *keys.failed.lock().unwrap() else {
                assert_eq!(outcome, Outcome::Whole, "{when}");
                break;
            };
            let what = match item {
                Item::State => "STATE",
                Item::Tenant(_) | Item::Aside(..) => "tenant",
                Item::Keyring => "keyring",
            };
            let code = match tear {
                Tear::NoSpace => Code::NoSpace,
                _ => Code::Other,
            };
            match (&outcome, item) {
                (Outcome::WentOn(found), Item::Tenant(_)) => assert_eq!(*found, code, "{when}"),
                // The very first write of STATE says that the store is in use: nothing is
                // applied before it.
                (Outcome::WentOn(found), Item::State) if number <= 1 => {
                    assert_eq!(*found, code, "{when}");
                }
                // The last one is that of `close`, which answers nobody.
                (Outcome::Unknown | Outcome::Whole, Item::State) => {}
                _ => panic!("{when}: {outcome:?} after a failed write of {item:?}"),
            }
            *counts
                .entry(format!("{tear:?} {what}: {outcome:?}"))
                .or_default() += 1;
        }
    }
    println!("{counts:#?}");
    assert!(counts.values().sum::<u64>() * step > 200);
}

#[test]
fn every_call_for_randomness_may_fail() {
    let base = Base::new();
    let step = count_from_env("STRONGROOM_FAULT_STEP", STEP);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut number = 0;
    loop {
        let backend: Arc<dyn Backend> = Arc::new(MemoryBackend::with_records(base.records.clone()));
        let keys: Arc<dyn KeyStore> = Arc::new(base.keys.clone());
        let random = Arc::new(FailingRandom {
            fills: AtomicU64::new(0),
            fail_at: number,
        });
        let failing = Ground {
            backend: Arc::clone(&backend),
            keys: Arc::clone(&keys),
            random: Arc::clone(&random) as Arc<dyn Random>,
        };
        let sound = Ground {
            backend,
            keys,
            random: Arc::new(OsRandom),
        };
        let when = format!("call {number}");
        let outcome = run(&base, &failing, &sound, &when);
        if random.fills.load(Ordering::SeqCst) <= number {
            break;
        }
        // The reaper's calls answer nobody.
        let is_right = matches!(outcome, Outcome::WentOn(Code::Key) | Outcome::Whole);
        assert!(is_right, "{when}: {outcome:?}");
        *counts.entry(format!("{outcome:?}")).or_default() += 1;
        number += step;
    }
    println!("{counts:#?}");
    assert!(counts["WentOn(Key)"] * step > 30);
}

/// A content too large for one batch is stored ahead of its tenant's first commit. If that
/// never happens, nothing of it may stay: without a head nobody knows its key any more.
#[test]
fn a_large_first_write_that_fails_leaves_nothing() {
    let base = Base::new();
    let mut rng = Rng::new(5);
    let mut image = b"\x89PNG\r\n\x1a\n".to_vec();
    image.extend((0..3_000_000).map(|_| rng.next() as u8));
    let mut unknown = 0;
    for fault in [Fault::Before, Fault::After] {
        for number in 0.. {
            let inner = Arc::new(MemoryBackend::with_records(base.records.clone()));
            let faults = Arc::new(FaultBackend::new(
                Arc::clone(&inner) as Arc<dyn Backend>,
                fault,
            ));
            let keys: Arc<dyn KeyStore> = Arc::new(base.keys.clone());
            let when = format!("operation {number} {fault:?}");
            let vault = base
                .open(&Ground {
                    backend: Arc::clone(&faults) as Arc<dyn Backend>,
                    keys: Arc::clone(&keys),
                    random: Arc::new(OsRandom),
                })
                .unwrap();
            let tenant = vault.tenant("new").unwrap();
            faults.fail_at(faults.operations() + number);
            let put = tenant.put_bytes("/memories/a.png", &image);
            let _closed = vault.close();
            let vault = base
                .open(&Ground {
                    backend: inner,
                    keys,
                    random: Arc::new(OsRandom),
                })
                .unwrap();
            assert_whole(&vault, &when);
            let tenant = vault.tenant("new").unwrap();
            let is_there = !tenant.view("/memories/a.png", None).unwrap().is_error;
            vault.close().unwrap();
            match put {
                Ok(_) => {
                    assert!(is_there, "{when}: it was acknowledged");
                    break;
                }
                Err(_) => unknown += 1,
            }
        }
    }
    assert!(unknown > 4, "the faults were not in the write");
}
