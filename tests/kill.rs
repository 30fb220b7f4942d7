//! Kills a process at random moments of its work on a store, and looks at what is left.
//!
//! The child is this test binary again, at `child_entry`. It says on its standard error
//! what it begins (`B worker number`) and what was acknowledged (`A worker number`), so
//! the parent knows what must be there, and what may be.
//!
//! `STRONGROOM_KILL_ROUNDS=200 cargo test --test kill -- --nocapture` for the long run.
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
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use strongroom::Vault;

use support::rng::Rng;
use support::tree::{Tree, difference, read_tree};
use support::workload::{Op, Worker};
use support::{assert_whole, count_from_env, plain_policy};

const PLAN: &str = "STRONGROOM_TEST_PLAN";

/// Kills inside a write that a run must reach, in percent.
const INSIDE_PERCENT_MIN: u64 = 90;

/// A new store after so many rounds, so that files stay small.
const ROUNDS_PER_STORE: u64 = 25;

/// What a child is to do.
#[derive(Serialize, Deserialize)]
struct Plan {
    store: PathBuf,
    key: PathBuf,
    create: bool,
    seed: u64,
    workers: Vec<Part>,
    /// Deletes this directory of the first worker's tenant before anything else.
    delete: Option<String>,
}

/// One worker's own directory.
#[derive(Serialize, Deserialize, Clone)]
struct Part {
    tenant: String,
    top: String,
    tree: Tree,
}

impl Part {
    fn new(tenant: &str, top: &str) -> Self {
        Self {
            tenant: tenant.to_owned(),
            top: top.to_owned(),
            tree: Tree::new(),
        }
    }
}

fn worker(plan: &Plan, number: usize) -> Worker {
    let part = &plan.workers[number];
    Worker::new(plan.seed + number as u64, &part.top, part.tree.clone())
}

fn open(store: &Path, key: &Path, create: bool) -> Result<Vault, strongroom::Error> {
    Vault::builder()
        .path(store)
        .key_file(key)
        .policy(plain_policy())
        .create(create)
        .open()
}

/// The child: works until it is killed. Does nothing when it is run as a test.
#[test]
fn child_entry() {
    let Ok(path) = std::env::var(PLAN) else {
        return;
    };
    let plan: Plan = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    say("S");
    let vault = match open(&plan.store, &plan.key, plan.create) {
        Ok(vault) => vault,
        Err(error) => return fail(&format!("open: {error}")),
    };
    say("O");
    if let Some(path) = &plan.delete {
        let tenant = vault.tenant(&plan.workers[0].tenant).unwrap();
        carry_out(&tenant, 0, 0, &Op::Delete { path: path.clone() });
    }
    std::thread::scope(|scope| {
        for number in 0..plan.workers.len() {
            let (plan, vault) = (&plan, &vault);
            scope.spawn(move || {
                let tenant = vault.tenant(&plan.workers[number].tenant).unwrap();
                let mut worker = worker(plan, number);
                for count in 0.. {
                    if plan.delete.is_some() {
                        std::thread::park();
                    }
                    carry_out(&tenant, number, count, &worker.step());
                }
            });
        }
        if plan.workers.is_empty() {
            std::thread::park_timeout(Duration::from_secs(600));
        }
    });
}

fn carry_out(tenant: &strongroom::Tenant, worker: usize, count: u64, op: &Op) {
    say(&format!("B {worker} {count}"));
    match op.run(tenant) {
        Ok(reply) if !reply.is_error => say(&format!("A {worker} {count}")),
        Ok(reply) => fail(&format!(
            "{op:.80?}: {}",
            reply.as_text().unwrap_or_default()
        )),
        Err(error) => fail(&format!("{op:.80?}: {error}")),
    }
}

/// One line in one system call, so that lines of threads do not mix.
fn say(line: &str) {
    let _written = std::io::stderr().write_all(format!("\n{line}\n").as_bytes());
}

fn fail(what: &str) {
    say(&format!("E {}", what.replace('\n', " ")));
    std::process::exit(1);
}

/// A running child and what it said so far.
struct Running {
    child: Child,
    seen: Arc<Mutex<Seen>>,
    reader: std::thread::JoinHandle<()>,
}

#[derive(Default, Clone)]
struct Seen {
    started: bool,
    opened: bool,
    begun: Vec<u64>,
    acknowledged: Vec<u64>,
    error: Option<String>,
}

impl Seen {
    fn is_inside(&self) -> bool {
        self.begun != self.acknowledged
    }

    fn take(&mut self, line: &str) {
        let mut words = line.split(' ');
        let word = words.next();
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        match word {
            Some("S") => self.started = true,
            Some("O") => self.opened = true,
            Some("E") => self.error = Some(line.to_owned()),
            Some("B") => {
                let worker = number() as usize;
                self.begun[worker] = number() + 1;
            }
            Some("A") => {
                let worker = number() as usize;
                self.acknowledged[worker] = number() + 1;
            }
            _ => {}
        }
    }
}

impl Running {
    fn start(plan: &Plan, home: &Path) -> Self {
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
        let seen = Arc::new(Mutex::new(Seen {
            begun: vec![0; plan.workers.len()],
            acknowledged: vec![0; plan.workers.len()],
            ..Seen::default()
        }));
        let lines = BufReader::new(child.stderr.take().unwrap());
        let into = Arc::clone(&seen);
        let reader = std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                into.lock().unwrap().take(&line);
            }
        });
        Self {
            child,
            seen,
            reader,
        }
    }

    /// Waits until what the child said is as wanted.
    fn wait(&mut self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let seen = self.seen.lock().unwrap().clone();
            assert!(seen.error.is_none(), "the child failed: {:?}", seen.error);
            if is_so(&seen) {
                return;
            }
            assert!(Instant::now() < end, "the child never got to: {what}");
            assert!(
                self.child.try_wait().unwrap().is_none(),
                "the child ended by itself before: {what}"
            );
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// SIGKILL. Returns all that the child had said by then.
    fn kill(mut self) -> Seen {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.reader.join().unwrap();
        let seen = self.seen.lock().unwrap().clone();
        assert!(seen.error.is_none(), "the child failed: {:?}", seen.error);
        seen
    }
}

/// Compares a worker's directory with what was acknowledged, with or without the command
/// that was under way. Returns what is there.
fn check_part(vault: &Vault, plan: &Plan, number: usize, seen: &Seen, round: &str) -> Tree {
    let part = &plan.workers[number];
    let (acknowledged, begun) = (seen.acknowledged[number], seen.begun[number]);
    assert!(
        begun - acknowledged <= 1,
        "{round}: more than one command under way"
    );
    let mut worker = worker(plan, number);
    for _ in 0..acknowledged {
        worker.step();
    }
    let tenant = vault.tenant(&part.tenant).unwrap();
    let found = read_tree(&tenant, &part.top).unwrap();
    let sure = worker.tree().clone();
    if found == sure {
        return found;
    }
    let mut text = difference(&found, &sure);
    if begun > acknowledged {
        let op = worker.step();
        if found == *worker.tree() {
            return found;
        }
        text = format!(
            "{text}\nwith {op:.80?}: {}",
            difference(&found, worker.tree())
        );
    }
    panic!("{round}: worker {number}, {acknowledged} acknowledged: found / expected\n{text}");
}

struct Home {
    directory: tempfile::TempDir,
    parts: Vec<Part>,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        strongroom::generate_key_file(directory.path().join("key")).unwrap();
        let parts = vec![
            Part::new("one", "/memories/a"),
            Part::new("one", "/memories/b"),
            Part::new("two", "/memories/a"),
            Part::new("team/three", "/memories/a"),
        ];
        Self { directory, parts }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn key(&self) -> PathBuf {
        self.path().join("key")
    }

    fn open(&self, round: &str) -> Vault {
        open(&self.path().join("store"), &self.key(), true)
            .unwrap_or_else(|error| panic!("{round}: the store does not open: {error}"))
    }

    fn plan(&self, seed: u64, workers: &[usize]) -> Plan {
        Plan {
            store: self.path().join("store"),
            key: self.key(),
            create: false,
            seed,
            workers: workers.iter().map(|at| self.parts[*at].clone()).collect(),
            delete: None,
        }
    }
}

#[test]
fn what_was_acknowledged_survives_sigkill() {
    let rounds = count_from_env("STRONGROOM_KILL_ROUNDS", 20);
    let mut rng = Rng::from_time();
    let mut home = Home::new();
    let (mut inside, mut acknowledged) = (0, 0);
    for round in 0..rounds {
        if round % ROUNDS_PER_STORE == 0 {
            home = Home::new();
            home.open("new").close().unwrap();
        }
        let workers: &[usize] = match round % 5 {
            0 => &[0],
            1 => &[0, 1],
            2 => &[0, 2],
            3 => &[1, 2, 3],
            _ => &[0, 1, 2, 3],
        };
        let plan = home.plan(rng.next() >> 1, workers);
        let mut child = Running::start(&plan, home.path());
        child.wait("its store is open", |seen| seen.opened);
        std::thread::sleep(Duration::from_micros(rng.below(400_000)));
        child.wait("a write is under way", Seen::is_inside);
        let seen = child.kill();
        inside += u64::from(seen.is_inside());
        acknowledged += seen.acknowledged.iter().sum::<u64>();

        let name = format!("round {round}, seed {}", plan.seed);
        let vault = home.open(&name);
        for (at, part) in workers.iter().enumerate() {
            home.parts[*part].tree = check_part(&vault, &plan, at, &seen, &name);
        }
        assert_whole(&vault, &name);
        vault.close().unwrap();
    }
    println!("{rounds} kills, {inside} inside a write; {acknowledged} acknowledged writes, 0 lost");
    assert!(acknowledged > rounds);
    assert!(
        inside * 100 >= rounds * INSIDE_PERCENT_MIN,
        "{inside} of {rounds} kills were inside a write"
    );
}

/// A store that was killed is killed again, several times, by opens that never end.
#[test]
fn a_kill_while_a_store_opens_does_no_harm() {
    let rounds = count_from_env("STRONGROOM_KILL_ROUNDS", 20).div_ceil(2);
    let mut rng = Rng::from_time();
    let mut home = Home::new();
    home.open("new").close().unwrap();
    let (mut kills, mut inside) = (0, 0);
    let mut delay_max = 20_000;
    for round in 0..rounds {
        let plan = home.plan(rng.next() >> 1, &[0, 2]);
        let mut child = Running::start(&plan, home.path());
        child.wait("some work is done", |seen| seen.acknowledged[0] > 20);
        let seen = child.kill();
        for _ in 0..5 {
            let mut child = Running::start(&home.plan(0, &[]), home.path());
            child.wait("it starts to open", |seen| seen.started);
            std::thread::sleep(Duration::from_micros(rng.below(delay_max)));
            let is_inside = !child.kill().opened;
            // As long as an open takes, on whatever machine under whatever load.
            delay_max = match is_inside {
                true => delay_max * 9 / 8,
                false => delay_max * 3 / 4,
            }
            .max(1_000);
            inside += u64::from(is_inside);
            kills += 1;
        }
        let name = format!("round {round}, seed {}", plan.seed);
        let vault = home.open(&name);
        home.parts[0].tree = check_part(&vault, &plan, 0, &seen, &name);
        home.parts[2].tree = check_part(&vault, &plan, 1, &seen, &name);
        assert_whole(&vault, &name);
        vault.close().unwrap();
    }
    println!("{kills} kills, {inside} inside an open; delays of at most {delay_max} us at last");
    assert!(inside * 2 > kills);
}

/// What is half made lies under another name, so the next try starts from nothing.
#[test]
fn a_kill_while_a_store_is_made_does_no_harm() {
    let rounds = count_from_env("STRONGROOM_KILL_ROUNDS", 20).div_ceil(2);
    let mut rng = Rng::from_time();
    let mut create_micros = 30_000;
    let mut inside = 0;
    for round in 0..rounds {
        let home = Home::new();
        let mut plan = home.plan(0, &[]);
        plan.create = true;
        let mut child = Running::start(&plan, home.path());
        child.wait("it starts to make the store", |seen| seen.started);
        let started = Instant::now();
        if round == 0 {
            child.wait("the store is there", |seen| seen.opened);
            create_micros = started.elapsed().as_micros() as u64;
        } else {
            std::thread::sleep(Duration::from_micros(rng.below(create_micros)));
        }
        inside += u64::from(!child.kill().opened);
        let name = format!("round {round}");
        let vault = home.open(&name);
        assert_whole(&vault, &name);
        assert!(
            !vault
                .tenant("one")
                .unwrap()
                .create("/memories/a.md", "a\n")
                .unwrap()
                .is_error
        );
        vault.close().unwrap();
    }
    println!("{rounds} kills, {inside} while a store was made in about {create_micros} us");
}

/// A large directory is gone at once or not at all, and its removal ends after any kills.
#[test]
fn a_kill_while_a_large_directory_is_removed_does_no_harm() {
    const FILES: usize = 500;
    let rounds = count_from_env("STRONGROOM_KILL_ROUNDS", 20).div_ceil(2);
    let mut rng = Rng::from_time();
    let home = Home::new();
    let vault = home.open("new");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let tenant = vault.tenant("one").unwrap();
            scope.spawn(move || {
                for file in (thread..FILES).step_by(8) {
                    let path = format!("/memories/big/d{}/s{}/f{file}.md", file % 7, file % 3);
                    let text = "one line\n".repeat(file * 3);
                    assert!(!tenant.create(&path, &text).unwrap().is_error);
                }
            });
        }
    });
    let keep = vault.tenant("one").unwrap();
    assert!(!keep.create("/memories/keep.md", "keep\n").unwrap().is_error);
    let full = read_tree(&keep, "/memories/big").unwrap();
    assert_eq!(full.values().flatten().count(), FILES);
    vault.close().unwrap();
    fs::rename(home.path().join("store"), home.path().join("full")).unwrap();

    let (mut pending, mut gone) = (0, 0);
    for round in 0..rounds {
        let store = home.path().join("store");
        let _removed = fs::remove_dir_all(&store);
        copy_directory(&home.path().join("full"), &store);
        let mut plan = home.plan(0, &[0]);
        plan.delete = Some("/memories/big".to_owned());
        let mut child = Running::start(&plan, home.path());
        child.wait("it begins to delete", |seen| seen.begun[0] == 1);
        if round % 4 > 0 {
            child.wait("it has deleted", |seen| seen.acknowledged[0] == 1);
        }
        std::thread::sleep(Duration::from_micros(rng.below(30_000)));
        let seen = child.kill();
        for _ in 0..rng.below(4) {
            let mut child = Running::start(&home.plan(0, &[]), home.path());
            child.wait("it is open", |seen| seen.opened);
            std::thread::sleep(Duration::from_micros(rng.below(10_000)));
            child.kill();
        }
        let name = format!("round {round}");
        let vault = home.open(&name);
        pending += u64::from(vault.stats().unwrap().pending_removals > 0);
        let tenant = vault.tenant("one").unwrap();
        let left = read_tree(&tenant, "/memories/big").unwrap();
        if left.is_empty() {
            gone += 1;
        } else {
            assert_eq!(
                seen.acknowledged[0], 0,
                "{name}: an acknowledged delete is undone"
            );
            assert!(left == full, "{name}: {}", difference(&left, &full));
        }
        assert_whole(&vault, &name);
        let after = read_tree(&tenant, "/memories").unwrap();
        assert_eq!(after["/memories/keep.md"].as_deref(), Some("keep\n"));
        vault.close().unwrap();
    }
    println!("{rounds} rounds, {gone} deleted, {pending} opened with removals pending");
    assert!(gone > 0);
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
