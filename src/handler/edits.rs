//! What all writes share: finding the text to edit, the limits, and storing the after-image.

use zeroize::Zeroizing;

use crate::edit::{self, EditError};
use crate::path::MemoryPath;
use crate::record::{DirentBody, FileKind, FileMeta};
use crate::store::{Change, NewFile, Reader, Walk};

use super::redaction::{Clean, Cleaned};
use super::{Line, Stop, refuse, texts};

/// A text file that is to be edited.
pub(super) struct Found {
    pub(super) text: Zeroizing<String>,
    pub(super) bytes: u64,
}

/// What a run that changes nothing would have stored before.
#[derive(Clone, Copy, Default)]
pub(super) struct Ahead {
    /// New files.
    pub(super) files: u64,
    /// Bytes of new and replaced files.
    pub(super) bytes: u64,
    /// Bytes that replaced files have now.
    pub(super) gone: u64,
}

impl Line<'_> {
    /// Whether policy lets agents write here.
    pub(super) fn may_write(&self, path: &MemoryPath) -> Result<(), Stop> {
        let allowed = self.rules.effective.paths.check_write(path.as_str());
        allowed.map_err(|refusal| refuse(refusal.message(path.as_str())))
    }

    /// Whether policy lets agents edit here: what is denied reads as missing.
    pub(super) fn may_edit(&self, path: &MemoryPath, missing: String) -> Result<(), Stop> {
        if self
            .rules
            .effective
            .paths
            .denied_by(path.as_str())
            .is_some()
        {
            return Err(refuse(missing));
        }
        self.may_write(path)
    }

    /// Whether policy lets agents take this whole directory away, or put one here.
    pub(super) fn may_move_directory(&self, path: &MemoryPath) -> Result<(), Stop> {
        let allowed = self.rules.effective.paths.check_move(path.as_str());
        allowed.map_err(|refusal| refuse(refusal.message(path.as_str())))
    }

    /// The text file at `path`; a directory counts as missing.
    pub(super) fn text_to_edit(
        &self,
        reader: &Reader<'_>,
        path: &MemoryPath,
        missing: impl Fn() -> String,
    ) -> Result<Found, Stop> {
        let meta = file_at(reader, path)?.ok_or_else(|| refuse(missing()))?;
        if meta.kind == FileKind::Bytes {
            return Err(refuse(texts::not_text(path)));
        }
        let mut content = reader.content(&meta)?;
        let text = String::from_utf8(std::mem::take(&mut *content))
            .map_err(|_| crate::store::StoreError::Damaged("a file's content"))?;
        Ok(Found {
            text: Zeroizing::new(text),
            bytes: meta.bytes,
        })
    }

    /// Redacts the whole after-image, checks it against the limits and plans to store it.
    ///
    /// `old_bytes` is the size of the file that it replaces, if there is one. Returns the
    /// text as it is stored, with what the model is told about it.
    pub(super) fn put_text<'t>(
        &self,
        change: &mut Change<'_>,
        path: &MemoryPath,
        text: &'t str,
        old_bytes: Option<u64>,
    ) -> Result<Cleaned<'t>, Stop> {
        let pseudonym = |value: &[u8]| change.pseudonym(value);
        let (cleaned, lines) = self.admit_text(&pseudonym, path, text)?;
        let file = NewFile {
            kind: FileKind::Text,
            bytes: cleaned.text.as_bytes(),
            lines,
            policy_digest: self.rules.in_force.digest,
        };
        self.put(change, path, &file, old_bytes)?;
        Ok(cleaned)
    }

    /// Redacts a text and checks it against the limits on one file, before and after.
    /// Returns what may be stored, and how many lines it has.
    pub(super) fn admit_text<'t>(
        &self,
        pseudonym: &dyn Fn(&[u8]) -> [u8; 32],
        path: &MemoryPath,
        text: &'t str,
    ) -> Result<(Cleaned<'t>, u64), Stop> {
        // Before redaction too, so that nobody can make it scan more than may be stored.
        let lines = self.check_text(path, text)?;
        let cleaned = self.clean(pseudonym, path, text)?;
        let lines = match &cleaned.text {
            Clean::AsGiven(_) => lines,
            Clean::Changed(text) => self.check_text(path, text)?,
        };
        Ok((cleaned, lines))
    }

    /// Checks a text against the limits on one file. Returns how many lines it has.
    fn check_text(&self, path: &MemoryPath, text: &str) -> Result<u64, Stop> {
        let limits = &self.rules.effective.limits;
        let lines = edit::check_line_count(text).map_err(|error| match error {
            EditError::TooManyLines { .. } => refuse(texts::too_many_lines(path)),
            other => refuse(other.reply_text(path.as_str(), "")),
        })?;
        limits
            .check_file_bytes(text.len() as u64)
            .and_then(|()| limits.check_lines(text))
            .map_err(|refusal| refuse(refusal.message(path.as_str())))?;
        Ok(lines)
    }

    /// Checks the quotas and plans to store a file.
    pub(super) fn put(
        &self,
        change: &mut Change<'_>,
        path: &MemoryPath,
        file: &NewFile<'_>,
        old_bytes: Option<u64>,
    ) -> Result<(), Stop> {
        let added = file.bytes.len() as u64;
        self.check_room(change.reader(), path, added, old_bytes, Ahead::default())?;
        Ok(change.put_file(path, file)?)
    }

    /// Checks holds and quotas for a file of `added` bytes. `ahead` is what will be there
    /// besides by then.
    pub(super) fn check_room(
        &self,
        reader: &Reader<'_>,
        path: &MemoryPath,
        added: u64,
        old_bytes: Option<u64>,
        ahead: Ahead,
    ) -> Result<(), Stop> {
        if old_bytes.is_some() {
            not_held(reader, path)?;
        }
        let limits = &self.rules.effective.limits;
        let below = reader.totals(&reader.root())?;
        let total = below
            .bytes
            .saturating_add(ahead.bytes)
            .saturating_sub(ahead.gone)
            .saturating_sub(old_bytes.unwrap_or(0))
            .saturating_add(added);
        let files = below
            .files
            .saturating_add(ahead.files)
            .saturating_add(u64::from(old_bytes.is_none()));
        let grows = added > old_bytes.unwrap_or(0);
        // A tenant over a limit that was lowered may still edit and shrink what it has.
        let mut checked = Ok(());
        if old_bytes.is_none() {
            checked = limits.check_files(files);
        }
        if grows {
            checked = checked.and_then(|()| limits.check_total_bytes(total));
            if limits.store_max_bytes.is_some() {
                let stored = self.store().disk_bytes()?.saturating_add(added);
                checked = checked.and_then(|()| limits.check_store_bytes(stored));
            }
        }
        self.draft.borrow_mut().bytes = added;
        checked.map_err(|refusal| refuse(refusal.message(path.as_str())))
    }
}

impl Line<'_> {
    /// Whether the directories that are missing on the way to `path` may be made.
    pub(super) fn may_make_parents(
        &self,
        reader: &Reader<'_>,
        walk: &Walk,
        path: &MemoryPath,
    ) -> Result<(), Stop> {
        not_through_file(walk, path)?;
        let missing = path
            .depth()
            .saturating_sub(1)
            .saturating_sub(walk.entries.len());
        if missing == 0 {
            return Ok(());
        }
        let have = reader
            .root()
            .summary
            .below
            .directories
            .saturating_add(missing as u64);
        self.rules
            .effective
            .limits
            .check_directories(have)
            .map_err(|refusal| refuse(refusal.message(path.as_str())))?;
        let mut parent = path.parent();
        for _ in 0..missing {
            let Some(directory) = parent else { break };
            self.may_write(&directory)?;
            parent = directory.parent();
        }
        Ok(())
    }
}

/// Refuses to change what a hold keeps.
pub(super) fn not_held(reader: &Reader<'_>, path: &MemoryPath) -> Result<(), Stop> {
    match reader.hold_on(path) {
        Some(_) => Err(refuse(texts::held(path.as_str()))),
        None => Ok(()),
    }
}

/// Refuses to take a directory away in which, or above which, a hold keeps something.
pub(super) fn nothing_held_in(reader: &Reader<'_>, directory: &MemoryPath) -> Result<(), Stop> {
    match reader.held_in(directory) {
        Some(held) => Err(refuse(texts::held(held))),
        None => Ok(()),
    }
}

/// The file at `path`, if there is one.
pub(super) fn file_at(reader: &Reader<'_>, path: &MemoryPath) -> Result<Option<FileMeta>, Stop> {
    let walk = reader.walk(path)?;
    Ok(match walk.target().map(|entry| &entry.body) {
        Some(DirentBody::File(meta)) => Some(*meta),
        _ => None,
    })
}

/// Refuses a path that runs through a file.
fn not_through_file(walk: &Walk, path: &MemoryPath) -> Result<(), Stop> {
    let Some(depth) = walk.blocked_at() else {
        return Ok(());
    };
    let mut ancestor = path.clone();
    while ancestor.depth() > depth {
        match ancestor.parent() {
            Some(parent) => ancestor = parent,
            None => break,
        }
    }
    Err(refuse(texts::not_a_directory(&ancestor)))
}
