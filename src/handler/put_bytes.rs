//! `put_bytes`: how the host stores an image, or text of its own.

use crate::path::MemoryPath;
use crate::policy::Refusal;
use crate::record::{DirentBody, FileKind};
use crate::store::{NewFile, Reader};
use crate::wire::Reply;

use super::edits::Ahead;
use super::redaction::Cleaned;
use super::redaction::with_note;
use super::view::image_type;
use super::{Line, Stop, refuse, texts};

/// What came of putting a file somewhere.
pub(super) enum Put {
    /// It was stored.
    Stored(Stored),
    /// There is a file already, which was not to be replaced.
    Exists,
}

/// What was stored.
pub(super) struct Stored {
    /// Bytes that are stored, without what was removed.
    pub(super) bytes: u64,
    /// What a model is told about values that were removed.
    pub(super) note: Option<String>,
    /// How many were.
    pub(super) removed: u64,
    /// The size of the file that it replaced.
    pub(super) replaced: Option<u64>,
}

/// Bytes that can be stored: as text, or as an image.
enum Content<'a> {
    Text(&'a str),
    Image(&'a [u8]),
}

impl Line<'_> {
    pub(super) fn put_bytes(&self, path: &str, bytes: &[u8]) -> Result<Reply, Stop> {
        let path = self.guard(path)?;
        match self.put_at(&path, bytes, true)? {
            Put::Exists => Err(refuse(texts::exists(&path))),
            Put::Stored(stored) => Ok(Reply::text(with_note(texts::created(&path), stored.note))),
        }
    }

    /// Stores text or an image, in place of what is there only if that `may_replace` it.
    pub(super) fn put_at(
        &self,
        path: &MemoryPath,
        bytes: &[u8],
        may_replace: bool,
    ) -> Result<Put, Stop> {
        let content = self.content_for(path, bytes)?;
        if !may_replace {
            // What stays as it is needs no write, and no entry that says that it was stored.
            let there = self
                .store()
                .read(&self.tenant.tenant, |reader| self.bytes_there(reader, path))?;
            if there.is_some() {
                return Ok(Put::Exists);
            }
        }
        self.write(|change| {
            let old_bytes = match self.bytes_there(change.reader(), path)? {
                Some(_) if !may_replace => return Ok(Put::Exists),
                old_bytes => old_bytes,
            };
            let stored = match content {
                Content::Text(text) => {
                    let cleaned = self.put_text(change, path, text, old_bytes)?;
                    Stored::text(cleaned, old_bytes)
                }
                Content::Image(bytes) => {
                    self.check_image(path, bytes.len() as u64)?;
                    let file = NewFile {
                        kind: FileKind::Bytes,
                        bytes,
                        lines: 0,
                        policy_digest: self.rules.in_force.digest,
                    };
                    self.put(change, path, &file, old_bytes)?;
                    Stored::image(bytes, old_bytes)
                }
            };
            Ok(Put::Stored(stored))
        })
    }

    /// What [`Line::put_at`] would do. Nothing is written.
    pub(super) fn try_put_at(
        &self,
        path: &MemoryPath,
        bytes: &[u8],
        may_replace: bool,
        ahead: Ahead,
    ) -> Result<Put, Stop> {
        let content = self.content_for(path, bytes)?;
        self.store().read(&self.tenant.tenant, |reader| {
            let old_bytes = match self.bytes_there(reader, path)? {
                Some(_) if !may_replace => return Ok(Put::Exists),
                old_bytes => old_bytes,
            };
            let stored = match content {
                Content::Text(text) => {
                    let pseudonym = |value: &[u8]| reader.pseudonym(value);
                    let (cleaned, _lines) = self.admit_text(&pseudonym, path, text)?;
                    Stored::text(cleaned, old_bytes)
                }
                Content::Image(bytes) => {
                    self.check_image(path, bytes.len() as u64)?;
                    Stored::image(bytes, old_bytes)
                }
            };
            self.check_room(reader, path, stored.bytes, old_bytes, ahead)?;
            Ok(Put::Stored(stored))
        })
    }

    /// Checks path and bytes as far as that goes without looking into the store.
    fn content_for<'b>(&self, path: &MemoryPath, bytes: &'b [u8]) -> Result<Content<'b>, Stop> {
        if path.is_root() {
            return Err(refuse(texts::is_directory(path)));
        }
        self.may_write(path)?;
        self.check_name(path)?;
        if image_type(path, bytes).is_some() {
            return Ok(Content::Image(bytes));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Content::Text(text)),
            Err(_) => Err(refuse(texts::not_showable(path))),
        }
    }

    /// The size of the file at `path`, if there is one; refuses where none can be.
    fn bytes_there(&self, reader: &Reader<'_>, path: &MemoryPath) -> Result<Option<u64>, Stop> {
        let walk = reader.walk(path)?;
        self.may_make_parents(reader, &walk, path)?;
        match walk.target().map(|entry| &entry.body) {
            None => Ok(None),
            Some(DirentBody::Directory { .. } | DirentBody::Hold(_)) => {
                Err(refuse(texts::is_directory(path)))
            }
            Some(DirentBody::File(meta)) => Ok(Some(meta.bytes)),
        }
    }

    fn check_image(&self, path: &MemoryPath, bytes: u64) -> Result<(), Stop> {
        let refused = |refusal: Refusal| refuse(refusal.message(path.as_str()));
        self.rules
            .effective
            .write
            .check_images()
            .and_then(|()| self.rules.effective.limits.check_image_bytes(bytes))
            .map_err(refused)
    }
}

impl Stored {
    fn text(cleaned: Cleaned, replaced: Option<u64>) -> Self {
        Self {
            bytes: cleaned.text.len() as u64,
            note: cleaned.note,
            removed: cleaned.removed,
            replaced,
        }
    }

    fn image(bytes: &[u8], replaced: Option<u64>) -> Self {
        Self {
            bytes: bytes.len() as u64,
            note: None,
            removed: 0,
            replaced,
        }
    }
}
