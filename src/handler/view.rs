//! `view`: a file's numbered lines, an image, or a directory's listing.

use crate::edit::{self, Row};
use crate::path::MemoryPath;
use crate::record::{Dirent, DirentBody, FileMeta};
use crate::store::{Change, Directory, Reader, StoreError, Urgency};
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
        let (reply, after) = self.store().read(&self.tenant.tenant, |reader| {
            let walk = reader.walk(&path)?;
            if let Some(Dirent {
                body: DirentBody::File(meta),
                ..
            }) = walk.target()
            {
                let (reply, is_dirty) = self.view_file(reader, &path, meta, range)?;
                self.draft.borrow_mut().bytes = meta.bytes;
                let touch = reader.access_write(&walk, meta);
                return Ok((reply, After { is_dirty, touch }));
            }
            let directory = walk.target_directory();
            let directory = directory.ok_or_else(|| refuse(texts::missing_view(&path)))?;
            Ok((
                self.view_directory(reader, directory, range)?,
                After::default(),
            ))
        })?;
        self.after_view(&path, after)?;
        Ok(reply)
    }

    /// Cleans what today's policy removes, and notes the access.
    fn after_view(&self, path: &MemoryPath, after: After) -> Result<(), Stop> {
        if after.is_dirty {
            // What is shown is clean already; that the store may not be writable now must
            // not keep the model from reading. The next view or a rescan tries again.
            let _refreshed = self.rescan_file(path);
        }
        let Some(urgency) = after.touch else {
            return Ok(());
        };
        let touch =
            |change: &mut Change<'_>| -> Result<(), Stop> { Ok(change.touch_if_there(path)?) };
        let touched = match urgency {
            Urgency::Soon => self.store().write_soon(&self.tenant.tenant, touch),
            Urgency::Now => self.store().write(&self.tenant.tenant, touch),
        };
        match touched {
            // Where nothing can be written, reads go on.
            Err(crate::store::Abort::Failed(
                StoreError::ReadOnly | StoreError::WritesStopped | StoreError::NoSpace,
            )) => Ok(()),
            touched => touched,
        }
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
        directory: &Directory,
        range: Option<(i64, i64)>,
    ) -> Result<Reply, Stop> {
        let path = &directory.path;
        let bytes = self.shown_bytes(reader, directory)?;
        let mut rows = vec![Row {
            bytes,
            path: path.clone(),
        }];
        for entry in reader.listed(directory)?.iter() {
            if !self.is_shown(directory, entry) {
                continue;
            }
            rows.push(self.row(reader, directory, entry)?);
            let Some(below) = directory.child(entry) else {
                continue;
            };
            for entry in reader.listed(&below)?.iter() {
                if self.is_shown(&below, entry) {
                    rows.push(self.row(reader, &below, entry)?);
                }
            }
        }
        let rows_max = usize::try_from(self.rules.effective.view.max_entries).unwrap_or(usize::MAX);
        edit::view_directory(path, &rows, range, rows_max)
            .map(Reply::text)
            .map_err(|error| refuse(error.reply_text(path, "")))
    }

    fn row(&self, reader: &Reader<'_>, directory: &Directory, entry: &Dirent) -> Result<Row, Stop> {
        let path = directory.path_of(&entry.name);
        Ok(match directory.child(entry) {
            None => Row {
                bytes: entry.share().bytes,
                path,
            },
            Some(below) => Row {
                bytes: self.shown_bytes(reader, &below)?,
                path: format!("{path}/"),
            },
        })
    }

    /// The size of all that is below a directory, hidden items included, but nothing that
    /// reads as missing: its size would give it away.
    fn shown_bytes(&self, reader: &Reader<'_>, directory: &Directory) -> Result<u64, Stop> {
        let paths = &self.rules.effective.paths;
        if paths.denied.first_at_or_below(&directory.path).is_none() {
            return Ok(reader.totals(directory)?.bytes);
        }
        let mut bytes: u64 = 0;
        for entry in reader.children(directory)? {
            if paths.denied_by(&directory.path_of(&entry.name)).is_some() {
                continue;
            }
            bytes = bytes.saturating_add(match directory.child(&entry) {
                Some(below) => self.shown_bytes(reader, &below)?,
                None => entry.share().bytes,
            });
        }
        Ok(bytes)
    }

    /// Whether an agent sees this entry of a directory in a listing.
    fn is_shown(&self, directory: &Directory, entry: &Dirent) -> bool {
        let paths = &self.rules.effective.paths;
        !entry.name.starts_with('.')
            && entry.name != "node_modules"
            && paths.denied_by(&directory.path_of(&entry.name)).is_none()
    }
}

/// What a view leaves to be done.
#[derive(Default)]
struct After {
    is_dirty: bool,
    touch: Option<Urgency>,
}

/// Whether a file of this name may be an image.
pub(super) fn has_image_name(path: &MemoryPath) -> bool {
    let extension = path.name().and_then(|name| name.rsplit_once('.'));
    extension.is_some_and(|(_, extension)| {
        ["png", "jpg", "jpeg"].contains(&extension.to_ascii_lowercase().as_str())
    })
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
