//! Looks for byte strings in all files of a store's directory, as they lie on the disk.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use aho_corasick::AhoCorasick;

use super::{Store, StoreError};

/// How many files of a finding are named.
const NAMED_MAX: usize = 100;

impl Store {
    /// The files, by their path inside the store, that hold any of the needles, and how many
    /// files were looked at. `None` for a store that does not lie in a directory.
    pub(crate) fn find_in_files(
        &self,
        needles: &[[u8; 24]],
    ) -> Result<Option<(u64, Vec<String>)>, StoreError> {
        let Some(path) = self.path() else {
            return Ok(None);
        };
        let search =
            AhoCorasick::new(needles).map_err(|_| StoreError::Limit("too much to look for"))?;
        // The engine's directory must not be replaced meanwhile: part of it would not be seen.
        let _no_compaction = self.core.lock_compacting();
        let mut found = (0, Vec::new());
        look_in(&path, &path, &search, &mut found).map_err(|error| StoreError::io(&error))?;
        Ok(Some(found))
    }
}

fn look_in(
    top: &Path,
    directory: &Path,
    search: &AhoCorasick,
    found: &mut (u64, Vec<String>),
) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let kind = match entry.file_type() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            kind => kind?,
        };
        if kind.is_dir() {
            look_in(top, &path, search, found)?;
        } else if kind.is_file() {
            let file = match File::open(&path) {
                // The engine and the key store replace files while this looks.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            found.0 += 1;
            if search.stream_find_iter(file).next().transpose()?.is_some()
                && found.1.len() < NAMED_MAX
            {
                let name = path.strip_prefix(top).unwrap_or(&path);
                found.1.push(name.to_string_lossy().into_owned());
            }
        }
    }
    Ok(())
}
