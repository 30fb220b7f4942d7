//! The top of the tree: a tenant's head, and the one root record above all heads.

use crate::audit::Chain;
use crate::clock::UnixMillis;

use super::codec::{Decoder, Encoder};
use super::{RecordError, SetHash, Summary, TenantId};

/// A tenant's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The tenant's random id.
    pub tenant: TenantId,
    /// What lies in its `/memories`.
    pub root: Summary,
    /// The list of its holds.
    pub holds: Summary,
    /// When the tenant was created.
    pub created: UnixMillis,
    /// Its audit chain.
    pub audit: Chain,
    /// The epoch of the record key that new records take.
    pub epoch: u32,
    /// Nothing is sealed any more in this epoch and those before it; 0 is none.
    pub retired: u32,
}

impl Head {
    /// The record's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.array(&self.tenant.0).u64(self.created);
        self.root.encode(&mut out);
        self.holds.encode(&mut out);
        encode_chain(&self.audit, &mut out);
        out.u32(self.epoch).u32(self.retired);
        out.finish()
    }

    /// The head that these bytes are.
    ///
    /// # Errors
    /// [`RecordError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut from = Decoder::new("head", bytes);
        let tenant = TenantId(from.array()?);
        let created = from.u64()?;
        let root = Summary::decode(&mut from)?;
        let holds = Summary::decode(&mut from)?;
        let audit = decode_chain(&mut from)?;
        let (epoch, retired) = (from.u32()?, from.u32()?);
        if epoch <= retired {
            return Err(from.malformed());
        }
        from.finish()?;
        Ok(Self {
            tenant,
            root,
            holds,
            created,
            audit,
            epoch,
            retired,
        })
    }
}

/// The root record: it changes with every commit, and STATE outside the engine names its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// Counts the commits.
    pub seq: u64,
    /// Counts accepted losses.
    pub era: u32,
    /// How many heads, policy parts and jobs there are.
    pub records: u64,
    /// The hash over them.
    pub set_hash: SetHash,
    /// The keyring's counter when this was written; an older keyring is refused.
    pub keyring_counter: u64,
    /// The newest time at which a write was made.
    pub trusted_time: UnixMillis,
    /// The store's own audit chain.
    pub audit: Chain,
}

pub(super) fn encode_chain(chain: &Chain, out: &mut Encoder) {
    out.u64(chain.first)
        .array(&chain.first_prev)
        .u64(chain.last)
        .array(&chain.tip);
}

pub(super) fn decode_chain(from: &mut Decoder<'_>) -> Result<Chain, RecordError> {
    Ok(Chain {
        first: from.u64()?,
        first_prev: from.array()?,
        last: from.u64()?,
        tip: from.array()?,
    })
}

impl Root {
    /// The record's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.u64(self.seq)
            .u32(self.era)
            .u64(self.records)
            .array(&self.set_hash.0)
            .u64(self.keyring_counter)
            .u64(self.trusted_time);
        encode_chain(&self.audit, &mut out);
        out.finish()
    }

    /// The root that these bytes are.
    ///
    /// # Errors
    /// [`RecordError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut from = Decoder::new("root record", bytes);
        let root = Self {
            seq: from.u64()?,
            era: from.u32()?,
            records: from.u64()?,
            set_hash: SetHash(from.array()?),
            keyring_counter: from.u64()?,
            trusted_time: from.u64()?,
            audit: decode_chain(&mut from)?,
        };
        from.finish()?;
        Ok(root)
    }
}
