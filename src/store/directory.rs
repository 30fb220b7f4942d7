//! A store's directory: made whole or not at all, locked by one process, its engine
//! files made safe before the engine may touch them.
//!
//! ```text
//! LOCK              advisory lock, and the holder's process id
//! keyring.a  .b     two copies of the keyring
//! keys/<xx>/<tag>   one small file a tenant
//! STATE             two slots, written in turn
//! gen-000001/       the engine's directory; its number stands in STATE
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backend::{
    Backend, BackendError, Copy, Derived, FileKeyStore, Item, KeyStore, SledBackend, SwitchBackend,
    bring_back, remove_aside, remove_half_written_snapshots, set_aside, set_private_mode,
};
use crate::clock::Clock;
use crate::key::{Keyring, Random};

use super::open::{self, Checked, Ground};
use super::safety_copy::{SafetyCopy, has_data};
use super::{OpenMode, Store, StoreError, compact, keyring, rekey_files};

const FIRST_GENERATION: u32 = 1;

/// A store directory that this process has locked.
pub(crate) struct StoreDirectory {
    path: PathBuf,
    _lock: Lock,
    mode: OpenMode,
}

/// The lock on a directory, for as long as this lives.
///
/// A child made by `fork` shares it, be it only until `exec`. So the process that took it
/// unlocks it, since closing the file would leave it to the child; a child never does, since
/// that would take it from the parent.
pub(super) struct Lock {
    file: File,
    process: u32,
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            let _unlocked = self.file.unlock();
        }
    }
}

impl StoreDirectory {
    /// Builds a whole store in a temporary sibling and renames it to `path`.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] when there is something at `path` other than an
    /// empty directory.
    pub(crate) fn create(
        path: &Path,
        keyring: Keyring,
        policy: &str,
        clock: &Arc<dyn Clock>,
        random: &Arc<dyn Random>,
    ) -> Result<(), StoreError> {
        if is_occupied(path) {
            return Err(StoreError::AlreadyExists);
        }
        let temporary = temporary_sibling(path, &**random)?;
        let built = build(&temporary, keyring, policy, clock, random)
            .and_then(|()| fs::rename(&temporary, path).map_err(|error| not_renamed(&error)));
        if built.is_err() {
            // What was built holds nothing yet, so there is nothing to keep.
            let _removed = fs::remove_dir_all(&temporary);
        }
        built?;
        sync_directory(parent_of(path))
    }

    /// Locks the store in `path` for this process.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`], [`StoreError::Locked`], or what the system says.
    pub(crate) fn lock(path: &Path, mode: OpenMode) -> Result<Self, StoreError> {
        let mut is_store = false;
        for name in ["STATE", "keyring.a", "keyring.b"] {
            is_store |= match path.join(name).try_exists() {
                // Another user's store is not the same as none.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    return Err(StoreError::io(&error));
                }
                exists => exists.unwrap_or(false),
            };
        }
        if !is_store {
            return Err(match fs::metadata(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => StoreError::io(&error),
                _ => StoreError::NotAStore,
            });
        }
        let lock = take_lock(&path.join("LOCK"), mode)?;
        rekey_files::settle(path, mode).map_err(|error| StoreError::io(&error))?;
        if mode == OpenMode::ReadWrite {
            let cleared = FileKeyStore::new(path).clear_temporaries();
            cleared.map_err(|error| StoreError::io(&error))?;
        }
        Ok(Self {
            path: path.to_path_buf(),
            _lock: lock,
            mode,
        })
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of the keyring's two copies.
    pub(crate) fn keyring_copies(&self) -> Result<[Option<Vec<u8>>; 2], StoreError> {
        keyring_copies(&self.path)
    }

    /// Opens the store with its keyring. With `needs_repair` both copies of the keyring are
    /// written anew, once the keyring has proved to be no older than the data.
    ///
    /// # Errors
    /// Any [`StoreError`]; after one, the engine's files are as they were before where a
    /// copy was made of them.
    pub(crate) fn open(
        self,
        keyring: Keyring,
        needs_repair: bool,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        keep_copy: bool,
        accept_loss: bool,
    ) -> Result<Store, StoreError> {
        let keys: Arc<dyn KeyStore> = Arc::new(FileKeyStore::new(&self.path));
        let (number, is_clean) = match open::generation(&*keys, &keyring) {
            Err(StoreError::StateLost) if accept_loss => (newest_generation(&self.path)?, false),
            found => found?,
        };
        let live = self.path.join(generation_name(number));
        let copy = SafetyCopy::make(&live, !is_clean, keep_copy)?;
        if !has_data(&live) {
            return Err(StoreError::RolledBack);
        }
        bring_back(&live)
            .and_then(|()| remove_half_written_snapshots(&live))
            .map_err(|error| StoreError::io(&error))?;
        let ground = |backend: &Arc<dyn Backend>| Ground {
            backend: Arc::clone(backend),
            keys: Arc::clone(&keys),
            clock: Arc::clone(&clock),
            random: Arc::clone(&random),
            place: live.parent().map(Path::to_path_buf),
        };
        let check = |accepted| {
            let (ground, keyring) = (&ground, &keyring);
            move |backend: &Arc<dyn Backend>| {
                open::check_or_accept(ground(backend), keyring, accepted)
            }
        };
        let checked = match check_generation(&live, &copy, check(None)) {
            // Only once nothing else has helped.
            Err(error) if accept_loss && error.is_damage() => {
                copy.restore()?;
                check_generation(&live, &copy, check(Some(number)))
            }
            checked => checked,
        };
        match checked {
            Ok(checked) => {
                copy.discard()?;
                remove_aside(&live).map_err(|error| StoreError::io(&error))?;
                if self.mode == OpenMode::ReadWrite {
                    compact::remove_other_generations(&self.path, number)
                        .map_err(|error| StoreError::io(&error))?;
                }
                if needs_repair && self.mode == OpenMode::ReadWrite {
                    keyring::write(&*keys, &keyring)?;
                }
                Ok(open::start(checked, keyring, self.mode)?.holding(self))
            }
            Err(error) => {
                // Another error, such as a full disk or a busy engine, has damaged nothing.
                if error.is_damage() {
                    copy.put_back()?;
                }
                Err(error)
            }
        }
    }
}

/// The highest generation that has data, where no STATE names one.
fn newest_generation(store: &Path) -> Result<u32, StoreError> {
    let entries = fs::read_dir(store).map_err(|error| StoreError::io(&error))?;
    let numbers = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let number = name.to_str()?.strip_prefix("gen-")?.parse().ok()?;
        has_data(&entry.path()).then_some(number)
    });
    numbers.max().ok_or(StoreError::StateLost)
}

/// The bytes of the keyring's two copies in a directory that another process may have locked:
/// each is replaced as a whole, so each is one that was valid.
pub(crate) fn keyring_copies(path: &Path) -> Result<[Option<Vec<u8>>; 2], StoreError> {
    let keys = FileKeyStore::new(path);
    Ok([
        keys.read(Item::Keyring, Copy::A)?,
        keys.read(Item::Keyring, Copy::B)?,
    ])
}

/// Tries the files as they are, then without those that the engine can make anew.
fn check_generation(
    live: &Path,
    copy: &SafetyCopy,
    check: impl Fn(&Arc<dyn Backend>) -> Result<Checked, StoreError>,
) -> Result<Checked, StoreError> {
    let attempt = || {
        let engine = SledBackend::open(live).map_err(not_opened)?;
        let backend: Arc<dyn Backend> = Arc::new(SwitchBackend::new(Arc::new(engine)));
        check(&backend).inspect_err(|_| {
            let _closed = backend.close();
        })
    };
    let error = match attempt() {
        Err(error) if error.is_damage() => error,
        done => return done,
    };
    for derived in [Derived::Settings, Derived::SettingsAndSnapshots] {
        copy.restore()?;
        let had_any = bring_back(live)
            .and_then(|()| remove_half_written_snapshots(live))
            .and_then(|()| set_aside(live, derived))
            .map_err(|error| StoreError::io(&error))?;
        if had_any && let Ok(checked) = attempt() {
            return Ok(checked);
        }
    }
    bring_back(live).map_err(|error| StoreError::io(&error))?;
    Err(error)
}

/// Somebody else may have made a store in the same place meanwhile.
pub(super) fn not_renamed(error: &std::io::Error) -> StoreError {
    match error.kind() {
        ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => StoreError::AlreadyExists,
        _ => StoreError::io(error),
    }
}

fn not_opened(error: BackendError) -> StoreError {
    match error {
        BackendError::Corrupt => StoreError::Damaged("the engine's data"),
        other => other.into(),
    }
}

fn build(
    directory: &Path,
    keyring: Keyring,
    policy: &str,
    clock: &Arc<dyn Clock>,
    random: &Arc<dyn Random>,
) -> Result<(), StoreError> {
    make_directory(directory)?;
    let _lock = take_lock(&directory.join("LOCK"), OpenMode::ReadWrite)?;
    make_directory(&directory.join("keys"))?;
    for shard in 0..=u8::MAX {
        make_directory(&directory.join("keys").join(format!("{shard:02x}")))?;
    }
    sync_directory(&directory.join("keys"))?;
    let live = directory.join(generation_name(FIRST_GENERATION));
    make_directory(&live)?;
    let keys: Arc<dyn KeyStore> = Arc::new(FileKeyStore::new(directory));
    keyring::write(&*keys, &keyring)?;
    let backend: Arc<dyn Backend> = Arc::new(SledBackend::open(&live).map_err(not_opened)?);
    let ground = Ground {
        backend,
        keys,
        clock: Arc::clone(clock),
        random: Arc::clone(random),
        place: None,
    };
    open::create(&ground, keyring, policy, FIRST_GENERATION)?;
    drop(ground);
    sync_directory(&live)?;
    sync_directory(directory)
}

/// Takes the lock without waiting, and notes who holds it.
pub(super) fn take_lock(path: &Path, mode: OpenMode) -> Result<Lock, StoreError> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path);
    let mut file = match (opened, mode) {
        (Ok(file), _) => file,
        (Err(_), OpenMode::ReadOnly) => File::open(path).map_err(|error| StoreError::io(&error))?,
        (Err(error), OpenMode::ReadWrite) => return Err(StoreError::io(&error)),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _read = (&mut file).take(32).read_to_string(&mut holder);
            return Err(StoreError::Locked(holder.trim().parse().unwrap_or(0)));
        }
        Err(TryLockError::Error(error)) => return Err(StoreError::io(&error)),
    }
    let mut lock = Lock {
        file,
        process: std::process::id(),
    };
    let noted = set_private_mode(path)
        .and_then(|()| lock.file.set_len(0))
        .and_then(|()| lock.file.seek(SeekFrom::Start(0)))
        .and_then(|_| {
            lock.file
                .write_all(format!("{}\n", lock.process).as_bytes())
        });
    match (noted, mode) {
        (Err(error), OpenMode::ReadWrite) => Err(StoreError::io(&error)),
        _ => Ok(lock),
    }
}

pub(super) fn generation_name(number: u32) -> String {
    format!("gen-{number:06}")
}

pub(super) fn is_occupied(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

pub(super) fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn temporary_sibling(path: &Path, random: &dyn Random) -> Result<PathBuf, StoreError> {
    let name = path
        .file_name()
        .ok_or(StoreError::Io(ErrorKind::InvalidInput))?;
    let mut suffix = [0; 8];
    random.fill(&mut suffix)?;
    let suffix = u64::from_be_bytes(suffix);
    let name = format!(".{}.init-{suffix:016x}", name.to_string_lossy());
    Ok(parent_of(path).join(name))
}

pub(super) fn make_directory(path: &Path) -> Result<(), StoreError> {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .and_then(|()| set_private_mode(path))
        .map_err(|error| StoreError::io(&error))
}

pub(super) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| StoreError::io(&error))
}
