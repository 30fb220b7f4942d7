//! Lets the system calls on a store's files fail, one after the other: errors, full disks, too
//! many open files, short and torn writes, failed syncs, sectors that cannot be read.
//!
//! A small library in C (tests/support/fault_shim.c) is preloaded into a second process of
//! this test, which runs a script of 200 commands once for each call that is to fail. What was
//! acknowledged is there afterwards; a command that failed has left all or nothing; after a
//! failed sync of the engine's file or of STATE nothing more is acknowledged until the store is
//! opened again; it then opens, and verifies to the last record.
//!
//! Every 97th call; for all, in memory rather than on a disk:
//! `TMPDIR=/dev/shm STRONGROOM_FILE_FAULT_STEP=1 cargo test --test file_faults -- --nocapture`
#![cfg(target_os = "linux")]
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
use std::path::Path;
use std::process::Command;

use strongroom::{Code, Error, StoreError, Vault};

use support::tree::{Tree, difference, read_tree};
use support::workload::Worker;
use support::{assert_whole, count_from_env, plain_policy};

const COMMANDS: usize = 200;
const TENANTS: [&str; 2] = ["one", "two"];
const KINDS: [&str; 6] = ["eio", "enospc", "emfile", "short", "torn", "full"];

/// Set for the process in which calls fail: which of how many it is.
const SHARD: &str = "STRONGROOM_TEST_FAULT_SHARD";
const SHARDS: u64 = 2;

#[test]
fn every_system_call_on_the_stores_files_may_fail() {
    let home = tempfile::tempdir().unwrap();
    let shim = home.path().join("fault_shim.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/fault_shim.c");
    let built = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .args([&shim, &source])
        .output();
    match built {
        Err(error) => {
            println!("skipped: there is no C compiler here ({error})");
            return;
        }
        Ok(built) => assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        ),
    }
    let shards: Vec<_> = (0..SHARDS)
        .map(|shard| {
            Command::new(std::env::current_exe().unwrap())
                .args(["child_entry", "--exact", "--nocapture", "--test-threads=1"])
                .env(SHARD, shard.to_string())
                .env("LD_PRELOAD", &shim)
                .stdout(fs::File::create(home.path().join(format!("out{shard}"))).unwrap())
                .stderr(fs::File::create(home.path().join(format!("err{shard}"))).unwrap())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (shard, mut child) in shards.into_iter().enumerate() {
        let status = child.wait().unwrap();
        let read =
            |name: &str| fs::read_to_string(home.path().join(format!("{name}{shard}"))).unwrap();
        let (out, err) = (read("out"), read("err"));
        for line in out.lines().filter(|line| line.starts_with("count ")) {
            let (what, number) = line["count ".len()..].rsplit_once(' ').unwrap();
            *counts.entry(what.to_owned()).or_default() += number.parse::<u64>().unwrap();
        }
        let cut = err.len().saturating_sub(6_000);
        let end = err
            .char_indices()
            .find(|(at, _)| *at >= cut)
            .map_or("", |(at, _)| &err[at..]);
        assert!(status.success(), "shard {shard}: {status}\n{end}");
        // The engine's panics are told on stderr: none quotes what is stored.
        for said in [&out, &err] {
            assert!(!said.contains("<<"), "a text is quoted");
            assert!(!said.contains("/memories/w"), "a path is quoted");
        }
    }
    println!("{counts:#?}");
    let of = |word: &str| -> u64 {
        let those = counts.iter().filter(|(what, _)| what.contains(word));
        those.map(|(_, count)| count).sum()
    };
    for kind in KINDS.into_iter().chain(["sector"]) {
        assert!(of(kind) > 0, "no call failed by {kind}");
    }
    assert!(of("unknown") > 0 && of("whole") > 0);
}

/// The process in which calls fail. Does nothing when it is run as a test.
#[test]
fn child_entry() {
    let Ok(shard) = std::env::var(SHARD) else {
        return;
    };
    let shard: u64 = shard.parse().unwrap();
    let step = count_from_env("STRONGROOM_FILE_FAULT_STEP", 97);
    let home = tempfile::tempdir().unwrap();
    let base = home.path().join("base");
    let key = home.path().join("key");
    strongroom::generate_key_file(&key).unwrap();
    let open = |at: &Path| {
        Vault::builder()
            .path(at)
            .key_file(&key)
            .policy(plain_policy())
            .create(true)
            .open()
    };
    open(&base).unwrap().close().unwrap();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    bad_sectors(&open, home.path(), step * SHARDS, shard * step, &mut counts);
    for (at, kind) in KINDS.into_iter().enumerate() {
        // Each kind begins elsewhere, so that a step passes over no kind of call.
        let mut number = (at as u64 * 7 + shard * step) % (step * SHARDS);
        loop {
            let store = home.path().join("store");
            copy_directory(&base, &store);
            arm(kind, number, &store);
            let done = run(&|| open(&store), &format!("{kind} at call {number}"));
            fs::remove_dir_all(&store).unwrap();
            let Some(done) = done else { break };
            *counts.entry(format!("{kind} {done}")).or_default() += 1;
            number += step * SHARDS;
        }
    }
    // The harness has begun a line of its own.
    println!();
    for (what, count) in counts {
        println!("count {what} {count}");
    }
}

/// A part of the engine's file that the disk cannot read, before the store is opened: it does
/// not open, or opens and is right, and is whole again once the part can be read. (The engine
/// takes what it cannot read while it opens for torn, and writes over it.)
fn bad_sectors(
    open: &dyn Fn(&Path) -> Result<Vault, Error>,
    home: &Path,
    step: u64,
    first: u64,
    counts: &mut BTreeMap<String, u64>,
) {
    let base = home.join("written");
    let vault = open(&base).unwrap();
    let mut worker = Worker::small(3, "/memories/w", Tree::new());
    for _ in 0..COMMANDS {
        assert!(
            !worker
                .step()
                .run(&vault.tenant("one").unwrap())
                .unwrap()
                .is_error
        );
    }
    vault.close().unwrap();
    let blocks = fs::metadata(base.join("gen-000001/db")).unwrap().len() / 4_096;
    let mut block = first;
    while block < blocks {
        let when = format!("block {block}");
        let store = home.join("store");
        copy_directory(&base, &store);
        arm("sector", block, &store);
        let opened = open(&store);
        let outcome = match &opened {
            Ok(_) => "opened",
            Err(error) => error.code().as_str(),
        };
        *counts.entry(format!("sector {outcome}")).or_default() += 1;
        assert_ne!(
            outcome,
            Code::Integrity.as_str(),
            "{when}: a whole store counts as damaged"
        );
        if let Ok(vault) = opened {
            let _closed = vault.close();
        }
        arm("off", 0, Path::new("/"));
        let vault =
            open(&store).unwrap_or_else(|error| panic!("{when}: it does not open again: {error}"));
        let found = read_tree(&vault.tenant("one").unwrap(), "/memories/w").unwrap();
        assert_eq!(difference(&found, worker.tree()), "", "{when}");
        assert_whole(&vault, &when);
        vault.close().unwrap();
        fs::remove_dir_all(&store).unwrap();
        block += step;
    }
}

/// Runs the script, then looks at the store when nothing fails any more. Says what became of it,
/// and nothing when the script has fewer calls.
fn run(open: &dyn Fn() -> Result<Vault, Error>, when: &str) -> Option<String> {
    let mut workers: Vec<Worker> = (0..TENANTS.len())
        .map(|at| Worker::small(at as u64 + 7, "/memories/w", Tree::new()))
        .collect();
    let mut legal: Vec<Vec<Tree>> = vec![vec![Tree::new()]; TENANTS.len()];
    let outcome = match open() {
        Err(error) => format!("not opened ({})", error.code().as_str()),
        Ok(vault) => {
            let outcome = script(&vault, &mut workers, &mut legal, when);
            let _closed = vault.close();
            outcome
        }
    };
    let struck = struck();
    arm("off", 0, Path::new("/"));
    let vault = match open() {
        Ok(vault) => vault,
        // The engine has overwritten what it could not read, in the moment after it could be
        // read. That is said, and nothing old is shown.
        Err(error) => {
            let (call, file) = struck.unwrap_or_default();
            let by_engine =
                call == "pread" && file == "gen-000001/db" && outcome.starts_with("not opened");
            assert!(
                by_engine && error.code() == Code::Integrity,
                "{when} ({call} {file}): it does not open again: {error}"
            );
            return Some("pread engine: said to be damaged".to_owned());
        }
    };
    for (tenant, legal) in TENANTS.iter().zip(&legal) {
        let found = read_tree(&vault.tenant(tenant).unwrap(), "/memories/w").unwrap();
        assert!(
            legal.contains(&found),
            "{when} ({struck:?}): found / acknowledged\n{}",
            difference(&found, &legal[0])
        );
    }
    assert_whole(&vault, when);
    vault.close().unwrap();
    let Some((call, file)) = struck else {
        assert_eq!(outcome, "whole", "{when}");
        return None;
    };
    let file = match file.split('/').next().unwrap() {
        "gen-000001" if file.ends_with("/db") => "engine",
        "gen-000001" => "engine's snapshot",
        "keys" => "tenant's keys",
        other => other.trim_end_matches(['.', 'a', 'b']),
    };
    Some(format!("{call} {file}: {outcome}"))
}

/// Carries out the commands of two workers in turn. `legal`: what may be stored for each.
fn script(vault: &Vault, workers: &mut [Worker], legal: &mut [Vec<Tree>], when: &str) -> String {
    let mut failed = 0;
    let (mut is_struck, mut is_unsynced) = (struck().is_some(), false);
    let mut acknowledged = 0;
    for command in 0..COMMANDS {
        let at = command % TENANTS.len();
        let mut next = workers[at].clone();
        let op = next.step();
        let acknowledged_before = acknowledged;
        let done = vault.tenant(TENANTS[at]).and_then(|tenant| op.run(&tenant));
        match done {
            Ok(reply) => {
                let struck = struck();
                assert!(
                    !reply.is_error,
                    "{when} ({struck:?}): command {command}: {:?}",
                    reply.as_text()
                );
                assert!(
                    !is_unsynced,
                    "{when} ({struck:?}): command {command} is acknowledged after a failed sync"
                );
                workers[at] = next;
                legal[at] = vec![workers[at].tree().clone()];
                acknowledged += 1;
            }
            Err(Error::Store(StoreError::OutcomeUnknown)) => {
                legal[at].push(next.tree().clone());
                refuses_everything_unsure(vault, legal, when);
                return "outcome unknown".to_owned();
            }
            // All other errors say that nothing was done. It may go on, or fail again.
            Err(error) => {
                assert!(
                    struck().is_some(),
                    "{when}: command {command} fails by itself: {error}"
                );
                failed += 1;
                if failed > 3 {
                    return format!("refused ({})", error.code().as_str());
                }
            }
        }
        if !is_struck && let Some((call, file)) = struck() {
            is_struck = true;
            // Before anything is acknowledged, STATE only says that the store is in use.
            let is_state = file == "STATE" && acknowledged_before > 0;
            is_unsynced = call.contains("sync") && (file == "gen-000001/db" || is_state);
        }
    }
    if failed > 0 { "went on" } else { "whole" }.to_owned()
}

/// After an unknown outcome: no write, and reads that are right or refused.
fn refuses_everything_unsure(vault: &Vault, legal: &[Vec<Tree>], when: &str) {
    for (name, legal) in TENANTS.iter().zip(legal) {
        let Ok(tenant) = vault.tenant(name) else {
            continue;
        };
        let written = tenant.create("/memories/w/x.md", "x\n");
        assert!(written.is_err(), "{when}: a write after an unknown outcome");
        if let Ok(found) = read_tree(&tenant, "/memories/w") {
            assert!(
                legal.contains(&found),
                "{when}: a wrong read\n{}",
                difference(&found, &legal[0])
            );
        }
    }
}

/// Lets the call with this number fail from now on.
fn arm(kind: &str, number: u64, store: &Path) {
    let armed = fs::File::open(format!(
        "/strongroom-fault/arm/{kind}/{number}{}",
        store.display()
    ));
    assert!(armed.is_err(), "the shim is not there");
}

/// The call that has failed, and the file, seen from the store's directory.
fn struck() -> Option<(String, String)> {
    let report = fs::read_to_string("/strongroom-fault/report").expect("the shim");
    let (_, struck) = report.split_once(' ')?;
    let (call, file) = struck.split_once(' ')?;
    Some((call.to_owned(), file.to_owned()))
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}
