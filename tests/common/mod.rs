//! Opens stores on every backend, for the tests that run on all of them.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses a part of this, and a store that does not open fails the test"
)]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use strongroom::backend::{Fault, FaultBackend, MemoryBackend, MemoryKeyStore};
use strongroom::key::KeySource;
use strongroom::policy::Policy;
use strongroom::{Depth, Vault};
use tempfile::TempDir;
use zeroize::Zeroizing;

/// Looks of a millisecond, not a time: a process that is stopped for a while has not failed.
const SETTLE_LOOKS_MAX: u64 = 60_000;

/// What a store stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// sled in a directory.
    Disk,
    /// The backend in memory.
    Memory,
    /// The backend that can fail, never told to.
    Fault,
}

pub const GROUNDS: [Ground; 3] = [Ground::Disk, Ground::Memory, Ground::Fault];

/// An open store; its directory goes with it.
pub struct Opened {
    pub vault: Vault,
    _home: Option<TempDir>,
}

/// A new store under `policy`.
pub fn open(ground: Ground, policy: &Policy) -> Opened {
    let builder = Vault::builder().create(true).policy(policy.clone());
    let keys = Arc::new(MemoryKeyStore::new());
    let memory = Arc::new(MemoryBackend::new());
    let (builder, home) = match ground {
        Ground::Disk => {
            let home = tempfile::tempdir().unwrap();
            let key = home.path().join("store.key");
            strongroom::generate_key_file(&key).unwrap();
            let builder = builder.path(home.path().join("store")).key_file(key);
            (builder, Some(home))
        }
        Ground::Memory => (builder.on(memory, keys).key_source(key_line()), None),
        Ground::Fault => {
            let backend = Arc::new(FaultBackend::new(memory, Fault::Before));
            (builder.on(backend, keys).key_source(key_line()), None)
        }
    };
    let vault = builder.open().unwrap();
    Opened { vault, _home: home }
}

/// A key that costs nothing to derive, the same in one process.
pub fn key_line() -> KeySource {
    static LINE: LazyLock<String> = LazyLock::new(|| {
        let home = tempfile::tempdir().unwrap();
        let key = home.path().join("store.key");
        strongroom::generate_key_file(&key).unwrap();
        std::fs::read_to_string(key).unwrap()
    });
    KeySource::Line(Zeroizing::new(LINE.clone()))
}

/// Waits until nothing is left to remove, then checks all that is stored.
pub fn assert_sound(vault: &Vault, what: &str) {
    settle(vault);
    let report = vault.verify(Depth::Full).unwrap();
    assert!(report.problems.is_empty(), "{what}: {report:?}");
}

/// Lets the reaper finish, within more looks than any honest work here needs.
pub fn settle(vault: &Vault) {
    let mut looks = 0;
    while vault.stats().unwrap().pending_removals > 0 {
        assert!(looks < SETTLE_LOOKS_MAX, "the reaper does not finish");
        looks += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
}
