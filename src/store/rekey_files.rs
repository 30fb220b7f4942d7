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
