//! Laws of the policy layer, over generated policies.

use proptest::prelude::*;

use super::numbers::{NUMBERS, Unit};
use super::*;

fn number(at: usize) -> impl Strategy<Value = u64> {
    let number = &NUMBERS[at];
    number.floor..=number.ceiling
}

const QUOTED: &str = "/memories(/[a-c\"é*]{1,3}){0,3}(/\\*\\*)?";
const PLAIN: &str = "/memories(/[a-cé*]{1,3}){0,3}(/\\*\\*)?";

/// A list of patterns; the part of the base policy has quotes too, which must be escaped.
fn paths(pattern: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec(pattern, 0..4).prop_map(|list| {
        emit::strings(
            list.into_iter()
                .filter(|text| !text.contains("**/") && Pattern::parse(text).is_ok()),
        )
    })
}

fn flags() -> impl Strategy<Value = (bool, bool)> {
    any::<(bool, bool)>()
}

prop_compose! {
    /// The four sections as text. `room` makes the three cross checks hold by themselves.
    fn sections()(
        file in number(0), image in number(1), files in number(2), room in (64u64 << 20)..=(1 << 40),
        line in number(4), chars in number(5), entries in number(6),
        store in prop::option::of((1u64 << 20)..=(16 << 40)),
        (overwrite, images) in flags(), read_only in paths(QUOTED), denied in paths(QUOTED),
    ) -> String {
        let line = line.min(chars);
        let store = store.map_or("\"off\"".to_owned(), |bytes| bytes.to_string());
        let on_existing = if overwrite { "overwrite" } else { "error" };
        format!(
            "[limits]\nmax_file_bytes = {file}\nmax_image_bytes = {image}\nmax_files = {files}\n\
             max_total_bytes = {room}\nmax_line_chars = {line}\nstore_max_bytes = {store}\n\
             [view]\nmax_chars = {chars}\nmax_entries = {entries}\n\
             [write]\non_existing = \"{on_existing}\"\nimages = {images}\n\
             [paths]\nportable_names = false\nread_only = {read_only}\ndenied = {denied}\n"
        )
    }
}

prop_compose! {
    /// A tenants entry that can tighten any base: floors, or what `strict` has.
    fn tenant()(
        parts in prop::collection::vec("[a-b*]{1,2}", 1..3), deep in any::<bool>(), strict in any::<bool>(),
        files in prop::option::of(Just(1)), lines in any::<bool>(), (error, images) in flags(),
        read_only in paths(PLAIN), denied in paths(PLAIN),
    ) -> Option<(String, String)> {
        let name = format!("{}{}", parts.join("/"), if deep { "/**" } else { "" });
        TenantPattern::parse(&name).ok()?;
        let mut text = format!("[[tenants]]\nmatch = \"{name}\"\n");
        if strict {
            text.push_str("extends = [\"strict\"]\n");
        }
        text.push_str(&format!("paths = {{ read_only = {read_only}, denied = {denied} }}\n"));
        if let Some(files) = files {
            text.push_str(&format!("limits.max_files = {files}\n"));
        }
        if lines {
            text.push_str("limits.max_line_chars = 100\nview.max_chars = 1_000\n");
        }
        if error {
            text.push_str("write.on_existing = \"error\"\n");
        }
        if !images {
            text.push_str("write.images = false\n");
        }
        Some((name, text))
    }
}

prop_compose! {
    fn policy()(sections in sections(), tenants in prop::collection::vec(tenant(), 0..4)) -> Policy {
        let mut text = sections;
        let tenants: std::collections::BTreeMap<_, _> = tenants.into_iter().flatten().collect();
        text.extend(tenants.into_values());
        load(&text, "generated").unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

proptest! {
    #[test]
    fn canonical_text_loads_to_an_equal_policy(policy in policy()) {
        let text = policy.to_toml();
        let again = load(&text, "again").unwrap_or_else(|error| panic!("{error}\n{text}"));
        prop_assert_eq!(&again, &policy);
        prop_assert_eq!(again.to_toml(), text);
        prop_assert_eq!(again.digest(), policy.digest());
        prop_assert!(policy.diff(&again).is_empty());
    }

    #[test]
    fn policies_differ_exactly_when_a_key_does(a in policy(), b in policy()) {
        let (there, back) = (a.diff(&b), b.diff(&a));
        prop_assert_eq!(there.is_empty(), a == b);
        prop_assert_eq!(a.digest() == b.digest(), a == b);
        prop_assert_eq!(there.len(), back.len());
    }

    /// No entry, and no two together, give a tenant more than the policy gives everyone.
    #[test]
    fn tenants_only_ever_have_less(policy in policy(), tenant in "[ab]{1,2}(/[ab]{1,2}){0,2}", path in "/memories(/[a-c]{1,2}){0,3}") {
        let (all, one) = (policy.base(), policy.for_tenant(&tenant));
        for number in &NUMBERS {
            prop_assert!((number.read)(&one) <= (number.read)(&all), "{}", number.name);
        }
        prop_assert!(one.write.images <= all.write.images);
        prop_assert!(one.paths.portable_names >= all.paths.portable_names);
        prop_assert!(all.write.on_existing == OnExisting::Overwrite || one.write.on_existing == OnExisting::Error);
        prop_assert!(!all.paths.read_only.matches(&path) || one.paths.read_only.matches(&path));
        prop_assert!(!all.paths.denied.matches(&path) || one.paths.denied.matches(&path));
        prop_assert!(one.conflict().is_none());
    }

    #[test]
    fn no_text_panics(text in "\\PC*", lines in prop::collection::vec("(\\[\\[?(limits|tenants|paths|retention.rules)\\]\\]?|[a-z_]{1,12} = (\\[\"[/*a-z]{0,9}\"\\]|\"[0-9a-zA-Z]{0,8}\"|[0-9_]{1,20}|-1|1.5|true))", 0..8)) {
        let _ = load(&text, "text");
        let _ = load(&lines.join("\n"), "lines");
    }
}

#[test]
fn every_key_of_the_default_is_written_in_its_text() {
    let flat = Policy::default().to_toml();
    for section in [
        limits::LIMIT_KEYS,
        limits::VIEW_KEYS,
        limits::WRITE_KEYS,
        limits::PATH_KEYS,
    ] {
        for key in section {
            assert!(flat.contains(&format!("\n{key} = ")), "{key}");
        }
    }
}

/// docs/POLICY.md has a row `| key | type | default | floor | ceiling |` for each number.
#[test]
fn the_documented_numbers_are_the_real_ones() {
    let doc = include_str!("../../docs/POLICY.md");
    let default = Policy::default().base();
    for number in &NUMBERS {
        let shown = |value: u64| match number.unit {
            Unit::Bytes => units::format_bytes(value),
            Unit::Count => grouped(value),
        };
        let start = format!("| `{}.{}` |", number.section, number.name);
        let row = doc
            .lines()
            .find(|line| line.starts_with(&start))
            .unwrap_or_else(|| panic!("{start} is missing"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let expected = [(number.read)(&default), number.floor, number.ceiling].map(shown);
        assert_eq!(&cells[3..6], expected, "{start}");
    }
}

#[test]
fn the_documented_refusals_are_the_real_ones() {
    let doc = include_str!("../../docs/POLICY.md");
    let refusals = [
        Refusal::FileBytes {
            have: 262_145,
            limit: 262_144,
        },
        Refusal::ImageBytes {
            have: 3_670_017,
            limit: 3_670_016,
        },
        Refusal::Files {
            have: 10_001,
            limit: 10_000,
        },
        Refusal::TotalBytes {
            have: 67_108_865,
            limit: 67_108_864,
        },
        Refusal::LineChars {
            line: 3,
            have: 16_001,
            limit: 16_000,
        },
        Refusal::StoreBytes {
            have: 1_073_741_825,
            limit: 1_073_741_824,
        },
        Refusal::Images,
        Refusal::ReadOnly,
        Refusal::Denied,
        Refusal::ReadOnlyBelow {
            pattern: Pattern::parse("/memories/a.md/b/**").unwrap(),
        },
        Refusal::DeniedBelow {
            pattern: Pattern::parse("/memories/a.md/c").unwrap(),
        },
    ];
    for refusal in refusals {
        let text = refusal.message("/memories/a.md");
        assert!(doc.contains(&text), "{text}");
        assert!(
            text.starts_with("Error: /memories/a.md was not written: "),
            "{text}"
        );
        assert!(!text.ends_with('\n'), "{text}");
    }
}

/// A text as it is after the shipped default is laid under it.
fn merged(texts: &[&str]) -> node::Node {
    let source = |text: &str| {
        std::sync::Arc::new(node::Source {
            name: "test".to_owned(),
            identity: "test".to_owned(),
            text: text.to_owned(),
        })
    };
    let mut tree = node::parse(&source(SHIPPED[0].1)).unwrap();
    for text in texts {
        tree = node::merge(tree, node::parse(&source(text)).unwrap());
    }
    tree
}

/// Reads one section of a tree, as a build would that has that part.
fn read<T>(
    tree: &node::Node,
    name: &str,
    parse: fn(&section::Section<'_>) -> Result<T, PolicyError>,
) -> T {
    let root = section::Section::root(tree).unwrap();
    parse(&root.section(name).unwrap().unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

const RULE: &str = r#"
[redaction]
rule_packs = ["secrets", "pci", "secrets"]
allow = ["b", "a\"\\\n", "b"]
[redaction.actions]
secret = "pseudonym"
[[redaction.rules]]
id = "employee-id"
class = "internal"
keywords = ["EMP-"]
regex = '(?P<secret>EMP-[0-9]{6})'
examples = ["badge EMP-123456"]
negative_examples = ["EMP-12"]
[[redaction.rules]]
id = "badge"
class = "internal"
keywords = ["B-"]
regex = 'B-[0-9]{6}'
examples = ["B-123456"]
"#;

#[test]
fn redaction_is_read_and_written_in_full() {
    let redaction = read(&merged(&[RULE]), "redaction", Redaction::parse);
    assert_eq!(redaction.rule_packs, [RulePack::Secrets, RulePack::Pci]);
    assert_eq!(redaction.allow, ["a\"\\\n", "b"]);
    assert_eq!(redaction.actions["secret"], RedactionAction::Pseudonym);
    assert_eq!(redaction.rules[1].regex, "(?P<secret>EMP-[0-9]{6})");
    let text = emit::text(&redaction.blocks());
    assert_eq!(
        read(&merged(&[&text]), "redaction", Redaction::parse),
        redaction
    );
}

#[test]
fn redaction_rules_merge_by_id_and_the_later_wins_whole() {
    let over = r#"
[redaction]
allow = []
[redaction.actions]
internal = "reject"
[[redaction.rules]]
id = "badge"
class = "other"
keywords = ["C-"]
regex = "C-"
examples = ["C-"]
"#;
    let redaction = read(&merged(&[RULE, over]), "redaction", Redaction::parse);
    assert_eq!(redaction.allow.len(), 0);
    assert_eq!(redaction.actions.len(), 2);
    let rules: Vec<_> = redaction
        .rules
        .iter()
        .map(|rule| (&*rule.id, &*rule.class))
        .collect();
    assert_eq!(rules, [("badge", "other"), ("employee-id", "internal")]);

    let none = "redaction.rules = []";
    let redaction = read(&merged(&[RULE, none]), "redaction", Redaction::parse);
    assert_eq!(redaction.rules.len(), 0);
}

#[test]
fn retention_is_read_and_written_in_full() {
    let text = r#"
[retention]
expire_after_last_access = "90d"
keep_at_least = "1d12h"
access_granularity = "30m"
[[retention.rules]]
paths = ["/memories/sessions/**"]
expire_after_last_access = "7d"
expire_after_created = "never"
[[retention.rules]]
paths = ["/memories/a", "/memories/b"]
keep_at_least = "0s"
"#;
    let retention = read(&merged(&[text]), "retention", Retention::parse);
    let days = |days: u64| std::time::Duration::from_secs(days * 86_400);
    assert_eq!(retention.expire_after_last_access, Some(days(90)));
    assert_eq!(retention.expire_after_created, None);
    assert_eq!(retention.keep_at_least, days(3) / 2);
    assert_eq!(
        retention.rules[0].expire_after_last_access,
        Some(Some(days(7)))
    );
    assert_eq!(retention.rules[0].expire_after_created, Some(None));
    assert_eq!(retention.rules[1].expire_after_created, None);
    assert_eq!(retention.rules[1].keep_at_least, Some(days(0)));
    let text = emit::text(&retention.blocks());
    assert_eq!(
        read(&merged(&[&text]), "retention", Retention::parse),
        retention
    );
}

#[test]
fn audit_is_read_and_written_in_full() {
    let text = "[audit]\nenabled = true\nreads = \"durable\"\nkeep = \"10y\"";
    let audit = read(&merged(&[text]), "audit", Audit::parse);
    assert!(audit.enabled && audit.reads == AuditReads::Durable);
    let text = emit::text(&audit.blocks());
    assert_eq!(read(&merged(&[&text]), "audit", Audit::parse), audit);
}

#[test]
fn every_limit_holds_to_the_byte() {
    let mut limits = Policy::default().limits;
    limits.store_max_bytes = Some(5_000_000);
    assert!(limits.check_file_bytes(262_144).is_ok());
    assert!(limits.check_file_bytes(262_145).is_err());
    assert!(limits.check_image_bytes(3_670_016).is_ok());
    assert!(limits.check_image_bytes(3_670_017).is_err());
    assert!(limits.check_files(10_000).is_ok());
    assert!(limits.check_files(10_001).is_err());
    assert!(limits.check_total_bytes(67_108_864).is_ok());
    assert!(limits.check_total_bytes(67_108_865).is_err());
    assert!(limits.check_store_bytes(5_000_000).is_ok());
    assert!(limits.check_store_bytes(5_000_001).is_err());
    limits.store_max_bytes = None;
    assert!(limits.check_store_bytes(u64::MAX).is_ok());
}

#[test]
fn lines_are_counted_in_characters_and_end_at_lf_only() {
    let limits = Policy::default().limits;
    let longest = "é".repeat(16_000);
    assert!(
        limits
            .check_lines(&format!("{longest}\n{longest}\n"))
            .is_ok()
    );
    assert_eq!(
        limits.check_lines(&format!("a\n{longest}\r\n")),
        Err(Refusal::LineChars {
            line: 2,
            have: 16_001,
            limit: 16_000
        })
    );
    assert!(limits.check_lines("").is_ok());
}

fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn a_tenants_retention_only_tightens_and_is_written_back() {
    let text = r#"
[retention]
expire_after_created = "300d"
keep_at_least = "1d"
[[retention.rules]]
paths = ["/memories/keep/**"]
expire_after_last_access = "never"
keep_at_least = "0s"
[[tenants]]
match = "a"
extends = ["strict"]
[[tenants]]
match = "*"
[tenants.retention]
expire_after_created = "100d"
expire_after_last_access = "never"
keep_at_least = "2d"
"#;
    let days = |days: u64| std::time::Duration::from_secs(days * 86_400);
    let policy = load(text, "test").unwrap();
    assert_eq!(load(&policy.to_toml(), "again").unwrap(), policy);
    let (one, other) = (
        policy.for_tenant("a").retention,
        policy.for_tenant("b").retention,
    );
    // From strict and from "*", the tighter of each.
    assert_eq!(one.expire_after_last_access, Some(days(90)));
    assert_eq!(one.expire_after_created, Some(days(100)));
    assert_eq!(one.keep_at_least, days(2));
    assert_eq!(one.rules[0].expire_after_last_access, Some(Some(days(90))));
    assert_eq!(one.rules[0].keep_at_least, Some(days(2)));
    assert_eq!(other.expire_after_last_access, None);
    assert_eq!(other.expire_after_created, Some(days(100)));
    assert_eq!(policy.for_tenant("b/c").retention, policy.retention);
    let idle = load("[[tenants]]\nmatch = \"a\"\nretention = {}\n", "idle").unwrap();
    assert!(idle.tenants.is_empty(), "it changes nothing");
}

#[test]
fn what_a_tenant_extends_leaves_a_tighter_rule_of_all_alone() {
    let text = r#"
[retention]
expire_after_last_access = "30d"
[[tenants]]
match = "a"
extends = ["strict"]
"#;
    let policy = load(text, "test").unwrap();
    let month = std::time::Duration::from_secs(30 * 86_400);
    let effective = policy.for_tenant("a").retention;
    assert_eq!(effective.expire_after_last_access, Some(month));
    // What is written back says nothing looser for the tenant, which would not load.
    assert_eq!(load(&policy.to_toml(), "again").unwrap(), policy);
}
