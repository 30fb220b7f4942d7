//! `str_replace`: one literal text for another.

use crate::edit::{self, Edited};
use crate::wire::Reply;

use super::redaction::with_note;
use super::{Line, Stop, refuse, texts};

impl Line<'_> {
    pub(super) fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<Reply, Stop> {
        let path = self.guard(path)?;
        let missing = || texts::missing_edit(&path);
        self.may_edit(&path, missing())?;
        self.write(|change| {
            let found = self.text_to_edit(change.reader(), &path, missing)?;
            // The error quotes `old` only to its first thousand characters: a secret in it
            // must be removed before the cut.
            let edited = edit::str_replace(&found.text, old, new)
                .map_err(|error| refuse(error.reply_text(path.as_str(), &self.showable(old))))?;
            let cleaned = self.put_text(change, &path, &edited.text, Some(found.bytes))?;
            let stored = Edited {
                text: cleaned.text.to_string(),
                ..edited
            };
            let snippet = edit::snippet(&stored, self.view_chars_max());
            Ok(Reply::text(with_note(snippet, cleaned.note)))
        })
    }
}
