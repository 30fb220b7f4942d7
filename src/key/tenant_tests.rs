//! What a tenant's key file promises, byte by byte.

use std::sync::atomic::AtomicUsize;

use proptest::prelude::*;

use super::*;
use crate::key::OsRandom;
use crate::key::testing::{Counting, RandomFor, hex};
use crate::vectors::vector;

const STORE: StoreId = StoreId([1; 16]);
const TAG: FileTag = FileTag([2; 16]);

fn wrap() -> SecretKey {
    SecretKey::copy_of(&[3; 32])
}

fn tenant(name: &str) -> TenantKeys {
    TenantKeys::create(name, &OsRandom).ok().unwrap()
}

fn seal(keys: &TenantKeys) -> Vec<u8> {
    keys.seal(&wrap(), STORE, TAG, &OsRandom).unwrap()
}

fn open(bytes: &[u8]) -> Result<(TenantKeys, bool), KeyError> {
    TenantKeys::open(bytes, &wrap(), STORE, TAG)
}

fn open_error(bytes: &[u8]) -> KeyError {
    open(bytes).err().unwrap()
}

fn same(a: &TenantKeys, b: &TenantKeys) -> bool {
    a.encode() == b.encode()
}

#[test]
fn a_key_file_has_the_bytes_that_an_independent_implementation_gives() {
    let random = Counting::default();
    let mut keys = TenantKeys::create("team/a", &random).ok().unwrap();
    keys.add_epoch(&random).unwrap();
    let wrap = SecretKey::copy_of(&[8; 32]).derive("strongroom/v1/tenant-keys");
    let file = keys.seal(&wrap, STORE, TAG, &random).unwrap();
    assert_eq!(hex(&file), vector("tenant_key_file"));
    for (key, name) in [
        (keys.name_key(), "names"),
        (keys.inventory_key(), "inventory"),
        (keys.pseudonym_key(), "pseudonyms"),
        (keys.audit_path_key(), "audit_paths"),
    ] {
        assert_eq!(hex(key.expose()), vector(name), "{name}");
    }
}

#[test]
fn a_key_file_opens_to_the_same_keys() {
    let mut keys = tenant("team-a/alice@example.com");
    assert_eq!(keys.add_epoch(&OsRandom).unwrap(), 2);
    let (opened, repair) = open(&seal(&keys)).ok().unwrap();
    assert!(!repair);
    assert_eq!(opened.name(), "team-a/alice@example.com");
    assert_eq!(opened.tenant_id(), keys.tenant_id());
    assert_eq!(opened.base.expose(), keys.base.expose());
    assert_eq!(opened.epochs().collect::<Vec<_>>(), [1, 2]);
    for epoch in [1, 2] {
        let key = |keys: &TenantKeys| *keys.record_key(epoch).ok().unwrap().expose();
        assert_eq!(key(&opened), key(&keys));
    }
    assert!(matches!(
        opened.record_key(3),
        Err(KeyError::NoSuchEpoch { epoch: 3 })
    ));
}

#[test]
fn a_tenant_made_again_shares_nothing() {
    let (a, b) = (tenant("t"), tenant("t"));
    assert_ne!(a.tenant_id(), b.tenant_id());
    assert_ne!(a.base.expose(), b.base.expose());
    assert_ne!(a.records[&1].expose(), b.records[&1].expose());
}

#[test]
fn derived_keys_differ_and_last() {
    let keys = tenant("t");
    let derived = |keys: &TenantKeys| {
        [
            keys.name_key(),
            keys.inventory_key(),
            keys.pseudonym_key(),
            keys.audit_path_key(),
        ]
        .map(|key| *key.expose())
    };
    let distinct: std::collections::BTreeSet<_> = derived(&keys).into();
    assert_eq!(distinct.len(), 4);
    let (opened, _) = open(&seal(&keys)).ok().unwrap();
    assert_eq!(derived(&opened), derived(&keys));
}

#[test]
fn every_flipped_byte_is_survived_by_the_other_half() {
    let keys = tenant("default");
    let whole = seal(&keys);
    for at in 0..whole.len() {
        for mask in [0x01, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= mask;
            let (opened, repair) = open(&bytes).ok().unwrap();
            assert!(repair, "{at}");
            assert!(same(&opened, &keys));
        }
    }
}

#[test]
fn the_same_flip_in_both_halves_is_damage() {
    let whole = seal(&tenant("default"));
    let half = whole.len() / 2;
    for at in 0..half {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes[half + at] ^= 0x10;
        let error = open_error(&bytes);
        assert!(
            matches!(error, KeyError::DamagedTenantKeys),
            "{at}: {error}"
        );
    }
}

#[test]
fn a_cut_or_longer_file_opens_while_one_half_is_whole() {
    let keys = tenant("default");
    let whole = seal(&keys);
    for length in 0..whole.len() {
        match open(&whole[..length]) {
            Ok((opened, repair)) => {
                assert!(repair && same(&opened, &keys) && length >= whole.len() / 2);
            }
            Err(error) => {
                assert!(matches!(error, KeyError::DamagedTenantKeys));
                assert!(length < whole.len() / 2);
            }
        }
    }
    for more in [1, 2, 1000] {
        let mut longer = whole.clone();
        longer.resize(whole.len() + more, 0);
        assert!(open(&longer).ok().unwrap().1);
    }
    assert!(matches!(
        open_error(&vec![0; TENANT_FILE_BYTES_MAX + 1]),
        KeyError::DamagedTenantKeys
    ));
}

#[test]
fn another_store_tenant_or_key_does_not_open_it() {
    let bytes = seal(&tenant("default"));
    for (wrap, store_id, tag) in [
        (SecretKey::copy_of(&[4; 32]), STORE, TAG),
        (wrap(), StoreId([9; 16]), TAG),
        (wrap(), STORE, FileTag([9; 16])),
    ] {
        assert!(matches!(
            TenantKeys::open(&bytes, &wrap, store_id, tag),
            Err(KeyError::ForeignTenantKeys)
        ));
    }
}

#[test]
fn halves_of_different_versions_are_refused() {
    let mut keys = tenant("default");
    let old = seal(&keys);
    keys.add_epoch(&OsRandom).unwrap();
    let new = seal(&keys);
    let half = old.len() / 2;
    assert_eq!(old.len(), new.len(), "the padding hides one epoch");
    let mixed = [&old[..half], &new[half..]].concat();
    assert!(matches!(open_error(&mixed), KeyError::ForeignTenantKeys));
    // Halves of one version may change places.
    let swapped = [&old[half..], &old[..half]].concat();
    assert!(!open(&swapped).ok().unwrap().1);
}

#[test]
fn a_newer_format_or_suite_is_said() {
    let whole = seal(&tenant("default"));
    for at in [8, 9] {
        let mut newer = whole.clone();
        newer[at] = 2;
        newer[at + 2] = !2;
        assert!(matches!(
            open_error(&newer),
            KeyError::UnknownFormat {
                what: "tenant key file",
                ..
            }
        ));
    }
}

#[test]
fn names_follow_the_rules() {
    let longest = "x".repeat(128);
    for name in ["a", "default", "A.b_c@d:e-f", "team/a/b", "..", &longest] {
        assert!(is_tenant_name(name), "{name}");
        let (opened, _) = open(&seal(&tenant(name))).ok().unwrap();
        assert_eq!(opened.name(), name);
    }
    let too_long = "x".repeat(129);
    for name in [
        "", "/", "a/", "/a", "a//b", "a b", "\u{e9}", "a\n", "a\\b", &too_long,
    ] {
        assert!(!is_tenant_name(name), "{name}");
        assert!(matches!(
            TenantKeys::create(name, &OsRandom),
            Err(KeyError::TenantName)
        ));
    }
}

#[test]
fn epochs_come_and_go_within_their_limits() {
    let mut keys = tenant(&"n".repeat(128));
    assert!(matches!(keys.remove_epoch(1), Err(KeyError::CurrentEpoch)));
    assert!(matches!(
        keys.remove_epoch(2),
        Err(KeyError::NoSuchEpoch { epoch: 2 })
    ));
    for expected in 2..=1024 {
        assert_eq!(keys.add_epoch(&OsRandom).unwrap(), expected);
    }
    assert!(matches!(
        keys.add_epoch(&OsRandom),
        Err(KeyError::EpochLimit)
    ));
    let bytes = seal(&keys);
    assert_eq!(bytes.len(), TENANT_FILE_BYTES_MAX);
    assert!(same(&open(&bytes).ok().unwrap().0, &keys));
    keys.remove_epoch(1).unwrap();
    assert!(keys.record_key(1).is_err());
    // A removed epoch's number is not used again.
    assert_eq!(keys.add_epoch(&OsRandom).unwrap(), 1025);

    keys.records.insert(u32::MAX, wrap());
    keys.remove_epoch(2).unwrap();
    keys.remove_epoch(3).unwrap();
    assert!(matches!(
        keys.add_epoch(&OsRandom),
        Err(KeyError::CounterExhausted)
    ));
}

#[test]
fn a_failing_random_source_stops_every_step() {
    let keys = tenant("t");
    for working in 0..3 {
        let random = RandomFor(AtomicUsize::new(working));
        assert!(matches!(
            TenantKeys::create("t", &random),
            Err(KeyError::Random)
        ));
    }
    for working in 0..2 {
        let random = RandomFor(AtomicUsize::new(working));
        assert!(matches!(
            keys.seal(&wrap(), STORE, TAG, &random),
            Err(KeyError::Random)
        ));
    }
    let mut keys = keys;
    let none = RandomFor(AtomicUsize::new(0));
    assert!(keys.add_epoch(&none).is_err());
    assert_eq!(keys.epochs().collect::<Vec<_>>(), [1]);
}

#[test]
fn both_halves_have_their_own_nonce() {
    let bytes = seal(&tenant("t"));
    let (first, second) = bytes.split_at(bytes.len() / 2);
    assert_ne!(first[16..40], second[16..40]);
    assert_ne!(first[40..], second[40..]);
}

/// Content that is sealed well but breaks the format must not be taken.
#[test]
fn content_is_decoded_strictly() {
    let content = tenant("ab").encode();
    assert!(TenantKeys::decode(&content).is_some());
    let altered = |at: usize, value: u8| {
        let mut altered = content.to_vec();
        altered[at] = value;
        TenantKeys::decode(&altered)
    };
    for (at, value) in [
        (48, 0),    // no name
        (48, 255),  // a name that is too long
        (49, b' '), // a name with a blank
        (54, 0),    // no record key
        (54, 2),    // a record key made of padding, with epoch 0
        (51, 1),    // more record keys than fit
        (58, 0),    // epoch 0
        (255, 1),   // padding
    ] {
        assert!(altered(at, value).is_none(), "{at} = {value}");
    }
    assert!(TenantKeys::decode(&content[..255]).is_none());
    let longer = [&content[..], &[0; 256]].concat();
    assert!(TenantKeys::decode(&longer).is_none());
}

proptest! {
    #[test]
    fn no_bytes_panic_or_open(
        bytes in proptest::collection::vec(any::<u8>(), 0..800),
        valid_head in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if valid_head && bytes.len() >= 16 {
            bytes[..14].copy_from_slice(b"SRTENANT\x01\x01\xfe\xfe\x00\x00");
        }
        prop_assert!(open(&bytes).is_err());
        prop_assert!(TenantKeys::decode(&bytes).is_none_or(|keys| *keys.encode() == bytes));
    }

    #[test]
    fn mutated_bytes_open_to_the_same_or_not_at_all(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let keys = tenant("default");
        let whole = seal(&keys);
        let mut bytes = whole.clone();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok((opened, repair)) = open(&bytes) {
            prop_assert!(same(&opened, &keys));
            prop_assert_eq!(repair, bytes != whole);
        }
    }
}
