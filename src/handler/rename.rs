//! `rename`: moves a file or directory, never over something that exists.

use crate::path::{DEPTH_MAX, MemoryPath, PATH_BYTES_MAX};
use crate::store::{Directory, Reader};
use crate::wire::Reply;

use super::edits::{not_held, nothing_held_in};
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
            self.check_name(&to)?;
        }
        // A move counts as an access to all below; what is expired must not come back by it.
        self.store()
            .sweep(&self.tenant.tenant, &from, false, &mut None)?;
        self.write(|change| {
            let walk = change.reader().walk(&from)?;
            if walk.target().is_none() {
                return Err(refuse(texts::missing(&from)));
            }
            let target = change.reader().walk(&to)?;
            if to.is_root() || target.target().is_some() {
                return Err(refuse(texts::destination_exists(&to)));
            }
            if from.contains(&to) {
                return Err(refuse(texts::into_itself(&from)));
            }
            not_held(change.reader(), &from)?;
            self.may_make_parents(change.reader(), &target, &to)?;
            if let Some(directory) = walk.target_directory() {
                self.may_move_directory(&from)?;
                nothing_held_in(change.reader(), &from)?;
                self.may_move_directory(&to)?;
                fits_below(change.reader(), directory, &from, &to)?;
            }
            change.rename(&from, &to)?;
            Ok(Reply::text(texts::renamed(&from, &to)))
        })
    }
}

/// Everything below the directory must still have a path that the guard accepts.
///
/// The summary's bounds answer this without a walk, unless they are in doubt.
fn fits_below(
    reader: &Reader<'_>,
    directory: &Directory,
    from: &MemoryPath,
    to: &MemoryPath,
) -> Result<(), Stop> {
    let fits = |(height, reach): (u64, u64)| {
        to.depth() as u64 + height <= DEPTH_MAX as u64
            && to.as_str().len() as u64 + reach <= PATH_BYTES_MAX as u64
    };
    let below = &directory.summary.below;
    if fits((below.height, below.reach)) || fits(reader.extent(directory)?) {
        Ok(())
    } else {
        Err(refuse(texts::too_deep(from, to)))
    }
}
