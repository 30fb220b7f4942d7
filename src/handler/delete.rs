//! `delete`: a file, or a directory with all that is below it.

use crate::record::DirentBody;
use crate::wire::Reply;

use super::edits::{not_held, nothing_held_in};
use super::{Line, Stop, refuse, texts};

impl Line<'_> {
    pub(super) fn delete(&self, path: &str) -> Result<Reply, Stop> {
        let path = self.guard(path)?;
        if path.is_root() {
            return Err(refuse(texts::DELETE_ROOT));
        }
        self.may_edit(&path, texts::missing(&path))?;
        self.write(|change| {
            let walk = change.reader().walk(&path)?;
            let Some(entry) = walk.target() else {
                return Err(refuse(texts::missing(&path)));
            };
            if matches!(entry.body, DirentBody::Directory { .. }) {
                self.may_move_directory(&path)?;
                nothing_held_in(change.reader(), &path)?;
            } else {
                not_held(change.reader(), &path)?;
            }
            change.remove(&path)?;
            Ok(Reply::text(texts::deleted(&path)))
        })
    }
}
