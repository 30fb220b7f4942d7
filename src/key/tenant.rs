//! A tenant's key file: its base secret and record keys, sealed twice.
//!
//! The file is two halves with the same content, each sealed under its own
//! nonce, so that one damaged half is survived. Integers are big-endian.
//!
//! | offset | bytes | field of a half |
//! |---|---|---|
//! | 0 | 8 | `SRTENANT` |
//! | 8 | 1 | format, 1 |
//! | 9 | 1 | suite, 1 |
//! | 10 | 1 | complement of format |
//! | 11 | 1 | complement of suite |
//! | 12 | 4 | s, bytes of the sealed content |
//! | 16 | 24 | nonce |
//! | 40 | s | sealed content |
//! | 40 + s | 32 | SHA-256 of everything before in this half (against accidents) |
//!
//! The content, before sealing (s is its length and 16):
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 16 | tenant id |
//! | 16 | 32 | base secret |
//! | 48 | 1 | b, bytes of the name (1 to 128) |
//! | 49 | b | name |
//! | 49 + b | 4 | r, number of record keys (1 to 1,024) |
//! | 53 + b | r × 36 | epoch (4, from 1, strictly ascending) and key (32) |
//! | … | … | zeros up to a multiple of 256 |
//!
//! Sealed with XChaCha20-Poly1305 under the store key `tenant`; associated
//! data: `strongroom/v1/tenant-keys` ‖ format ‖ suite ‖ store id ‖ file tag.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use super::bytes::Reader;
use super::keyring::FORMAT;
use super::mac::{HASH_BYTES, sha256};
use super::secret::random_bytes;
use super::{FileTag, KEY_BYTES, KeyError, Random, SecretKey, StoreId, Suite, TenantId, aead};

/// Most record keys of one tenant.
pub const MAX_EPOCHS: usize = 1024;
/// Most bytes of a tenant's name.
pub const TENANT_NAME_BYTES_MAX: usize = 128;
/// Most bytes of a tenant's key file.
pub const TENANT_FILE_BYTES_MAX: usize = 2 * HALF_BYTES_MAX;

const MAGIC: &[u8; 8] = b"SRTENANT";
const SUITE: Suite = Suite::XChaCha20Poly1305;
const PADDING: usize = 256;
const RECORD_BYTES: usize = 4 + KEY_BYTES;
const CONTENT_BYTES_MAX: usize =
    (53 + TENANT_NAME_BYTES_MAX + MAX_EPOCHS * RECORD_BYTES).next_multiple_of(PADDING);
const SEALED_BYTES_MAX: usize = CONTENT_BYTES_MAX + aead::TAG_BYTES;
const HALF_BYTES_MAX: usize = 40 + SEALED_BYTES_MAX + HASH_BYTES;
const FIRST_EPOCH: u32 = 1;

/// Whether `name` may name a tenant: 1 to 128 bytes of `A-Z a-z 0-9 . _ @ : -`,
/// with single slashes between parts.
#[must_use]
pub fn is_tenant_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '@' | ':' | '-');
    name.len() <= TENANT_NAME_BYTES_MAX
        && name
            .split('/')
            .all(|part| !part.is_empty() && part.chars().all(plain))
}

/// The keys of one tenant. All are random: destroying this file destroys
/// what was sealed under them, which a derived key could not promise.
pub struct TenantKeys {
    name: String,
    tenant_id: TenantId,
    base: SecretKey,
    /// Invariant: not empty, at most [`MAX_EPOCHS`], no epoch 0.
    records: BTreeMap<u32, SecretKey>,
}

impl TenantKeys {
    /// Random keys for a new tenant, with one record key.
    ///
    /// # Errors
    /// [`KeyError::TenantName`], [`KeyError::Random`].
    pub fn create(name: &str, random: &dyn Random) -> Result<Self, KeyError> {
        if !is_tenant_name(name) {
            return Err(KeyError::TenantName);
        }
        Ok(Self {
            name: name.to_owned(),
            tenant_id: TenantId(random_bytes(random)?),
            base: SecretKey::random(random)?,
            records: BTreeMap::from([(FIRST_EPOCH, SecretKey::random(random)?)]),
        })
    }

    /// The bytes of the key file, sealed under the store key `wrap`.
    ///
    /// # Errors
    /// [`KeyError::Random`].
    pub fn seal(
        &self,
        wrap: &SecretKey,
        store_id: StoreId,
        file_tag: FileTag,
        random: &dyn Random,
    ) -> Result<Vec<u8>, KeyError> {
        let content = self.encode();
        let aad = aad(store_id, file_tag);
        let mut file = Vec::new();
        for _ in 0..2 {
            let nonce = random_bytes(random)?;
            file.extend_from_slice(&encode_half(
                &nonce,
                &aead::seal(wrap, &nonce, &aad, &content),
            ));
        }
        debug_assert!(file.len() <= TENANT_FILE_BYTES_MAX);
        Ok(file)
    }

    /// Opens a key file. `true` says that one half is damaged and the file is
    /// to be written anew.
    ///
    /// # Errors
    /// [`KeyError::DamagedTenantKeys`] when no half is whole,
    /// [`KeyError::ForeignTenantKeys`] when a whole half was not sealed by
    /// this store for this file tag, [`KeyError::UnknownFormat`].
    pub fn open(
        bytes: &[u8],
        wrap: &SecretKey,
        store_id: StoreId,
        file_tag: FileTag,
    ) -> Result<(Self, bool), KeyError> {
        if bytes.len() > TENANT_FILE_BYTES_MAX {
            return Err(KeyError::DamagedTenantKeys);
        }
        // The second half is looked for where the halves are equally long; the
        // first says itself where it ends, so it survives a cut file as well.
        let (_, second) = bytes.split_at(bytes.len() / 2);
        let halves = [parse_half(bytes, false), parse_half(second, true)];
        let aad = aad(store_id, file_tag);
        let mut contents = Vec::new();
        let mut foreign = false;
        for half in halves {
            match half {
                Ok(half) => match aead::open(wrap, half.nonce, &aad, half.sealed) {
                    Ok(content) => contents.push(content),
                    Err(_) => foreign = true,
                },
                Err(error @ KeyError::UnknownFormat { .. }) => return Err(error),
                Err(_) => {}
            }
        }
        let (content, needs_repair) = match contents.as_slice() {
            [first, second] if **first == **second => (first, false),
            // Two genuine halves that differ are no accident.
            [_, _] => return Err(KeyError::ForeignTenantKeys),
            [one] => (one, true),
            _ if foreign => return Err(KeyError::ForeignTenantKeys),
            _ => return Err(KeyError::DamagedTenantKeys),
        };
        let keys = Self::decode(content).ok_or(KeyError::DamagedTenantKeys)?;
        let whole = keys.file_bytes() == bytes.len();
        Ok((keys, needs_repair || !whole))
    }

    /// Parts of a key file's bytes that occur nowhere else and say nothing about the keys: the
    /// nonces and the beginnings of the checksums of its halves.
    #[must_use]
    pub(crate) fn traces(bytes: &[u8]) -> Vec<[u8; aead::NONCE_BYTES]> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let mut traces = Vec::new();
        for half in [first, second] {
            let checksum = half.len().saturating_sub(HASH_BYTES);
            for at in [16, checksum] {
                traces.extend(half.get(at..).and_then(<[u8]>::first_chunk).copied());
            }
        }
        traces
    }

    /// The tenant's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tenant's random id.
    #[must_use]
    pub fn tenant_id(&self) -> TenantId {
        self.tenant_id
    }

    /// The key of records sealed in `epoch`.
    ///
    /// # Errors
    /// [`KeyError::NoSuchEpoch`].
    pub fn record_key(&self, epoch: u32) -> Result<&SecretKey, KeyError> {
        self.records
            .get(&epoch)
            .ok_or(KeyError::NoSuchEpoch { epoch })
    }

    /// The epochs that have a key, ascending; new records take the last.
    pub fn epochs(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.records.keys().copied()
    }

    /// Adds a random record key and returns its epoch, now the current one.
    ///
    /// # Errors
    /// [`KeyError::EpochLimit`], [`KeyError::CounterExhausted`],
    /// [`KeyError::Random`].
    pub fn add_epoch(&mut self, random: &dyn Random) -> Result<u32, KeyError> {
        if self.records.len() >= MAX_EPOCHS {
            return Err(KeyError::EpochLimit);
        }
        let last = self.epochs().next_back().unwrap_or_default();
        let epoch = last.checked_add(1).ok_or(KeyError::CounterExhausted)?;
        self.records.insert(epoch, SecretKey::random(random)?);
        Ok(epoch)
    }

    /// Forgets a record key that nothing is sealed under any more.
    ///
    /// # Errors
    /// [`KeyError::NoSuchEpoch`], [`KeyError::CurrentEpoch`].
    pub fn remove_epoch(&mut self, epoch: u32) -> Result<(), KeyError> {
        self.record_key(epoch)?;
        if self.epochs().next_back() == Some(epoch) {
            return Err(KeyError::CurrentEpoch);
        }
        self.records.remove(&epoch);
        Ok(())
    }

    /// Keys the tags of names in a directory. For the tenant's life, as are
    /// all keys derived from the base secret.
    #[must_use]
    pub fn name_key(&self) -> SecretKey {
        self.base.derive("strongroom/v1/name")
    }

    /// Keys the set hashes of directories.
    #[must_use]
    pub fn inventory_key(&self) -> SecretKey {
        self.base.derive("strongroom/v1/inventory")
    }

    /// Keys the pseudonyms of redacted values.
    #[must_use]
    pub fn pseudonym_key(&self) -> SecretKey {
        self.base.derive("strongroom/v1/pseudonym")
    }

    /// Seals paths in audit entries.
    #[must_use]
    pub fn audit_path_key(&self) -> SecretKey {
        self.base.derive("strongroom/v1/audit-path")
    }

    fn content_bytes(&self) -> usize {
        (53 + self.name.len() + self.records.len() * RECORD_BYTES).next_multiple_of(PADDING)
    }

    fn file_bytes(&self) -> usize {
        2 * (40 + self.content_bytes() + aead::TAG_BYTES + HASH_BYTES)
    }

    fn encode(&self) -> Zeroizing<Vec<u8>> {
        // Encode asserts what decode requires.
        debug_assert!(is_tenant_name(&self.name));
        debug_assert!((1..=MAX_EPOCHS).contains(&self.records.len()));
        let mut out = Zeroizing::new(Vec::with_capacity(self.content_bytes()));
        out.extend_from_slice(&self.tenant_id.0);
        out.extend_from_slice(self.base.expose());
        out.push(u8::try_from(self.name.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(self.name.as_bytes());
        let count = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&count.to_be_bytes());
        for (epoch, key) in &self.records {
            out.extend_from_slice(&epoch.to_be_bytes());
            out.extend_from_slice(key.expose());
        }
        out.resize(self.content_bytes(), 0);
        out
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(content);
        let tenant_id = TenantId(*reader.chunk()?);
        let base = SecretKey::copy_of(reader.chunk()?);
        let name_bytes = usize::from(reader.u8()?);
        let name = std::str::from_utf8(reader.take(name_bytes)?).ok()?;
        let count = usize::try_from(reader.u32()?).ok()?;
        if !is_tenant_name(name) || !(1..=MAX_EPOCHS).contains(&count) {
            return None;
        }
        let mut records = BTreeMap::new();
        let mut last = 0;
        for _ in 0..count {
            let epoch = reader.u32()?;
            if epoch <= last {
                return None;
            }
            last = epoch;
            records.insert(epoch, SecretKey::copy_of(reader.chunk()?));
        }
        let padding = reader.rest();
        let keys = Self {
            name: name.to_owned(),
            tenant_id,
            base,
            records,
        };
        let exact = content.len() == keys.content_bytes();
        (exact && padding.iter().all(|&byte| byte == 0)).then_some(keys)
    }
}

struct Half<'a> {
    nonce: &'a [u8; aead::NONCE_BYTES],
    sealed: &'a [u8],
}

fn aad(store_id: StoreId, file_tag: FileTag) -> Vec<u8> {
    let mut aad = b"strongroom/v1/tenant-keys".to_vec();
    aad.extend_from_slice(&[FORMAT, SUITE as u8]);
    aad.extend_from_slice(&store_id.0);
    aad.extend_from_slice(&file_tag.0);
    aad
}

fn encode_half(nonce: &[u8; aead::NONCE_BYTES], sealed: &[u8]) -> Vec<u8> {
    debug_assert!(sealed.len() <= SEALED_BYTES_MAX);
    let suite = SUITE as u8;
    let mut half = MAGIC.to_vec();
    half.extend_from_slice(&[FORMAT, suite, !FORMAT, !suite]);
    let length = u32::try_from(sealed.len()).unwrap_or(u32::MAX);
    half.extend_from_slice(&length.to_be_bytes());
    half.extend_from_slice(nonce);
    half.extend_from_slice(sealed);
    let checksum = sha256(&[&half]);
    half.extend_from_slice(&checksum);
    half
}

/// Parses a half; `exact` forbids bytes after it.
fn parse_half(bytes: &[u8], exact: bool) -> Result<Half<'_>, KeyError> {
    let damaged = || KeyError::DamagedTenantKeys;
    let mut reader = Reader::new(bytes);
    if reader.chunk() != Some(MAGIC) {
        return Err(damaged());
    }
    let &[format, suite, not_format, not_suite] = reader.chunk().ok_or_else(damaged)?;
    if format != !not_format || suite != !not_suite || format == 0 || suite == 0 {
        return Err(damaged());
    }
    if format != FORMAT || Suite::from_byte(suite).is_none() {
        return Err(KeyError::UnknownFormat {
            what: "tenant key file",
            format,
            suite,
        });
    }
    parse_half_body(reader, bytes, exact).ok_or_else(damaged)
}

fn parse_half_body<'a>(mut reader: Reader<'a>, bytes: &'a [u8], exact: bool) -> Option<Half<'a>> {
    let length = usize::try_from(reader.u32()?).ok()?;
    if length > SEALED_BYTES_MAX {
        return None;
    }
    let nonce = reader.chunk()?;
    let sealed = reader.take(length)?;
    let checksum = reader.chunk::<HASH_BYTES>()?;
    let rest = reader.rest().len();
    if exact && rest != 0 {
        return None;
    }
    let signed = bytes.get(..bytes.len().checked_sub(rest + HASH_BYTES)?)?;
    (sha256(&[signed]) == *checksum).then_some(Half { nonce, sealed })
}

#[cfg(test)]
#[path = "tenant_tests.rs"]
mod tests;
