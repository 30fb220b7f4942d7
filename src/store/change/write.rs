//! Runs a plan under the tenant's lock, commits it, and answers once it is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::audit::Chain;
use crate::backend::Batch;
use crate::key::TenantKeys;
use crate::record::JobId;

use crate::store::Abort;
use crate::store::core::Core;
use crate::store::tenant::{Tenant, TenantCrypto};

use super::Change;

/// The epoch of a new tenant's records; none is retired.
const NEW_EPOCHS: (u32, u32) = (1, 0);

impl Core {
    /// Runs `plan` under the tenant's lock and commits what it planned.
    ///
    /// Returns once the change is durable. When `plan` refuses or fails, nothing was written.
    pub(in crate::store) fn write<T, R>(
        &self,
        tenant: &Tenant,
        plan: impl FnOnce(&mut Change<'_>) -> Result<T, Abort<R>>,
    ) -> Result<T, Abort<R>> {
        match self.write_soon(tenant, plan) {
            Err(Abort::Failed(error)) => Err(Abort::Failed(error)),
            // A refusal too speaks of what it saw, so that must be durable first.
            done => {
                self.wait_durable(tenant.live().map_or(0, |live| live.seq))?;
                done
            }
        }
    }

    /// As [`Core::write`], without waiting until the change is durable: for what may be
    /// lost in a power cut.
    pub(in crate::store) fn write_soon<T, R>(
        &self,
        tenant: &Tenant,
        plan: impl FnOnce(&mut Change<'_>) -> Result<T, Abort<R>>,
    ) -> Result<T, Abort<R>> {
        let lock = tenant.lock();
        // Under the lock: an earlier writer may have failed or closed the store meanwhile.
        self.check_writable()?;
        let planned = self.plan_and_commit(tenant, plan);
        drop(lock);
        match planned {
            Ok((value, _)) => Ok(value),
            Err(Abort::Failed(error)) => Err(self.failed(error).into()),
            Err(refused) => Err(refused),
        }
    }

    fn plan_and_commit<T, R>(
        &self,
        tenant: &Tenant,
        plan: impl FnOnce(&mut Change<'_>) -> Result<T, Abort<R>>,
    ) -> Result<(T, u64), Abort<R>> {
        let live = tenant.live();
        let (crypto, new_keys) = match &live {
            Some(live) => (Arc::clone(&live.crypto), None),
            None => {
                let keys = TenantKeys::create(tenant.name.as_str(), &*self.random)?;
                (
                    Arc::new(TenantCrypto::new(self.crypto.id, &keys, NEW_EPOCHS)?),
                    Some(keys),
                )
            }
        };
        let epochs = live
            .as_ref()
            .map_or(NEW_EPOCHS, |live| (live.head.epoch, live.head.retired));
        let audit = live.as_ref().map_or(Chain::EMPTY, |live| live.head.audit);
        let mut change = Change {
            reader: self.reader(tenant, live)?,
            crypto,
            tenant,
            new_keys,
            directories: BTreeMap::new(),
            batch: Batch::default(),
            chunk_deletes: 0,
            jobs: Vec::new(),
            drafts: Vec::new(),
            audit,
            events: Vec::new(),
            epochs,
            now: self.now(),
        };
        let value = match plan(&mut change) {
            Ok(value) => value,
            Err(stop) => {
                change.abandon();
                return Err(stop);
            }
        };
        let staged: Vec<JobId> = change.staged().collect();
        match change.commit() {
            Ok(seq) => Ok((value, seq)),
            Err(error) => {
                self.release_staged(&staged);
                Err(error.into())
            }
        }
    }
}
