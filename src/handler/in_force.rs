//! The policy in force, with the engine that carries out its redaction.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::policy::Policy;
use crate::redact::{self, Engine};

/// A policy, ready to be applied.
pub(super) struct InForce {
    pub(super) policy: Arc<Policy>,
    /// `None` when the policy names no rule packs and no rules.
    pub(super) engine: Option<Engine>,
    /// Lies with each file: under which policy, and which rules of which build, it was scanned.
    pub(super) digest: [u8; 32],
}

impl InForce {
    pub(super) fn new(policy: Policy) -> Result<Self, Error> {
        let redaction = &policy.redaction;
        let packs = redaction.pack_names();
        let has_rules = !packs.is_empty() || !redaction.rules.is_empty();
        let engine = if has_rules {
            Some(redaction.engine()?)
        } else {
            None
        };
        let digest = Sha256::new()
            .chain_update(policy.digest())
            .chain_update(redact::fingerprint(&packs)?)
            .finalize()
            .into();
        Ok(Self {
            policy: Arc::new(policy),
            engine,
            digest,
        })
    }
}
