//! `str_replace`: one literal text for another.

use crate::edit;
use crate::wire::Reply;

use super::{Line, Stop, refuse, texts};

impl Line<'_> {
    pub(super) fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<Reply, Stop> {
        let path = self.guard(path)?;
        let missing = || texts::missing_edit(&path);
        self.may_edit(&path, missing())?;
        self.store().write(&self.tenant.tenant, |change| {
            let found = self.text_to_edit(change.reader(), &path, missing)?;
            let edited = edit::str_replace(&found.text, old, new)
                .map_err(|error| refuse(error.reply_text(path.as_str(), old)))?;
            self.put_text(change, &path, &edited.text, Some(found.bytes))?;
            Ok(Reply::text(edit::snippet(&edited, self.view_chars_max())))
        })
    }
}
