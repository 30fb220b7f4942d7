//! A file in the making: under another name until it is whole, and never over one that exists.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::backend::set_private_mode;

use super::BackupError;

/// A file of mode 0600 that has its name only once [`Partial::name`] was called. Without that
/// nothing of it is left, unless the process is killed: then the next one takes it over.
pub(super) struct Partial {
    target: PathBuf,
    path: PathBuf,
    file: File,
    is_named: bool,
}

impl Partial {
    /// Begins `.NAME.part` beside the file that is to be made.
    pub(super) fn create(target: &Path, store: Option<&Path>) -> Result<Self, BackupError> {
        let writing = |error: io::Error| BackupError::writing(&error);
        is_free(target)?;
        let name = target
            .file_name()
            .ok_or_else(|| writing(io::ErrorKind::InvalidInput.into()))?;
        let directory = directory_of(target);
        if let Some(store) = store {
            let store = store.canonicalize().map_err(writing)?;
            if directory
                .canonicalize()
                .map_err(writing)?
                .starts_with(store)
            {
                return Err(BackupError::InsideStore);
            }
        }
        let path = directory.join(format!(".{}.part", name.to_string_lossy()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(writing)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(BackupError::Busy),
            Err(TryLockError::Error(error)) => return Err(writing(error)),
        }
        let partial = Self {
            target: target.to_path_buf(),
            path,
            file,
            is_named: false,
        };
        partial
            .file
            .set_len(0)
            .and_then(|()| set_private_mode(&partial.path))
            .map_err(writing)?;
        Ok(partial)
    }

    /// Where to write.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Where it lies until it has its name.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> Result<u64, BackupError> {
        let data = self.file.metadata();
        Ok(data.map_err(|error| BackupError::writing(&error))?.len())
    }

    pub(super) fn sync(&self) -> Result<(), BackupError> {
        self.file
            .sync_all()
            .map_err(|error| BackupError::writing(&error))
    }

    /// Gives it its name, durably.
    pub(super) fn name(mut self) -> Result<(), BackupError> {
        is_free(&self.target)?;
        fs::rename(&self.path, &self.target).map_err(|error| BackupError::writing(&error))?;
        self.is_named = true;
        File::open(directory_of(&self.target))
            .and_then(|directory| directory.sync_all())
            .map_err(|error| BackupError::writing(&error))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_named {
            let _removed = fs::remove_file(&self.path);
        }
    }
}

fn is_free(target: &Path) -> Result<(), BackupError> {
    match fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(BackupError::writing(&error)),
        Ok(_) => Err(BackupError::writing(&io::ErrorKind::AlreadyExists.into())),
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
