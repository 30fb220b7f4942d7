//! The keyring's bytes: encoding, strict parsing, checksums.
//!
//! Integers are big-endian. A copy is at most 2,429 bytes.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `SRKEYRNG` |
//! | 8 | 1 | format, 1 |
//! | 9 | 1 | suite, 1 |
//! | 10 | 1 | complement of format |
//! | 11 | 1 | complement of suite |
//! | 12 | 8 | counter, from 1 |
//! | 20 | 16 | store id |
//! | 36 | 1 | n, slots (1 to 8) |
//! | 37 | n × 262 | slots, by ascending id |
//! | 37 + 262n | 24 | nonce |
//! | 61 + 262n | 240 | sealed store keys: tag, root, audit, policy, state, tenant, the tenant key before (32 each; zeros if none), tag 16 |
//! | 301 + 262n | 32 | MAC: HMAC-SHA256 of everything before |
//!
//! The complements tell a newer format from a damaged byte. A slot:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | id: the counter with which the slot came |
//! | 8 | 1 | type: 1 passphrase, 2 key file, 3 key command, 4 supplied by the embedder |
//! | 9 | 1 | bytes of the label |
//! | 10 | 64 | label, UTF-8, then zeros |
//! | 74 | 8 | created, Unix milliseconds |
//! | 82 | 4 | Argon2id memory, KiB (0 unless type 1) |
//! | 86 | 4 | Argon2id passes (0 unless type 1) |
//! | 90 | 4 | Argon2id lanes (0 unless type 1) |
//! | 94 | 32 | salt |
//! | 126 | 32 | commitment |
//! | 158 | 24 | nonce |
//! | 182 | 48 | wrapped master key and its tag |
//! | 230 | 32 | SHA-256 of bytes 0 to 229 (against accidents) |
//!
//! Keys: input = Argon2id(passphrase in NFC, salt) or the 32 key bytes;
//! wrap and commitment = HKDF-SHA256(salt, input, info
//! `strongroom/v1/slot-passphrase/wrap`, `…/commitment`; for keys
//! `strongroom/v1/slot-raw-key/…`). MAC and store keys:
//! HKDF-SHA256(no salt, master, `strongroom/v1/keyring-mac`,
//! `strongroom/v1/keyring-store-keys`).
//! Associated data of the wrapped master key: `strongroom/v1/slot` ‖ format ‖
//! suite ‖ store id ‖ bytes 0 to 157 of the slot; of the store keys:
//! `strongroom/v1/store-keys` ‖ format ‖ suite ‖ store id.

use super::store_keys::STORE_KEYS_SEALED_BYTES;
use super::{
    FORMAT, LABEL_BYTES_MAX, MAX_SLOTS, Slot, SlotInfo, SlotKind, Suite, WRAPPED_BYTES, is_label,
};
use crate::key::bytes::Reader;
use crate::key::kdf::KdfParams;
use crate::key::mac::{HASH_BYTES, sha256};
use crate::key::{KeyError, StoreId, aead};

const MAGIC: &[u8; 8] = b"SRKEYRNG";
const HEAD_BYTES: usize = 37;
const SLOT_BYTES: usize = 262;
/// The part of a slot that its wrapped key is bound to.
const SLOT_BOUND_BYTES: usize = 158;
const TAIL_BYTES: usize = aead::NONCE_BYTES + STORE_KEYS_SEALED_BYTES + HASH_BYTES;

/// Most bytes of one keyring copy.
pub const KEYRING_BYTES_MAX: usize = HEAD_BYTES + MAX_SLOTS * SLOT_BYTES + TAIL_BYTES;

/// Everything in a copy but its MAC.
pub(super) struct Body {
    pub(super) suite: Suite,
    pub(super) counter: u64,
    pub(super) store_id: StoreId,
    pub(super) slots: Vec<Slot>,
    pub(super) store_keys: SealedStoreKeys,
}

/// The store keys, sealed under a key derived from the master key.
#[derive(Clone)]
pub(super) struct SealedStoreKeys {
    pub(super) nonce: [u8; aead::NONCE_BYTES],
    pub(super) sealed: [u8; STORE_KEYS_SEALED_BYTES],
}

/// A parsed copy. Nothing in it counts before its MAC holds.
pub(super) struct Parsed<'a> {
    pub(super) suite: Suite,
    pub(super) counter: u64,
    pub(super) store_id: StoreId,
    /// `None`: the slot's checksum does not hold, or it breaks the format.
    pub(super) slots: Vec<Option<Slot>>,
    pub(super) store_keys: SealedStoreKeys,
    pub(super) signed: &'a [u8],
    pub(super) mac: &'a [u8; HASH_BYTES],
}

/// The bytes of a copy up to its MAC.
pub(super) fn encode(body: &Body) -> Vec<u8> {
    // Encode asserts what decode requires.
    debug_assert!((1..=MAX_SLOTS).contains(&body.slots.len()));
    debug_assert!(ascending(body.slots.iter()) && body.counter >= 1);

    let suite = body.suite as u8;
    let mut out = Vec::with_capacity(KEYRING_BYTES_MAX);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[FORMAT, suite, !FORMAT, !suite]);
    out.extend_from_slice(&body.counter.to_be_bytes());
    out.extend_from_slice(&body.store_id.0);
    out.push(u8::try_from(body.slots.len()).unwrap_or(u8::MAX));
    for slot in &body.slots {
        let start = out.len();
        out.extend_from_slice(&slot_bound_bytes(slot));
        out.extend_from_slice(&slot.nonce);
        out.extend_from_slice(&slot.wrapped);
        let checksum = sha256(&[out.get(start..).unwrap_or_default()]);
        out.extend_from_slice(&checksum);
        debug_assert_eq!(out.len(), start + SLOT_BYTES);
    }
    out.extend_from_slice(&body.store_keys.nonce);
    out.extend_from_slice(&body.store_keys.sealed);
    out
}

/// Parses one copy; every length is fixed by the number of slots.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed<'_>, KeyError> {
    let mut reader = Reader::new(bytes);
    let head = parse_head(&mut reader)?;
    if bytes.len() > KEYRING_BYTES_MAX {
        return Err(KeyError::DamagedHeader);
    }
    parse_rest(reader, bytes, head).ok_or(KeyError::DamagedHeader)
}

/// Associated data of a slot's wrapped master key.
pub(super) fn slot_aad(suite: Suite, store_id: StoreId, slot: &Slot) -> Vec<u8> {
    let mut aad = aad("strongroom/v1/slot", suite, store_id);
    aad.extend_from_slice(&slot_bound_bytes(slot));
    aad
}

/// Associated data of the sealed store keys.
pub(super) fn store_keys_aad(suite: Suite, store_id: StoreId) -> Vec<u8> {
    aad("strongroom/v1/store-keys", suite, store_id)
}

fn aad(label: &str, suite: Suite, store_id: StoreId) -> Vec<u8> {
    let mut aad = label.as_bytes().to_vec();
    aad.extend_from_slice(&[FORMAT, suite as u8]);
    aad.extend_from_slice(&store_id.0);
    aad
}

fn slot_bound_bytes(slot: &Slot) -> Vec<u8> {
    let info = &slot.info;
    debug_assert!(is_label(&info.label));
    debug_assert_eq!(info.params.is_some(), info.kind == SlotKind::Passphrase);
    let mut out = Vec::with_capacity(SLOT_BOUND_BYTES);
    out.extend_from_slice(&info.id.to_be_bytes());
    out.push(info.kind as u8);
    out.push(u8::try_from(info.label.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(info.label.as_bytes());
    out.resize(
        out.len() + LABEL_BYTES_MAX.saturating_sub(info.label.len()),
        0,
    );
    out.extend_from_slice(&info.created_ms.to_be_bytes());
    let (memory_kib, passes, lanes) = info
        .params
        .map_or((0, 0, 0), |p| (p.memory_kib, p.passes, p.lanes));
    for number in [memory_kib, passes, lanes] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out.extend_from_slice(&slot.salt);
    out.extend_from_slice(&slot.commitment);
    debug_assert_eq!(out.len(), SLOT_BOUND_BYTES);
    out
}

fn parse_head(reader: &mut Reader<'_>) -> Result<Suite, KeyError> {
    let damaged = KeyError::DamagedHeader;
    if reader.chunk() != Some(MAGIC) {
        return Err(damaged);
    }
    let Some(&[format, suite, not_format, not_suite]) = reader.chunk() else {
        return Err(damaged);
    };
    if format != !not_format || suite != !not_suite || format == 0 || suite == 0 {
        return Err(damaged);
    }
    match Suite::from_byte(suite) {
        Some(suite) if format == FORMAT => Ok(suite),
        _ => Err(KeyError::UnknownFormat {
            what: "keyring",
            format,
            suite,
        }),
    }
}

fn parse_rest<'a>(mut reader: Reader<'a>, bytes: &'a [u8], suite: Suite) -> Option<Parsed<'a>> {
    let counter = reader.u64()?;
    let store_id = StoreId(*reader.chunk()?);
    let count = usize::from(reader.u8()?);
    if counter == 0 || !(1..=MAX_SLOTS).contains(&count) {
        return None;
    }
    let mut slots = Vec::with_capacity(count);
    for _ in 0..count {
        slots.push(parse_slot(reader.chunk()?));
    }
    if !ascending(slots.iter().flatten()) {
        return None;
    }
    let store_keys = SealedStoreKeys {
        nonce: *reader.chunk()?,
        sealed: *reader.chunk()?,
    };
    let mac = reader.rest().try_into().ok()?;
    let (signed, _) = bytes.split_last_chunk::<HASH_BYTES>()?;
    Some(Parsed {
        suite,
        counter,
        store_id,
        slots,
        store_keys,
        signed,
        mac,
    })
}

fn parse_slot(bytes: &[u8; SLOT_BYTES]) -> Option<Slot> {
    let (content, checksum) = bytes.split_last_chunk::<HASH_BYTES>()?;
    if sha256(&[content]) != *checksum {
        return None;
    }
    let mut reader = Reader::new(content);
    let id = reader.u64()?;
    let kind = SlotKind::from_byte(reader.u8()?)?;
    let label_bytes = usize::from(reader.u8()?);
    let (label, padding) = reader
        .take(LABEL_BYTES_MAX)?
        .split_at_checked(label_bytes)?;
    let label = std::str::from_utf8(label).ok()?;
    let created_ms = reader.u64()?;
    let params = KdfParams {
        memory_kib: reader.u32()?,
        passes: reader.u32()?,
        lanes: reader.u32()?,
    };
    let none = KdfParams {
        memory_kib: 0,
        passes: 0,
        lanes: 0,
    };
    let params = match kind {
        SlotKind::Passphrase if params.in_range() => Some(params),
        SlotKind::Passphrase => return None,
        _ if params == none => None,
        _ => return None,
    };
    if id == 0 || !is_label(label) || padding.iter().any(|&byte| byte != 0) {
        return None;
    }
    Some(Slot {
        info: SlotInfo {
            id,
            kind,
            label: label.to_owned(),
            created_ms,
            params,
        },
        salt: *reader.chunk()?,
        commitment: *reader.chunk()?,
        nonce: *reader.chunk()?,
        wrapped: *reader.chunk::<WRAPPED_BYTES>()?,
    })
}

fn ascending<'a>(slots: impl Iterator<Item = &'a Slot>) -> bool {
    let ids: Vec<u64> = slots.map(|slot| slot.info.id).collect();
    ids.is_sorted_by(|a, b| a < b)
}
