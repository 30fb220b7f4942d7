//! Seals records: padding, associated data, XChaCha20-Poly1305, and the keyed hash of a sealed record.
//!
//! A sealed value is `version ‖ epoch ‖ nonce (24) ‖ ciphertext ‖ tag (16)`. The associated
//! data is format ‖ suite ‖ version ‖ epoch ‖ store id ‖ the whole record key, so a value
//! opens in the one place of the one store for which it was sealed.

use thiserror::Error;

use crate::key::aead::Cipher;
use crate::key::mac::MacKey;
use crate::key::{KeyError, Plain, Random, StoreId};

/// The format of stored bytes that this build writes and reads.
pub(crate) const FORMAT: u8 = 1;

/// XChaCha20-Poly1305 with HMAC-SHA256 and HKDF-SHA256, the only suite so far.
pub(crate) const SUITE: u8 = 1;

/// The version of the envelope.
const VERSION: u8 = 1;

const EPOCH_BYTES: usize = 4;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// What sealing adds to the padded plaintext, in bytes.
pub(crate) const ENVELOPE_BYTES: usize = 1 + EPOCH_BYTES + NONCE_BYTES + TAG_BYTES;

/// Small records are padded to multiples of this many bytes.
const RECORD_BLOCK_BYTES: usize = 256;

/// Seals a record's bytes for the place `key`, padded so that its length tells little.
///
/// # Errors
/// [`SealError::Key`] when the random source fails: nothing is sealed then.
pub(crate) fn seal_record(
    place: &Place<'_>,
    cipher: &Cipher,
    random: &dyn Random,
    plain: &[u8],
) -> Result<Vec<u8>, SealError> {
    let length = u32::try_from(plain.len()).map_err(|_| SealError::TooLarge)?;
    let padded_bytes = (4 + plain.len()).next_multiple_of(RECORD_BLOCK_BYTES);
    let mut padded = Plain::with_capacity(padded_bytes);
    padded.extend_from_slice(&length.to_be_bytes());
    padded.extend_from_slice(plain);
    padded.resize(padded_bytes, 0);
    seal(place, cipher, random, &padded)
}

/// Opens what [`seal_record`] sealed for the same place.
///
/// # Errors
/// [`SealError::Refused`] for anything else.
pub(crate) fn open_record(
    place: &Place<'_>,
    cipher: &Cipher,
    value: &[u8],
) -> Result<Plain, SealError> {
    let mut padded = open(place, cipher, value)?;
    let (length, _) = padded.split_first_chunk::<4>().ok_or(SealError::Refused)?;
    let end = 4 + u32::from_be_bytes(*length) as usize;
    let is_padded = padded.len() == end.next_multiple_of(RECORD_BLOCK_BYTES)
        && padded
            .get(end..)
            .is_some_and(|padding| padding.iter().all(|byte| *byte == 0));
    if !is_padded {
        return Err(SealError::Refused);
    }
    padded.truncate(end);
    padded.drain(..4);
    Ok(padded)
}

/// Seals bytes that are padded already (a chunk of content).
///
/// # Errors
/// [`SealError::Key`] when the random source fails.
pub(crate) fn seal(
    place: &Place<'_>,
    cipher: &Cipher,
    random: &dyn Random,
    plain: &[u8],
) -> Result<Vec<u8>, SealError> {
    // Invariant: a nonce is never reused under one key, because 24 random bytes do not
    // repeat within 2^80 messages (draft-irtf-cfrg-xchacha-03, section 3.1).
    let mut nonce = [0; NONCE_BYTES];
    random.fill(&mut nonce)?;
    let mut value = Vec::with_capacity(ENVELOPE_BYTES + plain.len());
    value.push(VERSION);
    value.extend_from_slice(&place.epoch.to_be_bytes());
    value.extend_from_slice(&nonce);
    cipher.seal_onto(&mut value, &nonce, &place.associated_data(), plain);
    Ok(value)
}

/// Opens what [`seal`] sealed for the same place.
///
/// # Errors
/// [`SealError::Refused`] for anything else.
pub(crate) fn open(place: &Place<'_>, cipher: &Cipher, value: &[u8]) -> Result<Plain, SealError> {
    if epoch_of(value) != Some(place.epoch) {
        return Err(SealError::Refused);
    }
    let (nonce, sealed) = value
        .get(1 + EPOCH_BYTES..)
        .and_then(|rest| rest.split_first_chunk::<NONCE_BYTES>())
        .ok_or(SealError::Refused)?;
    cipher
        .open(nonce, &place.associated_data(), sealed)
        .map_err(|_| SealError::Refused)
}

/// The epoch of the key under which a value was sealed, if its envelope is one of ours.
#[must_use]
pub(crate) fn epoch_of(value: &[u8]) -> Option<u32> {
    let (version, rest) = value.split_first()?;
    let (epoch, rest) = rest.split_first_chunk::<EPOCH_BYTES>()?;
    (*version == VERSION && rest.len() >= NONCE_BYTES + TAG_BYTES)
        .then(|| u32::from_be_bytes(*epoch))
}

/// The keyed hash of a sealed record, a term of its set's hash: over the length-prefixed
/// record key, the nonce and the tag, which stand for the whole value.
#[must_use]
pub(crate) fn record_mac(inventory: &MacKey, key: &[u8], value: &[u8]) -> [u8; 32] {
    let length = u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes();
    let nonce = value
        .get(1 + EPOCH_BYTES..1 + EPOCH_BYTES + NONCE_BYTES)
        .unwrap_or(value);
    let tag = value
        .get(value.len().saturating_sub(TAG_BYTES)..)
        .unwrap_or(value);
    inventory.mac(&[&length, key, nonce, tag])
}

/// Where a value lies: all that its associated data names.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Which store.
    pub(crate) store: StoreId,
    /// Which key of the owner's.
    pub(crate) epoch: u32,
    /// The whole record key.
    pub(crate) key: &'a [u8],
}

impl Place<'_> {
    fn associated_data(&self) -> Vec<u8> {
        let mut data = Vec::with_capacity(3 + EPOCH_BYTES + 16 + self.key.len());
        data.extend_from_slice(&[FORMAT, SUITE, VERSION]);
        data.extend_from_slice(&self.epoch.to_be_bytes());
        data.extend_from_slice(&self.store.0);
        data.extend_from_slice(self.key);
        data
    }
}

/// Seals and opens records of one place under one key, for `benches/` to measure.
pub struct Sealer {
    cipher: Cipher,
}

impl Sealer {
    /// One with a key that is no secret.
    #[must_use]
    pub fn of_no_secret() -> Self {
        Self {
            cipher: Cipher::new(&crate::key::SecretKey::copy_of(&[9; 32])),
        }
    }

    /// The sealed record; `None` when the random source fails.
    #[must_use]
    pub fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        seal(&Self::PLACE, &self.cipher, &crate::key::OsRandom, plain).ok()
    }

    /// What was sealed; `None` for anything else.
    #[must_use]
    pub fn open(&self, value: &[u8]) -> Option<impl std::ops::Deref<Target = Vec<u8>> + use<>> {
        open(&Self::PLACE, &self.cipher, value).ok()
    }

    const PLACE: Place<'static> = Place {
        store: StoreId([1; 16]),
        epoch: 1,
        key: &[7; 37],
    };
}

/// Why a value cannot be sealed or opened. Never carries the value.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum SealError {
    /// The value is damaged, or was sealed for another place or under another key.
    #[error("open a record: it is damaged or was sealed for another place")]
    Refused,
    /// The plaintext is longer than a record can be.
    #[error("seal a record: it is too large")]
    TooLarge,
    /// No randomness, or no key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;
    use crate::key::SecretKey;
    use crate::key::testing::Counting;
    use crate::vectors::vector;

    fn entry_key() -> Vec<u8> {
        [&[3][..], &[1; 16], &[5; 16], &[6; 16]].concat()
    }

    fn place(key: &[u8]) -> Place<'_> {
        Place {
            store: StoreId([1; 16]),
            epoch: 2,
            key,
        }
    }

    #[test]
    fn sealed_records_have_the_bytes_that_an_independent_implementation_gives() {
        let cipher = Cipher::new(&SecretKey::copy_of(&[3; 32]));
        let key = entry_key();
        let random = Counting::default();
        let record = seal_record(&place(&key), &cipher, &random, b"fields of a record").unwrap();
        assert_eq!(hex::encode(&record), vector("record"));
        let inventory = SecretKey::copy_of(&[2; 32]).derive("strongroom/v1/inventory");
        let term = record_mac(&MacKey::new(&inventory), &key, &record);
        assert_eq!(hex::encode(&term), vector("record_term"));

        let key = [&[4][..], &[1; 16], &[7; 16], &[0, 0, 0, 1]].concat();
        let mut padded = b"a piece".to_vec();
        padded.resize(300, 0);
        let chunk = seal(&place(&key), &cipher, &Counting::default(), &padded).unwrap();
        assert_eq!(hex::encode(&chunk), vector("chunk"));
        assert_eq!(*open(&place(&key), &cipher, &chunk).unwrap(), padded);
    }

    #[test]
    fn the_epoch_is_told_of_values_of_our_form_only() {
        let cipher = Cipher::new(&SecretKey::copy_of(&[3; 32]));
        let key = entry_key();
        let mut value = seal(&place(&key), &cipher, &Counting::default(), b"").unwrap();
        assert_eq!(epoch_of(&value), Some(2), "the shortest there is");
        let shorter = value.pop().unwrap();
        assert_eq!(epoch_of(&value), None);
        value.push(shorter);
        value[0] ^= 1;
        assert_eq!(epoch_of(&value), None, "another version");
        assert_eq!(epoch_of(&[]), None);
    }

    #[test]
    fn every_changed_byte_and_every_other_length_is_refused() {
        let cipher = Cipher::new(&SecretKey::copy_of(&[3; 32]));
        let key = entry_key();
        let random = Counting::default();
        let value = seal_record(&place(&key), &cipher, &random, b"fields").unwrap();
        assert_eq!(
            *open_record(&place(&key), &cipher, &value).unwrap(),
            b"fields"
        );
        for at in 0..value.len() {
            let mut other = value.clone();
            other[at] ^= 1;
            assert!(open_record(&place(&key), &cipher, &other).is_err(), "{at}");
            assert!(
                open_record(&place(&key), &cipher, &value[..at]).is_err(),
                "{at}"
            );
        }
        assert!(open_record(&place(&key[1..]), &cipher, &value).is_err());
    }

    #[test]
    fn padding_that_is_wrong_under_the_right_key_is_refused() {
        let cipher = Cipher::new(&SecretKey::copy_of(&[3; 32]));
        let key = entry_key();
        let opens = |padded: &[u8]| {
            let value = seal(&place(&key), &cipher, &Counting::default(), padded).unwrap();
            open_record(&place(&key), &cipher, &value).is_ok()
        };
        let mut padded = [0; 512];
        assert!(opens(&padded[..256]));
        for (what, wrong) in [
            ("no length", &padded[..3]),
            ("no whole block", &padded[..255]),
            ("a block too many", &padded[..]),
        ] {
            assert!(!opens(wrong), "{what}");
        }
        padded[255] = 1;
        assert!(!opens(&padded[..256]), "something after the end");
        padded[..4].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(!opens(&padded[..256]), "a length beyond the end");
    }

    #[test]
    fn without_randomness_nothing_is_sealed() {
        let cipher = Cipher::new(&SecretKey::copy_of(&[3; 32]));
        let failing = crate::key::testing::FailingRandom;
        let key = entry_key();
        assert!(seal(&place(&key), &cipher, &failing, b"text").is_err());
        assert!(seal_record(&place(&key), &cipher, &failing, b"text").is_err());
    }
}
