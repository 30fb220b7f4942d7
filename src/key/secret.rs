//! Holds 32 secret bytes, fills them from a random source, derives others.

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::KeyError;

/// Bytes in every symmetric key.
pub const KEY_BYTES: usize = 32;

/// A 256-bit key. Zeroed when dropped; lies in one heap place from birth to
/// death, so moving it copies no secret. It has no `Debug`, `Display`,
/// `Clone`, `PartialEq` or `Serialize`:
///
/// ```compile_fail
/// # fn show(key: &strongroom::key::SecretKey) {
/// println!("{key:?}");
/// # }
/// ```
pub struct SecretKey(Box<Zeroizing<[u8; KEY_BYTES]>>);

impl SecretKey {
    /// A new random key.
    ///
    /// # Errors
    /// [`KeyError::Random`] when the source fails.
    pub fn random(random: &dyn Random) -> Result<Self, KeyError> {
        Self::build(|out| random.fill(out))
    }

    /// An independent key by HKDF-SHA256 (RFC 5869; no salt, `label` as info).
    /// Labels carry a version, as in `strongroom/v1/inventory`.
    #[must_use]
    pub fn derive(&self, label: &'static str) -> Self {
        debug_assert!(label.starts_with("strongroom/v"), "labels carry a version");
        expand(&Hkdf::new(None, self.expose()), label)
    }

    /// The bytes. Whoever copies them zeroes the copy.
    pub(crate) fn expose(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// A key whose bytes `fill` writes in place.
    pub(crate) fn build<E>(
        fill: impl FnOnce(&mut [u8; KEY_BYTES]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut bytes = Box::new(Zeroizing::new([0; KEY_BYTES]));
        fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// A key with a copy of `bytes`.
    pub(crate) fn copy_of(bytes: &[u8; KEY_BYTES]) -> Self {
        let mut key = Box::new(Zeroizing::new([0; KEY_BYTES]));
        key.copy_from_slice(bytes);
        Self(key)
    }
}

/// One HKDF-SHA256 expansion to a key.
pub(super) fn expand(hkdf: &Hkdf<Sha256>, label: &str) -> SecretKey {
    let mut key = Box::new(Zeroizing::new([0; KEY_BYTES]));
    #[expect(
        clippy::expect_used,
        reason = "HKDF-SHA256 gives up to 8,160 bytes (RFC 5869, section 2.3)"
    )]
    hkdf.expand(label.as_bytes(), &mut **key.as_mut())
        .expect("32 bytes are within HKDF's limit");
    SecretKey(key)
}

/// A source of unpredictable bytes.
pub trait Random: Send + Sync {
    /// Fills all of `out`.
    ///
    /// # Errors
    /// [`KeyError::Random`]; the caller then makes nothing of `out`.
    fn fill(&self, out: &mut [u8]) -> Result<(), KeyError>;
}

/// The operating system's random source.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, out: &mut [u8]) -> Result<(), KeyError> {
        getrandom::fill(out).map_err(|_| KeyError::Random)
    }
}

/// `N` random bytes that are no secret (ids, salts, nonces).
pub(crate) fn random_bytes<const N: usize>(random: &dyn Random) -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    random.fill(&mut bytes)?;
    Ok(bytes)
}
