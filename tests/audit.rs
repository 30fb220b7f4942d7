//! The audit log: one linked entry for each operation, in the same batch as the change.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::sync::Arc;

use strongroom::audit::Outcome;
use strongroom::backend::{Backend, Fault, FaultBackend, MemoryBackend, MemoryKeyStore};
use strongroom::clock::ManualClock;
use strongroom::key::{KdfParams, KeySource};
use strongroom::{AuditRecord, Checkpoint, Depth, Tenant, Vault, policy};

const ON: &str = "[audit]\nenabled = true\nreads = \"durable\"\n";
const DAY: u64 = 86_400_000;
const START: u64 = 1_767_225_600_000;

struct Store {
    backend: Arc<MemoryBackend>,
    keys: Arc<MemoryKeyStore>,
    clock: Arc<ManualClock>,
}

impl Store {
    fn new() -> Self {
        Self {
            backend: Arc::new(MemoryBackend::new()),
            keys: Arc::new(MemoryKeyStore::new()),
            clock: Arc::new(ManualClock::at(START)),
        }
    }

    fn open(&self, policy: &str) -> Vault {
        self.open_on(self.backend.clone(), policy)
    }

    fn open_on(&self, backend: Arc<dyn Backend>, policy: &str) -> Vault {
        Vault::builder()
            .on(backend, self.keys.clone())
            .key_source(KeySource::Passphrase(
                "a passphrase for tests".to_owned().into(),
            ))
            .kdf(KdfParams::FLOOR)
            .clock(self.clock.clone())
            .create(true)
            .policy(policy::load(policy, "test").unwrap())
            .open()
            .unwrap()
    }
}

fn records(vault: &Vault, tenant: Option<&str>) -> Vec<AuditRecord> {
    let mut records = Vec::new();
    let report = vault
        .audit(tenant, |whose, record| {
            if whose == tenant {
                records.push(record.clone());
            }
        })
        .unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
    records
}

fn work(tenant: &Tenant) {
    tenant.create("/memories/d/a.md", "one\n").unwrap();
    tenant
        .str_replace("/memories/d/a.md", "one", "two")
        .unwrap();
    tenant.insert("/memories/d/a.md", 0, "x\n").unwrap();
    tenant.view("/memories/d/a.md", None).unwrap();
    tenant.rename("/memories/d/a.md", "/memories/b.md").unwrap();
    tenant.delete("/memories/missing.md").unwrap();
    tenant.delete("/memories/b.md").unwrap();
    tenant.view("/memoriesX", None).unwrap();
}

#[test]
fn every_operation_leaves_one_entry() {
    let store = Store::new();
    let vault = store.open(ON);
    let tenant = vault
        .tenant("clinic/7")
        .unwrap()
        .as_actor("dr-x", Some("session-1"));
    work(&tenant);
    let records = records(&vault, Some("clinic/7"));
    let seen: Vec<_> = records
        .iter()
        .map(|r| {
            (
                r.entry.command.as_str(),
                r.path.as_deref(),
                r.to.as_deref(),
                r.entry.outcome,
            )
        })
        .collect();
    let a = Some("/memories/d/a.md");
    let b = Some("/memories/b.md");
    assert_eq!(
        seen,
        [
            ("create", a, None, Outcome::Ok),
            ("str_replace", a, None, Outcome::Ok),
            ("insert", a, None, Outcome::Ok),
            ("view", a, None, Outcome::Ok),
            ("rename", a, b, Outcome::Ok),
            (
                "delete",
                Some("/memories/missing.md"),
                None,
                Outcome::Refused
            ),
            ("delete", b, None, Outcome::Ok),
            ("view", None, None, Outcome::Refused),
        ]
    );
    assert!(
        records
            .iter()
            .all(|r| r.entry.actor.as_deref() == Some("dr-x")
                && r.entry.session.as_deref() == Some("session-1")
                && r.entry.time == START)
    );
    assert_eq!(records[0].entry.bytes, 4);
    assert!(vault.verify(Depth::Full).unwrap().problems.is_empty());
}

#[test]
fn entries_hold_no_content_no_secret_and_no_plain_path() {
    let store = Store::new();
    let vault = store.open(ON);
    let tenant = vault.tenant("a").unwrap();
    let secret = ["gh", "p_", "Zx81Qm4Rt7Yv2Kd9Lw3Pb6Nc5Hs0Jf8GaXoe"].concat();
    tenant
        .create(
            "/memories/plan-zebra.md",
            &format!("marker-quagga {secret}\n"),
        )
        .unwrap();
    tenant
        .str_replace("/memories/plan-zebra.md", &secret, "marker-okapi")
        .unwrap();
    tenant.create(&format!("/memories/{secret}"), "x").unwrap();
    let records = records(&vault, Some("a"));
    assert_eq!(records.len(), 3);
    assert_eq!(
        records[0].entry.rules.values().sum::<u64>(),
        1,
        "{:?}",
        records[0].entry.rules
    );
    for record in &records {
        for hidden in ["zebra", "quagga", "okapi", &secret[..12]] {
            assert!(!record.json.contains(hidden), "{}", record.json);
        }
    }
}

#[test]
fn buffered_entries_are_there_when_the_log_is_read_and_after_a_close() {
    let store = Store::new();
    let vault = store.open("[audit]\nenabled = true\nreads = \"buffered\"\n");
    let tenant = vault.tenant("a").unwrap();
    work(&tenant);
    assert_eq!(records(&vault, Some("a")).len(), 8);
    for _ in 0..600 {
        tenant.view("/memories", None).unwrap();
    }
    vault.close().unwrap();
    let vault = store.open("");
    assert_eq!(records(&vault, Some("a")).len(), 608);
}

#[test]
fn reads_can_be_left_out_and_the_whole_log_switched_off() {
    let store = Store::new();
    let vault = store.open("[audit]\nenabled = true\nreads = \"off\"\n");
    let tenant = vault.tenant("a").unwrap();
    work(&tenant);
    assert!(
        records(&vault, Some("a"))
            .iter()
            .all(|r| r.entry.command != "view")
    );
    let vault = Store::new().open("");
    let tenant = vault.tenant("a").unwrap();
    work(&tenant);
    assert!(records(&vault, Some("a")).is_empty());
}

#[test]
fn a_view_of_a_tenant_that_does_not_exist_creates_none() {
    let store = Store::new();
    let vault = store.open(ON);
    vault
        .tenant("ghost")
        .unwrap()
        .view("/memories", None)
        .unwrap();
    assert!(vault.stats().unwrap().tenants.is_empty());
    let own = records(&vault, None);
    assert_eq!(own.last().unwrap().entry.command, "view");
    assert!(own.last().unwrap().path.is_none());
}

#[test]
fn a_tenant_without_a_memory_has_an_empty_log() {
    let store = Store::new();
    let vault = store.open(ON);
    work(&vault.tenant("b").unwrap());
    work(&vault.tenant("a").unwrap());
    assert!(records(&vault, Some("nobody")).is_empty());
    let mut order = Vec::new();
    let report = vault
        .audit(None, |whose, _| order.push(whose.map(str::to_owned)))
        .unwrap();
    assert_eq!((report.chains, report.problems.len()), (3, 0));
    order.dedup();
    assert_eq!(order, [None, Some("a".to_owned()), Some("b".to_owned())]);
}

/// Each entry in turn altered, dropped, exchanged with another, repeated at the end, and
/// the tip cut: all are seen, by reading the log and by `verify`.
#[test]
fn any_tampering_with_entries_is_detected() {
    let store = Store::new();
    let vault = store.open(ON);
    work(&vault.tenant("a").unwrap());
    vault.checkpoint().unwrap();
    vault.close().unwrap();
    let clean = store.backend.records();
    let entries: Vec<Vec<u8>> = clean.keys().filter(|key| key[0] == 7).cloned().collect();
    assert!(
        entries.len() >= 9,
        "eight of the tenant's, and the store's own"
    );
    let check = |what: &str, change: &dyn Fn(&MemoryBackend)| {
        let backend = Arc::new(MemoryBackend::with_records(clean.clone()));
        change(&backend);
        let vault = store.open_on(backend, "");
        let report = vault.audit(None, |_, _| ()).unwrap();
        assert!(
            !report.problems.is_empty(),
            "{what}: the log reads as whole"
        );
        assert!(
            !vault.verify(Depth::Full).unwrap().problems.is_empty(),
            "{what}: verify"
        );
    };
    for (at, key) in entries.iter().enumerate() {
        check("altered", &|backend| {
            let mut value = clean[key].clone();
            let last = value.len() - 1;
            value[last] ^= 1;
            backend.tamper(key, Some(value));
        });
        check("dropped", &|backend| backend.tamper(key, None));
        let other = &entries[(at + 1) % entries.len()];
        check("exchanged", &|backend| {
            backend.tamper(key, Some(clean[other].clone()));
            backend.tamper(other, Some(clean[key].clone()));
        });
    }
    let last = entries.last().unwrap();
    let mut next = last.clone();
    *next.last_mut().unwrap() += 1;
    let backend = Arc::new(MemoryBackend::with_records(clean.clone()));
    backend.tamper(&next, Some(clean[last].clone()));
    let vault = store.open_on(backend, "");
    assert!(
        !vault.verify(Depth::Full).unwrap().problems.is_empty(),
        "an inserted entry"
    );
}

#[test]
fn a_change_whose_entry_cannot_be_written_does_not_happen() {
    let store = Store::new();
    store.open(ON).close().unwrap();
    let faulty = Arc::new(FaultBackend::new(store.backend.clone(), Fault::Before));
    let vault = store.open_on(faulty.clone(), "");
    let tenant = vault.tenant("a").unwrap();
    tenant.create("/memories/a.md", "x\n").unwrap();
    let before = store.backend.records();
    for operation in 0..40 {
        faulty.fail_at(faulty.operations() + operation);
        if tenant.create("/memories/b.md", "x\n").is_err() {
            break;
        }
        tenant.delete("/memories/b.md").unwrap();
    }
    faulty.fail_at(u64::MAX);
    drop((tenant, vault));
    let entries = |records: &std::collections::BTreeMap<Vec<u8>, Vec<u8>>| {
        records.keys().filter(|key| key[0] == 7).count()
    };
    assert!(entries(&store.backend.records()) >= entries(&before));
    let vault = store.open("");
    let log = records(&vault, Some("a"));
    let creates = log
        .iter()
        .filter(|r| r.path.as_deref() == Some("/memories/b.md") && r.entry.command == "create")
        .count();
    let deletes = log
        .iter()
        .filter(|r| r.path.as_deref() == Some("/memories/b.md") && r.entry.command == "delete")
        .count();
    let is_there = !vault
        .tenant("a")
        .unwrap()
        .view("/memories/b.md", None)
        .unwrap()
        .is_error;
    assert_eq!(
        creates - deletes,
        usize::from(is_there),
        "file and entry come and go together"
    );
}

#[test]
fn an_exported_log_can_be_checked_without_the_store() {
    let store = Store::new();
    let vault = store.open(ON);
    work(&vault.tenant("a").unwrap());
    let lines: Vec<String> = records(&vault, Some("a"))
        .into_iter()
        .map(|r| r.json)
        .collect();
    let whole = Tenant::check_exported(lines.iter().map(String::as_str)).unwrap();
    assert_eq!(whole.0, 8);
    for at in 1..lines.len() - 1 {
        let mut cut = lines.clone();
        cut.remove(at);
        assert_eq!(Tenant::check_exported(cut.iter().map(String::as_str)), None);
        let mut swapped = lines.clone();
        swapped.swap(at, at + 1);
        assert_eq!(
            Tenant::check_exported(swapped.iter().map(String::as_str)),
            None
        );
        let mut altered = lines.clone();
        altered[at] = altered[at].replace("\"bytes\":", "\"bytes\":1");
        assert_eq!(
            Tenant::check_exported(altered.iter().map(String::as_str)),
            None
        );
    }
}

#[test]
fn old_entries_are_pruned_and_the_link_to_them_stays() {
    let store = Store::new();
    let vault = store.open("[audit]\nenabled = true\nreads = \"durable\"\nkeep = \"30d\"\n");
    let tenant = vault.tenant("a").unwrap();
    for _ in 0..900 {
        tenant.view("/memories/none", None).unwrap();
    }
    tenant.create("/memories/a.md", "x\n").unwrap();
    store.clock.set(START + 20 * DAY);
    tenant.create("/memories/b.md", "x\n").unwrap();
    store.clock.set(START + 40 * DAY);
    let report = vault.expire(None, false, |_, _| ()).unwrap();
    assert!(report.pruned >= 900, "{report:?}");
    let left = records(&vault, Some("a"));
    assert_eq!(
        left.first().unwrap().path.as_deref(),
        Some("/memories/b.md")
    );
    assert!(vault.verify(Depth::Full).unwrap().problems.is_empty());
}

#[test]
fn events_of_the_store_have_a_chain_of_their_own() {
    let store = Store::new();
    let vault = store.open(ON);
    let credential = strongroom::key::Credential::from_passphrase("another passphrase").unwrap();
    let slot = vault
        .add_key(&credential, "second", KdfParams::FLOOR)
        .unwrap();
    vault.remove_key(slot).unwrap();
    vault
        .set_policy(&policy::load(ON, "same").unwrap())
        .unwrap();
    vault.expire(None, false, |_, _| ()).unwrap();
    let commands: Vec<_> = records(&vault, None)
        .into_iter()
        .map(|r| r.entry.command)
        .collect();
    for event in ["key add", "key remove", "policy set", "expire"] {
        assert!(
            commands.iter().any(|command| command == event),
            "{event}: {commands:?}"
        );
    }
}

#[test]
fn a_checkpoint_shows_that_the_whole_store_was_put_back() {
    let store = Store::new();
    let vault = store.open(ON);
    vault
        .tenant("a")
        .unwrap()
        .create("/memories/a.md", "x\n")
        .unwrap();
    vault.close().unwrap();
    let old = Store {
        backend: Arc::new(MemoryBackend::with_records(store.backend.records())),
        keys: Arc::new((*store.keys).clone()),
        clock: store.clock.clone(),
    };
    let vault = store.open("");
    let line = vault.checkpoint().unwrap().to_string();
    let checkpoint = Checkpoint::parse(&line).unwrap();
    assert!(vault.has_checkpoint(&checkpoint).unwrap());
    let put_back = old.open("");
    assert!(
        put_back.verify(Depth::Full).unwrap().problems.is_empty(),
        "nothing inside shows it"
    );
    assert!(!put_back.has_checkpoint(&checkpoint).unwrap());
    assert!(Checkpoint::parse("strongroom-checkpoint-1 nonsense").is_none());
}

#[test]
fn the_log_tells_of_its_own_beginning_and_end() {
    let store = Store::new();
    let vault = store.open("");
    let off = policy::load("", "off").unwrap();
    let on = policy::load(ON, "on").unwrap();
    let tenant = vault.tenant("a").unwrap();
    tenant.create("/memories/a.md", "x\n").unwrap();
    assert!(records(&vault, None).is_empty() && records(&vault, Some("a")).is_empty());
    vault.set_policy(&on).unwrap();
    // Waits in the buffer when the log ends.
    tenant.delete("/memories/missing.md").unwrap();
    vault.set_policy(&off).unwrap();
    tenant.delete("/memories/missing.md").unwrap();
    tenant.create("/memories/b.md", "x\n").unwrap();
    vault.set_policy(&off).unwrap();
    let digest = |policy: &policy::Policy| -> String {
        let bytes = policy.digest();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let told: Vec<_> = records(&vault, None)
        .into_iter()
        .filter(|record| record.entry.command == "policy set")
        .map(|record| record.entry.detail.unwrap())
        .collect();
    let expected = [&on, &off].map(|policy| format!("policy {}", digest(policy)));
    assert_eq!(told, expected);
    let seen: Vec<_> = records(&vault, Some("a"))
        .into_iter()
        .map(|record| (record.entry.command, record.entry.outcome))
        .collect();
    assert_eq!(seen, [("delete".to_owned(), Outcome::Refused)]);
}

#[test]
fn a_rotation_says_when_it_begins_and_when_the_old_key_is_gone() {
    let store = Store::new();
    let vault = store.open(ON);
    work(&vault.tenant("one").unwrap());
    let rotated = vault.rotate_keys(Some("one"), |_, _, _| ()).unwrap();
    assert_eq!(rotated[0].epoch, 2);
    let mut told = Vec::new();
    vault
        .audit_store_events(|record| {
            if record.entry.command == "key rotate" {
                told.push(record.entry.detail.clone().unwrap());
            }
        })
        .unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].ends_with("epoch 2 begins"), "{told:?}");
    assert!(told[1].ends_with("epochs before 2 retired"), "{told:?}");
    // Both name the tenant by its id, which says nothing once it is erased.
    assert_eq!(told[0].split(',').next(), told[1].split(',').next());
}
