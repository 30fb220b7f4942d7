//! Ids and record keys: where in the backend a record lies.

use crate::key::{FileTag, TenantId};

/// The random id of a directory (or of a file's entry), never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub [u8; 16]);

impl NodeId {
    /// The directory `/memories` of every tenant.
    pub const ROOT: Self = Self([0; 16]);

    /// The list of a tenant's holds, which is kept and checked as a directory is.
    pub const HOLDS: Self = Self([0xFF; 16]);
}

/// The random id of one version of a file's content, new with every write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(pub [u8; 16]);

/// A keyed tag in place of a name: HMAC-SHA256(name key, directory id ‖ NFC name), 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameTag(pub [u8; 16]);

/// The random id of unfinished work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub [u8; 16]);

/// The random id of an access token. It is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub [u8; 8]);

/// The key under which a record lies in the backend: a space byte, then the record's ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKey {
    /// The one root record.
    Root,
    /// A tenant's head.
    Head(FileTag),
    /// An entry of a directory.
    Dirent(TenantId, NodeId, NameTag),
    /// A piece of a file's padded content.
    Chunk(TenantId, ContentId, u32),
    /// A part of the store's policy.
    Policy(u32),
    /// Unfinished work.
    Job(JobId),
    /// An audit entry, by its number; the tenant is zero for the store's own chain.
    Audit(TenantId, u64),
    /// An access token.
    Token(TokenId),
}

impl RecordKey {
    const ROOT: u8 = 1;
    const HEAD: u8 = 2;
    const DIRENT: u8 = 3;
    const CHUNK: u8 = 4;
    const POLICY: u8 = 5;
    const JOB: u8 = 6;
    const AUDIT: u8 = 7;
    const TOKEN: u8 = 8;

    /// The key's bytes.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Root => vec![Self::ROOT],
            Self::Head(tag) => [&[Self::HEAD], tag.0.as_slice()].concat(),
            Self::Dirent(tenant, directory, name) => {
                [&[Self::DIRENT], tenant.0.as_slice(), &directory.0, &name.0].concat()
            }
            Self::Chunk(tenant, content, number) => [
                &[Self::CHUNK],
                tenant.0.as_slice(),
                &content.0,
                &number.to_be_bytes(),
            ]
            .concat(),
            Self::Policy(part) => [&[Self::POLICY], part.to_be_bytes().as_slice()].concat(),
            Self::Job(id) => [&[Self::JOB], id.0.as_slice()].concat(),
            Self::Audit(tenant, seq) => {
                [&[Self::AUDIT], tenant.0.as_slice(), &seq.to_be_bytes()].concat()
            }
            Self::Token(id) => [&[Self::TOKEN], id.0.as_slice()].concat(),
        }
    }

    /// The key that these bytes are, if they are one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&space, rest) = bytes.split_first()?;
        if rest.len() != Self::bytes_behind(space)? {
            return None;
        }
        let id = |at: usize| -> Option<[u8; 16]> { rest.get(at..at + 16)?.try_into().ok() };
        let number = |at: usize| -> Option<u32> {
            Some(u32::from_be_bytes(rest.get(at..at + 4)?.try_into().ok()?))
        };
        Some(match space {
            Self::ROOT => Self::Root,
            Self::HEAD => Self::Head(FileTag(id(0)?)),
            Self::DIRENT => Self::Dirent(TenantId(id(0)?), NodeId(id(16)?), NameTag(id(32)?)),
            Self::CHUNK => Self::Chunk(TenantId(id(0)?), ContentId(id(16)?), number(32)?),
            Self::POLICY => Self::Policy(number(0)?),
            Self::JOB => Self::Job(JobId(id(0)?)),
            Self::AUDIT => Self::Audit(
                TenantId(id(0)?),
                u64::from_be_bytes(rest.get(16..24)?.try_into().ok()?),
            ),
            Self::TOKEN => Self::Token(TokenId(rest.try_into().ok()?)),
            _ => return None,
        })
    }

    /// How many bytes follow the first in a key that begins with it.
    fn bytes_behind(space: u8) -> Option<usize> {
        const ID: usize = 16;
        Some(match space {
            Self::ROOT => 0,
            Self::HEAD | Self::JOB => ID,
            Self::DIRENT => 3 * ID,
            Self::CHUNK => 2 * ID + 4,
            Self::POLICY => 4,
            Self::AUDIT => ID + 8,
            Self::TOKEN => 8,
            _ => return None,
        })
    }

    /// What all heads' keys start with.
    #[must_use]
    pub fn heads() -> Vec<u8> {
        vec![Self::HEAD]
    }

    /// What the keys of all parts of the policy start with.
    #[must_use]
    pub fn policies() -> Vec<u8> {
        vec![Self::POLICY]
    }

    /// What all tokens' keys start with.
    #[must_use]
    pub fn tokens() -> Vec<u8> {
        vec![Self::TOKEN]
    }

    /// What all jobs' keys start with.
    #[must_use]
    pub fn jobs() -> Vec<u8> {
        vec![Self::JOB]
    }

    /// What the keys of one directory's entries start with.
    #[must_use]
    pub fn dirents_of(tenant: TenantId, directory: NodeId) -> Vec<u8> {
        [&[Self::DIRENT], tenant.0.as_slice(), &directory.0].concat()
    }

    /// What the keys of all entries of a tenant start with.
    #[must_use]
    pub fn dirents_of_tenant(tenant: TenantId) -> Vec<u8> {
        [&[Self::DIRENT], tenant.0.as_slice()].concat()
    }

    /// What the keys of all content of a tenant start with.
    #[must_use]
    pub fn chunks_of_tenant(tenant: TenantId) -> Vec<u8> {
        [&[Self::CHUNK], tenant.0.as_slice()].concat()
    }

    /// What the keys of all audit entries of a chain start with.
    #[must_use]
    pub fn audit_of(tenant: TenantId) -> Vec<u8> {
        [&[Self::AUDIT], tenant.0.as_slice()].concat()
    }

    /// What the keys of the last space start with.
    #[must_use]
    pub fn last_space() -> Vec<u8> {
        vec![Self::TOKEN]
    }

    /// What the keys of all tenants' entries, content and audit entries start with, in turn.
    #[must_use]
    pub fn tenant_spaces() -> [Vec<u8>; 3] {
        [vec![Self::DIRENT], vec![Self::CHUNK], vec![Self::AUDIT]]
    }

    /// The tenant whose record this is, for entries and content.
    #[must_use]
    pub fn tenant(self) -> Option<TenantId> {
        match self {
            Self::Dirent(tenant, ..) | Self::Chunk(tenant, ..) | Self::Audit(tenant, _) => {
                Some(tenant)
            }
            Self::Root | Self::Head(_) | Self::Policy(_) | Self::Job(_) | Self::Token(_) => None,
        }
    }
}
