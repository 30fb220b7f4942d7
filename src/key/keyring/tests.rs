//! What the keyring promises, byte by byte.

use std::sync::atomic::AtomicUsize;

use proptest::prelude::*;

use super::*;
use crate::key::OsRandom;
use crate::key::testing::{Counting, FailingRandom, RandomFor, hex, raw_credential};
use crate::vectors::vector;

const SLOT: NewSlot<'_> = NewSlot {
    label: "first",
    created_ms: 1_700_000_000_000,
    params: KdfParams::FLOOR,
};
/// Where the parts of a copy lie (the table in `format`).
const SLOT_AT: usize = 37;
const SLOT_BYTES: usize = 262;
const CHECKSUM_AT: usize = 230;

fn key() -> Credential {
    raw_credential(|_| 1)
}

fn other_key() -> Credential {
    raw_credential(|_| 2)
}

fn passphrase(text: &str) -> Credential {
    Credential::from_passphrase(text).ok().unwrap()
}

fn create(credential: &Credential) -> Keyring {
    Keyring::create(Suite::XChaCha20Poly1305, credential, SLOT, &OsRandom)
        .ok()
        .unwrap()
}

fn open_pair(a: &[u8], b: &[u8], credential: &Credential) -> Result<Opened, KeyError> {
    Keyring::open([Some(a), Some(b)], credential)
}

fn open_error(a: &[u8], b: &[u8], credential: &Credential) -> KeyError {
    open_pair(a, b, credential).err().unwrap()
}

fn same_keys(a: &Keyring, b: &Keyring) -> bool {
    let keys = |keyring: &Keyring| {
        let k = keyring.store_keys();
        [&k.tag, &k.root, &k.audit, &k.policy, &k.state, &k.tenant].map(|key| *key.expose())
    };
    keys(a) == keys(b) && a.master.expose() == b.master.expose()
}

/// Writes slot `n`'s checksum anew, as someone who alters bytes on purpose would.
fn fix_checksum(bytes: &mut [u8], n: usize) {
    let start = SLOT_AT + n * SLOT_BYTES;
    let sum = crate::key::mac::sha256(&[&bytes[start..start + CHECKSUM_AT]]);
    bytes[start + CHECKSUM_AT..start + SLOT_BYTES].copy_from_slice(&sum);
}

#[test]
fn a_keyring_has_the_bytes_that_an_independent_implementation_gives() {
    let random = Counting::default();
    let key = raw_credential(|i| i);
    let mut keyring = Keyring::create(Suite::XChaCha20Poly1305, &key, SLOT, &random)
        .ok()
        .unwrap();
    assert_eq!(hex(&keyring.encode()), vector("keyring_one_slot"));
    let second = NewSlot {
        label: "second",
        ..SLOT
    };
    let passphrase = passphrase("pa\u{308}ssword of a test");
    keyring.add_slot(&passphrase, second, &random).unwrap();
    assert_eq!(hex(&keyring.encode()), vector("keyring_two_slots"));
    let proof = keyring.prove(b"a challenge");
    assert_eq!(hex(&proof), vector("control_proof"));
}

#[test]
fn a_keyring_opens_to_the_same_keys() {
    for credential in [key(), passphrase("correct horse")] {
        let made = create(&credential);
        let bytes = made.encode();
        assert_eq!(bytes, made.encode());
        let opened = open_pair(&bytes, &bytes, &credential).ok().unwrap();
        assert!(same_keys(&made, &opened.keyring));
        assert_eq!(opened.keyring.store_id(), made.store_id());
        assert_eq!(opened.keyring.suite(), Suite::XChaCha20Poly1305);
        assert_eq!(opened.keyring.counter(), 1);
        assert_eq!((opened.slot, opened.repair), (1, None));
        assert_eq!(opened.keyring.encode(), bytes);
        let info = opened.keyring.slots().next().unwrap().clone();
        assert_eq!(info.label, "first");
        assert_eq!(info.created_ms, SLOT.created_ms);
        assert_eq!(info.kind, credential.kind());
        let stretched = credential.kind() == SlotKind::Passphrase;
        assert_eq!(info.params, stretched.then_some(KdfParams::FLOOR));
    }
}

#[test]
fn two_keyrings_share_nothing() {
    let (a, b) = (create(&key()), create(&key()));
    assert_ne!(a.store_id(), b.store_id());
    assert!(!same_keys(&a, &b));
    let keys = a.store_keys();
    let distinct: std::collections::BTreeSet<_> = [
        &keys.tag,
        &keys.root,
        &keys.audit,
        &keys.policy,
        &keys.state,
        &keys.tenant,
        &a.master,
    ]
    .map(|key| *key.expose())
    .into();
    assert_eq!(distinct.len(), 7);
}

#[test]
fn no_key_lies_in_the_bytes() {
    let made = create(&key());
    let bytes = made.encode();
    let keys = made.store_keys();
    for secret in [&keys.tag, &keys.tenant, &made.master] {
        assert!(!bytes.windows(32).any(|w| w == secret.expose()));
    }
    assert!(!bytes.windows(32).any(|w| w == [1; 32]));
}

#[test]
fn no_copy_at_all_is_said() {
    assert!(matches!(
        Keyring::open([None, None], &key()),
        Err(KeyError::NoKeyring)
    ));
}

#[test]
fn a_missing_copy_is_to_be_repaired() {
    let bytes = create(&key()).encode();
    let repair = |a, b| Keyring::open([a, b], &key()).ok().unwrap().repair;
    assert_eq!(repair(Some(&bytes[..]), None), Some(CopyName::B));
    assert_eq!(repair(None, Some(&bytes[..])), Some(CopyName::A));
}

#[test]
fn wrong_credentials_are_told_from_damage() {
    let made = create(&passphrase("correct horse"));
    let bytes = made.encode();
    assert!(matches!(
        open_error(&bytes, &bytes, &passphrase("correct horsf")),
        KeyError::WrongCredential
    ));
    assert!(matches!(
        open_error(&bytes, &bytes, &key()),
        KeyError::NoSlotForSource { offered: "key" }
    ));

    let mut slot_damaged = bytes.clone();
    slot_damaged[SLOT_AT + 100] ^= 1;
    for text in ["correct horse", "wrong"] {
        assert!(matches!(
            open_error(&slot_damaged, &slot_damaged, &passphrase(text)),
            KeyError::DamagedSlot { position: 0 }
        ));
    }

    let mut header_damaged = bytes.clone();
    header_damaged[15] ^= 1; // the counter
    assert!(matches!(
        open_error(
            &header_damaged,
            &header_damaged,
            &passphrase("correct horse")
        ),
        KeyError::DamagedHeader
    ));
    // A whole copy settles that it was the passphrase after all.
    assert!(matches!(
        open_error(&slot_damaged, &bytes, &passphrase("wrong")),
        KeyError::WrongCredential
    ));
}

#[test]
fn every_flipped_byte_in_both_copies_is_an_error_of_damage() {
    let mut made = create(&key());
    made.add_slot(&other_key(), SLOT, &OsRandom).unwrap();
    let whole = made.encode();
    for at in 0..whole.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= mask;
            let error = open_error(&bytes, &bytes, &key());
            let in_slots = (SLOT_AT..SLOT_AT + 2 * SLOT_BYTES).contains(&at);
            if in_slots {
                let expected = u8::try_from((at - SLOT_AT) / SLOT_BYTES).unwrap();
                assert!(
                    matches!(error, KeyError::DamagedSlot { position } if position == expected),
                    "{at}: {error}"
                );
            } else {
                assert!(matches!(error, KeyError::DamagedHeader), "{at}: {error}");
            }
        }
    }
}

#[test]
fn every_flipped_byte_in_one_copy_is_survived_and_repaired() {
    let made = create(&key());
    let whole = made.encode();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        for (a, b, broken) in [(&bytes, &whole, CopyName::A), (&whole, &bytes, CopyName::B)] {
            let opened = open_pair(a, b, &key()).ok().unwrap();
            assert_eq!(opened.repair, Some(broken));
            assert!(same_keys(&opened.keyring, &made));
            assert_eq!(opened.keyring.encode(), whole);
        }
    }
}

#[test]
fn every_cut_or_longer_copy_is_damaged() {
    let whole = create(&key()).encode();
    for length in 0..whole.len() {
        assert!(matches!(
            open_error(&whole[..length], &whole[..length], &key()),
            KeyError::DamagedHeader
        ));
    }
    for more in [1, 262, KEYRING_BYTES_MAX] {
        let mut longer = whole.clone();
        longer.resize(whole.len() + more, 0);
        assert!(matches!(
            open_error(&longer, &longer, &key()),
            KeyError::DamagedHeader
        ));
        let opened = open_pair(&longer, &whole, &key()).ok().unwrap();
        assert_eq!(opened.repair, Some(CopyName::A));
    }
}

#[test]
fn altered_slots_with_a_fresh_checksum_do_not_open() {
    let whole = create(&key()).encode();
    for at in 0..CHECKSUM_AT {
        let mut bytes = whole.clone();
        bytes[SLOT_AT + at] ^= 1;
        fix_checksum(&mut bytes, 0);
        assert!(open_pair(&bytes, &bytes, &key()).is_err(), "{at}");
    }
}

#[test]
fn a_slot_of_another_store_does_not_open() {
    let (mut ours, theirs) = (create(&key()).encode(), create(&key()).encode());
    let slot = SLOT_AT..SLOT_AT + SLOT_BYTES;
    ours[slot.clone()].copy_from_slice(&theirs[slot]);
    assert!(matches!(
        open_error(&ours, &ours, &key()),
        KeyError::DamagedHeader
    ));
}

#[test]
fn a_newer_format_or_suite_is_said_even_for_one_copy() {
    let whole = create(&key()).encode();
    for (byte, format, suite) in [(8, 2, 1), (9, 1, 2)] {
        let mut newer = whole.clone();
        newer[byte] = 2;
        newer[byte + 2] = !2;
        // What follows may look quite different then.
        newer.extend_from_slice(&[0; 5000]);
        for (a, b) in [(&newer, &newer), (&newer, &whole), (&whole, &newer)] {
            let error = open_error(a, b, &key());
            assert!(matches!(
                error,
                KeyError::UnknownFormat { what: "keyring", format: f, suite: s }
                    if (f, s) == (format, suite)
            ));
            assert!(error.to_string().contains("newer strongroom"));
        }
    }
}

#[test]
fn the_higher_counter_wins_and_repairs_the_other() {
    let mut made = create(&key());
    let old = made.encode();
    made.add_slot(&other_key(), SLOT, &OsRandom).unwrap();
    let new = made.encode();
    for (a, b, older) in [(&old, &new, CopyName::A), (&new, &old, CopyName::B)] {
        for credential in [key(), other_key()] {
            let opened = open_pair(a, b, &credential).ok().unwrap();
            assert_eq!(opened.keyring.counter(), 2);
            assert_eq!(opened.repair, Some(older));
            assert_eq!(opened.keyring.encode(), new);
        }
    }
    // A counter that only claims to be higher wins nothing.
    let mut forged = old.clone();
    forged[12] = 0xff;
    let opened = open_pair(&forged, &old, &key()).ok().unwrap();
    assert_eq!(
        (opened.keyring.counter(), opened.repair),
        (1, Some(CopyName::A))
    );
}

#[test]
fn a_removed_slot_does_not_open_through_the_older_copy() {
    let mut made = create(&key());
    let removed = made.add_slot(&other_key(), SLOT, &OsRandom).unwrap();
    let old = made.encode();
    made.remove_slot(removed).unwrap();
    let new = made.encode();
    for (a, b) in [(&old, &new), (&new, &old)] {
        assert!(matches!(
            open_error(a, b, &other_key()),
            KeyError::WrongCredential
        ));
        assert!(open_pair(a, b, &key()).is_ok());
    }
    // With the newer copy destroyed the older one counts; the root record's
    // counter is there for that case.
    assert!(open_pair(&old, &new[..10], &other_key()).is_ok());
}

#[test]
fn slots_are_added_and_removed() {
    let mut made = create(&passphrase("one"));
    assert!(matches!(made.remove_slot(1), Err(KeyError::LastSlot)));
    assert!(matches!(
        made.remove_slot(7),
        Err(KeyError::NoSuchSlot { id: 7 })
    ));
    assert_eq!(made.counter(), 1);

    assert_eq!(made.add_slot(&key(), SLOT, &OsRandom).unwrap(), 2);
    let bytes = made.encode();
    assert_eq!(
        open_pair(&bytes, &bytes, &passphrase("one"))
            .ok()
            .unwrap()
            .slot,
        1
    );
    let mut made = open_pair(&bytes, &bytes, &key()).ok().unwrap().keyring;

    made.remove_slot(2).unwrap();
    assert_eq!(made.counter(), 3);
    // An id is never given twice.
    assert_eq!(made.add_slot(&other_key(), SLOT, &OsRandom).unwrap(), 4);
    made.remove_slot(1).unwrap();
    assert!(matches!(made.remove_slot(4), Err(KeyError::LastSlot)));
    let bytes = made.encode();
    assert!(open_pair(&bytes, &bytes, &other_key()).is_ok());
    assert!(matches!(
        open_error(&bytes, &bytes, &passphrase("one")),
        KeyError::NoSlotForSource {
            offered: "passphrase"
        }
    ));
    assert!(matches!(
        open_error(&bytes, &bytes, &key()),
        KeyError::WrongCredential
    ));
}

#[test]
fn eight_slots_fit_and_each_opens() {
    let mut made = create(&raw_credential(|_| 0));
    for n in 1..8 {
        made.add_slot(&raw_credential(|_| n), SLOT, &OsRandom)
            .unwrap();
    }
    assert!(matches!(
        made.add_slot(&key(), SLOT, &OsRandom),
        Err(KeyError::SlotsFull)
    ));
    let bytes = made.encode();
    assert_eq!(bytes.len(), KEYRING_BYTES_MAX);
    assert_eq!(made.slots().count(), 8);
    for n in 0..8 {
        let opened = open_pair(&bytes, &bytes, &raw_credential(|_| n))
            .ok()
            .unwrap();
        assert_eq!(opened.slot, u64::from(n) + 1);
    }
}

#[test]
fn labels_have_at_most_64_bytes_and_no_control_characters() {
    let add = |label| {
        let slot = NewSlot { label, ..SLOT };
        Keyring::create(Suite::XChaCha20Poly1305, &key(), slot, &OsRandom)
    };
    let longest = "\u{e9}".repeat(32);
    let bytes = add(&longest).ok().unwrap().encode();
    let opened = open_pair(&bytes, &bytes, &key()).ok().unwrap();
    assert_eq!(opened.keyring.slots().next().unwrap().label, longest);
    for label in ["", "laptop, 2026"] {
        assert!(add(label).is_ok());
    }
    for label in [&format!("{longest}x"), "a\nb", "\u{1b}[2J", "\u{9b}1m"] {
        assert!(matches!(add(label), Err(KeyError::Label)));
    }
}

#[test]
fn too_cheap_parameters_make_no_slot() {
    let slot = NewSlot {
        params: KdfParams {
            passes: 1,
            ..KdfParams::FLOOR
        },
        ..SLOT
    };
    assert!(matches!(
        Keyring::create(Suite::XChaCha20Poly1305, &passphrase("x"), slot, &OsRandom),
        Err(KeyError::KdfOutOfRange)
    ));
}

/// 8 GiB would take minutes and the machine's memory: that this test ends at
/// once shows that nothing was run.
#[test]
fn a_slot_that_asks_for_8_gib_is_refused_before_anything_is_run() {
    let mut bytes = create(&passphrase("x")).encode();
    let memory = SLOT_AT + 82..SLOT_AT + 86;
    bytes[memory].copy_from_slice(&(8u32 * 1024 * 1024).to_be_bytes());
    fix_checksum(&mut bytes, 0);
    let credential = passphrase("x");
    let mut stretcher = Stretcher::new(&credential, None);
    let result = open::open([Some(&bytes), Some(&bytes)], &credential, &mut stretcher);
    assert!(matches!(
        result,
        Err(KeyError::KdfTooExpensive {
            memory_kib: 8_388_608,
            passes: 2
        })
    ));
    assert_eq!(stretcher.runs(), 0);
}

#[test]
fn a_slot_that_asks_for_over_half_of_the_memory_is_refused() {
    let bytes = create(&passphrase("x")).encode();
    let credential = passphrase("x");
    let open = |available| {
        let mut stretcher = Stretcher::new(&credential, Some(available));
        open::open([Some(&bytes), None], &credential, &mut stretcher)
    };
    assert!(matches!(
        open(2 * 19 * 1024 - 1),
        Err(KeyError::KdfTooExpensive { .. })
    ));
    assert!(open(2 * 19 * 1024).is_ok());
}

#[test]
fn a_derivation_that_both_copies_ask_for_is_run_once() {
    let mut made = create(&passphrase("one"));
    let old = made.encode();
    made.add_slot(&passphrase("two"), SLOT, &OsRandom).unwrap();
    let new = made.encode();
    let runs = |a: &[u8], b: &[u8], text: &str| {
        let credential = passphrase(text);
        let mut stretcher = Stretcher::new(&credential, None);
        let result = open::open([Some(a), Some(b)], &credential, &mut stretcher);
        (result.is_ok(), stretcher.runs())
    };
    assert_eq!(runs(&new, &new, "one"), (true, 1));
    assert_eq!(runs(&old, &new, "one"), (true, 1));
    assert_eq!(runs(&old, &new, "two"), (true, 2));
    assert_eq!(runs(&new, &new, "wrong"), (false, 2));
}

#[test]
fn a_failing_random_source_stops_every_step() {
    let make =
        |random: &dyn Random| Keyring::create(Suite::XChaCha20Poly1305, &key(), SLOT, random);
    let mut working = 0;
    while let Err(error) = make(&RandomFor(AtomicUsize::new(working))) {
        assert!(matches!(error, KeyError::Random));
        working += 1;
    }
    // Store id, master, six store keys, their nonce, salt, slot nonce.
    assert_eq!(working, 11);

    let mut made = make(&OsRandom).ok().unwrap();
    let before = made.encode();
    assert!(matches!(
        made.add_slot(&other_key(), SLOT, &FailingRandom),
        Err(KeyError::Random)
    ));
    assert_eq!(made.encode(), before);
}

proptest! {
    #[test]
    fn no_bytes_panic_or_open(
        bytes in proptest::collection::vec(any::<u8>(), 0..KEYRING_BYTES_MAX + 10),
        valid_head in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if valid_head && bytes.len() >= 12 {
            bytes[..12].copy_from_slice(b"SRKEYRNG\x01\x01\xfe\xfe");
        }
        prop_assert!(open_pair(&bytes, &bytes, &key()).is_err());
        prop_assert!(open_pair(&bytes, &bytes, &passphrase("x")).is_err());
    }

    #[test]
    fn mutated_bytes_never_open_to_something_else(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        fix in any::<bool>(),
    ) {
        let made = create(&key());
        let whole = made.encode();
        let mut bytes = whole.clone();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if fix {
            fix_checksum(&mut bytes, 0);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match open_pair(&bytes, &bytes, &key()) {
            Ok(_) => prop_assert_eq!(&bytes, &whole),
            Err(_) => prop_assert_ne!(&bytes, &whole),
        }
        let opened = open_pair(&bytes, &whole, &key()).ok();
        prop_assert!(opened.is_some_and(|opened| same_keys(&opened.keyring, &made)));
    }
}
