//! Kills a process at random moments while it makes backups and restores them, and ends it at every
//! single step: the store opens, nothing acknowledged is lost, what has its name is whole, and
//! nothing is half restored.
//!
//! `STRONGROOM_KILL_ROUNDS=200 cargo test --release --test kill_backup -- --nocapture` for the long run.
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
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use strongroom::{
    BackupTargets, Erasures, RestoreSources, Step, Vault, VaultBuilder, restore, verify_backup,
};
use tempfile::TempDir;

use support::rng::Rng;
use support::tree::{Tree, difference, read_tree};
use support::workload::Worker;
use support::{assert_whole, count_from_env, plain_policy};

const PLAN: &str = "STRONGROOM_TEST_BACKUP_PLAN";
const TOP: &str = "/memories/w";

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
enum Work {
    Backup,
    Restore,
}

#[derive(Serialize, Deserialize, Clone)]
struct Plan {
    home: PathBuf,
    work: Work,
    /// The process ends itself when so many steps have begun.
    end_at: Option<usize>,
    seed: u64,
    tree: Tree,
}

impl Plan {
    fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    fn builder(&self, store: &str) -> VaultBuilder {
        Vault::builder()
            .path(self.path(store))
            .key_file(self.path("key"))
            .policy(plain_policy())
    }

    fn backup(&self, vault: &Vault, number: u64, steps: &mut Steps) {
        let (records, keys) = (
            self.path(&format!("{number}.backup")),
            self.path(&format!("{number}.keys")),
        );
        let targets = BackupTargets {
            records: Some(&records),
            keys: Some(&keys),
        };
        let done = vault.backup(targets, |step, _, _| steps.begin(step));
        if let Err(error) = done {
            fail(&error.to_string());
        }
    }

    fn restore(&self, to: &str, steps: &mut Steps) {
        let sources = RestoreSources {
            records: &self.path("0.backup"),
            keys: &self.path("0.keys"),
            erased: &Erasures::new(),
        };
        if let Err(error) = restore(sources, self.path(to), |step, _, _| steps.begin(step)) {
            fail(&error.to_string());
        }
    }
}

/// Counts steps, and ends the process where it is told to.
struct Steps {
    last: Option<Step>,
    begun: usize,
    end_at: Option<usize>,
}

impl Steps {
    fn new(end_at: Option<usize>) -> Self {
        Self {
            last: None,
            begun: 0,
            end_at,
        }
    }

    fn begin(&mut self, step: Step) {
        if self.last.replace(step) != Some(step) {
            self.begun += 1;
            if self.end_at == Some(self.begun) {
                say("D");
                // As a kill would: nothing is dropped, nothing flushed.
                std::process::abort();
            }
        }
    }
}

fn say(line: &str) {
    let _written = std::io::stderr().write_all(format!("\n{line}\n").as_bytes());
}

fn fail(what: &str) -> ! {
    say(&format!("E {}", what.replace('\n', " ")));
    std::process::exit(1);
}

/// The child: works until it is killed. Does nothing when it is run as a test.
#[test]
fn child_entry() {
    let Ok(path) = std::env::var(PLAN) else {
        return;
    };
    let plan: Plan = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut steps = Steps::new(plan.end_at);
    if plan.work == Work::Restore {
        loop {
            say("K");
            plan.restore("restored", &mut steps);
            say("L");
            if plan.end_at.is_some() {
                return;
            }
            fs::remove_dir_all(plan.path("restored")).unwrap();
        }
    }
    let vault = match plan.builder("store").open() {
        Ok(vault) => vault,
        Err(error) => fail(&error.to_string()),
    };
    let mut worker = Worker::small(plan.seed, TOP, plan.tree.clone());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let tenant = vault.tenant("one").unwrap();
            for count in 0_u64.. {
                let op = worker.step();
                say(&format!("B {count}"));
                match op.run(&tenant) {
                    Ok(reply) if !reply.is_error => say(&format!("A {count}")),
                    other => fail(&format!("{op:.60?}: {other:.200?}")),
                }
            }
        });
        for number in 1.. {
            say("K");
            plan.backup(&vault, number, &mut steps);
            say("L");
            if plan.end_at.is_some() {
                // All steps are done; it has not ended itself.
                std::process::exit(0);
            }
        }
    });
}

#[derive(Default, Debug)]
struct Seen {
    begun: u64,
    acknowledged: u64,
    works_begun: u64,
    works_done: u64,
    ended_itself: bool,
    error: Option<String>,
}

impl Seen {
    fn take(&mut self, line: &str) {
        let mut words = line.split(' ');
        let word = words.next().unwrap_or_default();
        let number = words.next().and_then(|text| text.parse::<u64>().ok());
        match (word, number) {
            ("B", Some(number)) => self.begun = number + 1,
            ("A", Some(number)) => self.acknowledged = number + 1,
            ("K", None) => self.works_begun += 1,
            ("L", None) => self.works_done += 1,
            ("D", None) => self.ended_itself = true,
            ("E", _) => self.error = Some(line.to_owned()),
            _ => {}
        }
    }
}

/// Runs the child, and kills it `wait` after its work has begun `works` times; without that,
/// waits until it ends.
fn run(plan: &Plan, kill: Option<(u64, Duration)>) -> Seen {
    let path = plan.path("plan.json");
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
    if let Some((works, wait)) = kill {
        let end = Instant::now() + Duration::from_secs(180);
        while seen.works_begun < works && seen.error.is_none() {
            assert!(Instant::now() < end, "the child does not get on: {seen:?}");
            if let Ok(line) = told.recv_timeout(Duration::from_millis(100)) {
                seen.take(&line);
            }
        }
        std::thread::sleep(wait);
        child.kill().unwrap();
    }
    child.wait().unwrap();
    reader.join().unwrap();
    told.try_iter().for_each(|line| seen.take(&line));
    assert!(seen.error.is_none(), "{:?}: {seen:?}", plan.work);
    seen
}

/// A home with a store of three tenants, its key and the backup `0`.
fn home(work: Work) -> (TempDir, Plan) {
    let home = tempfile::tempdir().unwrap();
    strongroom::generate_key_file(home.path().join("key")).unwrap();
    let mut plan = Plan {
        home: home.path().to_path_buf(),
        work,
        end_at: None,
        seed: 1,
        tree: Tree::new(),
    };
    let vault = plan.builder("store").create(true).open().unwrap();
    for name in ["two", "team/three"] {
        let tenant = vault.tenant(name).unwrap();
        for number in 0..150 {
            let path = format!("/memories/{number}.md");
            assert!(!tenant.create(&path, "text\n").unwrap().is_error);
        }
    }
    let mut worker = Worker::small(99, TOP, Tree::new());
    for _ in 0..30 {
        let tenant = vault.tenant("one").unwrap();
        assert!(!worker.step().run(&tenant).unwrap().is_error);
    }
    plan.tree = worker.tree().clone();
    plan.backup(&vault, 0, &mut Steps::new(None));
    vault.close().unwrap();
    (home, plan)
}

fn assert_tree(vault: &Vault, expected: &Tree, when: &str) {
    let found = read_tree(&vault.tenant("one").unwrap(), TOP).unwrap();
    assert!(
        found == *expected,
        "{when}: {}",
        difference(&found, expected)
    );
}

/// The store has all that was acknowledged, and every backup that has its name restores.
/// Returns what is in the store.
fn check_store(plan: &Plan, seen: &Seen, when: &str) -> Tree {
    let vault = plan.builder("store").open().unwrap();
    let mut worker = Worker::small(plan.seed, TOP, plan.tree.clone());
    let mut states = vec![worker.tree().clone()];
    for _ in 0..seen.begun {
        worker.step();
        states.push(worker.tree().clone());
    }
    let found = read_tree(&vault.tenant("one").unwrap(), TOP).unwrap();
    let sure = seen.acknowledged as usize;
    assert!(states[sure..].contains(&found), "{when}: {seen:?}");
    assert_whole(&vault, when);
    let mut whole = 0;
    let mut checked_files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(&plan.home).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_backup = name.ends_with(".backup") || name.ends_with(".keys");
        if !is_backup || name.starts_with("0.") {
            continue;
        }
        verify_backup(&path, |_, _, _| ())
            .unwrap_or_else(|error| panic!("{when}: {name}: {error}"));
        if let Some(number) = name.strip_suffix(".backup") {
            // Its keys had their name before it.
            let sources = RestoreSources {
                records: &path,
                keys: &plan.path(&format!("{number}.keys")),
                erased: &Erasures::new(),
            };
            restore(sources, plan.path("checked"), |_, _, _| ()).unwrap();
            let checked = plan.builder("checked").open().unwrap();
            let tree = read_tree(&checked.tenant("one").unwrap(), TOP).unwrap();
            assert!(states.contains(&tree), "{when}: {name} is of no moment");
            assert_whole(&checked, when);
            checked.close().unwrap();
            fs::remove_dir_all(plan.path("checked")).unwrap();
            whole += 1;
        }
        checked_files.push(path);
    }
    for file in checked_files {
        fs::remove_file(file).unwrap();
    }
    assert!(
        whole >= seen.works_done,
        "{when}: {whole} of {}",
        seen.works_done
    );
    // What the kill left does not stand in the way of the next, which clears it away.
    plan.backup(&vault, seen.works_begun, &mut Steps::new(None));
    vault.close().unwrap();
    for kind in ["backup", "keys"] {
        fs::remove_file(plan.path(&format!("{}.{kind}", seen.works_begun))).unwrap();
    }
    assert_no_litter(plan, when);
    found
}

/// There is no store or a whole one, and the next restore clears away what is left.
fn check_restored(plan: &Plan, when: &str) -> bool {
    let was_there = plan.path("restored").exists();
    if !was_there {
        plan.restore("restored", &mut Steps::new(None));
    }
    let vault = plan.builder("restored").open().unwrap();
    assert_tree(&vault, &plan.tree, when);
    assert_whole(&vault, when);
    vault.close().unwrap();
    fs::remove_dir_all(plan.path("restored")).unwrap();
    if was_there {
        plan.restore("restored", &mut Steps::new(None));
        fs::remove_dir_all(plan.path("restored")).unwrap();
    }
    assert_no_litter(plan, when);
    was_there
}

fn assert_no_litter(plan: &Plan, when: &str) {
    for entry in fs::read_dir(&plan.home).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!name.to_string_lossy().starts_with('.'), "{when}: {name:?}");
    }
}

#[test]
fn a_kill_while_backups_are_made_does_no_harm() {
    let rounds = count_from_env("STRONGROOM_KILL_ROUNDS", 6);
    let mut rng = Rng::from_time();
    let (mut inside, mut acknowledged) = (0, 0);
    let (mut _home, mut plan) = home(Work::Backup);
    let mut delay_max = 120_000;
    for round in 0..rounds {
        if round % 25 == 24 {
            (_home, plan) = home(Work::Backup);
        }
        plan.seed = rng.next() >> 1;
        let wait = Duration::from_micros(rng.below(delay_max));
        let seen = run(&plan, Some((1 + rng.below(2), wait)));
        let when = format!("round {round}, seed {}: {seen:?}", plan.seed);
        let is_inside = seen.works_begun > seen.works_done;
        // As long as a backup takes, on whatever machine under whatever load.
        delay_max = match is_inside {
            true => delay_max * 9 / 8,
            false => delay_max / 2,
        }
        .max(1_000);
        inside += u64::from(is_inside);
        acknowledged += seen.acknowledged;
        plan.tree = check_store(&plan, &seen, &when);
    }
    println!("{rounds} kills, {inside} inside; {acknowledged} acknowledged writes, 0 lost");
    assert!(inside * 3 >= rounds, "{inside} of {rounds}");
}

#[test]
fn a_kill_while_a_backup_is_restored_leaves_a_whole_store_or_none() {
    let rounds = count_from_env("STRONGROOM_KILL_ROUNDS", 6);
    let mut rng = Rng::from_time();
    let (_home, plan) = home(Work::Restore);
    let mut there = 0;
    for round in 0..rounds {
        let wait = Duration::from_micros(rng.below(400_000));
        let seen = run(&plan, Some((1 + rng.below(2), wait)));
        let when = format!("round {round}: {seen:?}");
        if seen.works_done == seen.works_begun {
            // It may have been removing what it had restored.
            let _cleared = fs::remove_dir_all(plan.path("restored"));
        }
        there += u64::from(check_restored(&plan, &when));
    }
    println!("{rounds} kills, after {there} a store was there");
}

#[test]
fn ending_at_each_step_of_a_backup_does_no_harm() {
    let (_home, mut plan) = home(Work::Backup);
    let mut ends = 0;
    for end_at in 1.. {
        plan.end_at = Some(end_at);
        plan.seed += 1;
        let seen = run(&plan, None);
        plan.tree = check_store(&plan, &seen, &format!("step {end_at}"));
        if !seen.ended_itself {
            break;
        }
        ends += 1;
    }
    println!("{ends} steps");
    assert!(ends >= 4, "{ends}");
}

#[test]
fn ending_at_each_step_of_a_restore_leaves_a_whole_store_or_none() {
    let (_home, mut plan) = home(Work::Restore);
    let (mut ends, mut there) = (0, 0);
    for end_at in 1.. {
        plan.end_at = Some(end_at);
        let seen = run(&plan, None);
        there += u64::from(check_restored(&plan, &format!("step {end_at}")));
        if !seen.ended_itself {
            break;
        }
        ends += 1;
    }
    println!("{ends} steps, after {there} the store was there");
    assert!(ends >= 6 && (1..=2).contains(&there), "{ends}, {there}");
}
