//! Seals and opens bytes with XChaCha20-Poly1305.
//!
//! The construction is draft-irtf-cfrg-xchacha-03 (ChaCha20-Poly1305 of
//! RFC 8439 under HChaCha20). Sealed bytes are `ciphertext ‖ tag (16)`.

use super::{Plain, SecretKey};
use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};

/// Bytes of a nonce: long enough to be drawn at random for every message.
pub(crate) const NONCE_BYTES: usize = 24;
/// Bytes that sealing adds.
pub(crate) const TAG_BYTES: usize = 16;

/// The bytes are not what was sealed under this key, nonce and associated data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("authentication failed")]
pub(crate) struct NotAuthentic;

/// A key made ready for many messages. Zeroed when dropped.
pub(crate) struct Cipher(XChaCha20Poly1305);

impl Cipher {
    /// Makes `key` ready.
    pub(crate) fn new(key: &SecretKey) -> Self {
        Self(XChaCha20Poly1305::new(key.expose().into()))
    }

    /// `ciphertext ‖ tag` of `plain`.
    ///
    /// Invariant: a nonce is never used twice under one key, because every
    /// caller draws all 24 bytes from the random source for each message.
    pub(crate) fn seal(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], plain: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        self.seal_onto(&mut sealed, nonce, aad, plain);
        sealed
    }

    /// As [`Self::seal`], but appends to `out`, which then holds what it held
    /// before and the sealed bytes.
    pub(crate) fn seal_onto(
        &self,
        out: &mut Vec<u8>,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        plain: &[u8],
    ) {
        let start = out.len();
        // Reserved first, so that growing never leaves a copy of the text behind.
        out.reserve_exact(plain.len() + TAG_BYTES);
        out.extend_from_slice(plain);
        #[expect(
            clippy::expect_used,
            reason = "ChaCha20 takes up to 256 GiB (RFC 8439, section 2.8); no message here comes near"
        )]
        let tag = {
            let tail = out.get_mut(start..).unwrap_or_default();
            self.0
                .encrypt_inout_detached(&XNonce::from(*nonce), aad, tail.into())
                .expect("messages are far below 256 GiB")
        };
        out.extend_from_slice(&tag);
    }

    /// The text of `sealed`.
    ///
    /// # Errors
    /// [`NotAuthentic`] when anything differs from what was sealed.
    pub(crate) fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        sealed: &[u8],
    ) -> Result<Plain, NotAuthentic> {
        let (text, tag) = sealed.split_last_chunk::<TAG_BYTES>().ok_or(NotAuthentic)?;
        let mut plain = Plain::from(text.to_vec());
        self.0
            .decrypt_inout_detached(
                &XNonce::from(*nonce),
                aad,
                plain.as_mut_slice().into(),
                tag.into(),
            )
            .map_err(|_| NotAuthentic)?;
        Ok(plain)
    }
}

/// Seals one message; see [`Cipher::seal`].
pub(crate) fn seal(
    key: &SecretKey,
    nonce: &[u8; NONCE_BYTES],
    aad: &[u8],
    plain: &[u8],
) -> Vec<u8> {
    Cipher::new(key).seal(nonce, aad, plain)
}

/// Opens one message; see [`Cipher::open`].
pub(crate) fn open(
    key: &SecretKey,
    nonce: &[u8; NONCE_BYTES],
    aad: &[u8],
    sealed: &[u8],
) -> Result<Plain, NotAuthentic> {
    Cipher::new(key).open(nonce, aad, sealed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::testing::{hex, unhex};

    /// draft-irtf-cfrg-xchacha-03, appendix A.3.1.
    #[test]
    fn matches_the_xchacha_draft_vector() {
        let key = SecretKey::copy_of(&unhex(
            "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        ));
        let nonce: [u8; 24] = unhex("404142434445464748494a4b4c4d4e4f5051525354555657");
        let aad: [u8; 12] = unhex("50515253c0c1c2c3c4c5c6c7");
        let plain = b"Ladies and Gentlemen of the class of '99: If I could offer you only one \
                      tip for the future, sunscreen would be it.";
        let sealed = seal(&key, &nonce, &aad, plain);
        assert_eq!(
            hex(&sealed),
            "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb\
             731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b452\
             2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff9\
             21f9664c97637da9768812f615c68b13b52e\
             c0875924c1c7987947deafd8780acf49"
        );
        assert_eq!(open(&key, &nonce, &aad, &sealed).unwrap().as_slice(), plain);
    }

    /// RFC 8439, section 2.8.2: the construction below the extended nonce.
    #[test]
    fn the_crate_is_the_chacha20_poly1305_we_mean() {
        use chacha20poly1305::ChaCha20Poly1305;

        let key: [u8; 32] =
            unhex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
        let nonce: [u8; 12] = unhex("070000004041424344454647");
        let aad: [u8; 12] = unhex("50515253c0c1c2c3c4c5c6c7");
        let mut text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one \
                      tip for the future, sunscreen would be it."
            .to_vec();
        let tag = ChaCha20Poly1305::new(&key.into())
            .encrypt_inout_detached(&nonce.into(), &aad, text.as_mut_slice().into())
            .unwrap();
        assert_eq!(
            hex(&text),
            "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6\
             3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36\
             92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc\
             3ff4def08e4b7a9de576d26586cec64b6116"
        );
        assert_eq!(hex(&tag), "1ae10b594f09e26a7e902ecbd0600691");
    }

    proptest! {
        #[test]
        fn opens_what_it_sealed_and_nothing_else(
            plain in proptest::collection::vec(any::<u8>(), 0..300),
            aad in proptest::collection::vec(any::<u8>(), 0..40),
            at in any::<prop::sample::Index>(),
            bit in 0u8..8,
        ) {
            let cipher = Cipher::new(&SecretKey::copy_of(&[9; 32]));
            let nonce = [3; 24];
            let mut sealed = b"head".to_vec();
            cipher.seal_onto(&mut sealed, &nonce, &aad, &plain);
            let mut sealed = sealed.split_off(4);
            prop_assert_eq!(sealed.len(), plain.len() + TAG_BYTES);
            prop_assert_eq!(&*cipher.open(&nonce, &aad, &sealed).unwrap(), &plain);

            let mut other_aad = aad.clone();
            other_aad.push(0);
            prop_assert!(cipher.open(&nonce, &other_aad, &sealed).is_err());
            prop_assert!(cipher.open(&[4; 24], &aad, &sealed).is_err());
            let at = at.index(sealed.len());
            sealed[at] ^= 1 << bit;
            prop_assert!(cipher.open(&nonce, &aad, &sealed).is_err());
        }
    }

    #[test]
    fn bytes_shorter_than_a_tag_do_not_open() {
        let cipher = Cipher::new(&SecretKey::copy_of(&[9; 32]));
        for length in 0..TAG_BYTES {
            assert!(cipher.open(&[0; 24], b"", &vec![0; length]).is_err());
        }
    }
}
