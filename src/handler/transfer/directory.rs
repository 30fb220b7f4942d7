//! Export to and import from a real directory, by handles, without following symbolic links.
//!
//! Every part of a path is opened on its own, relative to the handle of the directory before
//! it and with `O_NOFOLLOW`, so nothing that is put there meanwhile can lead elsewhere.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use crate::clock::UnixMillis;
use crate::path::DEPTH_MAX;

use super::{ExportSink, ImportSource, SinkError, SourceEntry, SourceKind};

const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o700);

/// A directory to export to: files 0600, directories 0700, whatever the umask.
pub struct ToDirectory {
    root: OwnedFd,
}

impl ToDirectory {
    /// Makes the directory, or takes one that is empty. The one above it must exist.
    ///
    /// # Errors
    /// [`io::ErrorKind::DirectoryNotEmpty`]; [`io::ErrorKind::NotADirectory`] also for a
    /// symbolic link; otherwise as the operating system says.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        // Without a trailing slash, which would follow a symbolic link.
        let path: PathBuf = path.as_ref().components().collect();
        let is_new = match rustix::fs::mkdir(&path, DIRECTORY_MODE) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root =
            rustix::fs::openat(CWD, &path, flags, Mode::empty()).map_err(|error| match error {
                Errno::LOOP => Errno::NOTDIR,
                error => error,
            })?;
        if !names_in(root.as_fd())?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        if is_new {
            rustix::fs::fchmod(&root, DIRECTORY_MODE)?;
        }
        Ok(Self { root })
    }

    /// The directory in which `path` lies, and its name in there.
    fn parent<'p>(&self, path: &'p str) -> io::Result<(OwnedFd, &'p str)> {
        let mut at = self.root.try_clone()?;
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        for part in above.split('/').filter(|part| !part.is_empty()) {
            at = open_directory(at.as_fd(), part)?;
        }
        Ok((at, name))
    }
}

impl ExportSink for ToDirectory {
    fn directory(&mut self, path: &str, _modified: UnixMillis) -> Result<(), SinkError> {
        let (parent, name) = self.parent(path)?;
        rustix::fs::mkdirat(&parent, name, DIRECTORY_MODE).map_err(refused)?;
        let made = open_directory(parent.as_fd(), name)?;
        Ok(rustix::fs::fchmod(&made, DIRECTORY_MODE).map_err(io::Error::from)?)
    }

    fn file(&mut self, path: &str, content: &[u8], modified: UnixMillis) -> Result<(), SinkError> {
        let (parent, name) = self.parent(path)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&parent, name, flags, FILE_MODE).map_err(refused)?;
        let written = write_file(File::from(file), content, modified);
        if written.is_err() {
            // Only whole files are left; this one was made here, just now.
            let _removed = rustix::fs::unlinkat(&parent, name, AtFlags::empty());
        }
        Ok(written?)
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.root)?)
    }
}

fn write_file(mut file: File, content: &[u8], modified: UnixMillis) -> io::Result<()> {
    rustix::fs::fchmod(&file, FILE_MODE)?;
    file.write_all(content)?;
    let omit = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    let modified = Timespec {
        tv_sec: i64::try_from(modified / 1_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(modified % 1_000 * 1_000_000).unwrap_or(0),
    };
    let times = Timestamps {
        last_access: omit,
        last_modification: modified,
    };
    Ok(rustix::fs::futimens(&file, &times)?)
}

/// Tells a name that this file system cannot hold from a target that fails.
fn refused(error: Errno) -> SinkError {
    match error {
        Errno::NAMETOOLONG => SinkError::Name("the name is too long for the target"),
        Errno::INVAL | Errno::ILSEQ => SinkError::Name("the target does not accept the name"),
        Errno::EXIST => SinkError::Name(
            "the target has an entry of that name already; some file systems take names for the same that differ in case only",
        ),
        error => SinkError::Failed(error.into()),
    }
}

/// A directory to import from.
pub struct FromDirectory {
    root: OwnedFd,
}

impl FromDirectory {
    /// Opens the directory. Only here a symbolic link is followed: `path` is the caller's.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, path.as_ref(), flags, Mode::empty())?;
        Ok(Self { root })
    }
}

impl ImportSource for FromDirectory {
    fn visit(
        &mut self,
        each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let names = names_in(self.root.as_fd())?;
        let _ended = visit_all(self.root.as_fd(), names, &mut Vec::new(), 1, each);
        Ok(())
    }
}

/// Visits the entries of a directory whose paths have `depth` parts, in byte order of names.
fn visit_all(
    directory: BorrowedFd<'_>,
    names: Vec<CString>,
    path: &mut Vec<u8>,
    depth: usize,
    each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let above = path.len();
    for name in names {
        if above > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        visit_one(directory, &name, path, depth, each)?;
        path.truncate(above);
    }
    ControlFlow::Continue(())
}

fn visit_one(
    directory: BorrowedFd<'_>,
    name: &CStr,
    path: &mut Vec<u8>,
    depth: usize,
    each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match open_entry(directory, name, depth) {
        Opened::File(mut file, bytes) => {
            let content = &mut file;
            each(SourceEntry::new(path, SourceKind::File { bytes, content }))
        }
        Opened::Directory(below, names) => {
            each(SourceEntry::new(path, SourceKind::Directory))?;
            visit_all(below.as_fd(), names, path, depth + 1, each)
        }
        Opened::Refused(why) => each(SourceEntry::new(path, SourceKind::Refused(why))),
    }
}

enum Opened {
    File(File, u64),
    Directory(OwnedFd, Vec<CString>),
    Refused(&'static str),
}

/// Opens regular files and directories only: opening a FIFO or a device does something.
fn open_entry(directory: BorrowedFd<'_>, name: &CStr, depth: usize) -> Opened {
    let Ok(stat) = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return Opened::Refused("it cannot be read");
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory if depth >= DEPTH_MAX => {
            return Opened::Refused("it lies too deep; nothing in it was looked at");
        }
        FileType::Directory => {
            let opened = open_directory(directory, name)
                .and_then(|opened| Ok((names_in(opened.as_fd())?, opened)));
            return match opened {
                Ok((names, opened)) => Opened::Directory(opened, names),
                Err(_) => Opened::Refused("the directory cannot be read"),
            };
        }
        FileType::Symlink => return Opened::Refused("it is a symbolic link"),
        _ => return Opened::Refused("it is no regular file"),
    }
    // Not blocking, in case something else lies here by now; it is looked at once more.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, name, flags, Mode::empty())
        .and_then(|file| Ok((rustix::fs::fstat(&file)?, file)));
    match opened {
        Ok((stat, file)) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            Opened::File(File::from(file), u64::try_from(stat.st_size).unwrap_or(0))
        }
        Ok(_) => Opened::Refused("it is no regular file"),
        Err(_) => Opened::Refused("it cannot be read"),
    }
}

fn open_directory(at: BorrowedFd<'_>, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, name, flags, Mode::empty())?)
}

/// The names in a directory, without `.` and `..`, in byte order.
fn names_in(directory: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}
