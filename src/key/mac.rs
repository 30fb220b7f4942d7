//! Keyed hashes: HMAC-SHA256 (RFC 2104) with the key schedule done once.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::SecretKey;

/// Bytes of an HMAC-SHA256 or SHA-256 value.
pub(crate) const HASH_BYTES: usize = 32;

/// A key made ready for many hashes.
pub(crate) struct MacKey(Hmac<Sha256>);

impl MacKey {
    /// Makes `key` ready: both keyed blocks are hashed here, once.
    pub(crate) fn new(key: &SecretKey) -> Self {
        #[expect(
            clippy::expect_used,
            reason = "HMAC takes keys of every length (RFC 2104, section 2)"
        )]
        let mac = Hmac::new_from_slice(key.expose()).expect("HMAC takes every key length");
        Self(mac)
    }

    /// HMAC of the parts, one after the other. The parts are not delimited:
    /// a caller with more than one part of variable length prefixes lengths.
    pub(crate) fn mac(&self, parts: &[&[u8]]) -> [u8; HASH_BYTES] {
        self.updated(parts).finalize().into_bytes().into()
    }

    /// Whether `expected` is the HMAC of the parts, compared in constant time.
    pub(crate) fn verify(&self, parts: &[&[u8]], expected: &[u8; HASH_BYTES]) -> bool {
        self.updated(parts).verify(expected.into()).is_ok()
    }

    fn updated(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part);
        }
        mac
    }
}

/// Plain SHA-256 of the parts, one after the other: against accidents only.
pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; HASH_BYTES] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{hex, unhex};

    /// RFC 4231, test case 2: its key "Jefe" is zero-padded by HMAC itself,
    /// so the padded key gives the same value.
    #[test]
    fn matches_rfc_4231() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let key = SecretKey::copy_of(&key);
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(
            hex(&MacKey::new(&key).mac(&[b"what do ya want for nothing?"])),
            expected
        );
        let ready = MacKey::new(&key);
        for _ in 0..2 {
            assert_eq!(
                hex(&ready.mac(&[b"what do ya want ", b"for nothing?"])),
                expected
            );
        }
        assert!(ready.verify(&[b"what do ya want for nothing?"], &unhex(expected)));
        assert!(!ready.verify(&[b"what do ya want for nothing!"], &unhex(expected)));
    }

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn matches_fips_180() {
        assert_eq!(
            hex(&sha256(&[b"a", b"bc"])),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
