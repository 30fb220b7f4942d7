//! What the durability tests share: random numbers, a workload with a model of what it
//! does, and reading a tenant back.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "each test uses its part, and a test fails by panicking"
)]

pub mod ground;
pub mod rng;
pub mod tree;
pub mod workload;

use std::time::Duration;

use strongroom::policy::{self, Policy};
use strongroom::{Depth, Vault};

/// How many looks of a millisecond may find no removal ended before a test calls it a failure.
/// Not a time: a process that is stopped for a while has not failed.
const LOOKS_WITHOUT_PROGRESS_MAX: u64 = 60_000;

/// A number from the environment, for longer runs than the default one.
pub fn count_from_env(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a number in the environment"),
        Err(_) => default,
    }
}

/// A policy that changes no text: the workload's random lines look like secrets, and here
/// it is the store that is tested.
pub fn plain_policy() -> Policy {
    let text = "schema = 1\nextends = [\"default\"]\n[redaction]\nrule_packs = []\n";
    policy::load(text, "the test's policy").unwrap()
}

/// Waits until the reaper has nothing left to do.
pub fn wait_for_removals(vault: &Vault) {
    let (mut fewest, mut looks) = (u64::MAX, 0);
    loop {
        let pending = vault.stats().unwrap().pending_removals;
        if pending == 0 {
            return;
        }
        looks = if pending < fewest { 0 } else { looks + 1 };
        fewest = fewest.min(pending);
        assert!(looks < LOOKS_WITHOUT_PROGRESS_MAX, "removals do not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Everything verifies, while removals are pending and after them.
pub fn assert_whole(vault: &Vault, when: &str) {
    for _ in 0..2 {
        let report = vault.verify(Depth::Full).unwrap();
        assert!(report.problems.is_empty(), "{when}: {:?}", report.problems);
        wait_for_removals(vault);
    }
}
