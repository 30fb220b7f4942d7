//! `insert`: whole lines after a line.

use crate::edit;
use crate::wire::Reply;

use super::redaction::with_note;
use super::{Line, Stop, refuse, texts};

impl Line<'_> {
    pub(super) fn insert(&self, path: &str, line: i64, text: &str) -> Result<Reply, Stop> {
        let path = self.guard(path)?;
        let missing = || texts::missing(&path);
        self.may_edit(&path, missing())?;
        self.write(|change| {
            let found = self.text_to_edit(change.reader(), &path, missing)?;
            let edited = edit::insert(&found.text, line, text)
                .map_err(|error| refuse(error.reply_text(path.as_str(), "")))?;
            let cleaned = self.put_text(change, &path, &edited.text, Some(found.bytes))?;
            Ok(Reply::text(with_note(texts::inserted(&path), cleaned.note)))
        })
    }
}
