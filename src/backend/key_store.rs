//! Where the few small files outside the engine lie: keyring, tenant key files, STATE.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::hex;

use super::BackendError;

/// One slot of STATE in bytes: a page, so that a write of one slot cannot tear the other.
pub const STATE_SLOT_BYTES: usize = 4_096;

/// What stands between tag and number in the name of a key file that is set aside.
const ASIDE: &str = ".aside-";

/// How the name of a file ends while it is being written.
const TEMPORARY: &str = "tmp";

/// The largest keyring or tenant key file that is read, in bytes.
const BLOB_BYTES_MAX: u64 = 1_024 * 1_024;

/// What a key store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// The keyring, in two copies.
    Keyring,
    /// One tenant's keys, by file tag, in one copy (the blob holds itself twice).
    Tenant([u8; 16]),
    /// Keys of a tenant that the store's data does not know, set aside under a number.
    Aside([u8; 16], u8),
    /// The newest durable state, in two slots that are written in turn.
    State,
}

/// Which of the two copies of a keyring, or slots of STATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Copy {
    /// The first.
    A,
    /// The second.
    B,
}

/// Small blobs with durable, atomic writes. Nothing here is readable without a key.
///
/// Only the holder of the store's lock writes, and the blobs carry counters of their
/// own, so a plain `write` is enough here; a store shared by several processes would
/// need a compare-and-set on those counters.
pub trait KeyStore: Send + Sync {
    /// The bytes of one copy, or `None` where there is none.
    ///
    /// # Errors
    /// Those of the operating system.
    fn read(&self, item: Item, copy: Copy) -> Result<Option<Vec<u8>>, BackendError>;

    /// Replaces one copy. Durable when it returns.
    ///
    /// # Errors
    /// Those of the operating system; the old bytes are then still there, or (STATE
    /// only) the slot is torn, which its checksum shows.
    fn write(&self, item: Item, copy: Copy, bytes: &[u8]) -> Result<(), BackendError>;

    /// Overwrites and removes an item.
    ///
    /// # Errors
    /// Those of the operating system.
    fn destroy(&self, item: Item) -> Result<(), BackendError>;

    /// The file tags of all tenants that have a key file.
    ///
    /// # Errors
    /// Those of the operating system.
    fn tenants(&self) -> Result<Vec<[u8; 16]>, BackendError>;

    /// The file tags and numbers of all keys that are set aside. Default: none, for a key store
    /// that sets none aside.
    ///
    /// # Errors
    /// Those of the operating system.
    fn asides(&self) -> Result<Vec<([u8; 16], u8)>, BackendError> {
        Ok(Vec::new())
    }
}

/// The key store of a store directory.
pub struct FileKeyStore {
    directory: PathBuf,
    /// One replacement at a time, since they share the name of the temporary file.
    replacing: Mutex<()>,
    /// STATE, from its first write on: it is written with each group of commits.
    state: Mutex<Option<File>>,
}

impl FileKeyStore {
    /// The key store in `directory`.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_path_buf(),
            replacing: Mutex::new(()),
            state: Mutex::new(None),
        }
    }

    fn path(&self, item: Item, copy: Copy) -> PathBuf {
        match (item, copy) {
            (Item::Keyring, Copy::A) => self.directory.join("keyring.a"),
            (Item::Keyring, Copy::B) => self.directory.join("keyring.b"),
            (Item::State, _) => self.directory.join("STATE"),
            (Item::Tenant(tag), _) => self.tenant_path(&tag, ""),
            (Item::Aside(tag, number), _) => self.tenant_path(&tag, &format!("{ASIDE}{number}")),
        }
    }

    fn tenant_path(&self, tag: &[u8; 16], ending: &str) -> PathBuf {
        let name = hex::encode(tag);
        let shard = name.get(..2).unwrap_or("00");
        let file = format!("{name}{ending}");
        self.directory.join("keys").join(shard).join(file)
    }

    /// Overwrites and removes what a kill left of replacements that were not in force yet. For
    /// whoever holds the store's lock.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn clear_temporaries(&self) -> io::Result<()> {
        let keys = self.directory.join("keys");
        let names = key_files(&keys)?;
        let of_tenants = names
            .iter()
            .filter(|name| without_temporary(name).is_some())
            .filter_map(|name| Some(keys.join(name.get(..2)?).join(name)));
        let keyring = self.path(Item::Keyring, Copy::A).with_extension(TEMPORARY);
        for path in of_tenants.chain([keyring]) {
            match overwrite_and_remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// What `of` makes of the names of all key files.
    fn list<T>(&self, of: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, BackendError> {
        let names = key_files(&self.directory.join("keys"));
        let names = names.map_err(|error| BackendError::from_io(&error))?;
        Ok(names.iter().filter_map(|name| of(name)).collect())
    }

    fn write_state(&self, copy: Copy, bytes: &[u8]) -> io::Result<()> {
        let mut slot = bytes.to_vec();
        slot.resize(STATE_SLOT_BYTES, 0);
        let mut open = self.lock_state();
        // It stays open only if all went well: what comes next then starts from its name.
        let file = match open.take() {
            // One that was removed or replaced has no name any more.
            Some(file) if file.metadata()?.nlink() > 0 => file,
            _ => self.open_state()?,
        };
        file.write_all_at(&slot, slot_offset(copy))?;
        file.sync_data()?;
        *open = Some(file);
        Ok(())
    }

    fn open_state(&self) -> io::Result<File> {
        let path = self.path(Item::State, Copy::A);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)?;
        set_private_mode(&path)?;
        Ok(file)
    }

    fn lock_state(&self) -> MutexGuard<'_, Option<File>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyStore for FileKeyStore {
    fn read(&self, item: Item, copy: Copy) -> Result<Option<Vec<u8>>, BackendError> {
        let read = match item {
            Item::State => read_slot(&self.path(item, copy), copy),
            Item::Keyring | Item::Tenant(_) | Item::Aside(..) => read_whole(&self.path(item, copy)),
        };
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BackendError::from_io(&error)),
        }
    }

    fn write(&self, item: Item, copy: Copy, bytes: &[u8]) -> Result<(), BackendError> {
        let written = match item {
            Item::State => self.write_state(copy, bytes),
            Item::Keyring | Item::Tenant(_) | Item::Aside(..) => {
                let _one_at_a_time = self
                    .replacing
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                replace_durably(&self.path(item, copy), bytes)
            }
        };
        written.map_err(|error| BackendError::from_io(&error))
    }

    fn destroy(&self, item: Item) -> Result<(), BackendError> {
        if item == Item::State {
            *self.lock_state() = None;
        }
        for copy in [Copy::A, Copy::B] {
            let path = self.path(item, copy);
            // A kill between writing and renaming leaves a whole copy under this name.
            for path in [path.with_extension(TEMPORARY), path] {
                match overwrite_and_remove(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(BackendError::from_io(&error));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn tenants(&self) -> Result<Vec<[u8; 16]>, BackendError> {
        // What a kill left half written counts too, so that it is found and removed.
        self.list(|name| hex::decode(without_temporary(name).unwrap_or(name)))
    }

    fn asides(&self) -> Result<Vec<([u8; 16], u8)>, BackendError> {
        self.list(|name| {
            let (tag, number) = name.split_once(ASIDE)?;
            Some((hex::decode(tag)?, number.parse().ok()?))
        })
    }
}

/// Takes all rights of group and others from a file or directory of the store.
///
/// # Errors
/// Those of the operating system.
pub fn set_private_mode(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    let mode = if metadata.is_dir() { 0o700 } else { 0o600 };
    if metadata.permissions().mode() & 0o777 != mode {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn slot_offset(copy: Copy) -> u64 {
    match copy {
        Copy::A => 0,
        Copy::B => STATE_SLOT_BYTES as u64,
    }
}

fn read_slot(path: &Path, copy: Copy) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut slot = vec![0; STATE_SLOT_BYTES];
    match file.read_exact_at(&mut slot, slot_offset(copy)) {
        Ok(()) => Ok(slot),
        // A file cut short is a damaged slot, not a missing one.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(BLOB_BYTES_MAX)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a temporary sibling, syncs it, renames it over `path`, syncs the directory.
fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    create_private_directory(directory)?;
    let temporary = path.with_extension(TEMPORARY);
    let written = write_synced(&temporary, bytes).and_then(|()| rename_over(&temporary, path));
    if written.is_err() {
        // The room that it takes may be what is missing.
        let _removed = fs::remove_file(&temporary);
    }
    written
}

/// Renames a file over another, durably, and overwrites what the other held.
///
/// # Errors
/// Those of the operating system.
pub fn rename_over(from: &Path, to: &Path) -> io::Result<()> {
    let replaced = OpenOptions::new().write(true).open(to).ok();
    fs::rename(from, to)?;
    let directory = to.parent().ok_or(io::ErrorKind::InvalidInput)?;
    File::open(directory)?.sync_all()?;
    // The new file is in force, whatever comes of the old one.
    let _overwritten = replaced.map(|replaced| overwrite_replaced(&replaced));
    Ok(())
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    set_private_mode(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Overwrites what a rename has taken the last name of: retired and former keys must not lie
/// on in free blocks. A file that has other names is a copy that somebody keeps.
fn overwrite_replaced(mut file: &File) -> io::Result<()> {
    let data = file.metadata()?;
    if data.nlink() != 0 {
        return Ok(());
    }
    let length = usize::try_from(data.len()).unwrap_or(0);
    file.write_all(&vec![0; length])?;
    file.sync_data()
}

/// Makes a directory that is missing, durably. (A new store has all of them.)
fn create_private_directory(directory: &Path) -> io::Result<()> {
    if directory.exists() {
        return Ok(());
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => set_private_mode(directory)?,
    }
    match directory.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Overwrites a file with zeros, then removes it, durably.
///
/// # Errors
/// Those of the operating system.
pub fn overwrite_and_remove(path: &Path) -> io::Result<()> {
    let length = usize::try_from(fs::metadata(path)?.len()).unwrap_or(0);
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(&vec![0; length])?;
    file.sync_all()?;
    fs::remove_file(path)?;
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// The name that a file will have, if it is being written.
fn without_temporary(name: &str) -> Option<&str> {
    name.strip_suffix(TEMPORARY)?.strip_suffix('.')
}

/// The names of all files that lie where key files do.
fn key_files(keys: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    if !keys.exists() {
        return Ok(names);
    }
    for shard in fs::read_dir(keys)? {
        let shard = shard?;
        if !shard.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(shard.path())? {
            names.extend(file?.file_name().to_str().map(str::to_owned));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_was_removed_or_replaced_is_written_to_the_file_of_that_name() {
        let home = tempfile::tempdir().unwrap();
        let keys = FileKeyStore::new(home.path());
        let state = home.path().join("STATE");
        let changes: [fn(&FileKeyStore, &Path); 3] = [
            |_, state| fs::remove_file(state).unwrap(),
            |_, state| {
                fs::write(state.with_extension("new"), [7; 2 * STATE_SLOT_BYTES]).unwrap();
                fs::rename(state.with_extension("new"), state).unwrap();
            },
            |keys, _| keys.destroy(Item::State).unwrap(),
        ];
        for (number, change) in (1..).zip(changes) {
            keys.write(Item::State, Copy::A, &[0; 8]).unwrap();
            change(&keys, &state);
            keys.write(Item::State, Copy::B, &[number; 8]).unwrap();
            let slot = keys.read(Item::State, Copy::B).unwrap().unwrap();
            assert_eq!(slot[..8], [number; 8]);
            let mode = fs::metadata(&state).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
