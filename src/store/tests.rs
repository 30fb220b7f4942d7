//! What only the inside of the store can show.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::core::{Core, Extra};
use super::open::{Ground, begin, scan_all};
use super::policy_parts::POLICY_BYTES_MAX;
use super::reader::SCAN_RECORDS;
use super::tenant::{Live, Tenant};
use super::verify::verify;
use super::{Abort, Change, Depth, NewFile, StoreError};
use crate::audit::Chain;
use crate::backend::{Batch, Item, MemoryBackend, MemoryKeyStore};
use crate::clock::ManualClock;
use crate::key::testing::{Counting, raw_credential};
use crate::key::{KdfParams, Keyring, NewSlot, OsRandom, Suite};
use crate::path::{Guard, TenantName};
use crate::record::{FileKind, Jumps, LastRuns, RecordKey, Root, SetHash, Share};

const NOW: u64 = 1_767_225_600_000;

/// A new store in memory without its threads: nothing happens but what a test does.
pub(super) fn core() -> Arc<Core> {
    let slot = NewSlot {
        label: "",
        created_ms: 0,
        params: KdfParams::FLOOR,
    };
    let key = raw_credential(|i| i);
    let keyring = Keyring::create(Suite::XChaCha20Poly1305, &key, slot, &Counting::default());
    let ground = Ground {
        backend: Arc::new(MemoryBackend::new()),
        keys: Arc::new(MemoryKeyStore::new()),
        clock: Arc::new(ManualClock::at(NOW)),
        random: Arc::new(OsRandom),
        place: None,
    };
    let root = Root {
        seq: 0,
        era: 0,
        records: 0,
        set_hash: SetHash::default(),
        keyring_counter: 0,
        trusted_time: NOW,
        audit: Chain::EMPTY,
        runs: LastRuns::default(),
        jumps: Jumps::default(),
    };
    Arc::new(begin(&ground, keyring.ok().unwrap(), 1, root).unwrap())
}

pub(super) fn tenant(core: &Core, name: &str) -> Arc<Tenant> {
    core.tenant(&TenantName::parse(name).unwrap()).unwrap()
}

pub(super) fn put(core: &Core, tenant: &Tenant, path: &str) {
    put_bytes(core, tenant, path, b"text\n");
}

pub(super) fn put_bytes(core: &Core, tenant: &Tenant, path: &str, bytes: &[u8]) {
    let path = Guard::new().check(path).unwrap();
    let file = NewFile {
        kind: FileKind::Text,
        bytes,
        lines: 1,
        policy_digest: [0; 32],
    };
    core.write(tenant, |change| {
        Ok::<_, Abort<()>>(change.put_file(&path, &file)?)
    })
    .ok()
    .unwrap();
}

pub(super) fn remove(core: &Core, tenant: &Tenant, path: &str) {
    let path = Guard::new().check(path).unwrap();
    core.write(tenant, |change| Ok::<_, Abort<()>>(change.remove(&path)?))
        .ok()
        .unwrap();
}

/// What verify finds where a tenant's totals are changed.
fn problems_with(core: &Core, tenant: &Tenant, change: impl Fn(&mut Share)) -> Vec<String> {
    let right = tenant.live().unwrap();
    let live = |head| Live {
        crypto: Arc::clone(&right.crypto),
        head,
        sealed: right.sealed.clone(),
        seq: right.seq,
    };
    let mut head = right.head;
    change(&mut head.root.below);
    tenant.publish(live(head));
    let report = verify(core, Depth::Quick).unwrap();
    tenant.publish(live(right.head));
    report
        .problems
        .into_iter()
        .map(|found| found.what)
        .collect()
}

#[test]
fn each_total_of_a_directory_is_held_against_what_lies_below() {
    let core = core();
    let tenant = tenant(&core, "a");
    put(&core, &tenant, "/memories/d/a.md");
    let wrong: [fn(&mut Share); 10] = [
        |share| share.files += 1,
        |share| share.files -= 1,
        |share| share.directories += 1,
        |share| share.directories -= 1,
        |share| share.bytes += 1,
        |share| share.bytes -= 1,
        |share| share.oldest += 1,
        |share| share.born += 1,
        |share| share.height -= 1,
        |share| share.reach -= 1,
    ];
    for (at, change) in wrong.into_iter().enumerate() {
        let problems = problems_with(&core, &tenant, change);
        assert_eq!(problems, ["the directory's totals are wrong"], "{at}");
    }
    // Those that are bounds may lie beyond.
    let right: [fn(&mut Share); 5] = [
        |_| (),
        |share| share.oldest -= 1,
        |share| share.born -= 1,
        |share| share.height += 1,
        |share| share.reach += 1,
    ];
    for (at, change) in right.into_iter().enumerate() {
        let problems = problems_with(&core, &tenant, change);
        assert!(problems.is_empty(), "{at}: {problems:?}");
    }
}

#[test]
fn nothing_is_committed_once_the_store_is_closed() {
    let core = core();
    core.jobs.closing.store(true, Ordering::Release);
    assert!(matches!(core.check_writable(), Err(StoreError::Closed)));
    let done = core.commit_with(Extra::default(), Batch::default(), Vec::new());
    assert!(matches!(done, Err(StoreError::Closed)));
}

#[test]
fn a_policy_of_just_the_most_bytes_is_stored() {
    let core = core();
    let mut text = "#".repeat(POLICY_BYTES_MAX);
    core.put_policy("policy set", &text).unwrap();
    let records = core.root().records;
    assert!(records > 1, "{records} parts");
    text.push('#');
    let more = core.put_policy("policy set", &text);
    assert!(matches!(more, Err(StoreError::Limit(_))));
    assert_eq!(core.root().records, records);
    core.put_policy("policy set", "#").unwrap();
    assert_eq!(core.root().records, 1, "parts that are too many go");
}

#[test]
fn an_epoch_that_no_head_names_goes_when_the_next_one_begins() {
    let core = core();
    let tenant = tenant(&core, "a");
    put(&core, &tenant, "/memories/a.md");
    // As a kill leaves it: the keys are written, the change is not.
    let mut keys = core.read_tenant_keys(tenant.tag).unwrap();
    let unused = keys.add_epoch(&OsRandom).unwrap();
    core.write_tenant_keys(tenant.tag, &keys).unwrap();
    let begin = |change: &mut Change<'_>| Ok::<_, Abort<()>>(change.begin_epoch(None)?);
    let (_, epoch) = core.write(&tenant, begin).ok().unwrap();
    let keys = core.read_tenant_keys(tenant.tag).unwrap();
    assert_eq!(keys.epochs().collect::<Vec<_>>(), [1, epoch]);
    assert!(epoch > unused);
}

#[test]
fn records_are_listed_beyond_one_page_and_none_twice() {
    for count in [SCAN_RECORDS - 1, SCAN_RECORDS, 2 * SCAN_RECORDS + 1] {
        let key = |at: usize| [b"p".as_slice(), &(at as u32).to_be_bytes()].concat();
        let records = (0..count).map(|at| (key(at), Vec::new()));
        let other = (b"q".to_vec(), Vec::new());
        let backend = MemoryBackend::with_records(records.chain([other]).collect());
        let mut found = Vec::new();
        scan_all(&backend, b"p", |key, _| {
            found.push(key.to_vec());
            Ok(())
        })
        .unwrap();
        assert_eq!(found, (0..count).map(key).collect::<Vec<_>>());
    }
}

#[test]
fn where_no_audit_entry_is_old_enough_nothing_is_written() {
    let core = core();
    let tenant = tenant(&core, "a");
    put(&core, &tenant, "/memories/a.md");
    let before = core.root().seq;
    assert_eq!(core.prune_audit(None, NOW).unwrap(), 0);
    assert_eq!(core.prune_audit(Some(&tenant), NOW).unwrap(), 0);
    assert_eq!(core.root().seq, before);
}

/// Stores records behind the store's back.
fn plant(core: &Core, puts: Vec<(Vec<u8>, Vec<u8>)>) {
    let batch = Batch {
        puts,
        ..Batch::default()
    };
    core.backend.apply(batch).unwrap();
}

#[test]
fn records_before_behind_and_right_after_those_of_a_store_are_named() {
    let root = RecordKey::Root.to_bytes();
    let behind_root = [root.as_slice(), &[0]].concat();
    let next_space = vec![RecordKey::last_space()[0] + 1];
    for key in [vec![0], behind_root, next_space, vec![0xFF; 80]] {
        let core = core();
        plant(&core, vec![(key.clone(), b"x".to_vec())]);
        let problems = verify(&core, Depth::Quick).unwrap().problems;
        assert_eq!(problems.len(), 1, "{key:?}: {problems:?}");
        assert!(problems[0].what.contains("of no kind"), "{problems:?}");
    }
}

#[test]
fn verify_stops_writes_for_damage_and_not_for_one_tenants_lost_keys() {
    let core = core();
    let lost = tenant(&core, "lost");
    put(&core, &lost, "/memories/a.md");
    let tag = lost.tag;
    drop(lost);
    core.keys.destroy(Item::Tenant(tag.0)).unwrap();
    assert_eq!(verify(&core, Depth::Quick).unwrap().problems.len(), 1);
    core.check_writable().unwrap();

    let whole = tenant(&core, "whole");
    put(&core, &whole, "/memories/a.md");
    let entries = RecordKey::dirents_of_tenant(whole.live().unwrap().crypto.id);
    let (key, mut value) = core.backend.scan(&entries, None, 1).unwrap().remove(0);
    value[30] ^= 1;
    plant(&core, vec![(key, value)]);
    assert_eq!(verify(&core, Depth::Quick).unwrap().problems.len(), 2);
    let stopped = core.check_writable();
    assert!(matches!(stopped, Err(StoreError::WritesStopped)));
}

#[test]
fn the_extent_of_a_tree_is_exact() {
    let core = core();
    let tenant = tenant(&core, "a");
    let extent = || {
        core.read(&tenant, |reader| {
            Ok::<_, Abort<()>>(reader.extent(&reader.root())?)
        })
        .ok()
        .unwrap()
    };
    assert_eq!(extent(), (0, 0));
    put(&core, &tenant, "/memories/longer-than-the-rest.md");
    assert_eq!(extent(), (1, "/longer-than-the-rest.md".len() as u64));
    put(&core, &tenant, "/memories/d/deep/of-some-length.md");
    assert_eq!(extent(), (3, "/d/deep/of-some-length.md".len() as u64));
}

#[test]
fn the_live_bytes_are_those_of_all_keys_and_values() {
    let core = core();
    let tenant = tenant(&core, "a");
    put(&core, &tenant, "/memories/a.md");
    let records = core.backend.scan(&[], None, SCAN_RECORDS).unwrap();
    let bytes: usize = records
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    assert_eq!(core.live_bytes().unwrap(), bytes as u64);
}

#[test]
fn a_rotation_of_an_erased_tenant_is_left_alone_by_one_of_the_same_name() {
    let core = core();
    let tenant = tenant(&core, "a");
    let begin = || {
        put(&core, &tenant, "/memories/a");
        let id = tenant.live().unwrap().crypto.id;
        let begun = core.write(&tenant, |change| {
            Ok::<_, Abort<()>>(change.begin_epoch(core.rotation_of(id))?)
        });
        (id, begun.ok().unwrap().0)
    };
    let (former, first) = begin();
    assert_eq!(begin(), (former, first), "it goes on in the same job");
    let live = tenant.live().unwrap();
    let withdraw = || tenant.withdraw();
    core.erase_head(tenant.tag, Some("a"), &live.head, &live.sealed, withdraw)
        .unwrap();
    let (id, second) = begin();
    assert_ne!((former, first), (id, second));
    assert_eq!(core.rotation_of(former).unwrap().0, first);
    assert_eq!(core.rotation_of(id).unwrap().0, second);
}
