//! The store's derivations and STATE give what the independent reader computed.

use super::open::crypto;
use super::state::State;
use super::tenant::TenantCrypto;
use crate::hex;
use crate::key::testing::{Counting, raw_credential};
use crate::key::{FileTag, KdfParams, Keyring, NewSlot, StoreId, Suite, TenantKeys};
use crate::record::{NodeId, padded_content_bytes};
use crate::vectors::vector;

/// The store's keys are bytes of the values 3 (tag), 4 (root), 5 (audit), 6 (policy), 7 (state).
fn keyring() -> Keyring {
    let slot = NewSlot {
        label: "",
        created_ms: 0,
        params: KdfParams::FLOOR,
    };
    let key = raw_credential(|i| i);
    let suite = Suite::XChaCha20Poly1305;
    Keyring::create(suite, &key, slot, &Counting::default())
        .ok()
        .unwrap()
}

#[test]
fn the_stores_keys_are_those_of_an_independent_implementation() {
    let crypto = crypto(&keyring());
    assert_eq!(crypto.id, StoreId([1; 16]));
    for (key, name) in [
        (&crypto.inventory, "store_inventory"),
        (&crypto.certificate, "certificate"),
        (&crypto.state, "state_mac"),
    ] {
        assert_eq!(hex::encode(&key.mac(&[b"text"])), vector(name), "{name}");
    }
    let tag = FileTag::of(&crypto.tag, "team/a");
    assert_eq!(tag.to_string(), vector("file_tag"));
}

#[test]
fn a_slot_of_state_has_the_bytes_that_an_independent_implementation_gives() {
    let state = State {
        counter: 5,
        generation: 3,
        seq: 50,
        root_digest: [3; 32],
        clean: true,
    };
    let crypto = crypto(&keyring());
    let slot = state.encode(crypto.id, &crypto.state);
    assert_eq!(hex::encode(&slot), vector("state_slot"));
}

#[test]
fn tags_of_names_and_values_are_those_of_an_independent_implementation() {
    let keys = TenantKeys::create("team/a", &Counting::default()).unwrap();
    let crypto = TenantCrypto::new(StoreId([1; 16]), &keys, (1, 0)).unwrap();
    let tag = crypto.name_tag(NodeId([5; 16]), "naïve.md");
    assert_eq!(hex::encode(&tag.0), vector("name_tag"));
    let pseudonym = crypto.pseudonym(b"a value");
    assert_eq!(hex::encode(&pseudonym), vector("pseudonym"));
}

#[test]
fn contents_are_padded_to_the_sizes_that_an_independent_implementation_gives() {
    let sizes = [0, 1, 256, 257, 1_000, 5_889, 262_144, 300_000];
    let padded = sizes.map(|size| padded_content_bytes(size).to_string());
    assert_eq!(padded.join(" "), vector("padded_sizes"));
}
