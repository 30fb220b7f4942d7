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

    /// RFC 4231, test cases 1, 3, 4, 6 and 7: of short, exact and overlong keys.
    #[test]
    fn the_crate_is_the_hmac_we_mean() {
        let counting: Vec<u8> = (1..=25).collect();
        for (key, text, expected) in [
            (
                vec![0x0b; 20],
                b"Hi There".to_vec(),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                vec![0xaa; 20],
                vec![0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                counting,
                vec![0xcd; 50],
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            ),
            (
                vec![0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (
                vec![0xaa; 131],
                b"This is a test using a larger than block-size key and a larger than block-size \
                  data. The key needs to be hashed before being used by the HMAC algorithm."
                    .to_vec(),
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            ),
        ] {
            let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
            mac.update(&text);
            assert_eq!(hex(&mac.finalize().into_bytes()), expected);
        }
    }

    /// FIPS 180-2, appendix B: one block, two blocks, a million bytes.
    #[test]
    fn matches_fips_180() {
        assert_eq!(
            hex(&sha256(&[b"a", b"bc"])),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            hex(&sha256(&[
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"
            ])),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        assert_eq!(
            hex(&sha256(&[&[b'a'; 1_000]; 1_000].map(|part| &part[..]))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }
}
