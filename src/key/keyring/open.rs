//! Opens a keyring from its two copies, in the one safe order.
//!
//! Parse with caps → each slot's plain SHA-256 (an accident?) → key derivation
//! → commitment in constant time → open the master key → MAC over every byte
//! → only then use anything. So a wrong passphrase, a damaged slot and a
//! damaged header are told apart, and nothing unverified is acted upon.

use std::collections::BTreeMap;

use super::format::{self, Parsed};
use super::{CopyName, Keyring, MASTER_MAC_LABEL, Opened, Slot, SlotKind, StoreKeys};
use crate::key::kdf::Stretcher;
use crate::key::mac::MacKey;
use crate::key::{Credential, KeyError, SecretKey, aead};

/// Opens the copy with the highest counter whose MAC holds.
pub(super) fn open(
    copies: [Option<&[u8]>; 2],
    credential: &Credential,
    stretcher: &mut Stretcher<'_>,
) -> Result<Opened, KeyError> {
    let mut failures = Failures::default();
    let mut parsed = Vec::new();
    for (bytes, name) in copies.into_iter().zip([CopyName::A, CopyName::B]) {
        match bytes.map(format::parse) {
            None => {}
            // Whatever the other copy says: going on without the newer one
            // would undo what a newer strongroom has written.
            Some(Err(error @ KeyError::UnknownFormat { .. })) => return Err(error),
            Some(Err(error)) => failures.add(Stage::Parse, error),
            Some(Ok(copy)) => parsed.push((name, copy)),
        }
    }
    // Not to be trusted yet, but good for an order: the first that opens wins.
    parsed.sort_by_key(|(_, copy)| std::cmp::Reverse(copy.counter));

    for (at, (name, copy)) in parsed.iter().enumerate() {
        let (slot, wrap, master) = match unlock(copy, credential, stretcher) {
            Ok(unlocked) => unlocked,
            Err((stage, error)) => {
                failures.add(stage, error);
                continue;
            }
        };
        let mac_key = MacKey::new(&master.derive(MASTER_MAC_LABEL));
        if !mac_key.verify(&[copy.signed], copy.mac) {
            failures.add(Stage::Mac, damage(copy));
            continue;
        }
        // A copy with a higher counter that is genuine but did not open: this
        // credential's slot has been removed since. The older copy must not
        // let it in again.
        if parsed
            .iter()
            .take(at)
            .any(|(_, newer)| mac_key.verify(&[newer.signed], newer.mac))
        {
            return Err(failures.worst().unwrap_or(KeyError::WrongCredential));
        }
        let (winner, other) = match name {
            CopyName::A => (copies[0], (copies[1], CopyName::B)),
            CopyName::B => (copies[1], (copies[0], CopyName::A)),
        };
        return Ok(Opened {
            slot: slot.info.id,
            repair: (other.0 != winner).then_some(other.1),
            keyring: assemble(
                copy,
                slot.info.id,
                BTreeMap::from([(slot.info.id, wrap)]),
                master,
            )?,
        });
    }
    Err(failures.worst().unwrap_or(KeyError::NoKeyring))
}

/// Opens another copy of the same store's keyring, older or newer, that lies under the same
/// master key. No slot of it need fit.
pub(super) fn open_sibling(own: &Keyring, bytes: &[u8]) -> Result<Keyring, KeyError> {
    let copy = format::parse(bytes)?;
    let mac_key = MacKey::new(&own.master.derive(MASTER_MAC_LABEL));
    if copy.store_id != own.store_id || !mac_key.verify(&[copy.signed], copy.mac) {
        return Err(KeyError::WrongCredential);
    }
    let master = SecretKey::copy_of(own.master.expose());
    assemble(&copy, own.opener, BTreeMap::new(), master)
}

/// Opens the master key of one copy with the slot that the credential fits.
fn unlock<'a>(
    copy: &'a Parsed<'_>,
    credential: &Credential,
    stretcher: &mut Stretcher<'_>,
) -> Result<(&'a Slot, SecretKey, SecretKey), (Stage, KeyError)> {
    let passphrase = credential.kind() == SlotKind::Passphrase;
    let mut too_expensive = None;
    let mut tried = false;
    let fitting = copy
        .slots
        .iter()
        .flatten()
        .filter(|slot| (slot.info.kind == SlotKind::Passphrase) == passphrase);
    for slot in fitting {
        tried = true;
        let keys = match stretcher.slot_keys(slot.info.params, &slot.salt) {
            Ok(keys) => keys,
            Err(error) => {
                too_expensive = Some(error);
                continue;
            }
        };
        if !keys.commits_to(&slot.commitment) {
            continue;
        }
        let aad = format::slot_aad(copy.suite, copy.store_id, slot);
        let opened = aead::open(&keys.wrap, &slot.nonce, &aad, &slot.wrapped);
        let master = opened
            .ok()
            .and_then(|plain| plain.as_slice().try_into().ok().map(SecretKey::copy_of));
        // The right credential and an intact slot: what it is bound to is not.
        return match master {
            Some(master) => Ok((slot, SecretKey::copy_of(keys.wrap.expose()), master)),
            None => Err((Stage::Mac, damage(copy))),
        };
    }
    Err(if let Some(error) = too_expensive {
        (Stage::Kdf, error)
    } else if copy.slots.iter().any(Option::is_none) {
        (Stage::Slot, damage(copy))
    } else if tried {
        (Stage::Credential, KeyError::WrongCredential)
    } else {
        let offered = if passphrase { "passphrase" } else { "key" };
        (Stage::Credential, KeyError::NoSlotForSource { offered })
    })
}

/// What is damaged in a copy whose MAC does not hold.
fn damage(copy: &Parsed<'_>) -> KeyError {
    let position = copy.slots.iter().position(Option::is_none);
    match position.map(u8::try_from) {
        Some(Ok(position)) => KeyError::DamagedSlot { position },
        _ => KeyError::DamagedHeader,
    }
}

/// The keyring of a copy whose MAC holds.
fn assemble(
    copy: &Parsed<'_>,
    opener: u64,
    wraps: BTreeMap<u64, SecretKey>,
    master: SecretKey,
) -> Result<Keyring, KeyError> {
    let slots: Option<Vec<Slot>> = copy.slots.iter().cloned().collect();
    Ok(Keyring {
        suite: copy.suite,
        counter: copy.counter,
        store_id: copy.store_id,
        slots: slots.ok_or(KeyError::DamagedHeader)?,
        store_keys: StoreKeys::unseal(&copy.store_keys, &master, copy.suite, copy.store_id)?,
        sealed_store_keys: copy.store_keys.clone(),
        master,
        opener,
        wraps,
    })
}

/// How far a copy came: later stages say more about what is wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Parse,
    Slot,
    Credential,
    Kdf,
    Mac,
}

#[derive(Default)]
struct Failures(Vec<(Stage, KeyError)>);

impl Failures {
    fn add(&mut self, stage: Stage, error: KeyError) {
        self.0.push((stage, error));
    }

    /// The failure of the copy that came furthest.
    fn worst(self) -> Option<KeyError> {
        let latest = self.0.into_iter().max_by_key(|(stage, _)| *stage)?;
        Some(latest.1)
    }
}
