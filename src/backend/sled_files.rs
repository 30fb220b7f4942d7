//! What must be done to a generation's files before sled may open them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::set_private_mode;

/// A log up to this size is read whole before sled opens it.
const WHOLE_BYTES_MAX: u64 = 256 * 1_024 * 1_024;

/// sled's log is cut into segments of this size.
const SEGMENT_BYTES: usize = 512 * 1_024;

/// What a disk reads at least.
const PAGE_BYTES: usize = 4_096;

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

/// Reads the engine's log once, before sled does: sled takes what it cannot read while it
/// opens for torn, and overwrites it. A sector that a disk cannot read would so cost a store
/// that is whole but for that moment.
///
/// A log of up to 256 MiB is read whole, of a longer one the beginning of each segment, which
/// is what sled reads of all of it.
///
/// # Errors
/// Those of the operating system.
pub(super) fn read_through(log: &Path) -> io::Result<()> {
    let file = match File::open(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let length = file.metadata()?.len();
    let is_whole = length <= WHOLE_BYTES_MAX;
    let mut part = vec![0; if is_whole { SEGMENT_BYTES } else { PAGE_BYTES }];
    let mut at = 0;
    while at < length {
        let read = file.read_at(&mut part, at)?;
        let step = if is_whole && read > 0 {
            read
        } else {
            SEGMENT_BYTES
        };
        at += step as u64;
    }
    Ok(())
}

/// Files of sled's that it can make anew when they are damaged, from the surest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Derived {
    /// Its settings, which are always those of this program.
    Settings,
    /// The settings, and the snapshots, without which it replays its log. Measured: the
    /// replay can lose records, which the tree and STATE then show.
    SettingsAndSnapshots,
}

impl Derived {
    fn contains(self, name: &str) -> bool {
        name == "conf" || (self == Self::SettingsAndSnapshots && name.starts_with("snap."))
    }
}

/// What the names of files that were set aside start with.
const ASIDE: &str = "aside-";

/// Renames files so that sled makes them anew. Says whether there were any.
///
/// A damaged one fails every open. What sled makes of the rest counts only if the tree
/// and STATE agree with it.
///
/// # Errors
/// Those of the operating system.
pub fn set_aside(generation: &Path, derived: Derived) -> io::Result<bool> {
    let mut any = false;
    for name in names(generation)? {
        if derived.contains(&name) {
            fs::rename(
                generation.join(&name),
                generation.join(format!("{ASIDE}{name}")),
            )?;
            any = true;
        }
    }
    Ok(any)
}

/// Takes files that were set aside back, in place of those that sled made instead: what
/// did not help is not to be lost.
///
/// # Errors
/// Those of the operating system.
pub fn bring_back(generation: &Path) -> io::Result<()> {
    let all = names(generation)?;
    let aside: Vec<&str> = all
        .iter()
        .filter_map(|name| name.strip_prefix(ASIDE))
        .collect();
    // A snapshot of what a replay found must not stand beside the one it replaced.
    if aside.iter().any(|name| name.starts_with("snap.")) {
        for name in all.iter().filter(|name| name.starts_with("snap.")) {
            fs::remove_file(generation.join(name))?;
        }
    }
    for name in aside {
        fs::rename(
            generation.join(format!("{ASIDE}{name}")),
            generation.join(name),
        )?;
    }
    Ok(())
}

/// Removes files that were set aside, once the store is known to be whole without them.
///
/// # Errors
/// Those of the operating system.
pub fn remove_aside(generation: &Path) -> io::Result<()> {
    for name in names(generation)? {
        if name.starts_with(ASIDE) {
            fs::remove_file(generation.join(name))?;
        }
    }
    Ok(())
}

/// Names that are not UTF-8 are none of sled's.
fn names(generation: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(generation)? {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(directory: &Path) -> Vec<String> {
        let mut names = names(directory).unwrap();
        names.sort();
        names
    }

    #[test]
    fn what_is_set_aside_in_vain_comes_back() {
        let home = tempfile::tempdir().unwrap();
        for name in ["db", "conf", "snap.01"] {
            fs::write(home.path().join(name), name).unwrap();
        }
        assert!(set_aside(home.path(), Derived::Settings).unwrap());
        assert_eq!(sorted(home.path()), ["aside-conf", "db", "snap.01"]);
        assert!(set_aside(home.path(), Derived::SettingsAndSnapshots).unwrap());
        // What the engine makes instead.
        fs::write(home.path().join("conf"), "new").unwrap();
        fs::write(home.path().join("snap.02"), "new").unwrap();
        bring_back(home.path()).unwrap();
        assert_eq!(sorted(home.path()), ["conf", "db", "snap.01"]);
        assert_eq!(fs::read(home.path().join("conf")).unwrap(), b"conf");

        set_aside(home.path(), Derived::SettingsAndSnapshots).unwrap();
        fs::write(home.path().join("snap.02"), "new").unwrap();
        remove_aside(home.path()).unwrap();
        assert_eq!(sorted(home.path()), ["db", "snap.02"]);
        assert!(!set_aside(home.path(), Derived::Settings).unwrap());
    }
}
