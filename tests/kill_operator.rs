//! Ends `expire`, `import` and `rescan` in the middle: at each step below the store, and by
//! SIGKILL at random moments. The store opens, all that was acknowledged is there, and the
//! same work done again comes to its end.
//!
//! `STRONGROOM_KILL_ROUNDS=100 cargo test --test kill_operator -- --nocapture` for the long run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use strongroom::backend::{MemoryBackend, MemoryKeyStore, PowerLossBackend};
use strongroom::clock::ManualClock;
use strongroom::key::KeySource;
use strongroom::policy::{self, Policy};
use strongroom::transfer::{ImportOptions, ImportOutcome, ImportSource, SourceEntry, SourceKind};
use strongroom::{Tenant, Vault, VaultBuilder};

use support::ground::{Point, Watch, WatchedBackend, WatchedKeys};
use support::rng::Rng;
use support::{assert_whole, count_from_env};

const TASK: &str = "STRONGROOM_TEST_OPERATOR_TASK";
const DAY: u64 = 24 * 3_600 * 1_000;
/// 2026-01-01.
const START: u64 = 1_767_225_600_000;
const TENANTS: [&str; 3] = ["one", "team/two", "three"];
const FILES: usize = 12;
const SECRET: &str = "hunter2-Zq81LmPw";

const PLAIN: &str = "[redaction]\nrule_packs = []\n";
const AT_WORK: &str = "[retention]\nexpire_after_last_access = \"7d\"\n[audit]\nenabled = true\n";

fn rules(text: &str) -> Policy {
    policy::load(text, "the test's policy").unwrap()
}

/// What is ended in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Expire,
    Import,
    Rescan,
}

const ALL_WORK: [Work; 3] = [Work::Expire, Work::Import, Work::Rescan];

impl Work {
    /// Does all of it, and says what was acknowledged.
    fn run(self, vault: &Vault, said: &dyn Fn(String)) {
        match self {
            Self::Expire => {
                let report = vault.expire(None, false, |_, _| ()).unwrap();
                assert!(report.failed.is_empty() && report.not_reached.is_empty());
                said("expired".to_owned());
            }
            Self::Import => {
                for name in TENANTS {
                    let tenant = vault.tenant(name).unwrap();
                    let report =
                        tenant.import(&mut Incoming, ImportOptions::new(), |path, done| {
                            if matches!(done, ImportOutcome::Stored { .. }) {
                                said(format!("{name} {path}"));
                            }
                        });
                    assert!(report.failure.is_none(), "{:?}", report.failure);
                    assert_eq!(
                        (report.stored + report.exists, report.refused),
                        (FILES as u64, 1)
                    );
                }
            }
            Self::Rescan => {
                for name in TENANTS {
                    let report = vault
                        .tenant(name)
                        .unwrap()
                        .rescan(false, |done, _| said(format!("{name} {done}")))
                        .unwrap();
                    assert!(report.skipped.is_empty());
                }
            }
        }
    }

    /// What must hold wherever the work was ended.
    fn check(self, vault: &Vault, said: &[String], when: &str) {
        let acknowledged: BTreeSet<&str> = said.iter().map(String::as_str).collect();
        for name in TENANTS {
            let tenant = vault.tenant(name).unwrap();
            for number in 0..FILES {
                let is_kept = number % 2 == 1 || number == 0;
                let path = stored_path(number);
                assert_eq!(exists(&tenant, &path), is_kept, "{when}: {name} {path}");
                let path = format!("/memories/in/f{number}.md");
                if acknowledged.contains(format!("{name} {path}").as_str()) {
                    let text = text_of(&tenant, &path);
                    assert!(
                        text.contains(&format!("imported {number}")),
                        "{when}: {text}"
                    );
                }
            }
        }
        if self == Self::Expire && acknowledged.contains("expired") {
            assert_eq!(files(vault), kept_files(), "{when}");
        }
        assert_whole(vault, when);
    }

    /// What must hold once it came to its end.
    fn check_done(self, vault: &Vault, when: &str) {
        self.check(vault, &[], when);
        match self {
            Self::Expire => assert_eq!(files(vault), kept_files(), "{when}"),
            Self::Import => {
                for name in TENANTS {
                    let tenant = vault.tenant(name).unwrap();
                    for number in 0..FILES {
                        let text = text_of(&tenant, &format!("/memories/in/f{number}.md"));
                        assert!(
                            text.contains(&format!("imported {number}")),
                            "{when}: {text}"
                        );
                        assert!(!text.contains(SECRET), "{when}: {text}");
                    }
                }
            }
            Self::Rescan => {
                for name in TENANTS {
                    // Found out without a view, which would scan the file itself.
                    let tenant = vault.tenant(name).unwrap();
                    let report = tenant.rescan(true, |_, _| ()).unwrap();
                    assert_eq!((report.stale, report.changed), (0, 0), "{when}");
                    let text = text_of(&tenant, &stored_path(1));
                    assert!(
                        text.contains("note 1 of") && !text.contains(SECRET),
                        "{when}: {text}"
                    );
                }
            }
        }
        let chains = vault.audit(None, |_, _| ()).unwrap();
        assert!(chains.problems.is_empty(), "{when}: {:?}", chains.problems);
    }
}

/// Files for an import, one of which is refused.
struct Incoming;

impl ImportSource for Incoming {
    fn visit(
        &mut self,
        each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
    ) -> std::io::Result<()> {
        for number in 0..FILES {
            let name = format!("in/f{number}.md");
            let filler = "one line\n".repeat(number * 40);
            let text = format!("imported {number}\nthe password is {SECRET}\n{filler}");
            let bytes = text.len() as u64;
            let mut content = text.as_bytes();
            let content: &mut dyn Read = &mut content;
            let kind = SourceKind::File { bytes, content };
            if each(SourceEntry::new(name.as_bytes(), kind)).is_break() {
                return Ok(());
            }
        }
        let link = SourceKind::Refused("it is a symbolic link");
        let _ended = each(SourceEntry::new(b"in/link", link));
        Ok(())
    }
}

/// Even numbers are old when the work is done; the first of them is held.
fn stored_path(number: usize) -> String {
    format!("/memories/d{}/f{number}.md", number % 5)
}

fn kept_files() -> u64 {
    (TENANTS.len() * (FILES / 2 + 1)) as u64
}

fn files(vault: &Vault) -> u64 {
    vault
        .stats()
        .unwrap()
        .tenants
        .iter()
        .map(|tenant| tenant.files)
        .sum()
}

fn exists(tenant: &Tenant, path: &str) -> bool {
    let name = path.rsplit_once('/').unwrap();
    let listing = tenant.view(name.0, None).unwrap();
    let text = listing.as_text().unwrap().to_owned();
    text.lines()
        .any(|line| line.ends_with(&format!("\t{path}")))
}

fn text_of(tenant: &Tenant, path: &str) -> String {
    tenant
        .view(path, None)
        .unwrap()
        .as_text()
        .unwrap()
        .to_owned()
}

/// Stores the files, and leaves the clock where half of them are old.
fn fill(vault: &Vault, clock: &ManualClock) {
    for parity in [0, 1] {
        clock.set(START + parity * 6 * DAY);
        for name in TENANTS {
            let tenant = vault.tenant(name).unwrap();
            for number in (parity as usize..FILES).step_by(2) {
                let text = format!("note {number} of {name}\nthe password is {SECRET}\n");
                let reply = tenant.create(&stored_path(number), &text).unwrap();
                assert!(!reply.is_error, "{:?}", reply.as_text());
            }
            let held = tenant.add_hold(&stored_path(0), "a case", None).unwrap();
            assert!(!held.is_error);
        }
    }
    vault.set_policy(&rules(AT_WORK)).unwrap();
    clock.set(START + 10 * DAY);
}

fn builder(clock: &Arc<ManualClock>, key: &Path) -> VaultBuilder {
    Vault::builder()
        .key_source(KeySource::KeyFile(key.to_owned()))
        .clock(clock.clone())
        .policy(rules(PLAIN))
}

/// What is left at one moment.
struct Left {
    backend: MemoryBackend,
    keys: MemoryKeyStore,
    said: Vec<String>,
    what: String,
}

#[test]
fn work_that_ends_at_any_step_is_resumed() {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("key");
    strongroom::generate_key_file(&key).unwrap();
    for work in ALL_WORK {
        let clock = Arc::new(ManualClock::at(START));
        let all = steps(work, &clock, &key);
        let count = all.len();
        for left in all {
            let when = format!("{work:?}, {}", left.what);
            let vault = builder(&clock, &key)
                .on(Arc::new(left.backend), Arc::new(left.keys))
                .open()
                .unwrap_or_else(|error| panic!("{when}: {error}"));
            work.check(&vault, &left.said, &when);
            work.run(&vault, &|_| ());
            work.check_done(&vault, &when);
            vault.close().unwrap();
        }
        println!(
            "{work:?}: {count} ends, each at another step, with and without what was not synced"
        );
        assert!(count > 15, "{work:?}: too few steps: {count}");
    }
}

/// Runs the work once; keeps what is there at each step below the store, as a kill leaves it
/// (all that was written is there) and as a power cut does (only what was synced).
fn steps(work: Work, clock: &Arc<ManualClock>, key: &Path) -> Vec<Left> {
    let power = Arc::new(PowerLossBackend::new());
    let memory = Arc::new(MemoryKeyStore::new());
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept: Arc<Mutex<Option<Vec<Left>>>> = Arc::default();
    let watch = {
        let (power, memory) = (Arc::clone(&power), Arc::clone(&memory));
        let (said, kept) = (Arc::clone(&said), Arc::clone(&kept));
        Watch::new(move |point: &Point| {
            let mut kept = kept.lock().unwrap();
            let Some(kept) = kept.as_mut() else { return };
            let unsynced = power.unsynced();
            for keep in BTreeSet::from([0, unsynced]) {
                kept.push(Left {
                    backend: power.after_power_loss(keep),
                    keys: (*memory).clone(),
                    said: said.lock().unwrap().clone(),
                    what: format!("{} with {keep} of {unsynced} unsynced", name_of(point)),
                });
            }
        })
    };
    let vault = builder(clock, key)
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
    fill(&vault, clock);
    *kept.lock().unwrap() = Some(Vec::new());
    work.run(&vault, &|line| said.lock().unwrap().push(line));
    let all = kept.lock().unwrap().take().unwrap();
    work.check_done(&vault, "the run itself");
    vault.close().unwrap();
    all
}

fn name_of(point: &Point) -> &'static str {
    match point {
        Point::Applied(_) => "after a batch",
        Point::Sync(_) => "before a sync",
        Point::Synced(_) => "after a sync",
        Point::Write(..) => "before a small file",
        Point::Written(_) => "after a small file",
    }
}

/// The child: does the work until it is killed. Does nothing when it is run as a test.
#[test]
fn child_entry() {
    let Ok(task) = std::env::var(TASK) else {
        return;
    };
    let (work, home) = task.split_once(' ').unwrap();
    let work = ALL_WORK
        .into_iter()
        .find(|one| format!("{one:?}") == work)
        .unwrap();
    let home = Path::new(home);
    let clock = Arc::new(ManualClock::at(START + 10 * DAY));
    let vault = builder(&clock, &home.join("key"))
        .path(home.join("store"))
        .open()
        .unwrap();
    say("begins");
    work.run(&vault, &|line| say(&format!("said {line}")));
    say("ended");
    std::thread::sleep(Duration::from_secs(60));
}

/// One line in one system call, on its own whatever the test harness prints.
fn say(line: &str) {
    let _written = std::io::stderr().write_all(format!("\n{line}\n").as_bytes());
}

#[test]
fn work_that_is_killed_at_any_moment_is_resumed() {
    let rounds = count_from_env("STRONGROOM_KILL_ROUNDS", 8);
    let home = tempfile::tempdir().unwrap();
    let (key, full) = (home.path().join("key"), home.path().join("full"));
    strongroom::generate_key_file(&key).unwrap();
    let clock = Arc::new(ManualClock::at(START));
    let vault = builder(&clock, &key)
        .path(&full)
        .create(true)
        .open()
        .unwrap();
    fill(&vault, &clock);
    vault.close().unwrap();
    let store = home.path().join("store");
    let mut rng = Rng::from_time();
    for work in ALL_WORK {
        // The first run is not cut short, and says how long the work takes.
        let mut longest = None;
        let (mut tries, mut inside, mut acknowledged) = (0, 0, 0);
        while inside < rounds {
            tries += 1;
            assert!(
                tries <= 10 * rounds,
                "{work:?}: {inside} of {tries} kills were inside"
            );
            let _removed = fs::remove_dir_all(&store);
            let copied = Command::new("cp").arg("-a").args([&full, &store]).status();
            assert!(copied.unwrap().success());
            let wait = longest.map(|longest: Duration| {
                Duration::from_micros(rng.below(longest.as_micros() as u64))
            });
            let (said, took) = kill_after(work, home.path(), wait);
            if said.iter().any(|line| line == "ended") {
                longest = Some(longest.map_or(took, |longest| longest * 3 / 4));
            } else {
                inside += 1;
            }
            let said: Vec<String> = said
                .iter()
                .filter_map(|line| Some(line.strip_prefix("said ")?.to_owned()))
                .collect();
            acknowledged += said.len();
            let when = format!("{work:?}, try {tries}, killed after {wait:?}");
            let vault = builder(&clock, &key)
                .path(&store)
                .open()
                .unwrap_or_else(|error| panic!("{when}: {error}"));
            work.check(&vault, &said, &when);
            work.run(&vault, &|_| ());
            work.check_done(&vault, &when);
            vault.close().unwrap();
        }
        println!(
            "{work:?}: {inside} kills inside the work, of {tries}; \
             {acknowledged} acknowledgements, 0 lost"
        );
    }
}

/// Starts the work in a process of its own and kills that after some time, or at the end.
fn kill_after(work: Work, home: &Path, wait: Option<Duration>) -> (Vec<String>, Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_entry", "--exact", "--nocapture", "--test-threads=1"])
        .env(TASK, format!("{work:?} {}", home.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = Vec::new();
    let mut read_until = |wanted: &str, seen: &mut Vec<String>| {
        for line in lines.by_ref().map_while(Result::ok) {
            let is_it = line == wanted;
            seen.push(line);
            if is_it {
                return true;
            }
        }
        false
    };
    assert!(read_until("begins", &mut seen), "{work:?}: {seen:?}");
    let started = Instant::now();
    match wait {
        Some(wait) => std::thread::sleep(wait),
        None => assert!(read_until("ended", &mut seen), "{work:?}: {seen:?}"),
    }
    let took = started.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    // All that was in the pipe by then.
    while read_until("ended", &mut seen) {}
    (seen, took)
}
