//! Keyrings, key files and slots of STATE count only as they were written; nothing makes a key derivation too dear.
#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use strongroom::fuzzing::Slots;
use strongroom::key::{
    Credential, FileTag, KdfParams, KeyError, KeySource, Keyring, NewSlot, SecretKey, StoreId,
    Suite, TenantKeys,
};
use strongroom_fuzz::keys::{Counted, key_source};
use strongroom_fuzz::mutation::Changes;

#[derive(Debug, Arbitrary)]
enum Input {
    Raw(Vec<u8>),
    /// Both copies changed, the slots' checksums made to fit or not.
    Keyring {
        changes: Changes,
        other: Option<Changes>,
        fits: bool,
    },
    /// The costs of the passphrase's slot, its checksum made to fit.
    Costs {
        memory_kib: u32,
        passes: u32,
        lanes: u32,
    },
    Tenant(Changes),
    State(u64, Changes),
}

struct World {
    key: Credential,
    passphrase: Credential,
    keyring: Vec<u8>,
    wrap: SecretKey,
    tenant: TenantKeys,
    tenant_file: Vec<u8>,
    slots: Slots,
}

const STORE: StoreId = StoreId([1; 16]);
const TAG: FileTag = FileTag([2; 16]);

/// docs/FORMAT.md: where the slots begin, their length, and that of what their checksum covers.
const HEAD_BYTES: usize = 37;
const SLOT_BYTES: usize = 262;
const CHECKED_BYTES: usize = 230;
const COSTS_AT: usize = 82;

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let random = Counted::default();
    let credential = |source: KeySource| source.resolve(None).expect("a credential");
    let key = credential(key_source());
    let passphrase = credential(KeySource::Passphrase(
        "correct horse battery".to_owned().into(),
    ));
    let slot = NewSlot {
        label: "a slot",
        created_ms: 1,
        params: KdfParams::FLOOR,
    };
    let mut keyring =
        Keyring::create(Suite::XChaCha20Poly1305, &key, slot, &random).expect("a keyring");
    keyring
        .add_slot(&passphrase, slot, &random)
        .expect("a second slot");
    let wrap = SecretKey::random(&random).expect("a key");
    let mut tenant = TenantKeys::create("team/one", &random).expect("a tenant's keys");
    tenant.add_epoch(&random).expect("a second epoch");
    let tenant_file = tenant.seal(&wrap, STORE, TAG, &random).expect("a key file");
    World {
        key,
        passphrase,
        keyring: keyring.encode(),
        wrap,
        tenant,
        tenant_file,
        slots: Slots::new(STORE, &random).expect("a key"),
    }
});

fuzz_target!(|input: Input| {
    let world = &*WORLD;
    match input {
        Input::Raw(bytes) => {
            assert!(Keyring::open([Some(&bytes), None], &world.key).is_err());
            assert!(TenantKeys::open(&bytes, &world.wrap, STORE, TAG).is_err());
            assert!(!world.slots.accepts(&bytes));
        }
        Input::Keyring {
            changes,
            other,
            fits,
        } => {
            let change = |changes: &Changes| {
                let mut copy = changes.apply(&world.keyring);
                if fits {
                    fit_checksums(&mut copy);
                }
                copy
            };
            let first = change(&changes);
            let second = other.as_ref().map_or_else(|| world.keyring.clone(), change);
            let whole = [&first, &second]
                .iter()
                .filter(|copy| ***copy == world.keyring)
                .count();
            for copies in [[&first, &second], [&second, &first]] {
                match Keyring::open(copies.map(|copy| Some(copy.as_slice())), &world.key) {
                    Ok(opened) => {
                        assert!(whole > 0, "a changed byte is accepted");
                        assert_eq!(opened.keyring.encode(), world.keyring);
                        assert_eq!(opened.repair.is_some(), whole == 1);
                    }
                    // A newer format is never overruled by an older copy.
                    Err(KeyError::UnknownFormat { .. }) => assert!(whole < 2),
                    Err(error) => assert_eq!(whole, 0, "{error}"),
                }
            }
        }
        Input::Costs {
            memory_kib,
            passes,
            lanes,
        } => {
            let work_kib = u64::from(memory_kib) * u64::from(passes);
            let is_refused = memory_kib < 19 * 1_024
                || passes < 2
                || !(1..=16).contains(&lanes)
                || work_kib > 4 * 1_024 * 1_024;
            let mut copy = world.keyring.clone();
            let costs = HEAD_BYTES + SLOT_BYTES + COSTS_AT;
            copy[costs..costs + 4].copy_from_slice(&memory_kib.to_be_bytes());
            copy[costs + 4..costs + 8].copy_from_slice(&passes.to_be_bytes());
            copy[costs + 8..costs + 12].copy_from_slice(&lanes.to_be_bytes());
            fit_checksums(&mut copy);
            // What is within the caps may run, and is too slow to be fuzzed.
            if is_refused {
                assert!(Keyring::open([Some(&copy), None], &world.passphrase).is_err());
            }
            if copy != world.keyring {
                assert!(Keyring::open([Some(&copy), Some(&copy)], &world.key).is_err());
            }
        }
        Input::Tenant(changes) => {
            let file = changes.apply(&world.tenant_file);
            if let Ok((keys, is_damaged)) = TenantKeys::open(&file, &world.wrap, STORE, TAG) {
                assert!(
                    is_damaged || file == world.tenant_file,
                    "a changed byte is not seen"
                );
                assert_eq!(keys.name(), world.tenant.name());
                assert_eq!(keys.tenant_id(), world.tenant.tenant_id());
                assert!(keys.epochs().eq(world.tenant.epochs()));
            }
        }
        Input::State(counter, changes) => {
            let slot = world.slots.slot(counter);
            assert!(world.slots.accepts(&slot));
            let mut changed = changes.apply(&slot);
            let is_accepted = world.slots.accepts(&changed);
            // A slot lies on its page among zeros.
            while changed.len() > slot.len() && changed.last() == Some(&0) {
                changed.pop();
            }
            assert_eq!(is_accepted, changed == slot);
        }
    }
});

/// Makes the slots' checksums, which any writer can make, fit what stands there.
fn fit_checksums(copy: &mut [u8]) {
    let slots = copy.get_mut(HEAD_BYTES..).unwrap_or_default();
    for slot in slots.chunks_exact_mut(SLOT_BYTES).take(2) {
        let (content, checksum) = slot.split_at_mut(CHECKED_BYTES);
        checksum.copy_from_slice(&Sha256::digest(content));
    }
}
