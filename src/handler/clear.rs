//! `clear`: everything of a tenant that may be deleted, at the host's wish.

use std::convert::Infallible;

use crate::error::Error;
use crate::record::Dirent;
use crate::store::Abort;
use crate::wire::Reply;

use super::{Tenant, texts};

impl Tenant {
    /// Deletes everything below `/memories`, hidden entries too. What policy or a hold keeps
    /// stays, and the reply then is an error that says so. Each entry of `/memories` goes like
    /// any other `delete`, with its audit entry.
    ///
    /// # Errors
    /// As [`Tenant::run`]; what went before the failure is gone.
    ///
    /// ```
    /// # let vault = strongroom::Vault::builder().in_memory().open()?;
    /// let tenant = vault.tenant("acme/user-17")?;
    /// tenant.create("/memories/people/ada.md", "Likes tea\n")?;
    /// assert_eq!(tenant.clear()?.as_text(), Some("All memory was cleared"));
    /// assert!(tenant.view("/memories/people", None)?.is_error);
    /// # Ok::<(), strongroom::Error>(())
    /// ```
    pub fn clear(&self) -> Result<Reply, Error> {
        let mut refusal = None;
        for path in self.entries()? {
            let reply = self.delete(&path)?;
            if reply.is_error {
                refusal.get_or_insert(reply);
            }
        }
        // What another call deleted meanwhile was refused, and is no less gone.
        let left = self.entries()?.len();
        Ok(match refusal {
            Some(first) if left > 0 => Reply::error(texts::not_cleared(
                left,
                first.as_text().unwrap_or_default(),
            )),
            _ => Reply::text(texts::CLEARED),
        })
    }

    /// The paths of what lies in `/memories`.
    fn entries(&self) -> Result<Vec<String>, Error> {
        let listed = self.shared.store.read(&self.tenant, |reader| {
            let root = reader.root();
            let path = |entry: &Dirent| root.path_of(&entry.name);
            Ok::<_, Abort<Infallible>>(reader.children(&root)?.iter().map(path).collect())
        });
        match listed {
            Ok(paths) => Ok(paths),
            Err(Abort::Failed(error)) => Err(error.into()),
            Err(Abort::Refused(never)) => match never {},
        }
    }
}
