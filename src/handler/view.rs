//! `view`: a file's numbered lines, an image, or a directory's listing.

use crate::edit::{self, Row};
use crate::path::MemoryPath;
use crate::record::{Dirent, DirentBody, FileMeta};
use crate::store::{Directory, Reader};
use crate::wire::{Content, Reply, ViewRange};

use super::{Line, Stop, refuse, texts};

impl Line<'_> {
    pub(super) fn view(&self, path: &str, range: Option<ViewRange>) -> Result<Reply, Stop> {
        let path = self.guard(path)?;
        if self
            .rules
            .effective
            .paths
            .denied_by(path.as_str())
            .is_some()
        {
            return Err(refuse(texts::missing_view(&path)));
        }
        let range = range.map(Into::into);
        let (reply, is_dirty) = self.store().read(&self.tenant.tenant, |reader| {
            let walk = reader.walk(&path)?;
            let directory = match walk.target() {
                _ if path.is_root() => reader.root(),
                None => return Err(refuse(texts::missing_view(&path))),
                Some(entry) => match (&entry.body, Directory::of(entry)) {
                    (_, Some(directory)) => directory,
                    (DirentBody::File(meta), _) => {
                        return self.view_file(reader, &path, meta, range);
                    }
                    _ => return Err(refuse(texts::missing_view(&path))),
                },
            };
            Ok((
                self.view_directory(reader, &path, &directory, range)?,
                false,
            ))
        })?;
        if is_dirty {
            // What is shown is clean already; that the store may not be writable now must
            // not keep the model from reading. The next view or a rescan tries again.
            let _refreshed = self.rescan_file(&path);
        }
        Ok(reply)
    }

    /// The most characters of file text that one view shows.
    pub(super) fn view_chars_max(&self) -> usize {
        usize::try_from(self.rules.effective.view.max_chars).unwrap_or(usize::MAX)
    }

    /// The reply, and whether the stored text holds what today's policy removes.
    fn view_file(
        &self,
        reader: &Reader<'_>,
        path: &MemoryPath,
        meta: &FileMeta,
        range: Option<(i64, i64)>,
    ) -> Result<(Reply, bool), Stop> {
        let content = reader.content(meta)?;
        if let Some(media_type) = image_type(path, &content) {
            let limit = self.rules.effective.limits.max_image_bytes;
            if content.len() as u64 > limit {
                return Err(refuse(texts::image_too_large(path, content.len(), limit)));
            }
            let data = content.to_vec();
            let content = Content::Image { media_type, data };
            return Ok((
                Reply {
                    content,
                    is_error: false,
                },
                false,
            ));
        }
        let Ok(text) = std::str::from_utf8(&content) else {
            return Err(refuse(texts::not_showable(path)));
        };
        let pseudonym = |value: &[u8]| reader.pseudonym(value);
        let (text, is_dirty) = self.stored_text(text, &meta.policy_digest, &pseudonym)?;
        edit::view_file(path.as_str(), &text, range, self.view_chars_max())
            .map(|text| (Reply::text(text), is_dirty))
            .map_err(|error| refuse(error.reply_text(path.as_str(), "")))
    }

    fn view_directory(
        &self,
        reader: &Reader<'_>,
        path: &MemoryPath,
        directory: &Directory,
        range: Option<(i64, i64)>,
    ) -> Result<Reply, Stop> {
        let bytes = self.shown_bytes(reader, path.as_str(), directory)?;
        let mut rows = vec![Row {
            bytes,
            path: path.as_str().to_owned(),
        }];
        for entry in self.shown(reader, path.as_str(), directory)? {
            let entry_path = format!("{path}/{}", entry.name);
            rows.push(self.row(reader, &entry, &entry_path)?);
            let Some(below) = Directory::of(&entry) else {
                continue;
            };
            for entry in self.shown(reader, &entry_path, &below)? {
                rows.push(self.row(reader, &entry, &format!("{entry_path}/{}", entry.name))?);
            }
        }
        let rows_max = usize::try_from(self.rules.effective.view.max_entries).unwrap_or(usize::MAX);
        edit::view_directory(path.as_str(), &rows, range, rows_max)
            .map(Reply::text)
            .map_err(|error| refuse(error.reply_text(path.as_str(), "")))
    }

    fn row(&self, reader: &Reader<'_>, entry: &Dirent, path: &str) -> Result<Row, Stop> {
        Ok(match Directory::of(entry) {
            None => Row {
                bytes: entry.share().bytes,
                path: path.to_owned(),
            },
            Some(below) => Row {
                bytes: self.shown_bytes(reader, path, &below)?,
                path: format!("{path}/"),
            },
        })
    }

    /// The size of all that is below a directory, hidden items included, but nothing that
    /// reads as missing: its size would give it away.
    fn shown_bytes(
        &self,
        reader: &Reader<'_>,
        path: &str,
        directory: &Directory,
    ) -> Result<u64, Stop> {
        let denied = &self.rules.effective.paths.denied;
        if denied.first_at_or_below(path).is_none() {
            return Ok(directory.summary.below.bytes);
        }
        let mut bytes: u64 = 0;
        for entry in reader.children(directory)? {
            let path = format!("{path}/{}", entry.name);
            if self.rules.effective.paths.denied_by(&path).is_some() {
                continue;
            }
            bytes = bytes.saturating_add(match Directory::of(&entry) {
                Some(below) => self.shown_bytes(reader, &path, &below)?,
                None => entry.share().bytes,
            });
        }
        Ok(bytes)
    }

    /// A directory's entries that an agent sees in a listing.
    fn shown(
        &self,
        reader: &Reader<'_>,
        path: &str,
        directory: &Directory,
    ) -> Result<Vec<Dirent>, Stop> {
        let mut entries = reader.children(directory)?;
        entries.retain(|entry| {
            !entry.name.starts_with('.')
                && entry.name != "node_modules"
                && self
                    .rules
                    .effective
                    .paths
                    .denied_by(&format!("{path}/{}", entry.name))
                    .is_none()
        });
        Ok(entries)
    }
}

/// The image that these bytes are, if both the name and the signature say so.
pub(super) fn image_type(path: &MemoryPath, bytes: &[u8]) -> Option<&'static str> {
    let (_, extension) = path.name()?.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "png" if bytes.starts_with(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        "jpg" | "jpeg" if bytes.starts_with(b"\xFF\xD8\xFF") => Some("image/jpeg"),
        _ => None,
    }
}
