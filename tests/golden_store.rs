//! A store and a backup of format 1, as a build of the day wrote them, open, verify and read with
//! today's. `tests/golden/format-1` is never written again; its keys protect nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use strongroom::key::{KdfParams, KeySource};
use strongroom::{BackupTargets, Depth, Erasures, RestoreSources, Vault, restore, verify_backup};
use tempfile::TempDir;
use zeroize::Zeroizing;

const PASSPHRASE: &str = "a passphrase of the golden store";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1")
}

/// A copy with the modes that a repository does not keep.
fn copy() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    copy_into(&golden(), home.path());
    // Nor does it keep empty directories.
    for shard in 0..=255 {
        let path = home.path().join(format!("store/keys/{shard:02x}"));
        let _there = fs::create_dir(&path);
    }
    home
}

fn copy_into(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&target).unwrap();
            copy_into(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
            fs::set_permissions(&target, Permissions::from_mode(0o600)).unwrap();
        }
    }
}

fn passphrase() -> KeySource {
    KeySource::Passphrase(Zeroizing::new(PASSPHRASE.to_owned()))
}

/// Everything that the store is to say, as it was written down then.
fn assert_reads(vault: &Vault) {
    let report = vault.verify(Depth::Full).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let said: Value =
        serde_json::from_slice(&fs::read(golden().join("said.json")).unwrap()).unwrap();
    let says = says(vault);
    for (name, expected) in said.as_object().unwrap() {
        assert!(says[name] == *expected, "{name}");
    }
}

fn says(vault: &Vault) -> Value {
    let mut views = serde_json::Map::new();
    for (tenant, paths) in [
        (
            "team/a",
            &[
                "/memories",
                "/memories/notes.md",
                "/memories/deep/er/long.md",
            ][..],
        ),
        ("b", &["/memories", "/memories/empty.md"][..]),
        ("gone", &["/memories"][..]),
    ] {
        let tenant_handle = vault.tenant(tenant).unwrap();
        for path in paths {
            let reply = tenant_handle.view(path, None).unwrap();
            let text = reply.as_text().unwrap().to_owned();
            views.insert(format!("{tenant}:{path}"), text.into());
        }
    }
    let holds: Vec<String> = vault
        .tenant("team/a")
        .unwrap()
        .holds()
        .unwrap()
        .into_iter()
        .map(|hold| format!("{}: {}", hold.path, hold.reason))
        .collect();
    let mut events = Vec::new();
    let report = vault
        .audit_store_events(|record| events.push(record.entry.command.clone()))
        .unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    // What was done since, and views of a tenant that is not there.
    events.retain(|event| !["restore", "backup", "verify", "view"].contains(&event.as_str()));
    let mut entries = 0;
    let tenants = vault.audit(Some("team/a"), |_, _| entries += 1).unwrap();
    assert!(tenants.problems.is_empty(), "{:?}", tenants.problems);
    assert!(entries > 3, "{entries}");
    let stats = vault.stats().unwrap();
    let erased: Vec<String> = stats.erased.into_iter().map(|one| one.tenant_id).collect();
    serde_json::json!({
        "views": views,
        "holds": holds,
        "events": events,
        "erased": erased,
        // The rest of it may gain keys with their defaults.
        "audited": vault.policy().audit.enabled,
        "max_file_bytes": vault.policy().limits.max_file_bytes,
        "slots": vault.key_slots().len(),
    })
}

#[test]
fn the_golden_store_opens_with_its_key_file_and_with_its_passphrase() {
    for source in [None, Some(passphrase())] {
        let home = copy();
        let builder = Vault::builder().path(home.path().join("store"));
        let builder = match source {
            None => builder.key_file(home.path().join("key")),
            Some(source) => builder.key_source(source),
        };
        let vault = builder.open().unwrap();
        assert_eq!(vault.format(), 1);
        assert_reads(&vault);
        // It takes writes, and is the same afterwards.
        let tenant = vault.tenant("new").unwrap();
        assert!(!tenant.create("/memories/a.md", "text\n").unwrap().is_error);
        vault.close().unwrap();
        let vault = builder.open().unwrap();
        assert_reads(&vault);
        vault.close().unwrap();
    }
}

#[test]
fn the_golden_backup_is_whole_and_becomes_the_store_that_it_was() {
    let home = copy();
    let (records, keys) = (home.path().join("records"), home.path().join("keys"));
    for file in [&records, &keys] {
        verify_backup(file, |_, _, _| ()).unwrap();
    }
    let sources = RestoreSources {
        records: &records,
        keys: &keys,
        erased: &Erasures::new(),
    };
    let to = home.path().join("restored");
    restore(sources, &to, |_, _, _| ()).unwrap();
    let vault = Vault::builder()
        .path(&to)
        .key_file(home.path().join("key"))
        .open()
        .unwrap();
    assert_reads(&vault);
}

/// Wrote `tests/golden/format-1`. Only a new format needs it again, for a directory of its own.
#[test]
#[ignore = "writes the golden files, which are there"]
fn write_the_golden_store() {
    let home = golden();
    fs::create_dir(&home).unwrap();
    let key = home.join("key");
    strongroom::generate_key_file(&key).unwrap();
    let policy = strongroom::policy::load(
        "schema = 1\nextends = [\"default\"]\n[audit]\nenabled = true\n",
        "the golden policy",
    )
    .unwrap();
    let builder = Vault::builder()
        .path(home.join("store"))
        .key_file(&key)
        .policy(policy);
    let vault = builder.create(true).open().unwrap();
    vault
        .add_key(
            &passphrase().resolve(None).unwrap(),
            "golden",
            KdfParams::FLOOR,
        )
        .unwrap();
    let a = vault.tenant("team/a").unwrap();
    let long = "a line of a longer file\n".repeat(600);
    for (path, text) in [
        ("/memories/notes.md", "Likes tea\n"),
        ("/memories/deep/er/long.md", &long),
        (
            "/memories/deep/key.md",
            "password: hunter2-of-the-golden-store\n",
        ),
    ] {
        assert!(!a.create(path, text).unwrap().is_error);
    }
    assert!(
        !a.str_replace("/memories/notes.md", "tea", "coffee")
            .unwrap()
            .is_error
    );
    assert!(
        !a.add_hold("/memories/deep", "a case", None)
            .unwrap()
            .is_error
    );
    let b = vault.tenant("b").unwrap();
    assert!(!b.create("/memories/empty.md", "").unwrap().is_error);
    let gone = vault.tenant("gone").unwrap();
    assert!(!gone.create("/memories/gone.md", "gone\n").unwrap().is_error);
    vault.erase_tenant("gone", |_, _| ()).unwrap();
    vault.rotate_keys(Some("team/a"), |_, _, _| ()).unwrap();
    let (records, keys) = (home.join("records"), home.join("keys"));
    let targets = BackupTargets {
        records: Some(&records),
        keys: Some(&keys),
    };
    vault.compact(|_, _| ()).unwrap();
    let said = serde_json::to_string_pretty(&says(&vault)).unwrap();
    vault.backup(targets, |_, _, _| ()).unwrap();
    fs::write(home.join("said.json"), said + "\n").unwrap();
    vault.close().unwrap();
}
