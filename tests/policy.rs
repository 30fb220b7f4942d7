//! Policies through the public API: what loads, what does not, and what the message says.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::fs;

use serde::Deserialize;
use strongroom::policy::{self, AuditReads, OnExisting, Policy, PolicyError, Refusal, RulePack};
use strongroom::redact;

#[derive(Deserialize)]
struct Golden {
    case: Vec<Bad>,
}

#[derive(Deserialize)]
struct Bad {
    toml: String,
    line: usize,
    says: Vec<String>,
}

fn load(text: &str) -> Policy {
    policy::load(text, "test.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn load_error(text: &str) -> PolicyError {
    match policy::load(text, "test.toml") {
        Ok(_) => panic!("this loads:\n{text}"),
        Err(error) => error,
    }
}

#[test]
fn bad_policies_point_at_the_line_and_say_what_to_write() {
    let golden: Golden = toml::from_str(include_str!("golden/policy_bad.toml")).unwrap();
    assert!(golden.case.len() >= 90);
    for bad in golden.case {
        let error = load_error(&bad.toml);
        let text = error.to_string();
        let at = error
            .position()
            .unwrap_or_else(|| panic!("no position: {text}"));
        let start = format!("test.toml:{}:", bad.line);
        assert!(
            text.starts_with(&start),
            "{text}\nnot at line {}:\n{}",
            bad.line,
            bad.toml
        );
        assert!(at.column >= 1, "{text}");
        for part in &bad.says {
            assert!(
                text.contains(part.as_str()),
                "{text}\ndoes not say {part}\n{}",
                bad.toml
            );
        }
    }
}

#[test]
fn columns_count_characters() {
    let error = load_error("paths = { denied = [\"/memories/é\", 7] }");
    assert_eq!(error.position().map(|at| at.column), Some(36));
}

#[test]
fn messages_never_quote_redaction_values() {
    for text in [
        "[redaction]\nallow = [\"hunter2\", 7]",
        "[[redaction.rules]]\nid = \"a\"\nclass = \"b\"\nkeywords = [\"hunter2\"]\nregex = \"hunter2\"\nexamples = [\"hunter2\", \"\"]",
        "[[redaction.rules]]\nid = \"a\"\nclass = \"b\"\nkeywords = [\"hunter2\"]\nregex = \"hunter2\"\nexamples = [\"hunter3\"]",
    ] {
        let error = load_error(text);
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[test]
fn an_empty_policy_is_the_default() {
    let policy = load("");
    assert_eq!(policy, Policy::default());
    assert_eq!(policy, load("schema = 1\nextends = [\"default\"]\n"));
    assert_eq!(policy, policy::load_named_or_path("default").unwrap());
    assert_eq!(policy.limits.max_file_bytes, 256 * 1024);
    assert_eq!(policy.limits.max_image_bytes, 3_670_016);
    assert_eq!(policy.limits.max_files, 10_000);
    assert_eq!(policy.limits.max_total_bytes, 64 << 20);
    assert_eq!(policy.limits.max_line_chars, 16_000);
    assert_eq!(policy.limits.store_max_bytes, None);
    assert_eq!(policy.view.max_chars, 16_000);
    assert_eq!(policy.view.max_entries, 1_000);
    assert_eq!(policy.write.on_existing, OnExisting::Error);
    assert!(policy.write.images && policy.paths.portable_names);
    assert!(policy.paths.read_only.matches("/memories/policies"));
    assert!(policy.paths.denied.is_empty() && policy.tenants.is_empty());
    assert!(!policy.audit.enabled);
    assert_eq!(policy.redaction.rule_packs, [RulePack::Secrets]);
    assert_eq!(policy.retention.expire_after_last_access, None);
}

#[test]
fn strict_is_tighter_than_default_in_every_key() {
    let strict = policy::load_named_or_path("strict").unwrap();
    let loosest = load("[[tenants]]\nmatch = \"x\"\nextends = [\"strict\"]").for_tenant("x");
    assert_eq!(loosest.limits.max_files, strict.limits.max_files);
    assert_eq!(loosest.limits.max_file_bytes, strict.limits.max_file_bytes);
    assert_eq!(
        loosest.limits.max_image_bytes,
        strict.limits.max_image_bytes
    );
    assert_eq!(
        loosest.limits.max_total_bytes,
        strict.limits.max_total_bytes
    );
    assert_eq!(loosest.limits.max_line_chars, strict.limits.max_line_chars);
    assert_eq!(loosest.view, strict.view);
    assert_eq!(loosest.write, strict.write);
    assert_eq!(loosest.paths, strict.paths);
    assert_eq!(strict.limits.max_file_bytes, 64 << 10);
    assert!(!strict.write.images);
}

#[test]
fn extends_merges_tables_and_replaces_lists() {
    let policy = load(
        "extends = [\"strict\"]\n[limits]\nmax_files = 500\n[paths]\nread_only = [\"/memories/a/**\"]",
    );
    assert_eq!(policy.limits.max_files, 500);
    assert_eq!(policy.limits.max_file_bytes, 64 << 10);
    assert!(policy.paths.read_only.matches("/memories/a/b"));
    assert!(!policy.paths.read_only.matches("/memories/policies/b"));
}

#[test]
fn every_matching_entry_tightens() {
    let policy = load(
        r#"
        [[tenants]]
        match = "team-a/**"
        extends = ["strict"]
        limits = { max_files = 1_500 }
        [[tenants]]
        match = "*/guest"
        limits = { max_files = 20, max_line_chars = 1_000 }
        view = { max_entries = 900 }
        write = { images = false }
        paths = { read_only = ["/memories/shared/**"], denied = ["/memories/private"] }
        "#,
    );
    let guest = policy.for_tenant("team-a/guest");
    assert_eq!(guest.limits.max_files, 20);
    assert_eq!(guest.limits.max_file_bytes, 64 << 10);
    assert_eq!(guest.limits.max_line_chars, 1_000);
    assert_eq!(guest.view.max_entries, 500);
    assert!(guest.paths.read_only.matches("/memories/shared/a"));
    assert!(guest.paths.read_only.matches("/memories/policies/a"));
    assert!(
        guest
            .paths
            .denied_by("/memories/private/deep/down")
            .is_some()
    );
    assert_eq!(policy.for_tenant("team-a/x").limits.max_files, 1_500);
    assert_eq!(
        policy.for_tenant("team-b/guest").limits.max_file_bytes,
        256 << 10
    );
    assert_eq!(policy.for_tenant("team-b").limits.max_files, 10_000);
}

#[test]
fn a_move_is_refused_when_it_takes_something_protected_along() {
    let paths = load(
        r#"paths.read_only = ["/memories/team/rules/**", "/memories/*/keep.md"]
           paths.denied = ["/memories/team/secret"]"#,
    )
    .paths;
    for (path, write, moved) in [
        (
            "/memories/team/rules",
            Some(Refusal::ReadOnly),
            Some("it is read-only"),
        ),
        (
            "/memories/team/rules/a",
            Some(Refusal::ReadOnly),
            Some("it is read-only"),
        ),
        (
            "/memories/team/secret",
            Some(Refusal::Denied),
            Some("it cannot be used"),
        ),
        (
            "/memories/team/secret/a/b",
            Some(Refusal::Denied),
            Some("it cannot be used"),
        ),
        (
            "/memories/team",
            None,
            Some("/memories/*/keep.md is read-only"),
        ),
        (
            "/memories/other",
            None,
            Some("/memories/*/keep.md is read-only"),
        ),
        ("/memories", None, Some("is read-only and would be moved")),
        ("/memories/other/a", None, None),
        ("/memories/other/keep.md/x", None, None),
    ] {
        assert_eq!(paths.check_write(path).err(), write, "{path}");
        let refused = paths
            .check_move(path)
            .err()
            .map(|refusal| refusal.message(path));
        match (&refused, moved) {
            (Some(text), Some(part)) => assert!(text.contains(part), "{text}"),
            (text, part) => assert_eq!(text.as_deref(), part, "{path}"),
        }
    }
    let denied = load("paths = { read_only = [], denied = [\"/memories/a/b\"] }").paths;
    assert_eq!(
        denied
            .check_move("/memories/a")
            .unwrap_err()
            .message("/memories/a"),
        "Error: /memories/a was not written: /memories/a/b cannot be used and would be moved or \
         deleted with it. Move or delete the other entries one by one"
    );
}

#[test]
fn an_extended_policy_never_loosens_a_tenant() {
    let policy = load(
        "[limits]\nmax_files = 100\n[[tenants]]\nmatch = \"x\"\nextends = [\"default\", \"strict\"]",
    );
    let rules = policy.for_tenant("x");
    assert_eq!(rules.limits.max_files, 100);
    assert_eq!(rules.limits.max_file_bytes, 64 << 10);
    let again = load(&policy.to_toml());
    assert_eq!(again.for_tenant("x"), rules);
}

#[test]
fn an_entry_that_tightens_nothing_leaves_no_trace() {
    let policy = load("[[tenants]]\nmatch = \"x\"\nextends = [\"default\"]");
    assert_eq!(policy, Policy::default());
}

#[test]
fn order_and_spelling_do_not_change_the_digest() {
    let one = load(
        "[limits]\nmax_file_bytes = \"128KiB\"\n[paths]\ndenied = [\"/memories/b\", \"/memories/a\", \"/memories/b\"]",
    );
    let other =
        load("paths.denied = [\"/memories/a\", \"/memories/b\"]\nlimits.max_file_bytes = 131_072");
    assert_eq!(one.digest(), other.digest());
    assert_ne!(one.digest(), Policy::default().digest());
    let entry = |name: &str| format!("[[tenants]]\nmatch = \"{name}\"\nwrite.images = false\n");
    let (a, b) = (entry("a"), entry("b"));
    assert_eq!(
        load(&format!("{a}{b}")).digest(),
        load(&format!("{b}{a}")).digest()
    );
}

#[test]
fn a_diff_reads_key_by_key() {
    let before = Policy::default();
    let after = load(
        "limits.max_files = 500\nlimits.store_max_bytes = \"1GiB\"\nwrite.on_existing = \"overwrite\"\n\
         [[tenants]]\nmatch = \"a/*\"\nlimits.max_files = 5",
    );
    let lines: Vec<String> = before
        .diff(&after)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines,
        [
            "limits.max_files: 10000 -> 500",
            "limits.store_max_bytes: \"off\" -> \"1GiB\"",
            "write.on_existing: \"error\" -> \"overwrite\"",
            "tenants.\"a/*\".match: (none) -> \"a/*\"",
            "tenants.\"a/*\".limits.max_files: (none) -> 5",
        ]
    );
}

/// docs/POLICY.md says the same under "Audit".
#[test]
fn the_shipped_policies_log_as_documented() {
    for (name, enabled, reads) in [
        ("default", false, AuditReads::Buffered),
        ("strict", true, AuditReads::Buffered),
        ("hipaa", true, AuditReads::Durable),
        ("pci", true, AuditReads::Durable),
    ] {
        let audit = policy::load_named_or_path(name).unwrap().audit;
        assert_eq!((audit.enabled, audit.reads), (enabled, reads), "{name}");
        assert_eq!(audit.keep.as_secs(), 7 * 365 * 86_400, "{name}");
    }
}

#[test]
fn audit_loads_and_is_written_back() {
    let policy = load("[audit]\nenabled = true\nreads = \"durable\"\nkeep = \"10y\"\n");
    assert!(policy.audit.enabled && policy.audit.reads == AuditReads::Durable);
    assert_eq!(policy.audit.keep.as_secs(), 10 * 365 * 86_400);
    assert_eq!(load(&policy.to_toml()), policy);
}

#[test]
fn retention_loads_and_is_written_back() {
    let days = |days: u64| std::time::Duration::from_secs(days * 86_400);
    let policy = load(
        "[retention]\nexpire_after_last_access = \"90d\"\nkeep_at_least = \"1d12h\"\n\
         access_granularity = \"5m\"\n\
         [[retention.rules]]\npaths = [\"/memories/sessions/**\"]\n\
         expire_after_last_access = \"7d\"\nexpire_after_created = \"never\"\n",
    );
    let retention = &policy.retention;
    assert_eq!(retention.expire_after_last_access, Some(days(90)));
    assert_eq!(retention.expire_after_created, None);
    assert_eq!(retention.keep_at_least, days(3) / 2);
    let rule = &retention.rules[0];
    assert_eq!(rule.expire_after_last_access, Some(Some(days(7))));
    assert_eq!(rule.expire_after_created, Some(None));
    assert_eq!(rule.keep_at_least, None);
    assert_eq!(load(&policy.to_toml()), policy);
}

/// docs/POLICY.md shows the same in its first table.
#[test]
fn the_shipped_policies_expire_as_documented() {
    let days = |days: u64| Some(std::time::Duration::from_secs(days * 86_400));
    for (name, after_access, after_created) in [
        ("default", None, None),
        ("strict", days(90), None),
        ("hipaa", None, None),
        ("pci", days(90), None),
    ] {
        let retention = policy::load_named_or_path(name).unwrap().retention;
        assert_eq!(retention.expire_after_last_access, after_access, "{name}");
        assert_eq!(retention.expire_after_created, after_created, "{name}");
        assert!(retention.rules.is_empty(), "{name}");
    }
}

#[test]
fn neutral_values_of_later_parts_load() {
    let policy = load(
        "[retention]\nexpire_after_last_access = \"never\"\nkeep_at_least = \"0s\"\nrules = []\n\
         [redaction]\nrule_packs = []\nallow = []\nnotify_model = false\nrules = []\n[redaction.actions]\n\
         [audit]\nenabled = false\nreads = \"off\"\n",
    );
    assert!(!policy.redaction.notify_model);
    assert_eq!(load(&policy.to_toml()), policy);
}

#[test]
fn files_extend_files_beside_them() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write(
        "sub/base.toml",
        "extends = [\"default\"]\n[limits]\nmax_files = 700\n",
    );
    write(
        "top.toml",
        "extends = [\"strict\", \"sub/base.toml\"]\n[view]\nmax_entries = 77\n",
    );
    let top = dir.path().join("top.toml");
    let policy = policy::load_named_or_path(top.to_str().unwrap()).unwrap();
    assert_eq!(policy.limits.max_files, 700);
    assert_eq!(policy.view.max_entries, 77);
    // base.toml extends default, which does not undo what strict tightened.
    assert_eq!(policy.limits.max_file_bytes, 64 << 10);
}

#[test]
fn an_error_in_an_extended_file_points_into_it_even_where_a_later_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("base.toml", "\n[limits]\nmax_files = 0\n");
    write(
        "top.toml",
        "extends = [\"./base.toml\"]\n[limits]\nmax_files = 5\n",
    );
    let top = dir.path().join("top.toml");
    let error = policy::load_named_or_path(top.to_str().unwrap()).unwrap_err();
    let at = error.position().unwrap();
    assert!(at.file.ends_with("base.toml"), "{error}");
    assert_eq!((at.line, at.column), (3, 13), "{error}");
}

#[test]
fn circles_and_long_chains_do_not_load() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    let load = |name: &str| policy::load_named_or_path(dir.path().join(name).to_str().unwrap());
    write("a.toml", "extends = [\"./b.toml\"]");
    write("b.toml", "extends = [\"./../x/../a.toml\", \"a.toml\"]");
    fs::create_dir(dir.path().join("x")).unwrap();
    write("b.toml", "extends = [\"./x/../a.toml\"]");
    let error = load("a.toml").unwrap_err().to_string();
    assert!(error.contains("leads back to"), "{error}");

    for at in 0..10 {
        write(
            &format!("c{at}.toml"),
            &format!("extends = [\"c{}.toml\"]", at + 1),
        );
    }
    write("c10.toml", "limits.max_files = 3");
    let error = load("c1.toml").unwrap_err().to_string();
    assert!(error.contains("deeper than 8"), "{error}");
    assert_eq!(load("c2.toml").unwrap().limits.max_files, 3);

    let all: Vec<String> = (0..40).map(|at| format!("\"w{at}.toml\"")).collect();
    for at in 0..40 {
        write(&format!("w{at}.toml"), "schema = 1");
    }
    write("wide.toml", &format!("extends = [{}]", all.join(", ")));
    let error = load("wide.toml").unwrap_err().to_string();
    assert!(error.contains("more than 32"), "{error}");

    write(
        "t.toml",
        "[[tenants]]\nmatch = \"x\"\nextends = [\"./t.toml\"]",
    );
    let error = load("t.toml").unwrap_err().to_string();
    assert!(error.contains("has [[tenants]] itself"), "{error}");
}

#[test]
fn missing_unreadable_and_huge_files_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let error = policy::load_named_or_path(&path("none.toml")).unwrap_err();
    assert!(matches!(error, PolicyError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("none.toml"), "{error}");
    let error = policy::load_named_or_path("stict").unwrap_err().to_string();
    assert!(error.contains("did you mean \"strict\"?"), "{error}");
    fs::write(path("binary.toml"), b"\xff\xfe").unwrap();
    let error = policy::load_named_or_path(&path("binary.toml"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("not UTF-8"), "{error}");
    fs::write(path("top.toml"), "schema = 1\nextends = [\"gone.toml\"]").unwrap();
    let error = policy::load_named_or_path(&path("top.toml")).unwrap_err();
    assert_eq!(error.position().map(|at| at.line), Some(2), "{error}");

    let text = format!("# {}", "x".repeat(policy::MAX_TEXT_BYTES));
    assert!(matches!(load_error(&text), PolicyError::TooLarge { .. }));
    load(&text[..policy::MAX_TEXT_BYTES]);
    fs::write(path("huge.toml"), &text).unwrap();
    let error = policy::load_named_or_path(&path("huge.toml")).unwrap_err();
    assert!(matches!(error, PolicyError::TooLarge { .. }), "{error}");
}

#[test]
fn patterns_and_tenants_are_capped() {
    let list = |count: usize| -> String {
        (0..count)
            .map(|at| format!("\"/memories/{at}\","))
            .collect()
    };
    assert_eq!(
        load(&format!("paths.denied = [{}]", list(999)))
            .paths
            .denied
            .len(),
        999
    );
    let error = load_error(&format!("paths.denied = [{}]", list(1_000))).to_string();
    assert!(error.contains("at most 1000 path patterns"), "{error}");
    let rule = |at: usize| {
        let text = "class = \"c\"\nkeywords = [\"kk\"]\nregex = \"kk\"\nexamples = [\"kk\"]";
        format!("[[redaction.rules]]\nid = \"r{at}\"\n{text}\n")
    };
    let named = |bytes: usize| rule(0).replace("\"r0\"", &format!("\"{}\"", "r".repeat(bytes)));
    assert_eq!(load(&named(64)).redaction.rules.len(), 1);
    assert!(load_error(&named(65)).to_string().contains("1 to 64"));
    let full: String = (0..1_000).map(rule).collect();
    assert_eq!(load(&full).redaction.rules.len(), 1_000);
    let error = load_error(&format!("{full}{}", rule(1_000))).to_string();
    assert!(error.contains("more than 1000 rules"), "{error}");
    let entry = |at: usize| format!("[[tenants]]\nmatch = \"t{at}\"\nextends = [\"strict\"]\n");
    let full: String = (0..1_000).map(entry).collect();
    let policy = load(&full);
    assert_eq!(policy.tenants.len(), 1_000);
    assert_eq!(load(&policy.to_toml()), policy);
    let error = load_error(&format!("{full}{}", entry(1_000))).to_string();
    assert!(error.contains("more than 1000 entries"), "{error}");
}

#[test]
fn deep_nesting_is_refused_not_overflowed() {
    for text in [
        format!("a = {}", "[".repeat(200_000)),
        format!("a = {}{}", "[".repeat(60), "]".repeat(60)),
        format!("a = {}", "{ b = ".repeat(50_000)),
        format!("{}b = 1", "a.".repeat(100_000)),
        format!("[{}b]", "a.".repeat(100_000)),
    ] {
        assert!(policy::load(&text, "deep").is_err());
    }
}

#[test]
fn shipped_policies_name_their_packs_and_never_loosen_what_refuses_by_itself() {
    use RulePack::{Pci, Phi, Pii, Secrets};
    let packs = |name| {
        policy::load_named_or_path(name)
            .unwrap()
            .redaction
            .rule_packs
    };
    assert_eq!(packs("strict"), [Secrets, Pii]);
    assert_eq!(packs("hipaa"), [Secrets, Pii, Phi]);
    assert_eq!(packs("pci"), [Secrets, Pii, Pci]);
    let pci = policy::load_named_or_path("pci").unwrap();
    let engine = pci.redaction.engine().unwrap();
    for text in [
        "cvv: 908",
        "card pin is 4821",
        "%B4111111111111111^DOE/JANE^27121010000000000?",
        ";4111111111111111=27121010000012300?",
        "PIN block: 041234FEDCBA9876",
    ] {
        assert!(engine.redact(text, None).is_err(), "{text}");
    }
    let card = "card 4111 1111 1111 1111";
    let kept = engine.redact(card, None).unwrap();
    assert_eq!(kept.text, "card [REDACTED:card-number]");

    let hipaa = policy::load_named_or_path("hipaa").unwrap();
    let engine = hipaa.redaction.engine().unwrap();
    let digest = |value: &[u8]| [value.len().to_be_bytes()[7]; 32];
    let found = engine.redact("MRN: 00482913", Some(&digest)).unwrap();
    assert_eq!(found.text, "MRN: [REDACTED:medical-record-number#888888]");
    assert!(!hipaa.write.images && !pci.write.images);
}

/// Every pack has a row `| pack | class | rules | issuers |` in docs/POLICY.md.
#[test]
fn the_documented_packs_are_the_real_ones() {
    let doc = include_str!("../docs/POLICY.md");
    for pack in redact::PACKS {
        let mut files = vec![*pack];
        if *pack == "secrets" {
            files.push("structure");
        }
        let rules: Vec<redact::RuleDef> = files
            .iter()
            .map(|file| format!("{}/policies/rules/{file}.toml", env!("CARGO_MANIFEST_DIR")))
            .flat_map(|path| redact::parse_rules(&fs::read_to_string(path).unwrap()).unwrap())
            .collect();
        let issuers: HashSet<&str> = rules
            .iter()
            .filter_map(|rule| rule.vendor.as_deref())
            .filter(|vendor| *vendor != "several")
            .collect();
        let class = &rules[0].class;
        assert!(rules.iter().all(|rule| rule.class == *class), "{pack}");
        let row = format!(
            "| `{pack}` | `{class}` | {} | {} |",
            rules.len(),
            issuers.len()
        );
        assert!(doc.contains(&row), "docs/POLICY.md needs: {row}");
        let acting: Vec<&str> = rules
            .iter()
            .filter(|rule| rule.action.is_some())
            .map(|rule| rule.id.as_str())
            .collect();
        for id in &acting {
            assert!(doc.contains(&format!("`{id}`")), "{id}");
        }
        assert_eq!(acting.len(), if *pack == "pci" { 5 } else { 0 }, "{pack}");
    }
}

#[test]
fn the_documented_rule_loads() {
    let doc = include_str!("../docs/POLICY.md");
    let (_, after) = doc.split_once("### Your own rules\n\n```toml\n").unwrap();
    let (text, _) = after.split_once("```").unwrap();
    let policy = load(text);
    let engine = policy.redaction.engine().unwrap();
    let found = engine.redact("badge EMP-777888", None).unwrap();
    assert_eq!(found.text, "badge EMP-[REDACTED:employee-id]");
}

#[test]
fn every_section_refuses_a_key_that_it_does_not_have() {
    for section in [
        "[limits]",
        "[view]",
        "[write]",
        "[paths]",
        "[audit]",
        "[retention]",
        "[[retention.rules]]",
        "[redaction]",
        "[[redaction.rules]]",
        "[[tenants]]",
        "[[tenants]]\nmatch = \"a\"\n[tenants.limits]",
        "[[tenants]]\nmatch = \"a\"\n[tenants.view]",
        "[[tenants]]\nmatch = \"a\"\n[tenants.write]",
        "[[tenants]]\nmatch = \"a\"\n[tenants.paths]",
        "[[tenants]]\nmatch = \"a\"\n[tenants.retention]",
    ] {
        let error = load_error(&format!("{section}\ncolour = 1\n")).to_string();
        assert!(
            error.contains("unknown key \"colour\""),
            "{section}: {error}"
        );
    }
}
