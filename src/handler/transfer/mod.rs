//! What export and import share: where files go to and come from, and what became of each.
//!
//! `export` and `import` hold the logic and know neither directories nor archives;
//! `directory` and `archive` are the two kinds of places.

use std::io::{self, Read};
use std::ops::ControlFlow;

use crate::clock::UnixMillis;
use crate::error::Error;

#[cfg(feature = "tar")]
mod archive;
mod directory;
mod export;
mod import;

#[cfg(feature = "tar")]
pub use archive::{FromTar, ToTar};
pub use directory::{FromDirectory, ToDirectory};

/// The most entries that one import looks at.
pub const ENTRIES_MAX: u64 = 10_000_000;

/// Where an export goes. Paths are relative, parts separated by `/`, and such as the path
/// guard accepted: no part is empty, `.` or `..`.
pub trait ExportSink {
    /// Makes a directory. The directory in which it lies was made before.
    ///
    /// # Errors
    /// [`SinkError`]; after [`SinkError::Name`] nothing below it is asked for.
    fn directory(&mut self, path: &str, modified: UnixMillis) -> Result<(), SinkError>;

    /// Writes a whole new file.
    ///
    /// # Errors
    /// [`SinkError`]. Nothing of the file is left then.
    fn file(&mut self, path: &str, content: &[u8], modified: UnixMillis) -> Result<(), SinkError>;

    /// Ends an export that has come to its end.
    ///
    /// # Errors
    /// When what was written cannot be made to last.
    fn finish(&mut self) -> io::Result<()>;
}

/// Why a target did not take something.
#[derive(Debug)]
#[non_exhaustive]
pub enum SinkError {
    /// It cannot hold this one name; the text says why. The export goes on without it.
    Name(&'static str),
    /// It failed. The export ends.
    Failed(io::Error),
}

impl From<io::Error> for SinkError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Where an import comes from.
pub trait ImportSource {
    /// Hands every entry to `each`, one after the other, until it breaks off.
    ///
    /// # Errors
    /// When the source cannot be read any further.
    fn visit(&mut self, each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>)
    -> io::Result<()>;
}

/// One entry of a source.
#[non_exhaustive]
pub struct SourceEntry<'a> {
    /// Its relative path as it stands in the source: any bytes, not checked for anything.
    pub name: &'a [u8],
    /// What it is.
    pub kind: SourceKind<'a>,
}

impl<'a> SourceEntry<'a> {
    /// An entry as a source hands it out.
    pub fn new(name: &'a [u8], kind: SourceKind<'a>) -> Self {
        Self { name, kind }
    }
}

/// What an entry of a source is.
#[non_exhaustive]
pub enum SourceKind<'a> {
    /// A regular file.
    File {
        /// How many bytes it says it has.
        bytes: u64,
        /// Where to read them. They need not be read.
        content: &'a mut dyn Read,
    },
    /// A directory. What is in it comes in entries of its own.
    Directory,
    /// Something that is never imported; the text says why.
    Refused(&'static str),
}

/// How to export. Default: the first damage ends it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExportOptions {
    salvage: bool,
}

impl ExportOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Go on past damage, and export whatever still checks out. Default: off.
    #[must_use]
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }
}

/// What became of one path in an export.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportOutcome {
    /// A file of so many bytes was written.
    File(u64),
    /// A directory was made.
    Directory,
    /// It does not check out, and was not written.
    Damaged(String),
    /// The target cannot hold the name; the text says why. For a directory this goes for all
    /// that is below it.
    NotHeld(String),
}

/// What an export did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ExportReport {
    /// Files written.
    pub files: u64,
    /// Directories made.
    pub directories: u64,
    /// Bytes of the files written.
    pub bytes: u64,
    /// Of the files written, those that were stored under older redaction rules and not
    /// scanned under today's. They were written as they are stored.
    pub stale: u64,
    /// Files and directories that do not check out.
    pub damaged: u64,
    /// Files and directories whose names the target cannot hold.
    pub not_held: u64,
    /// What ended the export before its end; `None` when it came to its end. Without
    /// [`ExportOptions::salvage`] that is also the first damage.
    pub failure: Option<Error>,
}

/// How to import. Default: what exists stays, read-only paths are bound, no images.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImportOptions {
    overwrite: bool,
    as_operator: bool,
    images: bool,
    dry_run: bool,
}

impl ImportOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Put files in place of those that exist, whatever `write.on_existing` says. Default: off.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Also write to read-only and denied paths, which bind agents only. Names, redaction,
    /// limits and holds bind all the same. Default: off.
    #[must_use]
    pub fn as_operator(mut self, as_operator: bool) -> Self {
        self.as_operator = as_operator;
        self
    }

    /// Store `.png`, `.jpg` and `.jpeg` files that carry that signature. Default: off.
    #[must_use]
    pub fn images(mut self, images: bool) -> Self {
        self.images = images;
        self
    }

    /// Say what would happen, and change nothing. Default: off.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }
}

/// What became of one entry in an import.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportOutcome {
    /// It was stored, or in a dry run would be.
    Stored {
        /// Bytes that are stored.
        bytes: u64,
        /// Values that policy removed from it.
        removed: u64,
    },
    /// A file with this path exists already, and stays.
    Exists,
    /// An image; they are stored only with [`ImportOptions::images`].
    Image,
    /// It was refused; the text is what a model would have read, or says what it is.
    Refused(String),
}

/// What an import did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ImportReport {
    /// Files stored.
    pub stored: u64,
    /// Bytes of those files as they are stored.
    pub bytes: u64,
    /// Of the files stored, those from which values were removed.
    pub cleaned: u64,
    /// How many values were removed from them.
    pub removed: u64,
    /// Files that existed already.
    pub exists: u64,
    /// Images that were left out.
    pub images: u64,
    /// Entries that were refused.
    pub refused: u64,
    /// What ended the import before its end; `None` when it came to its end. What was
    /// stored until then stays.
    pub failure: Option<Error>,
}
