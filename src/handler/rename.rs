//! `rename`: moves a file or directory, never over something that exists.

use crate::record::DirentBody;
use crate::wire::Reply;

use super::edits::not_through_file;
use super::{Line, Stop, refuse, texts};

impl Line<'_> {
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<Reply, Stop> {
        let from = self.guard(from)?;
        let to = self.guard(to)?;
        if from.is_root() {
            return Err(refuse(texts::RENAME_ROOT));
        }
        self.may_edit(&from, texts::missing(&from))?;
        if !to.is_root() {
            self.may_write(&to)?;
        }
        self.store().write(&self.tenant.tenant, |change| {
            let walk = change.reader().walk(&from)?;
            let Some(entry) = walk.target() else {
                return Err(refuse(texts::missing(&from)));
            };
            let target = change.reader().walk(&to)?;
            if to.is_root() || target.target().is_some() {
                return Err(refuse(texts::destination_exists(&to)));
            }
            if from.contains(&to) {
                return Err(refuse(texts::into_itself(&from)));
            }
            not_through_file(&target, &to)?;
            if matches!(entry.body, DirentBody::Directory { .. }) {
                self.may_move_directory(&from)?;
                self.may_move_directory(&to)?;
            }
            change.rename(&from, &to)?;
            Ok(Reply::text(texts::renamed(&from, &to)))
        })
    }
}
