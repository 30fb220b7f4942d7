//! What the store keeps of an access token: never its secret, only a hash of it.

use crate::clock::UnixMillis;

use super::RecordError;
use super::codec::{Decoder, Encoder};

/// The most tenant patterns that a token may have.
pub const TOKEN_TENANTS_MAX: usize = 16;

/// What an access token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// `view` only.
    ReadOnly,
    /// All six commands.
    ReadWrite,
    /// The figures of the whole store, and no tenant's memory.
    Metrics,
}

/// An access token, without its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The SHA-256 of its secret.
    pub hash: [u8; 32],
    /// Whom the audit log names as the one who acts.
    pub label: String,
    /// What it allows.
    pub access: Access,
    /// The tenants it is for, as patterns.
    pub tenants: Vec<String>,
    /// When it was made.
    pub created: UnixMillis,
    /// From when on it is refused; `None` is never.
    pub expires: Option<UnixMillis>,
}

impl Token {
    /// The record's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(self.tenants.len() <= TOKEN_TENANTS_MAX);
        let mut out = Encoder::default();
        out.array(&self.hash)
            .bytes(self.label.as_bytes())
            .u8(match self.access {
                Access::ReadOnly => 1,
                Access::ReadWrite => 2,
                Access::Metrics => 3,
            })
            .u32(u32::try_from(self.tenants.len()).unwrap_or(u32::MAX));
        for pattern in &self.tenants {
            out.bytes(pattern.as_bytes());
        }
        out.u64(self.created);
        match self.expires {
            None => out.u8(0),
            Some(at) => out.u8(1).u64(at),
        };
        out.finish()
    }

    /// The token that these bytes are.
    ///
    /// # Errors
    /// [`RecordError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut from = Decoder::new("token", bytes);
        let hash = from.array()?;
        let label = from.text()?;
        let access = match from.u8()? {
            1 => Access::ReadOnly,
            2 => Access::ReadWrite,
            3 => Access::Metrics,
            _ => return Err(from.malformed()),
        };
        let count = from.u32()? as usize;
        if count > TOKEN_TENANTS_MAX {
            return Err(from.malformed());
        }
        let mut tenants = Vec::with_capacity(count);
        for _ in 0..count {
            tenants.push(from.text()?);
        }
        let created = from.u64()?;
        let expires = match from.u8()? {
            0 => None,
            1 => Some(from.u64()?),
            _ => return Err(from.malformed()),
        };
        from.finish()?;
        Ok(Self {
            hash,
            label,
            access,
            tenants,
            created,
            expires,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_the_round_trip_and_no_part_of_it_is_one() {
        for access in [Access::ReadOnly, Access::ReadWrite, Access::Metrics] {
            for expires in [None, Some(u64::MAX)] {
                let token = Token {
                    hash: [7; 32],
                    label: "intake".to_owned(),
                    access,
                    tenants: vec!["clinic/*".to_owned(), "lab/**".to_owned()],
                    created: 1,
                    expires,
                };
                let bytes = token.encode();
                assert_eq!(Token::decode(&bytes), Ok(token));
                for cut in 0..bytes.len() {
                    assert!(Token::decode(&bytes[..cut]).is_err());
                }
                assert!(Token::decode(&[bytes, vec![0]].concat()).is_err());
            }
        }
    }
}
