//! The store's own copy of its policy, in parts that the root counts.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::audit::{Draft, hex};
use crate::backend::Batch;
use crate::record::RecordKey;

use super::StoreError;
use super::core::{Core, Extra, TopChange};
use super::open::sum_listed;

/// Bytes of policy text in one record.
const POLICY_PART_BYTES: usize = 5_632;

/// The most bytes that a policy may take in the store.
pub(super) const POLICY_BYTES_MAX: usize = 4 * 1_024 * 1_024;

impl Core {
    /// Replaces the store's policy. Durable when it returns.
    pub(super) fn put_policy(&self, event: &str, policy: &str) -> Result<(), StoreError> {
        if policy.len() > POLICY_BYTES_MAX {
            return Err(StoreError::Limit("the policy is over 4 MiB"));
        }
        let mut old = self.policy_macs()?;
        let mut changes = Vec::new();
        for (number, part) in policy.as_bytes().chunks(POLICY_PART_BYTES).enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let key = RecordKey::Policy(number);
            let new = Some(self.seal_top(&key, part)?);
            changes.push(TopChange {
                key,
                old: old.remove(&key.to_bytes()),
                new,
            });
        }
        for (key, mac) in old {
            if let Some(key) = RecordKey::from_bytes(&key) {
                changes.push(TopChange {
                    key,
                    old: Some(mac),
                    new: None,
                });
            }
        }
        let detail = format!("policy {}", hex(&Sha256::digest(policy.as_bytes())));
        let drafts = vec![Draft::new(event).detail(detail)];
        let extra = Extra {
            drafts,
            ..Extra::default()
        };
        let seq = self.commit_with(extra, Batch::default(), changes)?;
        self.wait_durable(seq)
    }

    /// The hash of each part of the policy as it is stored, once it is certain that these are
    /// the parts that the root counts: only what was counted in may be counted out.
    fn policy_macs(&self) -> Result<HashMap<Vec<u8>, [u8; 32]>, StoreError> {
        let mut macs = HashMap::new();
        let top = self.lock_top();
        let sum = sum_listed(&*self.backend, &self.crypto.inventory, |key, mac| {
            if key.starts_with(&RecordKey::policies()) {
                macs.insert(key.to_vec(), mac);
            }
        })?;
        if sum != (top.root.records, top.root.set_hash) {
            return Err(self.failed(StoreError::Damaged("the store's list of records")));
        }
        Ok(macs)
    }
}
