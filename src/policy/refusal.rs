//! The words with which a write is refused by policy, as the model reads them.

use super::limits::{Limits, Paths, Write};
use super::pattern::Pattern;

/// Why policy refuses a change; [`Refusal::message`] is the whole text for the model.
///
/// The texts are in docs/POLICY.md. Counts are exact, not rounded, so that a model sees how
/// far it is over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The file would have more bytes than `limits.max_file_bytes`.
    FileBytes {
        /// Bytes it would have.
        have: u64,
        /// The limit.
        limit: u64,
    },
    /// The image has more bytes than `limits.max_image_bytes`.
    ImageBytes {
        /// Bytes it has.
        have: u64,
        /// The limit.
        limit: u64,
    },
    /// The tenant would have more files than `limits.max_files`.
    Files {
        /// Files there would be.
        have: u64,
        /// The limit.
        limit: u64,
    },
    /// The tenant would have more directories than `limits.max_files`.
    Directories {
        /// Directories there would be.
        have: u64,
        /// The limit.
        limit: u64,
    },
    /// The tenant would have more bytes than `limits.max_total_bytes`.
    TotalBytes {
        /// Bytes there would be.
        have: u64,
        /// The limit.
        limit: u64,
    },
    /// A line would have more characters than `limits.max_line_chars`.
    LineChars {
        /// The line's number, from 1.
        line: u64,
        /// Characters it would have.
        have: u64,
        /// The limit.
        limit: u64,
    },
    /// The store would have more bytes than `limits.store_max_bytes`.
    StoreBytes {
        /// Bytes there would be.
        have: u64,
        /// The limit.
        limit: u64,
    },
    /// `write.images` is false.
    Images,
    /// The path is read-only.
    ReadOnly,
    /// The path is denied, or lies below a denied one.
    Denied,
    /// A move or delete would take something read-only along.
    ReadOnlyBelow {
        /// The pattern that protects it.
        pattern: Pattern,
    },
    /// A move or delete would take something denied along.
    DeniedBelow {
        /// The pattern that denies it.
        pattern: Pattern,
    },
}

impl Refusal {
    /// `Error: {path} was not written: {what}, {have} of {limit}. {what to do}`. `path` is the
    /// canonical path that the command names.
    #[must_use]
    pub fn message(&self, path: &str) -> String {
        format!("Error: {path} was not written: {}", self.reason())
    }

    fn reason(&self) -> String {
        match self {
            Self::FileBytes { have, limit } => format!(
                "the file would be too large, {have} of {limit} bytes. Shorten it, or split it into several files"
            ),
            Self::ImageBytes { have, limit } => {
                format!("the image is too large, {have} of {limit} bytes. Use a smaller image")
            }
            Self::Files { have, limit } => format!(
                "there would be too many files, {have} of {limit}. Delete or merge files that are no longer needed"
            ),
            Self::Directories { have, limit } => format!(
                "there would be too many directories, {have} of {limit}. Delete directories that are no longer needed"
            ),
            Self::TotalBytes { have, limit } => format!(
                "the memory would be too large, {have} of {limit} bytes. Delete or shorten files that are no longer needed"
            ),
            Self::LineChars { line, have, limit } => format!(
                "line {line} would be too long, {have} of {limit} characters. Break it into several lines"
            ),
            Self::StoreBytes { have, limit } => format!(
                "the store that all users share would be too large, {have} of {limit} bytes. Delete files that are no longer needed, or tell the user"
            ),
            Self::Images => {
                "images are not stored here. Describe the image in a text file instead".to_owned()
            }
            Self::ReadOnly => "it is read-only. Write to another path".to_owned(),
            Self::Denied => "it cannot be used. Write to another path".to_owned(),
            Self::ReadOnlyBelow { pattern } => format!(
                "{pattern} is read-only and would be moved or deleted with it. Move or delete the other entries one by one"
            ),
            Self::DeniedBelow { pattern } => format!(
                "{pattern} cannot be used and would be moved or deleted with it. Move or delete the other entries one by one"
            ),
        }
    }
}

impl Limits {
    /// Whether a text file may have this many bytes.
    ///
    /// # Errors
    /// [`Refusal::FileBytes`].
    pub fn check_file_bytes(&self, have: u64) -> Result<(), Refusal> {
        let limit = self.max_file_bytes;
        within(have, limit, Refusal::FileBytes { have, limit })
    }

    /// Whether an image may have this many bytes.
    ///
    /// # Errors
    /// [`Refusal::ImageBytes`].
    pub fn check_image_bytes(&self, have: u64) -> Result<(), Refusal> {
        let limit = self.max_image_bytes;
        within(have, limit, Refusal::ImageBytes { have, limit })
    }

    /// Whether the tenant may have this many files.
    ///
    /// # Errors
    /// [`Refusal::Files`].
    pub fn check_files(&self, have: u64) -> Result<(), Refusal> {
        let limit = self.max_files;
        within(have, limit, Refusal::Files { have, limit })
    }

    /// Whether the tenant may have this many directories: as many as files.
    ///
    /// # Errors
    /// [`Refusal::Directories`].
    pub fn check_directories(&self, have: u64) -> Result<(), Refusal> {
        let limit = self.max_files;
        within(have, limit, Refusal::Directories { have, limit })
    }

    /// Whether the tenant may have this many bytes in all.
    ///
    /// # Errors
    /// [`Refusal::TotalBytes`].
    pub fn check_total_bytes(&self, have: u64) -> Result<(), Refusal> {
        let limit = self.max_total_bytes;
        within(have, limit, Refusal::TotalBytes { have, limit })
    }

    /// Whether the store may have this many bytes in all.
    ///
    /// # Errors
    /// [`Refusal::StoreBytes`].
    pub fn check_store_bytes(&self, have: u64) -> Result<(), Refusal> {
        self.store_max_bytes.map_or(Ok(()), |limit| {
            within(have, limit, Refusal::StoreBytes { have, limit })
        })
    }

    /// Whether every line of a text is short enough. Lines end at LF; the LF does not count.
    ///
    /// # Errors
    /// [`Refusal::LineChars`] for the first line that is not.
    pub fn check_lines(&self, text: &str) -> Result<(), Refusal> {
        let limit = self.max_line_chars;
        for (line, content) in (1..).zip(text.split('\n')) {
            // A line has no more characters than bytes, so most need no counting.
            if content.len() as u64 <= limit {
                continue;
            }
            let have = u64::try_from(content.chars().count()).unwrap_or(u64::MAX);
            within(have, limit, Refusal::LineChars { line, have, limit })?;
        }
        Ok(())
    }
}

impl Write {
    /// Whether images may be stored.
    ///
    /// # Errors
    /// [`Refusal::Images`].
    pub fn check_images(&self) -> Result<(), Refusal> {
        if self.images {
            Ok(())
        } else {
            Err(Refusal::Images)
        }
    }
}

impl Paths {
    /// Whether an agent may write this one canonical path.
    ///
    /// # Errors
    /// [`Refusal::Denied`], [`Refusal::ReadOnly`].
    pub fn check_write(&self, path: &str) -> Result<(), Refusal> {
        if self.denied_by(path).is_some() {
            Err(Refusal::Denied)
        } else if self.read_only.matches(path) {
            Err(Refusal::ReadOnly)
        } else {
            Ok(())
        }
    }

    /// Whether an agent may move or delete this canonical path with all that is or could be
    /// below it, or move something there.
    ///
    /// # Errors
    /// As [`Paths::check_write`]; [`Refusal::ReadOnlyBelow`], [`Refusal::DeniedBelow`].
    pub fn check_move(&self, path: &str) -> Result<(), Refusal> {
        self.check_write(path)?;
        if let Some(pattern) = self.read_only.first_at_or_below(path).cloned() {
            return Err(Refusal::ReadOnlyBelow { pattern });
        }
        if let Some(pattern) = self.denied.first_at_or_below(path).cloned() {
            return Err(Refusal::DeniedBelow { pattern });
        }
        Ok(())
    }
}

/// Exactly the limit still fits.
fn within(have: u64, limit: u64, refusal: Refusal) -> Result<(), Refusal> {
    if have <= limit { Ok(()) } else { Err(refusal) }
}
