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

/// What the operator runs from time to time. A number is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Run {
    /// A sweep of all tenants that left none out.
    Expire = 0,
    /// A check of everything that found nothing.
    Verify = 1,
    /// A checkpoint.
    Checkpoint = 2,
    /// A backup of the records.
    Backup = 3,
}

impl Run {
    /// All of them, with the names by which figures are shown.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Expire, "expire"),
        (Self::Verify, "verify"),
        (Self::Checkpoint, "checkpoint"),
        (Self::Backup, "backup"),
    ];
}

/// When each run last came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastRuns([UnixMillis; 8]);

impl LastRuns {
    /// Notes that a run has come to its end.
    pub fn note(&mut self, run: Run, time: UnixMillis) {
        if let Some(slot) = self.0.get_mut(run as usize) {
            *slot = time;
        }
    }

    /// When it last did; `None` is never.
    #[must_use]
    pub fn last(&self, run: Run) -> Option<UnixMillis> {
        self.0.get(run as usize).copied().filter(|time| *time > 0)
    }
}

/// Where the trusted time was moved forward by the operator, the newest first.
///
/// While a clock far ahead is not believed, everything is stamped with the trusted time, which
/// stands still. Once the operator says that the clock was right, what carries that stamp is
/// not as old as it says: it counts as stamped at the moment of the confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Jumps([(UnixMillis, UnixMillis); 2]);

impl Jumps {
    /// Notes that the trusted time was moved from one moment forward to another. The oldest
    /// of three is forgotten.
    pub fn note(&mut self, from: UnixMillis, to: UnixMillis) {
        if from < to {
            self.0 = [(from, to), self.0[0]];
        }
    }

    /// The moment that a stamp stands for: never an earlier one.
    #[must_use]
    pub fn settle(&self, stamp: UnixMillis) -> UnixMillis {
        let jump = self
            .0
            .iter()
            .find(|(from, to)| (*from..*to).contains(&stamp));
        jump.map_or(stamp, |(_, to)| *to)
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
    /// The operator's last runs.
    pub runs: LastRuns,
    /// Where the operator moved the trusted time forward.
    pub jumps: Jumps,
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
        for time in self.runs.0 {
            out.u64(time);
        }
        for (jumped_from, to) in self.jumps.0 {
            out.u64(jumped_from).u64(to);
        }
        out.finish()
    }

    /// The root that these bytes are.
    ///
    /// # Errors
    /// [`RecordError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut from = Decoder::new("root record", bytes);
        let mut root = Self {
            seq: from.u64()?,
            era: from.u32()?,
            records: from.u64()?,
            set_hash: SetHash(from.array()?),
            keyring_counter: from.u64()?,
            trusted_time: from.u64()?,
            audit: decode_chain(&mut from)?,
            runs: LastRuns::default(),
            jumps: Jumps::default(),
        };
        for slot in &mut root.runs.0 {
            *slot = from.u64()?;
        }
        for jump in &mut root.jumps.0 {
            *jump = (from.u64()?, from.u64()?);
        }
        from.finish()?;
        Ok(root)
    }
}
