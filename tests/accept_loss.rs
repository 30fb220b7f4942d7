//! A store that has lost what it acknowledged is refused, and opened only if the operator
//! accepts that: if what is there is whole in itself, in a new era, and not a second time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use strongroom::backend::{Backend, Batch, SledBackend};
use strongroom::{Error, StoreError, Vault, VaultBuilder};
use tempfile::TempDir;

use strongroom::policy::Policy;
use support::{assert_whole, plain_policy};

const GENERATION: &str = "store/gen-000001";
const ROOT: u8 = 1;
const HEAD: u8 = 2;

fn audited() -> Policy {
    let mut policy = plain_policy();
    policy.audit.enabled = true;
    policy
}

/// A store with `before.md`, of which `snapshot` is a copy of the engine's files, then `after.md`.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        strongroom::generate_key_file(home.path("key")).unwrap();
        home.write("before.md");
        copy_all(&home.path(GENERATION), &home.path("snapshot"));
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn builder(&self) -> VaultBuilder {
        Vault::builder()
            .path(self.path("store"))
            .key_file(self.path("key"))
            .policy(audited())
            .create(true)
    }

    fn write(&self, name: &str) {
        let vault = self.builder().open().unwrap();
        let tenant = vault.tenant("a").unwrap();
        let reply = tenant.create(&format!("/memories/{name}"), "text\n");
        assert!(!reply.unwrap().is_error);
        vault.close().unwrap();
    }

    fn roll_back(&self) {
        fs::remove_dir_all(self.path(GENERATION)).unwrap();
        copy_all(&self.path("snapshot"), &self.path(GENERATION));
    }

    fn refused(&self) -> StoreError {
        match self.builder().open().err().expect("it is refused") {
            Error::Store(error) => error,
            error => panic!("{error}"),
        }
    }

    /// Opens it with the loss, then as ever.
    fn accepts(&self, era: u32) {
        let vault = self.builder().accept_loss(true).open().unwrap();
        assert_eq!(vault.era(), era);
        assert_whole(&vault, "accepted");
        vault.close().unwrap();
        self.write(&format!("era-{era}.md"));
        let vault = self.builder().open().unwrap();
        assert_eq!(vault.era(), era);
        assert_whole(&vault, "afterwards");
        let mut accepted = 0;
        vault
            .audit_store_events(|record| {
                accepted += u32::from(record.entry.command == "accept loss");
            })
            .unwrap();
        assert_eq!(accepted, era);
        vault.close().unwrap();
    }

    fn has(&self, name: &str) -> bool {
        let vault = self.builder().open().unwrap();
        let tenant = vault.tenant("a").unwrap();
        let reply = tenant.view(&format!("/memories/{name}"), None).unwrap();
        !reply.is_error
    }
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
fn a_store_that_was_rolled_back_opens_only_when_the_loss_is_accepted() {
    let home = Home::new();
    home.write("after.md");
    home.roll_back();
    assert!(matches!(home.refused(), StoreError::RolledBack));
    home.accepts(1);
    assert!(home.has("before.md") && !home.has("after.md"));
    // The data of before is from another era now, however high its numbers.
    home.roll_back();
    assert!(matches!(home.refused(), StoreError::RolledBack));
    home.accepts(1);
}

#[test]
fn a_lost_state_is_accepted_and_written_anew() {
    let home = Home::new();
    fs::remove_file(home.path("store/STATE")).unwrap();
    assert!(matches!(home.refused(), StoreError::StateLost));
    home.accepts(1);
    assert!(home.has("before.md"));
}

#[test]
fn a_store_that_has_lost_nothing_stays_in_its_era() {
    let home = Home::new();
    home.accepts(0);
    assert!(home.has("before.md"));
}

#[test]
fn data_that_is_not_whole_in_itself_is_never_accepted() {
    for space in [ROOT, HEAD] {
        let home = Home::new();
        home.write("after.md");
        home.roll_back();
        let engine = SledBackend::open(&home.path(GENERATION)).unwrap();
        let records = engine.scan(&[space], None, 1).unwrap();
        let deletes = records.into_iter().map(|(key, _)| key).collect();
        engine
            .apply(Batch {
                deletes,
                ..Batch::default()
            })
            .unwrap();
        engine.close().unwrap();
        let opened = home.builder().accept_loss(true).open();
        assert!(opened.is_err(), "space {space}");
    }
}
