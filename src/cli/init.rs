//! `init`, and what `exec --create` makes: a store and its key, never over what is there.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::json;
use strongroom::key::{self, KeySource, OsRandom};
use strongroom::{Error, StoreError, Vault, policy};

use super::args::{InitArgs, StoreArgs};
use super::failure::{Exit, Failure, Stop};
use super::open::Opened;
use super::output::{Out, say};
use super::{keys, open};

const KEEP_THE_KEY: &str =
    "Without this key nothing in the store can ever be read. Keep a copy elsewhere.";

/// Everything that can be refused is checked before the key file is written.
pub fn run(args: &InitArgs) -> Result<(), Stop> {
    let store = &args.store.store;
    let policy = policy::load_named_or_path(&args.policy).map_err(Error::from)?;
    check_free(store)?;
    let source = match &args.generate_key {
        Some(path) => generate(path, store)?,
        None => keys::source_of_new_store(&args.store.key)?,
    };
    create(store, source, Some(policy))
        .and_then(|vault| Ok(vault.close()?))
        .map_err(|stop| naming_key(stop, args.generate_key.as_deref()))?;
    let store = shown(store);
    match &args.generate_key {
        Some(key) => {
            let key = shown(key);
            if args.json {
                say(KEEP_THE_KEY);
            }
            Out::new(args.json).answer(
                &format!("Created the store {store}\nWrote its key to {key}\n{KEEP_THE_KEY}\n"),
                &json!({ "store": store, "key_file": key }),
            )
        }
        None => Out::new(args.json).answer(
            &format!("Created the store {store}\n"),
            &json!({ "store": store }),
        ),
    }
}

/// Opens the store for `exec --create`, after making what is not there.
pub fn open_or_create(args: &StoreArgs) -> Result<Opened, Stop> {
    if !is_free(&args.store) {
        return open::vault(args, false);
    }
    check_free(&args.store)?;
    let new_key = keys::key_file(&args.key)?.filter(|path| is_absent(path));
    let source = match &new_key {
        Some(path) => generate(path, &args.store)?,
        None => keys::source_of_new_store(&args.key)?,
    };
    let vault =
        create(&args.store, source, None).map_err(|stop| naming_key(stop, new_key.as_deref()))?;
    say(&format!("created the store {}", shown(&args.store)));
    if let Some(key) = &new_key {
        say(&format!("wrote its key to {}", shown(key)));
        say(KEEP_THE_KEY);
    }
    Ok(Opened::Own(vault))
}

fn create(store: &Path, source: KeySource, policy: Option<policy::Policy>) -> Result<Vault, Stop> {
    let builder = Vault::builder().path(store).key_source(source).create(true);
    let builder = match policy {
        Some(policy) => builder.policy(policy),
        None => builder,
    };
    Ok(builder.open()?)
}

/// Writes a new key file, refused inside the store that it is for.
pub fn generate(path: &Path, store: &Path) -> Result<KeySource, Stop> {
    key::generate_key_file(path, Some(store), &OsRandom).map_err(Error::from)?;
    Ok(KeySource::KeyFile(path.to_path_buf()))
}

/// Refuses a place where no store can be made, before anything is.
fn check_free(store: &Path) -> Result<(), Stop> {
    if !is_free(store) {
        return Err(Error::Store(StoreError::AlreadyExists).into());
    }
    let parent = parent_of(store);
    if parent.is_dir() {
        return Ok(());
    }
    Err(Failure::new(
        Exit::NotFound,
        format!(
            "create the store: there is no directory {}",
            parent.display()
        ),
        "Create that directory first, or name another place with --store.",
    )
    .into())
}

/// Nothing, or an empty directory. What cannot be looked at does not count as free.
pub fn is_free(store: &Path) -> bool {
    match fs::read_dir(store) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => is_absent(store),
    }
}

/// Surely nothing is there: a dangling link is something, and so is what may not be seen.
pub fn is_absent(path: &Path) -> bool {
    matches!(fs::symlink_metadata(path), Err(error) if error.kind() == ErrorKind::NotFound)
}

fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        Some(_) => PathBuf::from("."),
        None => PathBuf::from("/"),
    }
}

/// Adds to a failure that a key file was made before it: it is never removed by itself.
pub fn naming_key(stop: Stop, key: Option<&Path>) -> Stop {
    match (stop, key) {
        (Stop::Failed(failure), Some(key)) => {
            let key = shown(key);
            Stop::Failed(failure.and_next(&format!(
                "The new key file {key} was written before that: remove it if there is no store, or use it with --key-file."
            )))
        }
        (stop, _) => stop,
    }
}

/// The path in full, so that it still means something in a log.
pub fn shown(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    absolute.as_deref().unwrap_or(path).display().to_string()
}
