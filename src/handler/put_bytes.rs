//! `put_bytes`: how the host stores an image, or text of its own.

use crate::policy::Refusal;
use crate::record::{DirentBody, FileKind};
use crate::store::NewFile;
use crate::wire::Reply;

use super::redaction::with_note;
use super::view::image_type;
use super::{Line, Stop, refuse, texts};

impl Line<'_> {
    pub(super) fn put_bytes(&self, path: &str, bytes: &[u8]) -> Result<Reply, Stop> {
        let path = self.guard(path)?;
        if path.is_root() {
            return Err(refuse(texts::is_directory(&path)));
        }
        self.may_write(&path)?;
        self.check_name(&path)?;
        let is_image = image_type(&path, bytes).is_some();
        let text = if is_image {
            None
        } else {
            std::str::from_utf8(bytes).ok()
        };
        if !is_image && text.is_none() {
            return Err(refuse(texts::not_showable(&path)));
        }
        self.write(|change| {
            let walk = change.reader().walk(&path)?;
            self.may_make_parents(change.reader(), &walk, &path)?;
            let old_bytes = match walk.target().map(|entry| &entry.body) {
                None => None,
                Some(DirentBody::Directory { .. } | DirentBody::Hold(_)) => {
                    return Err(refuse(texts::is_directory(&path)));
                }
                Some(DirentBody::File(meta)) => Some(meta.bytes),
            };
            let mut note = None;
            if let Some(text) = text {
                note = self.put_text(change, &path, text, old_bytes)?.note;
            } else {
                self.check_image(bytes.len() as u64)
                    .map_err(|refusal| refuse(refusal.message(path.as_str())))?;
                let file = NewFile {
                    kind: FileKind::Bytes,
                    bytes,
                    lines: 0,
                    policy_digest: self.rules.in_force.digest,
                };
                self.put(change, &path, &file, old_bytes)?;
            }
            Ok(Reply::text(with_note(texts::created(&path), note)))
        })
    }

    fn check_image(&self, bytes: u64) -> Result<(), Refusal> {
        self.rules.effective.write.check_images()?;
        self.rules.effective.limits.check_image_bytes(bytes)
    }
}
