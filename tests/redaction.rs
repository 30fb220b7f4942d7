//! Secrets never reach the store, whatever way they come. All secrets here are made up, and
//! built from parts so that no scanner finds them in this file.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::sync::Arc;

use strongroom::backend::{Backend, MemoryBackend, MemoryKeyStore};
use strongroom::key::{KdfParams, KeySource};
use strongroom::policy::{self, Policy};
use strongroom::{Tenant, Vault};

/// A GitHub personal access token that never was one.
fn token() -> String {
    [
        "gh",
        "p_",
        "Zx81Qm4Rt7",
        "Yv2Kd9Lw3P",
        "b6Nc5Hs0Jf",
        "8GaXoe",
    ]
    .concat()
}

fn password() -> String {
    ["correct", "-horse-", "77", "Staple"].concat()
}

struct Store {
    backend: Arc<MemoryBackend>,
    keys: Arc<MemoryKeyStore>,
}

impl Store {
    fn new() -> Self {
        Self {
            backend: Arc::new(MemoryBackend::new()),
            keys: Arc::new(MemoryKeyStore::new()),
        }
    }

    fn open(&self, policy: &str) -> Vault {
        let backend: Arc<dyn Backend> = self.backend.clone();
        Vault::builder()
            .on(backend, self.keys.clone())
            .key_source(KeySource::Passphrase(
                "a passphrase for tests".to_owned().into(),
            ))
            .kdf(KdfParams::FLOOR)
            .create(true)
            .policy(load(policy))
            .open()
            .unwrap()
    }
}

fn load(text: &str) -> Policy {
    policy::load(text, "test").unwrap()
}

fn open(policy: &str) -> Vault {
    Store::new().open(policy)
}

fn text(tenant: &Tenant, path: &str) -> String {
    tenant
        .view(path, None)
        .unwrap()
        .as_text()
        .unwrap()
        .to_owned()
}

#[test]
fn a_created_secret_is_replaced_and_the_reply_says_so() {
    let vault = open("");
    let tenant = vault.tenant("a").unwrap();
    let note = format!("# Deploy\nuse {} to push\n", token());
    let reply = tenant.create("/memories/a.md", &note).unwrap();
    let reply = reply.as_text().unwrap();
    let (first, last) = reply.split_once('\n').unwrap();
    assert_eq!(first, "File created successfully at: /memories/a.md");
    assert!(
        last.starts_with("Note: 1 value was removed by policy: "),
        "{last}"
    );
    assert!(last.ends_with("(line 2)."), "{last}");
    assert!(!reply.contains(&token()));
    let stored = text(&tenant, "/memories/a.md");
    assert!(
        !stored.contains(&token()) && stored.contains("[REDACTED:"),
        "{stored}"
    );
    assert!(
        stored.contains("to push"),
        "what is no secret stays: {stored}"
    );
}

#[test]
fn notes_can_be_switched_off() {
    let vault = open("[redaction]\nnotify_model = false\n");
    let tenant = vault.tenant("a").unwrap();
    let reply = tenant
        .create("/memories/a.md", &format!("{}\n", token()))
        .unwrap();
    assert_eq!(
        reply.as_text(),
        Some("File created successfully at: /memories/a.md")
    );
    assert!(!text(&tenant, "/memories/a.md").contains(&token()));
}

#[test]
fn two_harmless_edits_cannot_put_a_secret_together() {
    let secret = token();
    let (head, tail) = secret.split_at(11);
    let vault = open("");
    let tenant = vault.tenant("a").unwrap();

    tenant
        .create(
            "/memories/joined.md",
            &format!("key {head}X-CUT-X{tail} end\n"),
        )
        .unwrap();
    let reply = tenant
        .str_replace("/memories/joined.md", "X-CUT-X", "")
        .unwrap();
    assert!(!reply.is_error);
    assert!(
        !reply.as_text().unwrap().contains(&secret),
        "the snippet shows what is stored"
    );
    assert!(!text(&tenant, "/memories/joined.md").contains(&secret));

    tenant.create("/memories/lines.md", "alpha\nomega").unwrap();
    tenant
        .insert(
            "/memories/lines.md",
            1,
            &format!("password = {}", password()),
        )
        .unwrap();
    assert!(!text(&tenant, "/memories/lines.md").contains(&password()));

    tenant
        .create("/memories/grown.md", &format!("{head}\n"))
        .unwrap();
    tenant
        .str_replace("/memories/grown.md", head, &secret)
        .unwrap();
    assert!(!text(&tenant, "/memories/grown.md").contains(&secret));
}

#[test]
fn errors_never_echo_a_secret() {
    let secret = token();
    let vault = open("");
    let tenant = vault.tenant("a").unwrap();
    tenant.create("/memories/a.md", "nothing\n").unwrap();
    let padded = format!("{}{secret}", "x ".repeat(490));
    for reply in [
        tenant.str_replace("/memories/a.md", &secret, "x").unwrap(),
        tenant.str_replace("/memories/a.md", &padded, "x").unwrap(),
        tenant
            .create(&format!("/memories/{secret}.md"), "x")
            .unwrap(),
        tenant
            .create(&format!("/elsewhere/{secret}.md"), "x")
            .unwrap(),
        tenant
            .create(&format!("/memories/../{secret}.md"), "x")
            .unwrap(),
        tenant.view(&format!("/memories/{secret}"), None).unwrap(),
        tenant.delete(&format!("/memories/{secret}")).unwrap(),
        tenant
            .rename("/memories/a.md", &format!("/memories/{secret}"))
            .unwrap(),
    ] {
        assert!(reply.is_error, "{:?}", reply.as_text());
        let text = reply.as_text().unwrap();
        assert!(!text.contains(&secret[..16]), "{text}");
    }
    assert!(!text(&tenant, "/memories").contains(&secret[..16]));
}

#[test]
fn a_name_with_a_secret_is_refused_whatever_command_makes_it() {
    let secret = token();
    let vault = open("");
    let tenant = vault.tenant("a").unwrap();
    tenant.create("/memories/a.md", "x\n").unwrap();
    for reply in [
        tenant
            .create(&format!("/memories/{secret}.md"), "x")
            .unwrap(),
        tenant
            .create(&format!("/memories/{secret}/b.md"), "x")
            .unwrap(),
        tenant
            .rename("/memories/a.md", &format!("/memories/d/{secret}"))
            .unwrap(),
        tenant
            .put_bytes(&format!("/memories/{secret}.txt"), b"x")
            .unwrap(),
    ] {
        assert!(reply.is_error);
        assert!(
            reply.as_text().unwrap().contains("looks like a secret"),
            "{:?}",
            reply.as_text()
        );
    }
    assert!(text(&tenant, "/memories").ends_with("/memories/a.md"));
}

#[test]
fn a_rejecting_rule_refuses_the_write_and_leaves_nothing() {
    let vault = open("[redaction.actions]\nsecret = \"reject\"\n");
    let tenant = vault.tenant("a").unwrap();
    let reply = tenant
        .create("/memories/d/a.md", &format!("a\nb {}\n", token()))
        .unwrap();
    assert!(reply.is_error);
    let said = reply.as_text().unwrap();
    assert!(
        said.starts_with("Error: /memories/d/a.md was not written: line 2 holds a value"),
        "{said}"
    );
    assert_eq!(
        text(&tenant, "/memories").lines().count(),
        2,
        "no file and no directory"
    );
}

#[test]
fn pseudonyms_are_the_same_within_a_tenant_and_differ_between_tenants() {
    let vault = open("[redaction.actions]\nsecret = \"pseudonym\"\n");
    let marker = |tenant: &Tenant, path: &str| {
        tenant.create(path, &format!("{}\n", token())).unwrap();
        let stored = text(tenant, path);
        let start = stored.find("[REDACTED:").unwrap();
        stored[start..].to_owned()
    };
    let (one, two) = (vault.tenant("one").unwrap(), vault.tenant("two").unwrap());
    let first = marker(&one, "/memories/a.md");
    assert!(first.contains('#'), "{first}");
    assert_eq!(first, marker(&one, "/memories/b.md"));
    assert_ne!(first, marker(&two, "/memories/a.md"));
}

#[test]
fn what_an_older_policy_let_through_is_gone_at_the_next_read() {
    let store = Store::new();
    let vault = store.open("[redaction]\nrule_packs = []\n[redaction.actions]\n");
    let tenant = vault.tenant("a").unwrap();
    let secret = token();
    tenant
        .create("/memories/a.md", &format!("old {secret}\n"))
        .unwrap();
    tenant
        .create("/memories/b.md", &format!("old {secret}\n"))
        .unwrap();
    assert!(
        text(&tenant, "/memories/a.md").contains(&secret),
        "nothing scans yet"
    );

    vault.set_policy(&load("")).unwrap();
    assert!(
        !text(&tenant, "/memories/a.md").contains(&secret),
        "the same handle obeys at once"
    );
    // Also in the store: a handle under the old policy again no longer sees it.
    vault
        .set_policy(&load("[redaction]\nrule_packs = []\n[redaction.actions]\n"))
        .unwrap();
    assert!(!text(&tenant, "/memories/a.md").contains(&secret));
    assert!(
        text(&tenant, "/memories/b.md").contains(&secret),
        "nobody has read this one"
    );
}

#[test]
fn rescan_cleans_what_nobody_reads_and_goes_on_where_it_stopped() {
    let vault = open("[redaction]\nrule_packs = []\n[redaction.actions]\n");
    let tenant = vault.tenant("a").unwrap();
    for file in 0..20 {
        tenant
            .create(
                &format!("/memories/d{}/f{file}.md", file % 3),
                &format!("n {}\n", token()),
            )
            .unwrap();
    }
    tenant
        .create("/memories/clean.md", "nothing here\n")
        .unwrap();
    vault.set_policy(&load("")).unwrap();

    let dry = tenant.rescan(true, |_, _| ()).unwrap();
    assert_eq!((dry.stale, dry.changed, dry.values), (21, 20, 20));
    let mut last = (0, 0);
    let report = tenant
        .rescan(false, |done, all| last = (done, all))
        .unwrap();
    assert_eq!((report.stale, report.changed, report.values), (21, 20, 20));
    assert_eq!(last, (21, 21));
    let again = tenant.rescan(false, |_, _| ()).unwrap();
    assert_eq!(
        (again.stale, again.changed),
        (0, 0),
        "files remember their policy"
    );

    vault
        .set_policy(&load("[redaction]\nrule_packs = []\n[redaction.actions]\n"))
        .unwrap();
    for file in 0..20 {
        assert!(!text(&tenant, &format!("/memories/d{}/f{file}.md", file % 3)).contains(&token()));
    }
    assert!(
        vault
            .verify(strongroom::Depth::Full)
            .unwrap()
            .problems
            .is_empty()
    );
}

/// The window of the first keyword cuts the value; the second keyword lies inside of it.
#[test]
fn a_value_is_found_wherever_a_second_keyword_stands_before_it() {
    let vault = strongroom::Vault::builder().in_memory().open().unwrap();
    let tenant = vault.tenant("one").unwrap();
    let value = "q7Zp2Lk9Xw4Rt8Yb3Nc6Mv1Hs5Dg0Jf7Ka2Qe9Uo4Ti8Pz3Bx6Vn1Cm5Wl0SyRdG";
    let value = value.get(..64).unwrap();
    let mut lost = Vec::new();
    for gap in (0..240).step_by(3) {
        let path = format!("/memories/{gap}");
        let text = format!(
            "binance {}binance, {}the key of the desk {value}\n",
            "to ".repeat(gap / 3),
            "and so on ".repeat(9)
        );
        assert!(!tenant.create(&path, &text).unwrap().is_error);
        let shown = tenant.view(&path, None).unwrap();
        if shown.as_text().unwrap().contains(value) {
            lost.push(gap);
        }
    }
    assert!(lost.is_empty(), "with so many bytes between: {lost:?}");
}
