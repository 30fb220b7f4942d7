//! Backups of stores in use, stores made from them, and single tenants brought back.
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
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};
use strongroom::transfer::{ImportOptions, ImportOutcome};
use strongroom::{
    Access, BackedUp, BackupError, BackupKind, BackupTargets, Code, Depth, Erasures, Error,
    NewToken, RestoreSources, Restored, Step, StoreError, TenantSource, Vault, VaultBuilder,
    restore, verify_backup,
};
use tempfile::TempDir;

use strongroom::policy::Policy;
use support::rng::Rng;
use support::tree::{Tree, difference, read_tree};
use support::workload::Worker;
use support::{assert_whole, count_from_env, plain_policy, wait_for_removals};

const HEADER_BYTES: usize = 53;

fn audited() -> Policy {
    let mut policy = plain_policy();
    policy.audit.enabled = true;
    policy
}

/// A directory with a key file, a store and its backups.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        strongroom::generate_key_file(home.path("key")).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn builder(&self, store: &str) -> VaultBuilder {
        Vault::builder()
            .path(self.path(store))
            .key_file(self.path("key"))
            .policy(audited())
    }

    fn create(&self) -> Vault {
        self.builder("store").create(true).open().unwrap()
    }

    fn open(&self, store: &str) -> Vault {
        self.builder(store).open().unwrap()
    }

    /// Makes `NAME.backup` and `NAME.keys`.
    fn backup(&self, vault: &Vault, name: &str) -> BackedUp {
        let (records, keys) = (
            self.path(&format!("{name}.backup")),
            self.path(&format!("{name}.keys")),
        );
        let targets = BackupTargets {
            records: Some(&records),
            keys: Some(&keys),
        };
        vault.backup(targets, |_, _, _| ()).unwrap()
    }

    fn restore(&self, name: &str, to: &str) -> Result<Restored, Error> {
        self.restore_with(name, name, to, &Erasures::new())
    }

    fn restore_with(
        &self,
        records: &str,
        keys: &str,
        to: &str,
        erased: &Erasures,
    ) -> Result<Restored, Error> {
        let sources = RestoreSources {
            records: &self.path(&format!("{records}.backup")),
            keys: &self.path(&format!("{keys}.keys")),
            erased,
        };
        restore(sources, self.path(to), |_, _, _| ())
    }

    /// Nothing but what was asked for lies in the directory.
    fn assert_no_litter(&self) {
        for entry in fs::read_dir(self.0.path()).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(!name.to_string_lossy().starts_with('.'), "{name:?}");
        }
    }
}

fn fill(vault: &Vault, tenant: &str, steps: u64) -> Tree {
    let mut worker = Worker::new(steps + tenant.len() as u64, "/memories/w", Tree::new());
    let tenant = vault.tenant(tenant).unwrap();
    for _ in 0..steps {
        let op = worker.step();
        let reply = op.run(&tenant).unwrap();
        assert!(!reply.is_error, "{reply:?}");
    }
    worker.tree().clone()
}

fn assert_tree(vault: &Vault, tenant: &str, expected: &Tree) {
    let found = read_tree(&vault.tenant(tenant).unwrap(), "/memories/w").unwrap();
    assert!(found == *expected, "{}", difference(&found, expected));
}

fn exists(vault: &Vault, tenant: &str) -> bool {
    let stats = vault.stats().unwrap();
    stats.tenants.iter().any(|found| found.name == tenant)
}

fn damage(result: Result<Restored, Error>) -> Option<&'static str> {
    match result {
        Err(Error::Backup(BackupError::Damaged(what))) => Some(what),
        Err(Error::Backup(BackupError::NewerFormat(_))) => Some("newer format"),
        _ => None,
    }
}

#[test]
fn a_store_comes_back_whole_with_all_its_tenants_holds_and_log() {
    let home = Home::new();
    let vault = home.create();
    let trees: Vec<(String, Tree)> = (0..5)
        .map(|number| {
            let name = format!("team/{number}");
            let tree = fill(&vault, &name, 40);
            (name, tree)
        })
        .collect();
    let held = trees[0].1.keys().next().unwrap().clone();
    let tenant = vault.tenant("team/0").unwrap();
    tenant.add_hold(&held, "a case", None).unwrap();
    let made = home.backup(&vault, "one");
    let after = fill(&vault, "later", 5);
    assert_eq!(made.tenants, Some(5));
    for name in ["one.backup", "one.keys"] {
        let mode = fs::metadata(home.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    vault.close().unwrap();

    let restored = home.restore("one", "two").unwrap();
    assert_eq!(
        (restored.commit, restored.records),
        (made.commit, made.records)
    );
    assert_eq!((restored.tenants, restored.without_keys), (5, 0));
    let vault = home.open("two");
    for (name, tree) in &trees {
        assert_tree(&vault, name, tree);
    }
    assert!(!exists(&vault, "later") && !after.is_empty());
    let holds = vault.tenant("team/0").unwrap().holds().unwrap();
    assert_eq!(holds.len(), 1);
    assert_whole(&vault, "restored");
    // It is a store like any other: it takes writes, closes and opens.
    fill(&vault, "later", 5);
    assert_eq!(
        fs::metadata(home.path("two")).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert!(!home.path("two/RESTORED").exists());
    vault.close().unwrap();
    home.builder("two").read_only(true).open().unwrap();
    home.assert_no_litter();
}

/// Of everything that a store may have beside its tenants, more than one record.
#[test]
fn a_backup_has_every_kind_of_record_that_a_store_has() {
    let home = Home::new();
    let mut policy = audited();
    let names = (0..400).map(|number| format!("\"/memories/a/path/that/nobody/reads/{number}\""));
    let text = format!(
        "schema = 1\nextends = [\"default\"]\n[redaction]\nrule_packs = []\n[paths]\ndenied = [{}]\n",
        names.collect::<Vec<_>>().join(", ")
    );
    policy.paths = strongroom::policy::load(&text, "long").unwrap().paths;
    let vault = home
        .builder("store")
        .policy(policy)
        .create(true)
        .open()
        .unwrap();
    let tree = fill(&vault, "team/0", 10);
    fill(&vault, "gone", 10);
    vault.erase_tenant("gone", |_, _| ()).unwrap();
    let tokens: Vec<_> = ["intake", "figures"]
        .map(|label| {
            let new = NewToken {
                label: label.to_owned(),
                access: Access::ReadOnly,
                tenants: vec![strongroom::policy::TenantPattern::parse("team/*").unwrap()],
                expires: None,
            };
            vault.create_token(&new).unwrap().1
        })
        .into();
    vault.revoke_token("figures").unwrap();
    home.backup(&vault, "one");
    vault.close().unwrap();
    home.restore("one", "two").unwrap();
    let vault = home.open("two");
    assert_tree(&vault, "team/0", &tree);
    let known: Vec<bool> = tokens
        .iter()
        .map(|text| vault.token(text).is_some())
        .collect();
    assert_eq!(known, [true, false]);
    assert!(!exists(&vault, "gone"));
    assert_whole(&vault, "restored");
}

#[test]
fn making_and_restoring_a_backup_are_in_the_log() {
    let home = Home::new();
    let vault = home.create();
    fill(&vault, "a", 3);
    let made = home.backup(&vault, "one");
    let events = |vault: &Vault| {
        let mut events = Vec::new();
        vault
            .audit_store_events(|record| {
                events.push((record.entry.command.clone(), record.entry.detail.clone()))
            })
            .unwrap();
        events
    };
    let found = events(&vault);
    let (command, detail) = found.last().unwrap();
    assert_eq!(command, "backup");
    assert!(detail.as_ref().unwrap().contains(&made.id), "{detail:?}");
    home.restore("one", "two").unwrap();
    let other = home.open("two");
    let found = events(&other);
    let (command, detail) = found.last().unwrap();
    assert_eq!(command, "restore");
    assert!(detail.as_ref().unwrap().contains(&made.id), "{detail:?}");
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// When a command began and when it was acknowledged, on one clock for all threads.
type Log = Vec<(u64, u64)>;

#[test]
fn a_backup_taken_under_load_is_a_state_that_some_moment_had() {
    const THREADS: u64 = 4;
    let backups = count_from_env("STRONGROOM_BACKUPS", 6);
    let home = Home::new();
    let vault = home.create();
    let clock = AtomicU64::new(1);
    let is_over = AtomicBool::new(false);
    let logs: Vec<Mutex<Log>> = (0..THREADS).map(|_| Mutex::new(Log::new())).collect();
    let name = |thread: u64| format!("t{}", thread / 2);
    let top = |thread: u64| format!("/memories/w{thread}");
    let worker = |thread: u64| Worker::small(thread, &top(thread), Tree::new());
    let mut windows = Vec::new();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (vault, clock, is_over, log) = (&vault, &clock, &is_over, &logs[thread as usize]);
            let mut worker = worker(thread);
            // Two threads share a tenant.
            let tenant = vault.tenant(&name(thread)).unwrap();
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let op = worker.step();
                    let begun = clock.fetch_add(1, Ordering::SeqCst);
                    log.lock().unwrap().push((begun, u64::MAX));
                    let reply = op.run(&tenant).unwrap();
                    assert!(!reply.is_error, "{reply:?}");
                    let ended = clock.fetch_add(1, Ordering::SeqCst);
                    log.lock().unwrap().last_mut().unwrap().1 = ended;
                }
            });
        }
        // Whatever happens, the threads end.
        let _end = EndOnDrop(&is_over);
        for number in 0..backups {
            std::thread::sleep(Duration::from_millis(60));
            let begun = clock.fetch_add(1, Ordering::SeqCst);
            home.backup(&vault, &number.to_string());
            windows.push((begun, clock.fetch_add(1, Ordering::SeqCst)));
        }
    });
    vault.close().unwrap();
    let logs: Vec<Log> = logs
        .into_iter()
        .map(|log| log.into_inner().unwrap())
        .collect();
    let mut during = 0;
    for (number, (begun, ended)) in windows.into_iter().enumerate() {
        home.restore(&number.to_string(), "restored").unwrap();
        let vault = home.open("restored");
        // The moment lies after the beginning of every command that is in the backup, and
        // before the acknowledgement of every one that is not. What a thread makes and deletes
        // again leaves a state that it had before, so there may be several such times.
        let mut moments: Vec<u64> = (begun..ended).collect();
        for thread in 0..THREADS {
            let log = &logs[thread as usize];
            let tenant = vault.tenant(&name(thread)).unwrap();
            let found = read_tree(&tenant, &top(thread)).unwrap();
            let mut worker = worker(thread);
            let mut times = Vec::new();
            for steps in 0..=log.len() {
                if *worker.tree() == found {
                    let after = steps.checked_sub(1).map_or(0, |last| log[last].0);
                    let before = log.get(steps).map_or(u64::MAX, |next| next.1);
                    times.push(after..before);
                }
                worker.step();
            }
            assert!(
                !times.is_empty(),
                "backup {number}: no state of thread {thread}"
            );
            moments.retain(|at| times.iter().any(|time| time.contains(at)));
            during += log
                .iter()
                .filter(|(at, _)| (begun..ended).contains(at))
                .count();
        }
        assert!(!moments.is_empty(), "backup {number} is of no one moment");
        assert_whole(&vault, "restored");
        vault.close().unwrap();
        fs::remove_dir_all(home.path("restored")).unwrap();
    }
    println!("{backups} backups, {during} commands begun while they were made");
    assert!(during as u64 > backups, "{during}");
}

/// Each step of the copying sees writes: of what was copied already, of what was not, of what is
/// new, and of what goes. What comes after the last moment is not in the backup.
#[test]
fn what_changes_while_it_is_copied_is_in_the_backup_as_it_was_at_the_end() {
    let home = Home::new();
    let vault = home.create();
    let tenants: Vec<_> = (0..6)
        .map(|number| vault.tenant(&format!("t{number}")).unwrap())
        .collect();
    let mut workers: Vec<_> = (0..6)
        .map(|number| Worker::small(number, "/memories/w", Tree::new()))
        .collect();
    let steps = |vault: &Vault, workers: &mut Vec<Worker>, count: u64| {
        for (tenant, worker) in tenants.iter().zip(workers.iter_mut()) {
            for _ in 0..count {
                assert!(!worker.step().run(tenant).unwrap().is_error);
            }
        }
        // Deleted directories are emptied meanwhile, too.
        wait_for_removals(vault);
    };
    steps(&vault, &mut workers, 30);
    let (records, keys) = (home.path("a.backup"), home.path("a.keys"));
    let targets = BackupTargets {
        records: Some(&records),
        keys: Some(&keys),
    };
    let mut expected = Vec::new();
    let mut written = 0;
    vault
        .backup(targets, |step, done, _| match step {
            Step::Copy if done % 60 == 0 => {
                steps(&vault, &mut workers, 3);
                written += 1;
            }
            Step::Follow => {
                steps(&vault, &mut workers, 2);
                written += 1;
                expected = workers.iter().map(|worker| worker.tree().clone()).collect();
            }
            Step::Check if done == 1 => {
                vault
                    .tenant("late")
                    .unwrap()
                    .create("/memories/a.md", "late\n")
                    .unwrap();
            }
            _ => {}
        })
        .unwrap();
    assert!(written > 4, "{written}");
    vault.close().unwrap();
    home.restore("a", "restored").unwrap();
    let vault = home.open("restored");
    for (number, tree) in expected.iter().enumerate() {
        assert_tree(&vault, &format!("t{number}"), tree);
    }
    assert!(!exists(&vault, "late"));
    assert_whole(&vault, "restored");
}

/// Where each section of a file lies, behind the header.
fn sections(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut all = Vec::new();
    let mut at = HEADER_BYTES;
    while at < file.len() {
        let length = u32::from_be_bytes(file[at + 5..at + 9].try_into().unwrap()) as usize;
        all.push(at..at + 9 + length + 32);
        at += 9 + length + 32;
    }
    all
}

/// Computes all hashes anew, as somebody would who wants to be believed.
fn rehash(file: &mut [u8]) {
    let mut hash: [u8; 32] = Sha256::digest(&file[..HEADER_BYTES]).into();
    for section in sections(file) {
        let body = section.start..section.end - 32;
        let mut next = Sha256::new();
        next.update(hash);
        next.update(&file[body.clone()]);
        hash = next.finalize().into();
        file[body.end..section.end].copy_from_slice(&hash);
    }
}

#[test]
fn damaged_backups_are_refused_and_leave_nothing() {
    let home = Home::new();
    let vault = home.create();
    for tenant in ["a", "b", "c"] {
        let tenant = vault.tenant(tenant).unwrap();
        for number in 0..4 {
            let path = format!("/memories/d/{number}.md");
            assert!(!tenant.create(&path, "a line\n").unwrap().is_error);
        }
    }
    home.backup(&vault, "old");
    // Enough for several sections, and with several layers.
    let tenant = vault.tenant("a").unwrap();
    for number in 0..3 {
        let text = format!("{number:063}\n").repeat(3_000);
        let path = format!("/memories/large-{number}.md");
        assert!(!tenant.create(&path, &text).unwrap().is_error);
    }
    let (records, keys) = (home.path("new.backup"), home.path("new.keys"));
    let targets = BackupTargets {
        records: Some(&records),
        keys: Some(&keys),
    };
    let mut seen = Vec::new();
    vault
        .backup(targets, |step, _, _| {
            if matches!(step, Step::Copy | Step::Follow) && !seen.contains(&step) {
                seen.push(step);
                let path = format!("/memories/meanwhile-{step:?}.md");
                assert!(!tenant.create(&path, "text\n").unwrap().is_error);
            }
        })
        .unwrap();
    vault.close().unwrap();
    let mut tried = 0;
    let mut refused = |file: &str, bytes: &[u8], what: &str| {
        tried += 1;
        for kind in ["backup", "keys"] {
            fs::copy(
                home.path(&format!("new.{kind}")),
                home.path(&format!("bad.{kind}")),
            )
            .unwrap();
        }
        let path = home.path(&format!("bad.{file}"));
        fs::write(&path, bytes).unwrap();
        let found = home.restore("bad", "restored");
        assert!(damage(found).is_some(), "{file}: {what}");
        assert!(!home.path("restored").exists(), "{file}: {what}");
        let error = verify_backup(&path, |_, _, _| ()).unwrap_err();
        assert!(matches!(error, Error::Backup(_)), "{file}: {what}: {error}");
    };
    for kind in ["backup", "keys"] {
        let good = fs::read(home.path(&format!("new.{kind}"))).unwrap();
        let old = fs::read(home.path(&format!("old.{kind}"))).unwrap();
        let parts = sections(&good);
        assert!(parts.len() > 3, "{kind}: {}", parts.len());

        // Every region: the header, and the head, payload and hash of each section.
        let mut places: Vec<usize> = (0..HEADER_BYTES).collect();
        for part in &parts {
            places.extend(part.start..part.start + 9);
            places.extend((part.start + 9..part.end - 32).step_by((part.len() / 5).max(1)));
            places.extend([part.end - 32, part.end - 1]);
        }
        for place in places {
            let mut bad = good.clone();
            bad[place] ^= 1 << (place % 8);
            refused(kind, &bad, &format!("byte {place}"));
        }
        for part in &parts {
            for end in [part.start, part.start + 5, part.start + 9, part.end - 33] {
                refused(kind, &good[..end], &format!("cut at {end}"));
            }
        }
        refused(kind, b"", "empty");
        refused(kind, &good[..HEADER_BYTES - 1], "cut in the header");
        for more in [&b"\0"[..], &good[..100], &good[parts[0].clone()]] {
            refused(kind, &[&good, more].concat(), "extended");
        }
        for pair in parts.windows(2) {
            let swapped = [
                &good[..pair[0].start],
                &good[pair[1].clone()],
                &good[pair[0].clone()],
                &good[pair[1].end..],
            ]
            .concat();
            refused(kind, &swapped, "swapped sections");
            refused(
                kind,
                &[&good[..pair[0].end], &good[pair[1].end..]].concat(),
                "a section left out",
            );
            refused(
                kind,
                &[&good[..pair[0].end], &good[pair[0].start..]].concat(),
                "a section twice",
            );
        }
        for part in sections(&old) {
            refused(
                kind,
                &[&good[..parts[0].start], &old[part], &good[parts[0].end..]].concat(),
                "a section of an older backup",
            );
        }
    }
    println!("{tried} damaged backups refused");
    // Keys in the place of records, and of another store.
    fs::copy(home.path("new.keys"), home.path("bad.backup")).unwrap();
    assert!(matches!(
        home.restore("bad", "restored"),
        Err(Error::Backup(BackupError::OtherKind { .. }))
    ));
    let other = Home::new();
    let vault = other.create();
    other.backup(&vault, "one");
    fs::copy(other.path("one.keys"), home.path("other.keys")).unwrap();
    assert!(matches!(
        home.restore_with("new", "other", "restored", &Erasures::new()),
        Err(Error::Backup(BackupError::OtherStore))
    ));
    home.assert_no_litter();
    home.restore("new", "restored").unwrap();
}

/// Whoever can write to a backup can make its hashes fit; the store's own checks do not.
#[test]
fn a_forged_backup_restores_to_a_store_that_says_so() {
    let home = Home::new();
    let vault = home.create();
    let tenant = vault.tenant("a").unwrap();
    for number in 0..20 {
        let path = format!("/memories/{number}.md");
        assert!(!tenant.create(&path, "a line\n").unwrap().is_error);
    }
    home.backup(&vault, "one");
    vault.close().unwrap();
    let good = fs::read(home.path("one.backup")).unwrap();
    let records = sections(&good)[0].clone();
    let mut rng = Rng::new(7);
    let (mut at_open, mut at_verify) = (0, 0);
    for _ in 0..40 {
        let mut forged = good.clone();
        // A byte of a sealed value, not of the frame around it.
        let place = records.start + 9 + rng.below(records.len() as u64 - 9 - 32) as usize;
        forged[place] ^= 0x10;
        rehash(&mut forged);
        fs::write(home.path("forged.backup"), &forged).unwrap();
        match home.restore_with("forged", "one", "restored", &Erasures::new()) {
            Err(error) => assert_eq!(error.code(), Code::Integrity, "{error}"),
            Ok(_) => match home.builder("restored").open() {
                Err(_) => at_open += 1,
                Ok(vault) => {
                    let report = vault.verify(Depth::Full).unwrap();
                    assert!(!report.problems.is_empty(), "byte {place}");
                    at_verify += 1;
                    vault.close().unwrap();
                }
            },
        }
        let _cleared = fs::remove_dir_all(home.path("restored"));
    }
    println!("{at_open} seen at the open, {at_verify} by verify");
    assert!(at_open + at_verify > 10);
}

#[test]
fn a_newer_format_has_an_error_of_its_own() {
    let home = Home::new();
    let vault = home.create();
    home.backup(&vault, "one");
    let mut bytes = fs::read(home.path("one.backup")).unwrap();
    bytes[8] = 2;
    bytes[10] = !2;
    fs::write(home.path("newer.backup"), &bytes).unwrap();
    let error = verify_backup(home.path("newer.backup"), |_, _, _| ()).unwrap_err();
    assert!(
        matches!(error, Error::Backup(BackupError::NewerFormat(2))),
        "{error}"
    );
}

#[test]
fn a_tenant_erased_after_the_backup_does_not_come_back() {
    let home = Home::new();
    let vault = home.create();
    let kept = fill(&vault, "kept", 10);
    for name in ["gone", "gone-too"] {
        fill(&vault, name, 10);
    }
    home.backup(&vault, "old");
    let mut certificates = Erasures::new();
    for name in ["gone", "gone-too"] {
        let erased = vault.erase_tenant(name, |_, _| ()).unwrap();
        let certificate = vault.certificate(&erased, Some(name)).to_string();
        fs::write(home.path(name), certificate).unwrap();
        certificates.add_file(&home.path(name)).unwrap();
    }
    // The name is in use again: that tenant is another one.
    let again = fill(&vault, "gone", 4);
    home.backup(&vault, "new");
    let mut of_store = Erasures::new();
    of_store.add_store(&vault);
    let mut of_backup = Erasures::new();
    of_backup.add_file(&home.path("new.backup")).unwrap();
    assert_eq!(
        (certificates.len(), of_store.len(), of_backup.len()),
        (2, 2, 2)
    );
    vault.close().unwrap();

    // Told by nobody, the old backup knows nothing of it.
    home.restore("old", "plain").unwrap();
    let plain = home.open("plain");
    assert!(exists(&plain, "gone"));
    plain.close().unwrap();

    let ways = [
        ("old", &certificates),
        ("old", &of_store),
        ("old", &of_backup),
        ("new", &Erasures::new()),
    ];
    for (number, (keys, erased)) in ways.into_iter().enumerate() {
        let to = format!("restored-{number}");
        let restored = home.restore_with("old", keys, &to, erased).unwrap();
        assert_eq!(restored.erased, 2, "{number}");
        let read_only = home.builder(&to).read_only(true).open();
        assert!(matches!(
            read_only.err(),
            Some(Error::Store(StoreError::RestoreUnfinished))
        ));
        let vault = home.open(&to);
        for name in ["gone", "gone-too"] {
            assert!(!exists(&vault, name), "{number}: {name}");
        }
        assert_tree(&vault, "kept", &kept);
        wait_for_removals(&vault);
        assert_eq!(vault.stats().unwrap().erased.len(), 2, "{number}");
        for name in ["gone", "gone-too"] {
            let tenant = vault.tenant(name).unwrap();
            assert!(read_tree(&tenant, "/memories/w").unwrap().is_empty());
        }
        assert_whole(&vault, "restored");
        vault.close().unwrap();
        let key_files = files_below(&home.path(&to).join("keys"));
        // With the newer keys there are those of the tenant that has the name now.
        let expected = if keys == "new" { 2 } else { 1 };
        assert_eq!(key_files, expected, "{number}");
    }
    home.restore("new", "newest").unwrap();
    assert_tree(&home.open("newest"), "gone", &again);
    let mut none = Erasures::new();
    let error = none.add_file(&home.path("key")).unwrap_err();
    assert!(
        matches!(error, Error::Backup(BackupError::NoErasures)),
        "{error}"
    );
}

fn files_below(directory: &Path) -> usize {
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { files_below(&path) } else { 1 })
        .sum()
}

/// All keys were made new between backup and erasure, so the tenant had another id then.
#[test]
fn an_erasure_after_all_keys_were_made_new_reaches_an_older_backup() {
    let home = Home::new();
    let vault = home.create();
    fill(&vault, "gone", 10);
    let kept = fill(&vault, "kept", 10);
    home.backup(&vault, "old");
    vault.close().unwrap();
    home.builder("store")
        .rotate_full(None, false, |_, _| ())
        .unwrap();
    let vault = home.open("store");
    vault.erase_tenant("gone", |_, _| ()).unwrap();
    home.backup(&vault, "new");
    vault.close().unwrap();
    let mut erased = Erasures::new();
    erased.add_file(&home.path("new.backup")).unwrap();
    home.restore_with("old", "old", "restored", &erased)
        .unwrap();
    let vault = home.open("restored");
    assert!(!exists(&vault, "gone"));
    assert_tree(&vault, "kept", &kept);
}

fn rotate_all_keys(home: &Home, times: usize) {
    for _ in 0..times {
        home.builder("store")
            .rotate_full(None, false, |_, _| ())
            .unwrap();
    }
}

/// The tenant had three ids by the time it was erased. Backups know it under any of them, and
/// what names its erasure must name them all.
#[test]
fn an_erasure_reaches_backups_from_before_any_number_of_rotations_of_all_keys() {
    for policy in [audited(), plain_policy()] {
        let home = Home::new();
        let vault = home
            .builder("store")
            .policy(policy)
            .create(true)
            .open()
            .unwrap();
        let kept = fill(&vault, "kept", 10);
        home.backup(&vault, "without");
        fill(&vault, "gone", 10);
        home.backup(&vault, "first");
        vault.close().unwrap();
        rotate_all_keys(&home, 1);
        let vault = home.open("store");
        home.backup(&vault, "second");
        vault.close().unwrap();
        rotate_all_keys(&home, 1);
        let vault = home.open("store");
        home.backup(&vault, "third");
        let erased = vault.erase_tenant("gone", |_, _| ()).unwrap();
        assert_eq!(erased.former_ids.len(), 2);
        let certificate = vault.certificate(&erased, Some("gone")).to_string();
        assert!(vault.verify_erasure(&certificate).unwrap().holds());
        fs::write(home.path("certificate"), certificate).unwrap();
        home.backup(&vault, "last");
        let mut of_store = Erasures::new();
        of_store.add_store(&vault);
        vault.close().unwrap();

        let mut ways = vec![of_store];
        for file in ["last.backup", "last.keys", "certificate"] {
            let mut erased = Erasures::new();
            erased.add_file(&home.path(file)).unwrap();
            ways.push(erased);
        }
        for (number, erased) in ways.iter().enumerate() {
            assert_eq!(erased.len(), 3, "{number}");
            for name in ["without", "first", "second", "third"] {
                let to = format!("{name}-{number}");
                home.restore_with(name, name, &to, erased).unwrap();
                let vault = home.open(&to);
                assert!(!exists(&vault, "gone"), "{to}");
                assert_tree(&vault, "kept", &kept);
                vault.close().unwrap();
            }
        }
        // Told by nobody, an older backup still has it.
        home.restore("second", "plain").unwrap();
        assert!(exists(&home.open("plain"), "gone"));
    }
}

/// After an erasure no key that comes later changes what is known of it, its name included.
#[test]
fn an_erasure_before_any_number_of_rotations_of_all_keys_stays_known() {
    let home = Home::new();
    let vault = home.create();
    fill(&vault, "gone", 10);
    fill(&vault, "again", 10);
    home.backup(&vault, "old");
    let first = vault.erase_tenant("gone", |_, _| ()).unwrap();
    vault.erase_tenant("again", |_, _| ()).unwrap();
    // Another tenant has the name by now, and lives on through all rotations.
    let again = fill(&vault, "again", 4);
    home.backup(&vault, "between");
    vault.close().unwrap();
    rotate_all_keys(&home, 2);
    let vault = home.open("store");
    let named = vault.erased_as("gone").unwrap();
    assert_eq!(named.len(), 1);
    assert_eq!(named[0].tenant_id, first.tenant_id);
    assert!(named[0].former_ids.is_empty());
    assert_eq!(vault.erased_as("again").unwrap().len(), 1);
    assert!(vault.erased_as("never").unwrap().is_empty());
    let certificate = vault.certificate(&named[0], Some("gone"));
    assert_eq!(certificate["tenant"], "gone");
    assert!(vault.certificate(&named[0], Some("again"))["tenant"].is_null());
    assert!(
        vault
            .verify_erasure(&certificate.to_string())
            .unwrap()
            .holds()
    );
    assert_tree(&vault, "again", &again);
    let mut erased = Erasures::new();
    erased.add_store(&vault);
    home.backup(&vault, "new");
    vault.close().unwrap();
    assert_eq!(erased.len(), 2);
    home.restore_with("old", "old", "restored", &erased)
        .unwrap();
    let vault = home.open("restored");
    assert!(!exists(&vault, "gone") && !exists(&vault, "again"));
    assert_eq!(vault.erased_as("gone").unwrap().len(), 1);
    vault.close().unwrap();
    // The tenant that has the name now was never erased.
    for name in ["between", "new"] {
        home.restore_with(name, name, &format!("from-{name}"), &erased)
            .unwrap();
        let vault = home.open(&format!("from-{name}"));
        assert!(!exists(&vault, "gone"));
        assert_tree(&vault, "again", &again);
    }
}

#[test]
fn a_tenants_files_come_back_into_the_live_store() {
    let home = Home::new();
    let vault = home.create();
    let tree = fill(&vault, "a", 40);
    let files = tree.values().flatten().count() as u64;
    home.backup(&vault, "one");
    let tenant = vault.tenant("a").unwrap();
    assert!(!tenant.delete("/memories/w").unwrap().is_error);
    let bring = |vault: &Vault, keys: bool, into: &str| {
        let (records, keys_file) = (home.path("one.backup"), home.path("one.keys"));
        let source = TenantSource {
            records: &records,
            keys: keys.then_some(keys_file.as_path()),
            tenant: "a",
        };
        let into = vault.tenant(into).unwrap();
        vault.restore_tenant(source, &into, ImportOptions::new(), |path, outcome| {
            let is_there = matches!(
                outcome,
                ImportOutcome::Stored { .. } | ImportOutcome::Exists
            );
            assert!(is_there, "{path}: {outcome:?}");
        })
    };
    // With the keys that the store has now, and with those of the backup.
    let report = bring(&vault, false, "a").unwrap();
    assert_eq!((report.stored, report.exists), (files, 0));
    assert_tree_of_files(&vault, "a", &tree);
    let report = bring(&vault, true, "other").unwrap();
    assert_eq!(report.stored, files);
    assert_tree_of_files(&vault, "other", &tree);
    let report = bring(&vault, true, "a").unwrap();
    assert_eq!((report.stored, report.exists), (0, files));

    // A rotation of the tenant's record key leaves only the keys of the time.
    vault.rotate_keys(Some("a"), |_, _, _| ()).unwrap();
    let error = bring(&vault, false, "third").unwrap_err();
    assert_eq!(error.code(), Code::Key, "{error}");
    bring(&vault, true, "third").unwrap();
    // After one of the master key, other keys are under it, but those of the time are not.
    vault.rotate_master(None, false, |_, _| ()).unwrap();
    let error = bring(&vault, true, "fourth").unwrap_err();
    assert!(
        matches!(error, Error::Backup(BackupError::OtherMaster)),
        "{error}"
    );

    let source = TenantSource {
        records: &home.path("one.backup"),
        keys: None,
        tenant: "nobody",
    };
    let error = vault
        .restore_tenant(source, &tenant, ImportOptions::new(), |_, _| ())
        .unwrap_err();
    assert!(
        matches!(error, Error::Backup(BackupError::NoSuchTenant)),
        "{error}"
    );
    assert_whole(&vault, "after");
}

/// Empty directories are not brought back, as by any import.
fn assert_tree_of_files(vault: &Vault, tenant: &str, expected: &Tree) {
    let files = |tree: &Tree| -> Tree {
        let files = tree.iter().filter(|(_, text)| text.is_some());
        files
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect()
    };
    let found = read_tree(&vault.tenant(tenant).unwrap(), "/memories/w").unwrap();
    let (found, expected) = (files(&found), files(expected));
    assert!(found == expected, "{}", difference(&found, &expected));
}

#[test]
fn an_erased_tenants_files_are_not_brought_back() {
    let home = Home::new();
    let vault = home.create();
    fill(&vault, "gone", 5);
    home.backup(&vault, "one");
    vault.erase_tenant("gone", |_, _| ()).unwrap();
    let (records, keys) = (home.path("one.backup"), home.path("one.keys"));
    let source = TenantSource {
        records: &records,
        keys: Some(&keys),
        tenant: "gone",
    };
    let into = vault.tenant("gone").unwrap();
    let error = vault
        .restore_tenant(source, &into, ImportOptions::new(), |_, _| ())
        .unwrap_err();
    assert!(
        matches!(error, Error::Backup(BackupError::Erased)),
        "{error}"
    );
    assert!(!exists(&vault, "gone"));
}

#[test]
fn nothing_that_exists_is_written_over() {
    let home = Home::new();
    let vault = home.create();
    home.backup(&vault, "one");
    let before = fs::read(home.path("one.backup")).unwrap();
    for (records, keys) in [(Some("one.backup"), None), (Some("x"), Some("one.keys"))] {
        let (records, keys) = (
            records.map(|name| home.path(name)),
            keys.map(|name| home.path(name)),
        );
        let targets = BackupTargets {
            records: records.as_deref(),
            keys: keys.as_deref(),
        };
        let error = vault.backup(targets, |_, _, _| ()).unwrap_err();
        assert_eq!(error.code(), Code::Usage, "{error}");
    }
    assert!(!home.path("x").exists());
    assert_eq!(fs::read(home.path("one.backup")).unwrap(), before);
    let inside = home.path("store/backup");
    let targets = BackupTargets {
        records: Some(&inside),
        keys: None,
    };
    let error = vault.backup(targets, |_, _, _| ()).unwrap_err();
    assert!(
        matches!(error, Error::Backup(BackupError::InsideStore)),
        "{error}"
    );
    vault.close().unwrap();
    fs::create_dir(home.path("taken")).unwrap();
    fs::write(home.path("taken/file"), "mine").unwrap();
    for to in ["store", "taken"] {
        let error = home.restore("one", to).unwrap_err();
        assert!(
            matches!(error, Error::Store(StoreError::AlreadyExists)),
            "{error}"
        );
    }
    assert_eq!(fs::read(home.path("taken/file")).unwrap(), b"mine");
    home.open("store").close().unwrap();
    home.assert_no_litter();
}

#[test]
fn keys_alone_and_records_alone() {
    let home = Home::new();
    let vault = home.create();
    let tree = fill(&vault, "a", 10);
    let (records, keys) = (home.path("a.backup"), home.path("a.keys"));
    let only_records = BackupTargets {
        records: Some(&records),
        keys: None,
    };
    let made = vault.backup(only_records, |_, _, _| ()).unwrap();
    assert_eq!(made.tenants, None);
    // Written later, they hold a tenant that the records do not know.
    fill(&vault, "b", 3);
    let only_keys = BackupTargets {
        records: None,
        keys: Some(&keys),
    };
    let made = vault.backup(only_keys, |_, _, _| ()).unwrap();
    assert_eq!((made.tenants, made.records), (Some(2), 0));
    vault.close().unwrap();
    let check = verify_backup(&keys, |_, _, _| ()).unwrap();
    assert_eq!((check.kind, check.tenants), (BackupKind::Keys, 2));
    let check = verify_backup(&records, |_, _, _| ()).unwrap();
    assert_eq!((check.kind, check.tenants), (BackupKind::Records, 1));
    home.restore("a", "restored").unwrap();
    let vault = home.open("restored");
    assert_tree(&vault, "a", &tree);
    assert!(!exists(&vault, "b"));
    assert_whole(&vault, "restored");
}

#[test]
fn a_backup_of_another_time_needs_the_record_keys_of_that_time() {
    let home = Home::new();
    let vault = home.create();
    let tree = fill(&vault, "a", 10);
    home.backup(&vault, "old");
    vault.rotate_keys(None, |_, _, _| ()).unwrap();
    home.backup(&vault, "new");
    vault.close().unwrap();
    home.restore("old", "restored").unwrap();
    assert_tree(&home.open("restored"), "a", &tree);
    home.restore_with("old", "new", "other", &Erasures::new())
        .unwrap();
    let vault = home.open("other");
    let error = vault.tenant("a").err().unwrap();
    assert_eq!(error.code(), Code::Key, "{error}");
}

#[test]
fn steps_come_in_order() {
    let home = Home::new();
    let vault = home.create();
    fill(&vault, "a", 5);
    let (records, keys) = (home.path("a.backup"), home.path("a.keys"));
    let targets = BackupTargets {
        records: Some(&records),
        keys: Some(&keys),
    };
    let mut steps = Vec::new();
    vault
        .backup(targets, |step, _, _| steps.push(step))
        .unwrap();
    steps.dedup();
    assert_eq!(steps, [Step::Copy, Step::Follow, Step::Check, Step::Name]);
    let sources = RestoreSources {
        records: &records,
        keys: &keys,
        erased: &Erasures::new(),
    };
    let mut steps = Vec::new();
    restore(sources, home.path("b"), |step, _, _| steps.push(step)).unwrap();
    steps.dedup();
    let expected = [
        Step::Check,
        Step::Keys,
        Step::Compare,
        Step::State,
        Step::Name,
        Step::Done,
    ];
    steps.retain(|step| *step != Step::Records);
    assert_eq!(steps, expected);
}

/// A mount that goes with this value.
struct Small(PathBuf);

impl Small {
    fn new(at: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let size = format!("size={size}");
        let ran = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&at)
            .output();
        if ran.is_ok_and(|output| output.status.success()) {
            return Some(Self(at));
        }
        println!("skipped: this machine does not let the test mount anything");
        None
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_under_a_backup_or_a_restore_harms_nothing() {
    let home = Home::new();
    let Some(small) = Small::new(home.path("small"), "32k") else {
        return;
    };
    let vault = home.create();
    let tree = fill(&vault, "a", 40);
    home.backup(&vault, "one");
    let records = small.0.join("two");
    let targets = BackupTargets {
        records: Some(&records),
        keys: None,
    };
    let error = vault.backup(targets, |_, _, _| ()).unwrap_err();
    assert_eq!(error.code(), Code::NoSpace, "{error}");
    assert_eq!(fs::read_dir(&small.0).unwrap().count(), 0);
    fill(&vault, "b", 5);
    assert_whole(&vault, "after");
    vault.close().unwrap();
    let error = home.restore("one", "small/store").unwrap_err();
    assert_eq!(error.code(), Code::NoSpace, "{error}");
    assert_eq!(fs::read_dir(&small.0).unwrap().count(), 0);
    let vault = home.open("store");
    assert_tree(&vault, "a", &tree);
}
