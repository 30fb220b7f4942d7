//! Runs the commands of docs/RECOVERY.md as they are written, each section after its loss.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use strongroom::backend::{Backend, Batch, SledBackend};
use strongroom::clock::{Clock, UnixMillis};
use strongroom::{Depth, Vault};
use tempfile::TempDir;

const PAGE: &str = include_str!("../docs/RECOVERY.md");
const TENANT: &str = "acme/user-17";
const CHUNK: u8 = 4;

/// The page's commands, by section.
fn sections() -> BTreeMap<&'static str, String> {
    let mut all = BTreeMap::new();
    for section in PAGE.split("\n## ").skip(1) {
        let (title, text) = section.split_once('\n').unwrap();
        let mut commands = String::new();
        for block in text.split("```sh\n").skip(1) {
            commands.push_str(block.split_once("```").unwrap().0);
        }
        all.insert(title, commands);
    }
    all
}

/// The directory of the page: a store with two tenants and two keys, and a backup of it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.run("strongroom init --store ./memory --generate-key ./memory.key --policy strict");
        for directory in ["backups", "keys", "elsewhere"] {
            fs::create_dir(place.path(directory)).unwrap();
        }
        place.write("memory", TENANT, "tea.md", "likes tea\n");
        place.write("memory", "other", "a.md", "another\n");
        place
    }

    /// As after the commands of the first section.
    fn prepared() -> Self {
        let place = Self::new();
        place.run(&sections()["Before anything happens"]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, commands: &str) -> String {
        let strongroom = Path::new(env!("CARGO_BIN_EXE_strongroom"));
        let path = format!(
            "{}:{}",
            strongroom.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let mut shell = Command::new("sh");
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STRONGROOM_")) {
            shell.env_remove(name);
        }
        let output = shell
            .args(["-euc", commands])
            .env("PATH", path)
            .current_dir(self.0.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{commands}\n{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn section(&self, title: &str) -> String {
        self.run(&sections()[title])
    }

    fn open(&self, store: &str, key: &str) -> Vault {
        Vault::builder()
            .path(self.path(store))
            .key_file(self.path(key))
            .open()
            .unwrap()
    }

    fn write(&self, store: &str, tenant: &str, name: &str, text: &str) {
        let vault = self.open(store, "memory.key");
        let tenant = vault.tenant(tenant).unwrap();
        let reply = tenant.create(&format!("/memories/{name}"), text).unwrap();
        assert!(!reply.is_error, "{reply:?}");
        vault.close().unwrap();
    }

    fn has(&self, tenant: &str, name: &str) -> bool {
        self.has_in("memory", "memory.key", tenant, name)
    }

    /// Whether the store verifies and the file is there.
    fn has_in(&self, store: &str, key: &str, tenant: &str, name: &str) -> bool {
        let vault = self.open(store, key);
        let report = vault.verify(Depth::Full).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        let tenant = vault.tenant(tenant).unwrap();
        let reply = tenant.view(&format!("/memories/{name}"), None).unwrap();
        vault.close().unwrap();
        !reply.is_error
    }
}

#[test]
fn every_section_of_the_page_is_tried_here() {
    let source = include_str!("recovery.rs");
    for title in sections().keys() {
        assert!(
            source.matches(&format!("\"{title}\"")).count() > 0,
            "{title}"
        );
    }
}

#[test]
fn before_anything_happens() {
    let place = Place::prepared();
    for file in [
        "backups/monday",
        "keys/monday",
        "elsewhere/checkpoints",
        "spare.key",
    ] {
        assert!(place.path(file).exists(), "{file}");
    }
    assert!(!place.path("drill").exists());
}

#[test]
fn a_lost_disk() {
    let place = Place::prepared();
    fs::remove_dir_all(place.path("memory")).unwrap();
    place.section("Lost disk");
    assert!(place.has(TENANT, "tea.md") && place.has("other", "a.md"));
}

#[test]
fn a_lost_key() {
    let place = Place::prepared();
    fs::remove_file(place.path("memory.key")).unwrap();
    place.section("Lost key");
    assert!(place.has_in("memory", "new.key", TENANT, "tea.md"));
}

#[test]
fn a_lost_tenant() {
    let place = Place::prepared();
    let vault = place.open("memory", "memory.key");
    let tenant = vault.tenant(TENANT).unwrap();
    assert!(!tenant.delete("/memories/tea.md").unwrap().is_error);
    vault.close().unwrap();
    place.section("Lost tenant");
    assert!(place.has(TENANT, "tea.md"));
}

#[test]
fn a_lost_key_file_of_a_tenant() {
    let place = Place::prepared();
    // Their names are keyed hashes: the right one is found by trying.
    let files = key_files(&place.path("memory/keys"));
    for file in &files {
        let aside = place.path("lost");
        fs::rename(file, &aside).unwrap();
        let vault = place.open("memory", "memory.key");
        let is_it = vault.tenant(TENANT).is_err();
        vault.close().unwrap();
        if is_it {
            break;
        }
        fs::rename(&aside, file).unwrap();
    }
    assert!(place.path("lost").exists());
    place.section("Lost key file of a tenant");
    assert!(place.has(TENANT, "tea.md") && place.has("other", "a.md"));
}

fn key_files(keys: &Path) -> Vec<PathBuf> {
    let shards = fs::read_dir(keys)
        .unwrap()
        .map(|shard| shard.unwrap().path());
    shards
        .flat_map(|shard| fs::read_dir(shard).unwrap())
        .map(|file| file.unwrap().path())
        .collect()
}

#[test]
fn an_erased_tenant_and_an_older_backup() {
    let place = Place::prepared();
    place.run(
        "strongroom tenant erase acme/user-17 --yes --json --store ./memory --key-file ./memory.key > ./erased.json",
    );
    fs::remove_dir_all(place.path("memory")).unwrap();
    place.section("Erased, and the backup is older");
    assert!(!place.has(TENANT, "tea.md") && place.has("other", "a.md"));
    let vault = place.open("memory", "memory.key");
    assert_eq!(vault.stats().unwrap().erased.len(), 1);
}

/// A clock that is a year ahead.
struct Ahead;

impl Clock for Ahead {
    fn now(&self) -> UnixMillis {
        strongroom::clock::SystemClock.now() + 300 * 24 * 60 * 60 * 1_000
    }
}

#[test]
fn a_bad_clock() {
    let place = Place::prepared();
    let vault = Vault::builder()
        .path(place.path("memory"))
        .key_file(place.path("memory.key"))
        .clock(Arc::new(Ahead))
        .open()
        .unwrap();
    let reply = vault
        .tenant(TENANT)
        .unwrap()
        .create("/memories/b.md", "b\n");
    assert!(!reply.unwrap().is_error);
    vault.close().unwrap();
    let stats = "strongroom stats --json --store ./memory --key-file ./memory.key";
    assert!(place.run(stats).contains("\"behind\""));
    place.section("Bad clock");
    assert!(place.run(stats).contains("\"believed\""));
    assert!(place.has(TENANT, "b.md"));
}

#[test]
fn a_store_that_was_rolled_back() {
    let place = Place::prepared();
    let generation = "memory/gen-000001";
    copy_all(&place.path(generation), &place.path("snapshot"));
    place.write("memory", TENANT, "later.md", "later\n");
    fs::remove_dir_all(place.path(generation)).unwrap();
    copy_all(&place.path("snapshot"), &place.path(generation));
    let opened = Vault::builder()
        .path(place.path("memory"))
        .key_file(place.path("memory.key"))
        .open();
    assert!(opened.is_err());
    place.section("Rolled back");
    assert!(place.has(TENANT, "tea.md"));
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_all(&path, &target);
        } else {
            fs::copy(&path, target).unwrap();
        }
    }
}

#[test]
fn a_damaged_store() {
    let place = Place::prepared();
    place.write("memory", TENANT, "later.md", "later\n");
    place.write("memory", TENANT, "lost.md", &"to be lost\n".repeat(100));
    let engine = SledBackend::open(&place.path("memory/gen-000001")).unwrap();
    let chunks = engine.scan(&[CHUNK], None, 100).unwrap();
    let largest = chunks.iter().max_by_key(|(_, value)| value.len()).unwrap();
    let deletes = vec![largest.0.clone()];
    engine
        .apply(Batch {
            deletes,
            ..Batch::default()
        })
        .unwrap();
    engine.close().unwrap();
    let said = place.section("Damaged");
    assert!(
        said.contains("damaged\n") && said.contains("not all of it\n"),
        "{said}"
    );
    assert!(place.has(TENANT, "tea.md") && place.has(TENANT, "later.md"));
    assert!(!place.has(TENANT, "lost.md"));
}

#[test]
fn a_full_disk() {
    let place = Place::prepared();
    place.section("Full disk");
    assert!(place.has(TENANT, "tea.md"));
}

#[test]
fn another_machine() {
    let place = Place::prepared();
    place.write("memory", TENANT, "later.md", "later\n");
    place.section("Moving to another machine");
    for name in ["tea.md", "later.md"] {
        assert!(place.has_in("elsewhere/memory", "elsewhere/memory.key", TENANT, name));
    }
}
