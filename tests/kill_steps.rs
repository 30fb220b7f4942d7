//! Kills a process before every single call to the system that changes a file, while it makes
//! every key new, rotates, erases, compacts, backs up and restores, and while the next one
//! finishes what that left: the store opens with the old or the new key, nothing acknowledged is
//! lost, the work can be done again and no rests lie about.
//!
//! The calls are those of one run under `strace`; without it, these tests are skipped. Of calls
//! of the same kind on the same kind of file, the first, the second and the last count;
//! `STRONGROOM_KILL_STEPS=all cargo test --test kill_steps -- --nocapture` takes all.
// It takes minutes, and what it kills is the same without the command.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod support;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use strongroom::key::{KdfParams, KeySource};
use strongroom::transfer::ImportOptions;
use strongroom::{
    BackupTargets, ErasureState, Erasures, Error, NewKey, RestoreSources, TenantSource, Vault,
    VaultBuilder, restore, verify_backup,
};
use tempfile::TempDir;

use support::tree::{Tree, difference, read_tree};
use support::workload::Worker;
use support::{assert_whole, plain_policy, wait_for_removals};

/// Stands for a run's directory in the options for strace.
const HOME: &str = "@HOME@";

const PLAN: &str = "STRONGROOM_TEST_STEPS_PLAN";
const TOP: &str = "/memories/w";

/// How long the clean-up after an erasure may take before a test calls it a failure.
const PURGE_WAIT_MAX: Duration = Duration::from_secs(60);

/// Writes that are acknowledged before the work begins.
const WRITES: usize = 2;

/// The calls that change files. Not every machine has all of them.
const CALLS: &str = "?mkdir,?mkdirat,?rename,?renameat,?renameat2,?unlink,?unlinkat,?rmdir,?fsync,\
?fdatasync,?sync_file_range,?pwrite64,?write,?ftruncate,?fallocate,?openat,?link,?linkat";

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
enum Work {
    Full,
    Master,
    Rotate,
    Erase,
    Compact,
    Backup,
    Restore,
    RestoreTenant,
    /// Opens the store, and finishes what was left.
    Open,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
struct Plan {
    home: PathBuf,
    work: Work,
}

impl Plan {
    fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    fn builder(&self, store: &str, key: usize) -> VaultBuilder {
        Vault::builder()
            .path(self.path(store))
            .key_file(self.path(&format!("k{key}")))
            .policy(plain_policy())
    }

    /// Opens the store with whichever key opens it.
    fn open_either(&self, when: &str) -> (Vault, usize) {
        let mut errors = Vec::new();
        for at in [0, 1] {
            match self.builder("store", at).open() {
                Ok(vault) => return (vault, at),
                Err(error) => errors.push(error.to_string()),
            }
        }
        panic!("{when}: opens with neither key: {errors:?}");
    }

    fn restore(&self) -> Result<(), Error> {
        let sources = RestoreSources {
            records: &self.path("0.backup"),
            keys: &self.path("0.keys"),
            erased: &Erasures::new(),
        };
        restore(sources, self.path("restored"), |_, _, _| ()).map(drop)
    }

    fn backup(&self, vault: &Vault, number: usize) -> Result<(), Error> {
        let targets = BackupTargets {
            records: Some(&self.path(&format!("{number}.backup"))),
            keys: Some(&self.path(&format!("{number}.keys"))),
        };
        vault.backup(targets, |_, _, _| ()).map(drop)
    }

    fn restore_tenant(&self, vault: &Vault) -> Result<(), Error> {
        let source = TenantSource {
            records: &self.path("0.backup"),
            keys: Some(&self.path("0.keys")),
            tenant: "two",
        };
        let into = vault.tenant("back")?;
        let report = vault.restore_tenant(source, &into, ImportOptions::new(), |_, _| ())?;
        assert!(report.failure.is_none());
        Ok(())
    }

    /// Does the work with a store that the key `at` opens.
    fn work(&self, vault: Vault, at: usize) -> Result<(), Error> {
        let key = KeySource::KeyFile(self.path(&format!("k{}", 1 - at)));
        let credential = key.resolve(None).unwrap();
        let new = NewKey {
            credential: &credential,
            label: "",
            params: KdfParams::FLOOR,
        };
        match self.work {
            Work::Full => {
                vault.close()?;
                say("K");
                self.builder("store", at)
                    .rotate_full(Some(&new), false, |_, _| ())
                    .map(drop)
            }
            work => {
                say("K");
                match work {
                    Work::Master => vault.rotate_master(Some(&new), false, |_, _| ()).map(drop),
                    Work::Rotate => vault.rotate_keys(None, |_, _, _| ()).map(drop),
                    Work::Erase => vault.erase_tenant("two", |_, _| ()).map(drop),
                    Work::Compact => vault.compact(|_, _| ()).map(drop),
                    Work::Backup => self.backup(&vault, 1),
                    Work::RestoreTenant => self.restore_tenant(&vault),
                    Work::Full | Work::Restore | Work::Open => Ok(()),
                }?;
                say("L");
                vault.close()
            }
        }
    }
}

/// The child says where it is.
fn say(line: &str) {
    if std::env::var_os(PLAN).is_none() {
        return;
    }
    let _written = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// The child: does its work until it is killed. Does nothing when it is run as a test.
#[test]
fn child_entry() {
    let Ok(path) = std::env::var(PLAN) else {
        return;
    };
    let plan: Plan = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    match plan.work {
        Work::Restore => {
            say("K");
            plan.restore().unwrap();
        }
        Work::Open => {
            say("K");
            let (vault, _) = plan.open_either("the next process");
            wait_for_removals(&vault);
            vault.close().unwrap();
        }
        _ => {
            let vault = plan.builder("store", 0).open().unwrap();
            let mut worker = Worker::small(2, TOP, tree_before());
            let tenant = vault.tenant("one").unwrap();
            for _ in 0..WRITES {
                assert!(!worker.step().run(&tenant).unwrap().is_error);
                say("A");
            }
            plan.work(vault, 0).unwrap();
        }
    }
    say("L");
}

/// What is in a tenant of the store that every run begins with.
fn tree_before() -> Tree {
    let mut worker = Worker::small(1, TOP, Tree::new());
    for _ in 0..20 {
        worker.step();
    }
    worker.tree().clone()
}

/// What is in tenant `one` after so many of the child's writes.
fn tree_after(writes: usize) -> Tree {
    let mut worker = Worker::small(2, TOP, tree_before());
    for _ in 0..writes {
        worker.step();
    }
    worker.tree().clone()
}

/// What the child said before it was killed.
#[derive(Default, Debug)]
struct Said {
    acknowledged: usize,
    began: bool,
    ended: bool,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("panicked"), "{text}");
        let count = |word: &str| text.lines().filter(|line| *line == word).count();
        Self {
            acknowledged: count("A"),
            began: count("K") > 0,
            ended: count("L") > 0,
        }
    }

    /// What may be in tenant `one` now: what was acknowledged, and what was on its way.
    fn trees(&self) -> Vec<Tree> {
        let last = match self.began {
            true => self.acknowledged,
            false => (self.acknowledged + 1).min(WRITES),
        };
        (self.acknowledged..=last).map(tree_after).collect()
    }
}

/// A store of two tenants, two key files and the backup `0`, to be copied for each run.
fn template() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for name in ["k0", "k1"] {
        strongroom::generate_key_file(home.path().join(name)).unwrap();
    }
    let plan = Plan {
        home: home.path().to_path_buf(),
        work: Work::Open,
    };
    let vault = plan.builder("store", 0).create(true).open().unwrap();
    for name in ["one", "two"] {
        let mut worker = Worker::small(1, TOP, Tree::new());
        let tenant = vault.tenant(name).unwrap();
        for _ in 0..20 {
            assert!(!worker.step().run(&tenant).unwrap().is_error);
        }
    }
    wait_for_removals(&vault);
    plan.backup(&vault, 0).unwrap();
    vault.close().unwrap();
    home
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// One call of the run that was watched.
#[derive(Debug, Clone)]
struct Call {
    name: String,
    /// On which file, where its name is the same in each run.
    path: Option<String>,
    /// Which of its thread's calls of this name, on this file, it is.
    number: usize,
    /// What it is done to, without what differs from file to file.
    kind: String,
}

/// Runs the child in a copy of `from`, under strace.
fn run(from: &Path, work: Work, options: &[&str]) -> (TempDir, Plan, Output) {
    let home = tempfile::tempdir().unwrap();
    copy_all(from, home.path());
    let plan = Plan {
        home: home.path().to_path_buf(),
        work,
    };
    let path = home.path().join("plan.json");
    fs::write(&path, serde_json::to_vec(&plan).unwrap()).unwrap();
    let options = options
        .iter()
        .map(|option| option.replace(HOME, &home.path().to_string_lossy()));
    let output = Command::new("strace")
        .args(["-f", "-y", "-o"])
        .arg(home.path().join("trace"))
        .args(options)
        .arg(std::env::current_exe().unwrap())
        .args(["child_entry", "--exact", "--nocapture", "--test-threads=1"])
        .env(PLAN, &path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (home, plan, output)
}

fn has_strace() -> bool {
    let ran = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .status();
    let can_run = ran.is_ok_and(|status| status.success());
    if !can_run {
        println!("skipped: strace cannot run here");
    }
    can_run
}

/// The calls of the child between the beginning and the end of its work, as far as strace can
/// kill there.
fn calls(from: &Path, work: Work) -> Vec<Call> {
    let trace = format!("trace={CALLS}");
    let (home, _, output) = run(from, work, &["-s", "16", "-e", &trace]);
    assert!(Said::of(&output).ended, "{work:?}: {output:?}");
    let trace = fs::read_to_string(home.path().join("trace")).unwrap();
    let mut counts: HashMap<(&str, &str, Option<String>), usize> = HashMap::new();
    // strace counts each thread for itself: whichever comes to a number first is killed there.
    let mut reached = HashSet::new();
    let (mut calls, mut is_inside) = (Vec::new(), false);
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let Some((name, arguments)) = rest.trim_start().split_once('(') else {
            continue;
        };
        if !name
            .chars()
            .all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c))
        {
            continue;
        }
        let paths = paths_in(arguments, home.path());
        let is_known = |path: &&String| !path.split('/').any(is_id) || from.join(path).exists();
        let path = paths.last().filter(is_known).cloned();
        let count = counts.entry((thread, name, path.clone())).or_default();
        *count += 1;
        let number = *count;
        let is_told_apart = reached.insert((name, path.clone(), number));
        // Without a path to tell it by, all of the name count.
        if path.is_some() {
            let all = counts.entry((thread, name, None)).or_default();
            *all += 1;
            reached.insert((name, None, *all));
        }
        let is_told = name == "write" && arguments.starts_with("2<");
        if is_told {
            is_inside = match arguments {
                told if told.contains("\"K\\n\"") => true,
                told if told.contains("\"L\\n\"") => false,
                _ => is_inside,
            };
        }
        let changes = name != "openat" || arguments.contains("O_CREAT");
        if is_inside && !is_told && changes && is_told_apart {
            calls.push(Call {
                name: name.to_owned(),
                path,
                number,
                kind: format!("{name} {}", kind_of(&paths)),
            });
        }
    }
    assert!(!calls.is_empty(), "{work:?}");
    calls
}

/// The paths in a call's arguments that lie in the home, from there on.
fn paths_in(arguments: &str, home: &Path) -> Vec<String> {
    let home = format!("{}/", home.to_string_lossy());
    let rests = arguments.split(home.as_str()).skip(1);
    let path = |rest: &str| rest.split(['"', '>', ' ', ',']).next().map(str::to_owned);
    rests.filter_map(path).collect()
}

/// Whether this part of a path is one of those that differ from run to run.
fn is_id(part: &str) -> bool {
    part.chars().filter(char::is_ascii_hexdigit).count() >= 16
}

/// Paths, without what differs from file to file.
fn kind_of(paths: &[String]) -> String {
    let mut kind = String::new();
    for part in paths.iter().flat_map(|path| path.split('/')) {
        kind.push('/');
        match part {
            part if part.len() == 2 || is_id(part) => kind.push('#'),
            part => kind.push_str(part.trim_end_matches(|c: char| c.is_ascii_digit())),
        }
    }
    kind
}

/// Before which calls the process is killed.
fn chosen(calls: &[Call]) -> Vec<Call> {
    if std::env::var("STRONGROOM_KILL_STEPS").is_ok_and(|steps| steps == "all") {
        return calls.to_vec();
    }
    let mut kinds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        kinds.entry(&call.kind).or_default().push(at);
    }
    let mut at: Vec<usize> = kinds
        .values()
        .flat_map(|at| at.iter().take(2).chain(at.last()))
        .copied()
        .collect();
    at.sort_unstable();
    at.dedup();
    at.into_iter().map(|at| calls[at].clone()).collect()
}

/// Runs the child and kills it when it comes to this call.
fn kill_at(from: &Path, work: Work, call: &Call) -> (TempDir, Plan, Output) {
    let trace = format!("trace={}", call.name);
    let inject = format!("inject={}:signal=KILL:when={}", call.name, call.number);
    let mut options = vec!["-e", &trace, "-e", &inject];
    let path = call.path.as_ref().map(|path| format!("{HOME}/{path}"));
    if let Some(path) = &path {
        options.extend(["-P", path]);
    }
    run(from, work, &options)
}

/// Kills before each call of the work; `check` is told how each went.
fn at_each_call(from: &Path, work: Work, check: impl Fn(&Plan, &Said, &str)) {
    let calls = calls(from, work);
    let chosen = chosen(&calls);
    let mut inside = 0;
    for call in &chosen {
        let (_home, plan, output) = kill_at(from, work, call);
        let said = Said::of(&output);
        inside += usize::from(said.began && !output.status.success());
        check(
            &plan,
            &said,
            &format!("{work:?}, {said:?}, killed at {call:?}"),
        );
    }
    println!(
        "{work:?}: {} calls, killed before {} of them, {inside} kills inside",
        calls.len(),
        chosen.len()
    );
    // Threads that run side by side do not always make the same calls.
    assert!(
        inside * 4 >= chosen.len() * 3,
        "{inside} of {}",
        chosen.len()
    );
    assert!(inside >= 10, "{inside}");
}

fn assert_tree(vault: &Vault, tenant: &str, expected: &Tree, when: &str) {
    let found = read_tree(&vault.tenant(tenant).unwrap(), TOP).unwrap();
    assert!(
        found == *expected,
        "{when}, {tenant}: {}",
        difference(&found, expected)
    );
}

/// One generation, one STATE, no half of a store and no key file but those in force.
fn assert_no_rests(store: &Path, tenants: usize, when: &str) {
    let mut names = Vec::new();
    for entry in fs::read_dir(store).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if !matches!(
            name.as_str(),
            "LOCK" | "STATE" | "keyring.a" | "keyring.b" | "keys"
        ) {
            names.push(name);
        }
    }
    assert!(
        names.len() == 1 && names[0].starts_with("gen-"),
        "{when}: {names:?}"
    );
    let mut files = Vec::new();
    for shard in fs::read_dir(store.join("keys")).unwrap() {
        for file in fs::read_dir(shard.unwrap().path()).unwrap() {
            files.push(file.unwrap().file_name());
        }
    }
    assert_eq!(files.len(), tenants, "{when}: {files:?}");
}

/// The store after a kill.
fn check_store(plan: &Plan, work: Work, said: &Said, when: &str) {
    let has_ended = said.ended;
    let is_ready = plan.path("store/rekey.ready").exists();
    let (vault, at) = plan.open_either(when);
    match work {
        // The rename decides.
        Work::Full if is_ready || has_ended => assert_eq!(at, 1, "{when}"),
        Work::Master if has_ended => assert_eq!(at, 1, "{when}"),
        Work::Full | Work::Master => {}
        _ => assert_eq!(at, 0, "{when}"),
    }
    assert_whole(&vault, when);
    let trees = said.trees();
    let tree = read_tree(&vault.tenant("one").unwrap(), TOP).unwrap();
    assert!(
        trees.contains(&tree),
        "{when}: {}",
        difference(&tree, &trees[0])
    );
    let erased = vault.erased();
    let mut tenants = 2;
    if work == Work::Erase && !erased.is_empty() {
        tenants = 1;
        wait_for_purge(&vault, when);
        let certificate = vault.certificate(&erased[0], Some("two")).to_string();
        assert!(
            vault.verify_erasure(&certificate).unwrap().holds(),
            "{when}"
        );
        assert_tree(&vault, "two", &Tree::new(), when);
    } else {
        assert!(!has_ended || work != Work::Erase, "{when}: not erased");
        assert_tree(&vault, "two", &tree_before(), when);
    }
    if work != Work::RestoreTenant {
        assert_no_rests(&plan.path("store"), tenants, when);
    }
    vault.close().unwrap();
    if matches!(work, Work::Full | Work::Master) {
        let other = plan.builder("store", 1 - at).open();
        assert!(other.is_err(), "{when}: opens with both keys");
    }
    again(plan, work, at, &tree, when);
}

/// What was interrupted, or has just been done, can be done now.
fn again(plan: &Plan, work: Work, at: usize, tree: &Tree, when: &str) {
    let plan = Plan {
        work,
        ..plan.clone()
    };
    let vault = plan.builder("store", at).open().unwrap();
    if work == Work::Erase && !vault.erased().is_empty() {
        return;
    }
    plan.work(vault, at)
        .unwrap_or_else(|error| panic!("{when}, once more: {error}"));
    let (vault, _) = plan.open_either(when);
    assert_tree(&vault, "one", tree, when);
    if work == Work::RestoreTenant {
        // Files come back, and directories with them.
        let files = |tree: Tree| {
            tree.into_iter()
                .filter(|(_, text)| text.is_some())
                .collect()
        };
        let back: Tree = files(read_tree(&vault.tenant("back").unwrap(), TOP).unwrap());
        let expected: Tree = files(tree_before());
        assert!(back == expected, "{when}: {}", difference(&back, &expected));
    }
    assert_whole(&vault, when);
}

fn steps_of(work: Work) {
    if !has_strace() {
        return;
    }
    let from = template();
    at_each_call(from.path(), work, |plan, said, when| {
        check_store(plan, work, said, when);
    });
}

/// Kills the work before one of its calls, and then at each call the process that finds that.
fn steps_after(work: Work, pick: impl Fn(&[Call]) -> usize) {
    if !has_strace() {
        return;
    }
    let from = template();
    let calls = calls(from.path(), work);
    let mut at = pick(&calls);
    let (left, before) = loop {
        let (left, _, output) = kill_at(from.path(), work, &calls[at]);
        let before = Said::of(&output);
        if before.began && !before.ended {
            break (left, before);
        }
        // Another of the process's threads came to such a call first.
        at += 1;
    };
    println!("{work:?}, killed before {:?}", calls[at]);
    at_each_call(left.path(), Work::Open, |plan, _, when| {
        check_store(plan, work, &before, when);
    });
}

/// The first call of this name on a file of this kind.
fn first(calls: &[Call], name: &str, kind: &str) -> usize {
    let is_it = |call: &Call| call.name.starts_with(name) && call.kind.contains(kind);
    let at = calls.iter().position(is_it);
    at.unwrap_or_else(|| panic!("no {name} of {kind} in {calls:#?}"))
}

/// Waits until the engine's files have been written anew after an erasure.
fn wait_for_purge(vault: &Vault, when: &str) {
    let end = Instant::now() + PURGE_WAIT_MAX;
    while vault.erased()[0].state != ErasureState::Purged {
        assert!(Instant::now() < end, "{when}: never purged");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn every_key_may_be_made_new_with_a_kill_at_any_step() {
    steps_of(Work::Full);
}

#[test]
fn the_next_process_may_be_killed_too_while_it_puts_the_new_store_in_place() {
    // The new store counts, and nothing of it is in place; or the keys are, and half of the rest.
    steps_after(Work::Full, |calls| {
        first(calls, "rename", "rekey.ready") + 1
    });
    steps_after(Work::Full, |calls| {
        first(calls, "rename", "rekey.ready/STATE")
    });
    steps_after(Work::Full, |calls| first(calls, "unlink", "keys.old"));
}

#[test]
fn the_next_process_may_be_killed_too_while_it_clears_half_of_a_new_store_away() {
    steps_after(Work::Full, |calls| calls.len() / 4);
}

#[test]
fn a_new_master_key_stands_a_kill_at_any_step() {
    steps_of(Work::Master);
}

#[test]
fn a_rotation_of_record_keys_stands_a_kill_at_any_step() {
    steps_of(Work::Rotate);
}

#[test]
fn an_erasure_stands_a_kill_at_any_step() {
    steps_of(Work::Erase);
}

#[test]
fn the_next_process_may_be_killed_too_while_it_ends_an_erasure() {
    steps_after(Work::Erase, |calls| first(calls, "unlink", "keys") + 1);
}

#[test]
fn a_compaction_stands_a_kill_at_any_step() {
    steps_of(Work::Compact);
}

#[test]
fn the_next_process_may_be_killed_too_while_it_clears_an_old_generation_away() {
    steps_after(Work::Compact, |calls| first(calls, "unlink", "gen-"));
}

#[test]
fn a_tenant_brought_back_stands_a_kill_at_any_step() {
    steps_of(Work::RestoreTenant);
}

#[test]
fn a_backup_stands_a_kill_at_any_call() {
    if !has_strace() {
        return;
    }
    let from = template();
    at_each_call(from.path(), Work::Backup, |plan, said, when| {
        let mut named = 0;
        for name in ["1.backup", "1.keys"] {
            if plan.path(name).exists() {
                named += 1;
                verify_backup(plan.path(name), |_, _, _| ())
                    .unwrap_or_else(|error| panic!("{when}: {name}: {error}"));
                fs::remove_file(plan.path(name)).unwrap();
            }
        }
        assert!(named == 2 || !said.ended, "{when}");
        check_store(plan, Work::Backup, said, when);
        assert_no_litter(plan, when);
    });
}

#[test]
fn a_restore_stands_a_kill_at_any_call() {
    if !has_strace() {
        return;
    }
    let from = template();
    at_each_call(from.path(), Work::Restore, |plan, said, when| {
        let is_there = plan.path("restored").exists();
        assert!(is_there || !said.ended, "{when}");
        if !is_there {
            plan.restore().unwrap();
        }
        let vault = plan.builder("restored", 0).open().unwrap();
        for tenant in ["one", "two"] {
            assert_tree(&vault, tenant, &tree_before(), when);
        }
        assert_whole(&vault, when);
        vault.close().unwrap();
        assert_no_rests(&plan.path("restored"), 2, when);
        if is_there {
            fs::remove_dir_all(plan.path("restored")).unwrap();
            plan.restore().unwrap();
        }
        assert_no_litter(plan, when);
    });
}

fn assert_no_litter(plan: &Plan, when: &str) {
    for entry in fs::read_dir(&plan.home).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!name.to_string_lossy().starts_with('.'), "{when}: {name:?}");
    }
}
