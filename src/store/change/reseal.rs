//! Changes that seal a tenant's entries anew, and the epochs that its head names.

use std::sync::Arc;

use crate::audit::Draft;
use crate::record::{DirentBody, Job, JobId, NodeId, Rotation};

use crate::store::StoreError;
use crate::store::tenant::TenantCrypto;

use super::Change;

impl Change<'_> {
    /// Begins a new epoch: from this change on, records are sealed under a new key. In place
    /// of `old`, the job of a rotation that has not ended. Returns the job and the epoch.
    pub(in crate::store) fn begin_epoch(
        &mut self,
        old: Option<(JobId, [u8; 32])>,
    ) -> Result<(JobId, u32), StoreError> {
        let core = self.reader.core;
        let tag = self.tenant.tag;
        let (current, retired) = self.epochs;
        let mut keys = core.read_tenant_keys(tag)?;
        let epoch = keys.add_epoch(&*core.random)?;
        // What a kill left of an earlier try: no head ever named it.
        for unused in keys
            .epochs()
            .filter(|at| *at > current && *at < epoch)
            .collect::<Vec<_>>()
        {
            keys.remove_epoch(unused)?;
        }
        core.write_tenant_keys(tag, &keys)?;
        self.crypto = Arc::new(TenantCrypto::new(core.crypto.id, &keys, (epoch, retired))?);
        self.epochs.0 = epoch;
        let tenant = self.crypto.id;
        let job = Job::Rotate(Rotation { tag, tenant, epoch });
        let (id, mac) = match old {
            Some((id, mac)) => (id, Some(mac)),
            None => (JobId(self.random_id()?), None),
        };
        self.jobs.push((id, Some(job), mac));
        let detail = format!("tenant {tenant}, epoch {epoch} begins");
        self.events.push(Draft::new("key rotate").detail(detail));
        Ok((id, epoch))
    }

    /// Says that nothing is sealed any more in the epochs before `epoch`.
    pub(in crate::store) fn retire_before(&mut self, epoch: u32) -> Result<(), StoreError> {
        let core = self.reader.core;
        let keys = core.read_tenant_keys(self.tenant.tag)?;
        self.epochs.1 = epoch.saturating_sub(1);
        self.crypto = Arc::new(TenantCrypto::new(core.crypto.id, &keys, self.epochs)?);
        let detail = format!("tenant {}, epochs before {epoch} retired", self.crypto.id);
        self.events.push(Draft::new("key rotate").detail(detail));
        Ok(())
    }

    /// Plans to seal entries of a directory anew, unchanged. `at` names it from the top; one
    /// that is not there any more has nothing to seal. Says whether anything is planned.
    pub(in crate::store) fn reseal(
        &mut self,
        at: &[String],
        names: &[String],
    ) -> Result<bool, StoreError> {
        self.enter_top(self.reader.root());
        let mut directory = NodeId::ROOT;
        for (depth, name) in at.iter().enumerate() {
            match self.entry(directory, name)? {
                Some((entry, _)) if matches!(entry.body, DirentBody::Directory { .. }) => {
                    directory = self.enter(directory, name, depth + 1)?;
                }
                _ => return Ok(false),
            }
        }
        self.reseal_in(directory, names)
    }

    /// As [`Change::reseal`], for the list of holds.
    pub(in crate::store) fn reseal_holds(&mut self, names: &[String]) -> Result<bool, StoreError> {
        self.enter_top(self.reader.hold_list());
        self.reseal_in(NodeId::HOLDS, names)
    }

    fn reseal_in(&mut self, directory: NodeId, names: &[String]) -> Result<bool, StoreError> {
        for name in names {
            let old = self.entry(directory, name)?;
            let tag = self.crypto.name_tag(directory, name);
            if let Some((entry, mac)) = old {
                let same = entry.clone();
                self.set_entry(directory, tag, Some((entry, mac)), Some(same))?;
            }
        }
        // An expired file counts too: the plan takes it away.
        Ok(self
            .directories
            .values()
            .any(|planned| !planned.entries.is_empty()))
    }
}
