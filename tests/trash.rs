//! The reaper removes only what was deleted: an older entry that damage brings back into a
//! deleted directory may name a content that is still in use elsewhere.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use strongroom::backend::{
    Backend, BackendError, BackendStats, Batch, KeyStore, MemoryBackend, MemoryKeyStore, Pair,
};
use strongroom::key::{KdfParams, KeySource};
use strongroom::{Depth, Vault};

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// Remembers what was stored after each batch.
#[derive(Default)]
struct Recorder {
    inner: MemoryBackend,
    states: Mutex<Vec<Records>>,
}

impl Backend for Recorder {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.inner.get(key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Pair>, BackendError> {
        self.inner.scan(prefix, after, limit)
    }

    fn apply(&self, batch: Batch) -> Result<u64, BackendError> {
        let mut states = self.states.lock().unwrap();
        let applied = self.inner.apply(batch)?;
        states.push(self.inner.records());
        Ok(applied)
    }

    fn wait_durable(&self, applied: u64) -> Result<(), BackendError> {
        self.inner.wait_durable(applied)
    }

    fn stats(&self) -> Result<BackendStats, BackendError> {
        self.inner.stats()
    }

    fn close(&self) -> Result<(), BackendError> {
        self.inner.close()
    }
}

fn open(backend: Arc<dyn Backend>, keys: Arc<dyn KeyStore>) -> Vault {
    Vault::builder()
        .on(backend, keys)
        .key_source(KeySource::Passphrase(
            "a passphrase for tests".to_owned().into(),
        ))
        .kdf(KdfParams::FLOOR)
        .create(true)
        .open()
        .unwrap()
}

/// Directory entries, by their space.
fn entries(records: &Records) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
    records.iter().filter(|(key, _)| key.first() == Some(&3))
}

fn jobs(records: &Records) -> usize {
    records.keys().filter(|key| key.first() == Some(&6)).count()
}

#[test]
fn an_old_entry_in_a_deleted_directory_takes_no_content_away() {
    let recorder = Arc::new(Recorder::default());
    let keys = Arc::new(MemoryKeyStore::new());
    let vault = open(recorder.clone(), keys.clone());
    let tenant = vault.tenant("a").unwrap();
    tenant
        .create("/memories/d/moved.md", "still in use\n")
        .unwrap();
    tenant
        .create("/memories/d/stays.md", "goes with the directory\n")
        .unwrap();
    let before = recorder.inner.records();
    tenant
        .rename("/memories/d/moved.md", "/memories/kept.md")
        .unwrap();
    let after_move = recorder.inner.records();
    // STATE as it was before the delete, so that the state right after it is a crash's.
    let state = Arc::new((*keys).clone());
    tenant.delete("/memories/d").unwrap();
    vault.close().unwrap();

    let states = recorder.states.lock().unwrap();
    let deleted = states.iter().find(|records| jobs(records) == 1).unwrap();
    let gone: Vec<_> = entries(&before)
        .filter(|(key, _)| !after_move.contains_key(*key))
        .collect();
    assert_eq!(
        gone.len(),
        1,
        "the entry that the move took out of the directory"
    );
    for damaged in [false, true] {
        let backend = Arc::new(MemoryBackend::with_records(deleted.clone()));
        if damaged {
            backend.tamper(gone[0].0, Some(gone[0].1.clone()));
        }
        let vault = open(backend, Arc::new((*state).clone()));
        let tenant = vault.tenant("a").unwrap();
        for _ in 0..10_000 {
            if vault.stats().unwrap().pending_removals == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let reply = tenant.view("/memories/kept.md", None).unwrap();
        assert!(
            reply.as_text().unwrap().contains("still in use"),
            "{:?}",
            reply.as_text()
        );
        assert_eq!(
            tenant.create("/memories/new.md", "x\n").is_err(),
            damaged,
            "damage stops writes"
        );
        let report = vault.verify(Depth::Full);
        assert_eq!(
            report.is_ok_and(|report| report.problems.is_empty()),
            !damaged
        );
    }
}
