//! What works in batches and pages, at the sizes at which a batch or a page is just full.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use strongroom::backend::{Backend, MemoryBackend, MemoryKeyStore};
use strongroom::clock::ManualClock;
use strongroom::key::{KdfParams, KeySource};
use strongroom::transfer::{
    ExportOptions, ExportSink, ImportOptions, ImportSource, SinkError, SourceEntry, SourceKind,
};
use strongroom::wire::ViewRange;
use strongroom::{
    Access, BackupTargets, Depth, Erasures, NewToken, RestoreSources, Tenant, Vault, policy,
    restore,
};

const DAY: u64 = 24 * 3_600_000;
/// 2026-01-01.
const START: u64 = 1_767_225_600_000;

/// Around what a removal, a page of a rotation, a batch of an erasure or a scan step takes.
const SIZES: [usize; 12] = [1, 32, 33, 64, 65, 128, 255, 256, 257, 999, 1_000, 1_001];

/// Bytes of a content in one record, and records of a content in one batch.
const CHUNK: usize = 5_888;
const INLINE: usize = 300;

const POLICY: &str = "[limits]\nmax_file_bytes = \"8MiB\"\nmax_files = 100000\n\
    [view]\nmax_entries = 100\n[redaction]\nrule_packs = []\n\
    [retention]\nexpire_after_last_access = \"7d\"\n";

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

fn assert_whole(vault: &Vault, when: &str) {
    let report = vault.verify(Depth::Full).unwrap();
    assert!(report.problems.is_empty(), "{when}: {:?}", report.problems);
}

fn wait_for_removals(vault: &Vault) {
    while vault.stats().unwrap().pending_removals > 0 {
        std::thread::yield_now();
    }
}

/// So many files of one line in one directory.
struct Many(usize);

impl ImportSource for Many {
    fn visit(
        &mut self,
        each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        for number in 0..self.0 {
            let mut content: &[u8] = b"a line\n";
            let kind = SourceKind::File {
                bytes: 7,
                content: &mut content,
            };
            let _goes_on = each(SourceEntry::new(format!("all/f{number}").as_bytes(), kind));
        }
        Ok(())
    }
}

#[derive(Default)]
struct Shelf(BTreeMap<String, Vec<u8>>);

impl ExportSink for Shelf {
    fn directory(&mut self, _: &str, _: u64) -> Result<(), SinkError> {
        Ok(())
    }

    fn file(&mut self, path: &str, content: &[u8], _: u64) -> Result<(), SinkError> {
        assert!(self.0.insert(path.to_owned(), content.to_vec()).is_none());
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn exported(tenant: &Tenant) -> BTreeMap<String, Vec<u8>> {
    let mut shelf = Shelf::default();
    let report = tenant.export(&mut shelf, ExportOptions::new(), |_, _| ());
    assert!(report.failure.is_none());
    assert_eq!(report.files as usize, shelf.0.len());
    shelf.0
}

fn fill(tenant: &Tenant, files: usize) {
    let report = tenant.import(&mut Many(files), ImportOptions::new(), |_, _| ());
    assert!(report.failure.is_none());
    assert_eq!(report.stored as usize, files);
}

/// All rows of a listing, by the ranges that the notes tell to go on with.
fn rows(tenant: &Tenant) -> Vec<String> {
    let mut rows = Vec::new();
    let mut range = None;
    loop {
        let reply = tenant.view("/memories/all", range).unwrap();
        let text = reply.as_text().unwrap();
        rows.extend(
            text.lines()
                .skip(1)
                .filter(|line| !line.starts_with("Note: "))
                .map(str::to_owned),
        );
        let Some((_, rest)) = text.split_once("Continue with view_range [") else {
            return rows;
        };
        let (start, end) = rest.split_once("].").unwrap().0.split_once(", ").unwrap();
        range = Some(ViewRange {
            start: start.parse().unwrap(),
            end: end.parse().unwrap(),
        });
    }
}

#[test]
fn one_directory_of_any_size_is_listed_moved_sealed_exported_scanned_and_removed_whole() {
    let clock = Arc::new(ManualClock::at(START));
    let vault = vault(&clock, POLICY);
    let home = tempfile::tempdir().unwrap();
    for files in SIZES {
        let name = format!("t{files}");
        let tenant = vault.tenant(&name).unwrap();
        fill(&tenant, files);
        assert_eq!(rows(&tenant).len(), files + 1, "{files}");
        vault.rotate_keys(Some(&name), |_, _, _| ()).unwrap();
        assert_eq!(exported(&tenant).len(), files);
    }
    assert_whole(&vault, "sealed anew");

    let paths = ["records", "keys", "store"].map(|name| home.path().join(name));
    let targets = BackupTargets {
        records: Some(&paths[0]),
        keys: Some(&paths[1]),
    };
    let made = vault.backup(targets, |_, _, _| ()).unwrap();
    let sources = RestoreSources {
        records: &paths[0],
        keys: &paths[1],
        erased: &Erasures::new(),
    };
    let restored = restore(sources, &paths[2], |_, _, _| ()).unwrap();
    assert_eq!(restored.records, made.records);

    // Other rules: every file is stale once, and is not any more.
    let other = POLICY.replace("rule_packs = []", "rule_packs = [\"secrets\"]");
    vault
        .set_policy(&policy::load(&other, "other").unwrap())
        .unwrap();
    for files in SIZES {
        let tenant = vault.tenant(&format!("t{files}")).unwrap();
        for expected in [files, 0] {
            let report = tenant.rescan(false, |_, _| ()).unwrap();
            assert_eq!(report.stale as usize, expected);
            assert!(report.skipped.is_empty());
        }
    }
    // Those of odd place are deleted, those of even place erased.
    for (place, files) in SIZES.into_iter().enumerate() {
        let name = format!("t{files}");
        let tenant = vault.tenant(&name).unwrap();
        if place % 2 == 1 {
            assert!(!tenant.delete("/memories/all").unwrap().is_error);
            wait_for_removals(&vault);
            assert_eq!(exported(&tenant).len(), 0);
        } else {
            drop(tenant);
            vault.erase_tenant(&name, |_, _| ()).unwrap();
        }
        assert_whole(&vault, &format!("{files} files removed"));
    }
}

#[test]
fn contents_of_just_so_many_records_are_written_replaced_and_removed_whole() {
    let clock = Arc::new(ManualClock::at(START));
    let vault = vault(&clock, POLICY);
    let tenant = vault.tenant("one").unwrap();
    let sizes = [
        1,
        2,
        256,
        257,
        INLINE,
        INLINE + 1,
        2 * INLINE,
        2 * INLINE + 1,
    ];
    let sizes = sizes.map(|chunks| [chunks * CHUNK - 1, chunks * CHUNK, chunks * CHUNK + 1]);
    let text = |bytes: usize| -> Vec<u8> {
        let line = b"a line of sixteen\n".iter().copied();
        line.cycle().take(bytes).collect()
    };
    let mut before: Vec<u8> = Vec::new();
    for bytes in sizes.into_iter().flatten() {
        for content in [text(bytes), std::mem::take(&mut before)] {
            let reply = tenant.put_bytes("/memories/f", &content).unwrap();
            assert!(!reply.is_error, "{:?}", reply.as_text());
            assert!(exported(&tenant)["f"] == content, "{bytes}");
        }
        before = text(bytes);
        wait_for_removals(&vault);
        assert_whole(&vault, &format!("{bytes} bytes"));
    }
    assert!(!tenant.delete("/memories/f").unwrap().is_error);
    wait_for_removals(&vault);
    assert_whole(&vault, "removed");
}

#[test]
fn chains_of_just_so_many_old_entries_are_pruned_to_the_newest() {
    let text = format!("{POLICY}[audit]\nenabled = true\nkeep = \"1d\"\n");
    for old in [1_u32, 399, 400, 401, 800, 801] {
        let clock = Arc::new(ManualClock::at(START));
        let vault = vault(&clock, &text);
        let tenant = vault.tenant("one").unwrap();
        for number in 0..old {
            let reply = tenant.create(&format!("/memories/{number}"), "text\n");
            assert!(!reply.unwrap().is_error);
        }
        // Two entries each in the store's own chain.
        for number in 0..old / 2 {
            let token = NewToken {
                label: number.to_string(),
                access: Access::Metrics,
                tenants: Vec::new(),
                expires: None,
            };
            let (info, _) = vault.create_token(&token).unwrap();
            assert!(vault.revoke_token(&info.id).unwrap().is_some());
        }
        clock.set(START + 2 * DAY);
        assert!(!tenant.create("/memories/new", "text\n").unwrap().is_error);
        vault.expire(None, false, |_, _| ()).unwrap();
        let mut times = BTreeMap::<_, Vec<u64>>::new();
        let report = vault.audit(None, |whose, record| {
            let whose = whose.map(str::to_owned);
            times.entry(whose).or_default().push(record.entry.time);
        });
        assert!(report.unwrap().problems.is_empty());
        for (whose, times) in times {
            assert!(
                times.iter().all(|time| *time == START + 2 * DAY),
                "{whose:?}, {old} old entries: {times:?}"
            );
        }
        assert_whole(&vault, "pruned");
    }
}
