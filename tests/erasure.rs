//! After a tenant was erased nothing of it is left, and its name is free for another.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use strongroom::{Code, ErasureState, Error, StoreError, Vault, policy};

use support::{assert_whole, plain_policy};

const MARKERS: usize = 200;

fn audited_policy() -> policy::Policy {
    let text = "schema = 1\nextends = [\"default\"]\n[redaction]\nrule_packs = []\n[audit]\nenabled = true\n";
    policy::load(text, "the test's policy").unwrap()
}

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        strongroom::generate_key_file(home.path().join("key")).unwrap();
        Self(home)
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("store")
    }

    fn open_with(&self, policy: policy::Policy) -> Vault {
        Vault::builder()
            .path(self.store())
            .key_file(self.0.path().join("key"))
            .policy(policy)
            .create(true)
            .open()
            .unwrap()
    }

    fn open(&self) -> Vault {
        self.open_with(plain_policy())
    }
}

fn marker(number: usize) -> String {
    format!("marker-{number:03}-of-the-erased-tenant")
}

/// Files of all kinds: small, large, deep, edited, deleted.
fn fill(vault: &Vault, name: &str) {
    let tenant = vault.tenant(name).unwrap();
    for number in 0..MARKERS {
        let path = format!("/memories/d{}/{}.md", number % 7, marker(number));
        let text = format!("{}\n", marker(number)).repeat(1 + (number % 5) * 60);
        assert!(!tenant.create(&path, &text).unwrap().is_error);
        if number % 10 == 0 {
            assert!(!tenant.insert(&path, 0, "first\n").unwrap().is_error);
        }
    }
    assert!(!tenant.delete("/memories/d3").unwrap().is_error);
}

/// All files below a directory.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
    all
}

fn key_files(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(&store.join("keys"))
}

fn holds_any(store: &Path, needles: &[&[u8]]) -> usize {
    let all = files(store);
    let is_in = |needle: &&&[u8]| {
        all.values()
            .any(|bytes| bytes.windows(needle.len()).any(|window| window == **needle))
    };
    needles.iter().filter(is_in).count()
}

#[test]
fn nothing_of_an_erased_tenant_is_left_in_any_file() {
    let home = Home::new();
    let vault = home.open_with(audited_policy());
    fill(&vault, "gone");
    fill(&vault, "stays");
    let before = key_files(&home.store());
    let erased = vault.erase_tenant("gone", |_, _| ()).unwrap();
    assert_eq!(erased.state, ErasureState::Purged);
    let after = key_files(&home.store());
    let wrapped: Vec<&Vec<u8>> = before
        .iter()
        .filter(|(path, _)| !after.contains_key(*path))
        .map(|(_, bytes)| bytes)
        .collect();
    assert_eq!((before.len(), after.len(), wrapped.len()), (2, 1, 1));
    // The wrapped keys: any 24 bytes of them.
    let needles: Vec<&[u8]> = wrapped[0]
        .chunks(24)
        .filter(|chunk| chunk.len() == 24)
        .collect();
    assert_eq!(holds_any(&home.store(), &needles), 0);
    let markers: Vec<String> = (0..MARKERS).map(marker).collect();
    let markers: Vec<&[u8]> = markers.iter().map(String::as_bytes).collect();
    assert_eq!(holds_any(&home.store(), &markers), 0);
    assert_whole(&vault, "after the erasure");

    let certificate = vault.certificate(&erased, Some("gone"));
    let check = vault.verify_erasure(&certificate.to_string()).unwrap();
    assert!(check.holds(), "{check:?}");
    assert!(check.files.unwrap() > 3);
    // Its audit entries are still there and whole, without paths.
    let mut entries = 0;
    let report = vault
        .audit(None, |whose, record| {
            if whose.is_some_and(|whose| whose.contains(&erased.tenant_id)) {
                entries += 1;
                assert!(record.path.is_none());
            }
        })
        .unwrap();
    assert!(report.problems.is_empty());
    assert!(entries > MARKERS);
    vault.close().unwrap();
    println!(
        "{} markers, {} pieces of wrapped keys: 0 found",
        markers.len(),
        needles.len()
    );

    // The other tenant has all of its own.
    let vault = home.open();
    let tenant = vault.tenant("stays").unwrap();
    let path = format!("/memories/d1/{}.md", marker(1));
    assert!(!tenant.view(&path, None).unwrap().is_error);
    assert!(
        vault
            .verify_erasure(&certificate.to_string())
            .unwrap()
            .holds()
    );
}

#[test]
fn the_name_is_free_for_a_tenant_that_sees_nothing_of_the_old_one() {
    let home = Home::new();
    let vault = home.open();
    fill(&vault, "name");
    let old = vault.tenant("name").unwrap();
    vault.erase_tenant("name", |_, _| ()).unwrap();
    let path = format!("/memories/d1/{}.md", marker(1));
    // A handle from before is one of a tenant that does not exist.
    assert!(old.view(&path, None).unwrap().is_error);
    assert!(!old.create("/memories/new.md", "new\n").unwrap().is_error);
    let listing = vault
        .tenant("name")
        .unwrap()
        .view("/memories", None)
        .unwrap();
    assert_eq!(listing.as_text().unwrap().lines().count(), 3);
    let stats = vault.stats().unwrap();
    assert_eq!((stats.tenants.len(), stats.erased.len()), (1, 1));
    assert_eq!(stats.tenants[0].files, 1);
    let again = vault.erase_tenant("name", |_, _| ()).unwrap();
    assert_eq!(vault.erased_as("name").unwrap().len(), 2);
    assert_ne!(again.tenant_id, vault.erased()[0].tenant_id);
    vault.close().unwrap();
    let vault = home.open();
    assert_eq!(vault.erased_as("name").unwrap().len(), 2);
    assert_whole(&vault, "after two erasures");
}

#[test]
fn a_hold_keeps_a_tenant_from_being_erased() {
    let home = Home::new();
    let vault = home.open();
    let tenant = vault.tenant("held").unwrap();
    assert!(!tenant.create("/memories/a/b.md", "b\n").unwrap().is_error);
    assert!(
        !tenant
            .add_hold("/memories/a", "a law suit", None)
            .unwrap()
            .is_error
    );
    let error = vault.erase_tenant("held", |_, _| ()).unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Held)), "{error}");
    assert_eq!(error.code(), Code::Refused);
    assert!(!tenant.view("/memories/a/b.md", None).unwrap().is_error);
    assert!(!tenant.remove_hold("/memories/a").unwrap().is_error);
    vault.erase_tenant("held", |_, _| ()).unwrap();
    let error = vault.erase_tenant("held", |_, _| ()).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}

#[test]
fn a_tenant_whose_keys_are_lost_can_be_erased() {
    let home = Home::new();
    let vault = home.open();
    fill(&vault, "lost");
    let held = vault.tenant("held").unwrap();
    assert!(!held.create("/memories/a.md", "a\n").unwrap().is_error);
    assert!(
        !held
            .add_hold("/memories/a.md", "a law suit", None)
            .unwrap()
            .is_error
    );
    drop(held);
    vault.close().unwrap();
    for path in key_files(&home.store()).keys() {
        fs::remove_file(path).unwrap();
    }
    let vault = home.open();
    // Whether its hold has ended cannot be read any more.
    let error = vault.erase_tenant("held", |_, _| ()).unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Held)), "{error}");
    let erased = vault.erase_tenant("lost", |_, _| ()).unwrap();
    assert_eq!(erased.state, ErasureState::Purged);
    assert!(
        !vault
            .tenant("lost")
            .unwrap()
            .create("/memories/a.md", "a\n")
            .unwrap()
            .is_error
    );
    assert_eq!(vault.stats().unwrap().unreadable.len(), 1);
}

#[test]
fn a_certificate_that_was_changed_or_is_of_another_store_does_not_hold() {
    let home = Home::new();
    let vault = home.open();
    fill(&vault, "gone");
    let erased = vault.erase_tenant("gone", |_, _| ()).unwrap();
    let certificate = vault.certificate(&erased, Some("gone"));
    assert_eq!(certificate["tenant"], "gone");
    // A name that is not the tenant's is not written into it.
    assert!(vault.certificate(&erased, Some("other"))["tenant"].is_null());
    // Laid out otherwise it is the same.
    let pretty = serde_json::to_string_pretty(&certificate).unwrap();
    assert!(vault.verify_erasure(&pretty).unwrap().holds());
    for member in certificate.as_object().unwrap().keys() {
        let mut changed = certificate.clone();
        changed[member] = "0".into();
        assert!(
            !vault.verify_erasure(&changed.to_string()).unwrap().holds(),
            "{member}"
        );
    }
    for text in ["", "{}", "[]", "{\"mac\":1}"] {
        assert!(!vault.verify_erasure(text).unwrap().is_genuine);
    }
    let other = Home::new();
    let elsewhere = other.open();
    assert!(
        !elsewhere
            .verify_erasure(&certificate.to_string())
            .unwrap()
            .is_genuine
    );
}

#[test]
fn a_key_file_put_back_after_the_erasure_is_found_and_destroyed_at_the_next_open() {
    let home = Home::new();
    let vault = home.open();
    fill(&vault, "gone");
    let before = key_files(&home.store());
    let erased = vault.erase_tenant("gone", |_, _| ()).unwrap();
    let certificate = vault.certificate(&erased, None).to_string();
    for (path, bytes) in &before {
        fs::write(path, bytes).unwrap();
    }
    let check = vault.verify_erasure(&certificate).unwrap();
    assert!(!check.holds() && check.has_remains);
    assert_eq!(check.files_with_keys.len(), 1);
    vault.close().unwrap();
    let vault = home.open();
    assert!(key_files(&home.store()).is_empty());
    assert!(vault.verify_erasure(&certificate).unwrap().holds());
    // In the place of a new tenant's file it opens nothing of the old one.
    assert!(
        !vault
            .tenant("gone")
            .unwrap()
            .create("/memories/a.md", "a\n")
            .unwrap()
            .is_error
    );
    vault.close().unwrap();
    for (path, bytes) in &before {
        fs::write(path, bytes).unwrap();
    }
    let vault = home.open();
    let error = vault.tenant("gone").map(drop).unwrap_err();
    assert!(
        matches!(error, Error::Store(StoreError::KeyFileMissing)),
        "{error}"
    );
    assert!(vault.verify_erasure(&certificate).unwrap().holds());
}

#[test]
fn a_copy_put_back_from_before_the_erasure_does_not_confirm_it() {
    let home = Home::new();
    let vault = home.open();
    fill(&vault, "gone");
    vault.close().unwrap();
    let copy = home.0.path().join("copy");
    copy_tree(&home.store(), &copy);
    let vault = home.open();
    let erased = vault.erase_tenant("gone", |_, _| ()).unwrap();
    let certificate = vault.certificate(&erased, None).to_string();
    vault.close().unwrap();
    fs::remove_dir_all(home.store()).unwrap();
    fs::rename(&copy, home.store()).unwrap();
    let check = home.open().verify_erasure(&certificate).unwrap();
    assert!(check.is_genuine && !check.is_known && !check.holds());
}

#[test]
fn keys_without_their_tenant_are_set_aside_and_come_back_with_it() {
    set_aside_and_come_back(false);
}

/// What is set aside is sealed under the new master key like everything else.
#[test]
fn keys_that_are_set_aside_outlive_a_rotation_of_the_master_key() {
    set_aside_and_come_back(true);
}

fn set_aside_and_come_back(rotates_master: bool) {
    let home = Home::new();
    let vault = home.open();
    assert!(
        !vault
            .tenant("old")
            .unwrap()
            .create("/memories/a.md", "a\n")
            .unwrap()
            .is_error
    );
    vault.close().unwrap();
    let older = home.0.path().join("older");
    copy_tree(&home.store(), &older);
    let vault = home.open();
    assert!(
        !vault
            .tenant("new")
            .unwrap()
            .create("/memories/b.md", "b\n")
            .unwrap()
            .is_error
    );
    vault.close().unwrap();
    let newer = home.0.path().join("newer");
    copy_tree(&home.store(), &newer);
    // Data and STATE of before, beside the keys of now.
    let put_back = |from: &Path| {
        for entry in fs::read_dir(home.store()).unwrap() {
            let name = entry.unwrap().file_name();
            let name = name.to_str().unwrap();
            if name.starts_with("gen-") {
                fs::remove_dir_all(home.store().join(name)).unwrap();
                copy_tree(&from.join(name), &home.store().join(name));
            }
        }
        fs::copy(from.join("STATE"), home.store().join("STATE")).unwrap();
    };
    put_back(&older);
    let vault = home.open();
    assert!(
        vault
            .tenant("new")
            .unwrap()
            .view("/memories/b.md", None)
            .unwrap()
            .is_error
    );
    if rotates_master {
        vault.rotate_master(None, false, |_, _| ()).unwrap();
    }
    vault.close().unwrap();
    put_back(&newer);
    let vault = home.open();
    assert!(
        !vault
            .tenant("new")
            .unwrap()
            .view("/memories/b.md", None)
            .unwrap()
            .is_error
    );
    assert_whole(&vault, "with data and keys of now");
}

#[test]
fn files_that_have_grown_far_beyond_what_is_stored_are_written_anew_unasked() {
    let home = Home::new();
    let policy = "[audit]\nenabled = true\n[redaction]\nrule_packs = []\n";
    let vault = home.open_with(policy::load(policy, "the test's policy").unwrap());
    let compactions = |vault: &Vault| {
        let mut seen = 0;
        vault
            .audit_store_events(|record| seen += usize::from(record.entry.command == "compact"))
            .unwrap();
        seen
    };
    let text = |number: usize| format!("{number} {}\n", "x".repeat(12_000)).repeat(20);
    let tenants = ["one", "two"].map(|name| vault.tenant(name).unwrap());
    for (number, tenant) in (0..200).flat_map(|number| tenants.iter().map(move |t| (number, t))) {
        let path = format!("/memories/d/{number}.md");
        assert!(!tenant.create(&path, &text(number)).unwrap().is_error);
    }
    assert_eq!(compactions(&vault), 0, "all of it is live");
    let largest = vault.stats().unwrap().backend.disk_bytes;
    for tenant in &tenants {
        assert!(!tenant.delete("/memories/d").unwrap().is_error);
    }
    for number in 0.. {
        assert!(number < 1_000, "{largest} bytes and never written anew");
        let path = format!("/memories/{number}.md");
        assert!(!tenants[0].create(&path, &text(number)).unwrap().is_error);
        assert!(!tenants[0].delete(&path).unwrap().is_error);
        if compactions(&vault) > 0 {
            break;
        }
    }
    let disk = vault.stats().unwrap().backend.disk_bytes;
    assert!(disk < largest / 2, "{largest} bytes, then {disk}");
    assert!(largest > 64 * 1_024 * 1_024, "{largest} bytes");
    assert_whole(&vault, "written anew");
}

#[test]
fn compacting_keeps_everything_and_takes_deleted_bytes_away() {
    let home = Home::new();
    let vault = home.open();
    fill(&vault, "one");
    for number in 0..MARKERS / 2 {
        let path = format!("/memories/d{}/{}.md", number % 7, marker(number));
        let _maybe_gone = vault.tenant("one").unwrap().delete(&path).unwrap();
    }
    assert_whole(&vault, "before");
    let listing = |vault: &Vault| {
        let reply = vault
            .tenant("one")
            .unwrap()
            .view("/memories", None)
            .unwrap();
        reply.as_text().unwrap().to_owned()
    };
    let shown = listing(&vault);
    // Reads go on while it is under way.
    let mut reads = 0;
    let compacted = vault
        .compact(|_, _| {
            assert_eq!(listing(&vault), shown);
            reads += 1;
        })
        .unwrap();
    assert!(reads > 0);
    assert!(compacted.after < compacted.before, "{compacted:?}");
    assert!(
        !vault
            .tenant("one")
            .unwrap()
            .create("/memories/after.md", "a\n")
            .unwrap()
            .is_error
    );
    assert_whole(&vault, "after");
    vault.close().unwrap();
    let vault = home.open();
    assert!(
        !vault
            .tenant("one")
            .unwrap()
            .view("/memories/after.md", None)
            .unwrap()
            .is_error
    );
    assert_whole(&vault, "opened again");
    let generations = fs::read_dir(home.store())
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .starts_with("gen-")
        })
        .count();
    assert_eq!(generations, 1);
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}
