//! Long work of the operator's while tenants come, go and move: what is sound stays sound.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use strongroom::backend::{Backend, MemoryBackend, MemoryKeyStore};
use strongroom::clock::ManualClock;
use strongroom::key::{KdfParams, KeySource};
use strongroom::{Depth, Vault, policy};

const DAY: u64 = 24 * 3_600_000;
/// 2026-01-01.
const START: u64 = 1_767_225_600_000;

fn vault(clock: &Arc<ManualClock>, text: &str) -> Vault {
    let backend: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    Vault::builder()
        .on(backend, Arc::new(MemoryKeyStore::new()))
        .key_source(KeySource::Passphrase(
            "a passphrase for tests".to_owned().into(),
        ))
        .kdf(KdfParams::FLOOR)
        .clock(clock.clone())
        .create(true)
        .policy(policy::load(text, "test").unwrap())
        .open()
        .unwrap()
}

/// Calls `work` until `until` has come to its end, and at least once.
fn meanwhile(until: impl FnOnce() + Send, mut work: impl FnMut()) {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| {
            // Also when it panics, so that the test ends.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(until));
            is_done.store(true, Ordering::Release);
            done
        });
        loop {
            let was_done = is_done.load(Ordering::Acquire);
            work();
            if was_done {
                break;
            }
        }
        assert!(ended.join().unwrap().is_ok());
    });
}

#[test]
fn nothing_is_called_damaged_that_was_erased_rotated_or_pruned_meanwhile() {
    const ROUNDS: u64 = 60;
    let clock = Arc::new(ManualClock::at(START));
    let vault = vault(&clock, "[audit]\nenabled = true\nkeep = \"1d\"\n");
    let coming_and_going = |vault: Vault| {
        move || {
            for round in 0..ROUNDS {
                let tenant = vault.tenant("guest").unwrap();
                assert!(!tenant.create("/memories/a/b", "text\n").unwrap().is_error);
                vault.rotate_keys(Some("guest"), |_, _, _| ()).unwrap();
                drop(tenant);
                vault.erase_tenant("guest", |_, _| ()).unwrap();
                clock.set(START + round * DAY / 4);
                vault.expire(None, false, |_, _| ()).unwrap();
            }
        }
    };
    meanwhile(coming_and_going(vault.clone()), || {
        let verified = vault.verify(Depth::Full).unwrap();
        assert!(verified.problems.is_empty(), "{:?}", verified.problems);
        let log = vault.audit(None, |_, _| ()).unwrap();
        assert!(log.problems.is_empty(), "{:?}", log.problems);
        assert!(vault.stats().unwrap().unreadable.is_empty());
        vault.rotate_keys(None, |_, _, _| ()).unwrap();
        let expired = vault.expire(None, false, |_, _| ()).unwrap();
        assert!(expired.failed.is_empty(), "{:?}", expired.failed);
    });
}

/// A directory that is moved out of a walk's way is no damage, however often that happens.
#[test]
fn a_rotation_ends_while_directories_are_moved() {
    const ROTATIONS: u32 = 12;
    let vault = vault(&Arc::new(ManualClock::at(START)), "");
    let tenant = vault.tenant("one").unwrap();
    for number in 0..20 {
        let path = format!("/memories/a/{number}");
        assert!(!tenant.create(&path, "text\n").unwrap().is_error);
    }
    let rotations = || {
        for _ in 0..ROTATIONS {
            vault.rotate_keys(Some("one"), |_, _, _| ()).unwrap();
        }
    };
    meanwhile(rotations, || {
        for (from, to) in [("a", "b"), ("b", "a")] {
            let reply = tenant.rename(&format!("/memories/{from}"), &format!("/memories/{to}"));
            assert!(!reply.unwrap().is_error);
        }
    });
    assert!(vault.verify(Depth::Full).unwrap().problems.is_empty());
}
