//! `create`: a new text file, or in place of the old one where the policy says so.

use crate::policy::OnExisting;
use crate::record::DirentBody;
use crate::wire::Reply;

use super::redaction::with_note;
use super::{Line, Stop, refuse, texts};

impl Line<'_> {
    pub(super) fn create(&self, path: &str, file_text: &str) -> Result<Reply, Stop> {
        let path = self.guard(path)?;
        if path.is_root() {
            return Err(refuse(texts::is_directory(&path)));
        }
        self.may_write(&path)?;
        self.check_name(&path)?;
        self.write(|change| {
            let walk = change.reader().walk(&path)?;
            self.may_make_parents(change.reader(), &walk, &path)?;
            let old_bytes = match walk.target().map(|entry| &entry.body) {
                None => None,
                Some(DirentBody::Directory { .. } | DirentBody::Hold(_)) => {
                    return Err(refuse(texts::is_directory(&path)));
                }
                Some(DirentBody::File(meta)) => match self.rules.effective.write.on_existing {
                    OnExisting::Error => return Err(refuse(texts::exists(&path))),
                    OnExisting::Overwrite => Some(meta.bytes),
                },
            };
            let cleaned = self.put_text(change, &path, file_text, old_bytes)?;
            Ok(Reply::text(with_note(texts::created(&path), cleaned.note)))
        })
    }
}
