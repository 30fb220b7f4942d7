//! The audit log as an auditor reads it, and checkpoints to keep outside the store.

use crate::audit::{Chain, Draft, ExportCheck, hex};
use crate::error::Error;
use crate::key::FileTag;
use crate::record::Run;
use crate::store::{AuditRecord, ErasureState, StoreError};

use super::{Tenant, Vault};

/// What reading the audit log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditReport {
    /// Chains read: one for each tenant and the store's own.
    pub chains: u64,
    /// Entries read, all of them linked and in their place.
    pub entries: u64,
    /// Chains that are damaged: whose, and what is wrong.
    pub problems: Vec<(String, String)>,
}

/// A line to keep outside the store. Whoever has it can tell, later, that the store has not
/// been put back to a time before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The store's id, in hexadecimal.
    pub store: String,
    /// The number of the checkpoint's entry in the store's own chain.
    pub seq: u64,
    /// A random id that only this entry has, in hexadecimal.
    pub id: String,
}

impl Checkpoint {
    const PREFIX: &'static str = "strongroom-checkpoint-1";

    /// The checkpoint that this line is.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split_ascii_whitespace();
        let is_one = parts.next() == Some(Self::PREFIX);
        let (store, seq, id) = (parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str| text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let is_whole = is_one && parts.next().is_none() && is_hex(store) && is_hex(id);
        is_whole.then(|| {
            Some(Self {
                store: store.to_owned(),
                seq: seq.parse().ok()?,
                id: id.to_owned(),
            })
        })?
    }
}

impl std::fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {} {} {}",
            Self::PREFIX,
            self.store,
            self.seq,
            self.id
        )
    }
}

impl Vault {
    /// Reads the whole audit log, checks every link, and hands each entry to `each` with the
    /// name of its tenant (`None` for the store's own chain, which comes first; tenants follow
    /// by name, and then those that were erased). A damaged chain is reported,
    /// and the others are read.
    ///
    /// # Errors
    /// When the store itself cannot go on.
    pub fn audit(
        &self,
        tenant: Option<&str>,
        mut each: impl FnMut(Option<&str>, &AuditRecord),
    ) -> Result<AuditReport, Error> {
        let mut report = AuditReport::default();
        if let Some(name) = tenant {
            // Held until the end: a tenant that does not exist has no key file to open it by.
            let tenant = self.tenant(name)?;
            let chain = Some((name.to_owned(), tenant.tag()));
            self.read_chain(chain, &mut report, &mut each)?;
            return Ok(report);
        }
        self.read_chain(None, &mut report, &mut each)?;
        let store = &self.shared.store;
        let mut chains: Vec<_> = store
            .tenant_tags()
            .into_iter()
            .filter_map(|tag| match store.listed_tenant(tag) {
                Ok(tenant) => Some((tenant?.name().as_str().to_owned(), tag)),
                Err(_) => Some((tag.to_string(), tag)),
            })
            .collect();
        chains.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for chain in chains {
            self.read_chain(Some(chain), &mut report, &mut each)?;
        }
        for erased in store.erased() {
            if erased.state == ErasureState::Rekeyed && erased.audit_last == 0 {
                continue;
            }
            let what = match erased.state {
                ErasureState::Rekeyed => "former id",
                _ => "erased tenant",
            };
            let whose = format!("{what} {}", erased.tenant_id);
            report.chains += 1;
            let read = store.erased_chain(&erased.tenant_id, |record| {
                report.entries += 1;
                each(Some(&whose), &record);
            });
            note_read(read, whose, &mut report)?;
        }
        Ok(report)
    }

    /// As [`Vault::audit`], the store's own chain only.
    ///
    /// # Errors
    /// When the store itself cannot go on.
    pub fn audit_store_events(
        &self,
        mut each: impl FnMut(&AuditRecord),
    ) -> Result<AuditReport, Error> {
        let mut report = AuditReport::default();
        self.read_chain(None, &mut report, &mut |_, record| each(record))?;
        Ok(report)
    }

    fn read_chain(
        &self,
        chain: Option<(String, FileTag)>,
        report: &mut AuditReport,
        each: &mut impl FnMut(Option<&str>, &AuditRecord),
    ) -> Result<(), Error> {
        let (name, tag) = chain.unzip();
        report.chains += 1;
        let read = self.shared.store.audit_chain(tag, |record| {
            report.entries += 1;
            each(name.as_deref(), &record);
        });
        note_read(read, name.unwrap_or_else(|| "the store".to_owned()), report)
    }

    /// Writes an entry with a random id into the store's own chain and returns a line to
    /// keep elsewhere.
    ///
    /// # Errors
    /// When the policy keeps no audit log, or as any write.
    pub fn checkpoint(&self) -> Result<Checkpoint, Error> {
        if !self.policy().audit.enabled {
            return Err(
                StoreError::Limit("the policy keeps no audit log ([audit] enabled)").into(),
            );
        }
        let mut id = [0; 16];
        self.shared.fill_random(&mut id)?;
        let id = hex(&id);
        let store = &self.shared.store;
        store.note_run(
            Run::Checkpoint,
            Some(Draft::new("checkpoint").detail(id.clone())),
        )?;
        let mut seq = None;
        store.audit_chain(None, |record| {
            if record.entry.detail.as_ref() == Some(&id) {
                seq = Some(record.entry.seq);
            }
        })?;
        let seq = seq.ok_or(StoreError::Damaged("the audit log"))?;
        Ok(Checkpoint {
            store: store.id().to_string(),
            seq,
            id,
        })
    }

    /// Whether the store still holds the checkpoint's entry: if not, it was put back to a
    /// time before it (or is another store).
    ///
    /// # Errors
    /// When the store's own chain cannot be read.
    pub fn has_checkpoint(&self, checkpoint: &Checkpoint) -> Result<bool, Error> {
        let store = &self.shared.store;
        if store.id().to_string() != checkpoint.store {
            return Ok(false);
        }
        let mut is_there = false;
        let chain: Chain = store.audit_chain(None, |record| {
            is_there |= record.entry.seq == checkpoint.seq
                && record.entry.detail.as_deref() == Some(checkpoint.id.as_str());
        })?;
        // A pruned entry proves nothing, but the chain has gone on past it.
        Ok(is_there || (chain.first > checkpoint.seq && chain.last >= checkpoint.seq))
    }
}

/// A damaged chain is reported; what else there is goes on.
fn note_read(
    read: Result<Chain, StoreError>,
    whose: String,
    report: &mut AuditReport,
) -> Result<(), Error> {
    match read {
        Ok(_) => Ok(()),
        Err(error) if error.is_damage() => {
            report.problems.push((whose, error.to_string()));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

impl Tenant {
    /// Checks an exported chain without the store: each line is an entry's JSON text, the
    /// oldest first. Returns the number and hash of the last entry.
    #[must_use]
    pub fn check_exported<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<(u64, String)> {
        let mut check = ExportCheck::new();
        for line in lines {
            check.line(line).ok()?;
        }
        let mut chains = check.chains().values();
        let only = chains.next().filter(|_| chains.next().is_none())?;
        Some((only.last, only.hash.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::Checkpoint;
    use crate::vectors::vector;

    #[test]
    fn a_checkpoints_line_is_that_of_an_independent_implementation_and_no_other_is_one() {
        let checkpoint = Checkpoint {
            store: "01".repeat(16),
            seq: 12,
            id: "09".repeat(16),
        };
        let line = vector("checkpoint_line");
        assert_eq!(checkpoint.to_string(), line);
        assert_eq!(Checkpoint::parse(&line), Some(checkpoint));
        for other in [
            line.replace("-1 ", "-2 "),
            line.replace(" 12 ", " x "),
            line.replace("09", "0g"),
            format!("{line} more"),
            line[..line.len() - 1].to_owned(),
        ] {
            assert_eq!(Checkpoint::parse(&other), None, "{other}");
        }
    }
}
