//! What must be done to a generation's files before sled may open them.

use std::fs;
use std::io;
use std::path::Path;

use super::set_private_mode;

/// Removes `snap.*.generating`: a kill while sled opens can leave one, empty, and it
/// then fails every later open.
///
/// # Errors
/// Those of the operating system.
pub fn remove_half_written_snapshots(generation: &Path) -> io::Result<()> {
    for entry in fs::read_dir(generation)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Renames sled's snapshot files so that it replays its log instead. Says whether there were any.
///
/// A damaged snapshot fails every open. The replayed state counts only if the tree and
/// STATE agree with it.
///
/// # Errors
/// Those of the operating system.
pub fn set_snapshots_aside(generation: &Path) -> io::Result<bool> {
    let mut any = false;
    for entry in fs::read_dir(generation)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("snap.") {
            fs::rename(entry.path(), generation.join(format!("aside-{name}")))?;
            any = true;
        }
    }
    Ok(any)
}

/// Copies a generation's files (as reflinks where the file system can) into `to`, durably.
///
/// # Errors
/// Those of the operating system.
pub fn copy_generation(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    set_private_mode(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_generation(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            fs::File::open(&target)?.sync_all()?;
        }
    }
    fs::File::open(to)?.sync_all()
}
