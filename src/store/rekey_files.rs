//! Puts a store that was built with all keys new in the place of the one it was built from.
//!
//! It is built in `rekey/` inside the store's directory. Renaming that to `rekey.ready` is the
//! one moment from which on the new store counts; everything after it is finished by the next
//! process that locks the store, without any key.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::backend::{overwrite_and_remove, rename_over};

use super::OpenMode;

/// Where the new store is built.
pub(super) fn unfinished(store: &Path) -> PathBuf {
    store.join("rekey")
}

fn ready(store: &Path) -> PathBuf {
    store.join("rekey.ready")
}

/// Lets the new store count, and puts it in place.
pub(super) fn switch(store: &Path) -> io::Result<()> {
    fs::rename(unfinished(store), ready(store))?;
    sync(store)?;
    finish(store)
}

/// Finishes, or clears away, what a process that ended left. The caller holds the lock.
pub(super) fn settle(store: &Path, mode: OpenMode) -> io::Result<()> {
    if ready(store).exists() {
        finish(store)?;
    }
    if mode == OpenMode::ReadWrite {
        destroy_keys(&unfinished(store).join("keys"))?;
        remove_if_there(&unfinished(store))?;
        destroy_keys(&old_keys(store))?;
    }
    Ok(())
}

fn old_keys(store: &Path) -> PathBuf {
    store.join("keys.old")
}

/// Each step looks at what is still to be moved, so a kill between any two is made good.
fn finish(store: &Path) -> io::Result<()> {
    let ready = ready(store);
    let new_keys = ready.join("keys");
    if new_keys.exists() {
        let keys = store.join("keys");
        if keys.exists() {
            remove_if_there(&old_keys(store))?;
            fs::rename(&keys, old_keys(store))?;
        }
        fs::rename(&new_keys, &keys)?;
    }
    if let Some(new) = generations(&ready)?.pop() {
        for old in generations(store)? {
            remove_if_there(&old)?;
        }
        let name = new.file_name().unwrap_or_default();
        fs::rename(&new, store.join(name))?;
    }
    sync(store)?;
    for name in ["STATE", "keyring.a", "keyring.b"] {
        let new = ready.join(name);
        if new.exists() {
            rename_over(&new, &store.join(name))?;
        }
    }
    sync(store)?;
    destroy_keys(&old_keys(store))?;
    remove_if_there(&ready)?;
    sync(store)
}

/// All that the engine has, or had, in a directory.
fn generations(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("gen-") {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Overwrites and removes every file below a directory of key files, then the directory.
fn destroy_keys(keys: &Path) -> io::Result<()> {
    if !keys.exists() {
        return Ok(());
    }
    for shard in fs::read_dir(keys)? {
        let shard = shard?.path();
        if shard.is_dir() {
            for file in fs::read_dir(&shard)? {
                overwrite_and_remove(&file?.path())?;
            }
        }
    }
    remove_if_there(keys)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Step = fn(&Path) -> io::Result<()>;

    /// What [`finish`] does, one change of the disk after the other.
    const STEPS: [Step; 13] = [
        |store| fs::rename(unfinished(store), ready(store)),
        |store| fs::rename(store.join("keys"), old_keys(store)),
        |store| fs::rename(ready(store).join("keys"), store.join("keys")),
        |store| fs::remove_file(store.join("gen-000001/db")),
        |store| fs::remove_dir(store.join("gen-000001")),
        |store| fs::rename(ready(store).join("gen-000002"), store.join("gen-000002")),
        |store| fs::rename(ready(store).join("STATE"), store.join("STATE")),
        |store| fs::rename(ready(store).join("keyring.a"), store.join("keyring.a")),
        |store| fs::rename(ready(store).join("keyring.b"), store.join("keyring.b")),
        |store| fs::write(old_keys(store).join("aa/tag"), [0; 3]),
        |store| fs::remove_file(old_keys(store).join("aa/tag")),
        |store| fs::remove_dir_all(old_keys(store)),
        |store| fs::remove_dir(ready(store)),
    ];

    const FILES: [&str; 3] = ["STATE", "keyring.a", "keyring.b"];

    /// A store in which everything says `old`, with a new one built in it that says `new`.
    fn built(home: &Path) {
        for (store, generation, says) in [
            (home.to_path_buf(), "gen-000001", "old"),
            (unfinished(home), "gen-000002", "new"),
        ] {
            fs::create_dir_all(store.join("keys/aa")).unwrap();
            fs::create_dir_all(store.join(generation)).unwrap();
            fs::write(store.join(generation).join("db"), says).unwrap();
            fs::write(store.join("keys/aa/tag"), says).unwrap();
            for name in FILES {
                fs::write(store.join(name), says).unwrap();
            }
        }
    }

    fn assert_is(home: &Path, says: &str, generation: &str, when: usize) {
        let mut names: Vec<String> = fs::read_dir(home)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            ["STATE", generation, "keyring.a", "keyring.b", "keys"],
            "{when}"
        );
        let generation = format!("{generation}/db");
        for name in [generation.as_str(), "keys/aa/tag"]
            .into_iter()
            .chain(FILES)
        {
            assert_eq!(fs::read_to_string(home.join(name)).unwrap(), says, "{when}");
        }
    }

    #[test]
    fn what_a_kill_after_any_step_left_is_all_old_or_all_new_after_the_next_open() {
        for done in 0..=STEPS.len() {
            let home = tempfile::tempdir().unwrap();
            built(home.path());
            for step in STEPS.iter().take(done) {
                step(home.path()).unwrap();
            }
            settle(home.path(), OpenMode::ReadWrite).unwrap();
            match done {
                0 => assert_is(home.path(), "old", "gen-000001", done),
                _ => assert_is(home.path(), "new", "gen-000002", done),
            }
        }
    }

    /// A process may only read: it finishes what counts, and leaves the rest to others.
    #[test]
    fn a_process_that_only_reads_finishes_a_new_store_and_clears_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        built(home.path());
        settle(home.path(), OpenMode::ReadOnly).unwrap();
        assert!(unfinished(home.path()).exists());
        fs::rename(unfinished(home.path()), ready(home.path())).unwrap();
        settle(home.path(), OpenMode::ReadOnly).unwrap();
        assert_is(home.path(), "new", "gen-000002", STEPS.len());
    }
}
