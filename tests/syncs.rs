//! Nothing is acknowledged before it is synced, and threads that wait share a sync.
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
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use strongroom::Vault;
use strongroom::backend::{Copy, Item, MemoryBackend, MemoryKeyStore};

use support::ground::{Point, Watch, WatchedBackend, WatchedKeys};
use support::plain_policy;
use support::tree::Tree;
use support::workload::Worker;

/// Set for the process that is traced: the directory of its store.
const TRACED: &str = "STRONGROOM_TEST_TRACED";

/// Where the commit number lies in a slot of STATE: behind format, store id, counter and generation.
const STATE_SEQ: std::ops::Range<usize> = 29..37;

#[test]
fn every_acknowledged_write_is_applied_then_synced_then_in_state() {
    let points: Arc<Mutex<Vec<Point>>> = Arc::default();
    let watch = {
        let points = Arc::clone(&points);
        Watch::new(move |point| points.lock().unwrap().push(point.clone()))
    };
    let vault = Vault::builder()
        .in_memory()
        .policy(plain_policy())
        .on(
            Arc::new(WatchedBackend {
                inner: Arc::new(MemoryBackend::new()),
                watch: Arc::clone(&watch),
            }),
            Arc::new(WatchedKeys {
                inner: Arc::new(MemoryKeyStore::new()),
                watch,
            }),
        )
        .open()
        .unwrap();
    let tenant = vault.tenant("one").unwrap();
    for number in 0..50 {
        points.lock().unwrap().clear();
        let path = format!("/memories/{number}.md");
        let reply = match number % 3 {
            0 => tenant.create(&path, "one\n"),
            1 => tenant.rename(&format!("/memories/{}.md", number - 1), &path),
            _ => tenant.insert(&format!("/memories/{}.md", number - 1), 0, "more\n"),
        };
        assert!(!reply.unwrap().is_error);
        let seen = std::mem::take(&mut *points.lock().unwrap());
        let at = |is_it: &dyn Fn(&Point) -> bool| {
            seen.iter()
                .rposition(is_it)
                .unwrap_or_else(|| panic!("write {number} lacks a step: {seen:?}"))
        };
        let applied = at(&|point| matches!(point, Point::Applied(_)));
        let Point::Applied(batch) = seen[applied] else {
            panic!()
        };
        let sync = at(&|point| matches!(point, Point::Sync(to) if *to >= batch));
        let synced = at(&|point| matches!(point, Point::Synced(to) if *to >= batch));
        let state = at(&|point| matches!(point, Point::Write(Item::State, ..)));
        let written = at(&|point| matches!(point, Point::Written(Item::State)));
        assert!(applied < sync && sync < synced && synced < state && state < written);
        let Point::Write(_, _, slot) = &seen[state] else {
            panic!()
        };
        let seq = u64::from_be_bytes(slot[STATE_SEQ].try_into().unwrap());
        assert_eq!(
            seq,
            vault.stats().unwrap().commits,
            "STATE names another commit"
        );
    }
    // What nobody has seen needs no sync: the tenant's key file comes before its first commit.
    points.lock().unwrap().clear();
    let reply = vault.tenant("two").unwrap().create("/memories/a.md", "a\n");
    assert!(!reply.unwrap().is_error);
    let seen = points.lock().unwrap().clone();
    let key = seen
        .iter()
        .position(|point| matches!(point, Point::Written(Item::Tenant(_))));
    let applied = seen
        .iter()
        .position(|point| matches!(point, Point::Applied(_)));
    assert!(key.unwrap() < applied.unwrap(), "{seen:?}");
}

#[test]
fn a_tenants_key_file_and_both_slots_of_state_are_used() {
    let seen: Arc<Mutex<Vec<Copy>>> = Arc::default();
    let watch = {
        let seen = Arc::clone(&seen);
        Watch::new(move |point| {
            if let Point::Write(Item::State, copy, _) = point {
                seen.lock().unwrap().push(*copy);
            }
        })
    };
    let vault = Vault::builder()
        .in_memory()
        .policy(plain_policy())
        .on(
            Arc::new(MemoryBackend::new()),
            Arc::new(WatchedKeys {
                inner: Arc::new(MemoryKeyStore::new()),
                watch,
            }),
        )
        .open()
        .unwrap();
    let tenant = vault.tenant("one").unwrap();
    for number in 0..20 {
        let path = format!("/memories/{number}.md");
        assert!(!tenant.create(&path, "one\n").unwrap().is_error);
    }
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 20);
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
}

fn store_in(home: &Path) -> Vault {
    let key = home.join("key");
    if !key.exists() {
        strongroom::generate_key_file(&key).unwrap();
    }
    let store = home.join("store");
    Vault::builder()
        .path(store)
        .key_file(key)
        .policy(plain_policy())
        .create(true)
        .open()
        .unwrap()
}

#[test]
fn one_thread_syncs_every_write_by_itself() {
    const WRITES: u64 = 60;
    let home = tempfile::tempdir().unwrap();
    let vault = store_in(home.path());
    let tenant = vault.tenant("one").unwrap();
    let before = vault.stats().unwrap();
    let mut worker = Worker::new(1, "/memories/w", Tree::new());
    for number in 1..=WRITES {
        let reply = worker.step().run(&tenant).unwrap();
        assert!(!reply.is_error);
        let now = vault.stats().unwrap();
        assert!(now.backend.syncs >= before.backend.syncs + number);
        assert!(now.state_writes >= before.state_writes + number);
    }
    vault.close().unwrap();
}

#[test]
fn eight_threads_share_syncs() {
    const THREADS: u64 = 8;
    const WRITES: u64 = 40;
    let home = tempfile::tempdir().unwrap();
    let vault = store_in(home.path());
    let before = vault.stats().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let vault = &vault;
            scope.spawn(move || {
                let tenant = vault.tenant(&format!("t{}", thread % 3)).unwrap();
                for number in 0..WRITES {
                    let path = format!("/memories/{thread}/{number}.md");
                    assert!(!tenant.create(&path, "one\n").unwrap().is_error);
                }
            });
        }
    });
    let now = vault.stats().unwrap();
    let syncs = now.backend.syncs - before.backend.syncs;
    let states = now.state_writes - before.state_writes;
    println!(
        "{} writes by {THREADS} threads: {syncs} syncs, {states} writes of STATE",
        THREADS * WRITES
    );
    assert!(syncs < THREADS * WRITES, "no two writes shared a sync");
    // Not one for each sync: what came in during a sync is durable with it, and has a STATE of its own.
    assert!(states < THREADS * WRITES, "no two writes shared a STATE");
    vault.close().unwrap();
}

/// The process that is traced. Does nothing when it is run as a test.
#[test]
fn traced_entry() {
    let Ok(home) = std::env::var(TRACED) else {
        return;
    };
    let vault = store_in(Path::new(&home));
    let tenant = vault.tenant("one").unwrap();
    let mut worker = Worker::new(1, "/memories/w", Tree::new());
    for number in 0..20 {
        let op = worker.step();
        std::io::stderr()
            .write_all(format!("begin {number}.\n").as_bytes())
            .unwrap();
        assert!(!op.run(&tenant).unwrap().is_error);
        std::io::stderr()
            .write_all(format!("acknowledge {number}.\n").as_bytes())
            .unwrap();
    }
    vault.close().unwrap();
}

/// Looks at the system calls: between a write and its acknowledgement lie an fdatasync of
/// the engine's file after the last byte written to it, then one of STATE.
#[test]
fn the_kernel_is_asked_to_sync_before_every_acknowledgement() {
    let home = tempfile::tempdir().unwrap();
    store_in(home.path()).close().unwrap();
    let trace = home.path().join("trace");
    let ran = Command::new("strace")
        .args([
            "-f",
            "-y",
            "-s",
            "64",
            "-e",
            "trace=fdatasync,fsync,pwrite64,write",
            "-o",
        ])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["traced_entry", "--exact", "--nocapture", "--test-threads=1"])
        .env(TRACED, home.path())
        .output();
    match ran {
        Ok(output) if output.status.success() => {}
        other => {
            println!(
                "skipped: strace cannot run here ({:?})",
                other.map(|ran| ran.status)
            );
            return;
        }
    }
    let trace = fs::read_to_string(trace).unwrap();
    let mut calls: Vec<&str> = Vec::new();
    let mut acknowledged = 0;
    for line in trace.lines() {
        if line.contains("\"begin ") {
            calls.clear();
        } else if line.contains("\"acknowledge ") {
            let last = |call: &str, file: &str| {
                calls
                    .iter()
                    .rposition(|line| line.contains(call) && line.contains(file))
                    .unwrap_or_else(|| panic!("no {call} of {file} in {calls:#?}"))
            };
            let written = last("pwrite64(", "/gen-000001/db>");
            let synced = last("fdatasync(", "/gen-000001/db>");
            let state = last("pwrite64(", "/STATE>");
            let state_synced = last("fdatasync(", "/STATE>");
            assert!(written < synced, "written after the sync: {calls:#?}");
            assert!(synced < state, "STATE before the engine's sync: {calls:#?}");
            assert!(state < state_synced, "STATE is not synced: {calls:#?}");
            acknowledged += 1;
        } else {
            calls.push(line);
        }
    }
    assert_eq!(acknowledged, 20);
    println!("{acknowledged} acknowledgements, each after both syncs");
}
