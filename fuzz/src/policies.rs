//! Policies put together from the lines that docs/POLICY.md describes, some of them wrong.

use arbitrary::{Arbitrary, Result, Unstructured};

/// The text of a policy.
#[derive(Debug)]
pub struct PolicyText(pub String);

/// A section, and for each of its keys what may stand there.
type Section = (
    &'static str,
    &'static [(&'static str, &'static [&'static str])],
);

const SECTIONS: &[Section] = &[
    ("[limits]", LIMITS),
    (
        "[view]",
        &[
            ("max_chars", &["16_000", "1_000_000"]),
            ("max_entries", &["10", "1_000", "100_000"]),
        ],
    ),
    (
        "[write]",
        &[
            ("on_existing", &["\"error\"", "'overwrite'"]),
            ("images", &["true", "false"]),
        ],
    ),
    ("[paths]", PATHS),
    (
        "[retention]",
        &[
            ("expire_after_last_access", AGES),
            ("expire_after_created", AGES),
            ("keep_at_least", &["\"0s\"", "\"1d\"", "\"1000y\""]),
            ("access_granularity", &["\"1m\"", "\"7d\""]),
        ],
    ),
    (
        "[[retention.rules]]",
        &[
            ("paths", PATTERNS),
            ("expire_after_last_access", AGES),
            ("keep_at_least", &["\"0s\"", "\"3w\""]),
        ],
    ),
    (
        "[redaction]",
        &[
            (
                "rule_packs",
                &[
                    "[]",
                    "[\"secrets\"]",
                    "[\"pii\", \"phi\"]",
                    "[\"secrets\", \"pii\", \"phi\", \"pci\"]",
                ],
            ),
            ("notify_model", &["true", "false"]),
            (
                "allow",
                &["[]", "[\"not a secret\", 'x\"\\']", "[\"\\u00e9\\n\"]"],
            ),
        ],
    ),
    (
        "[redaction.actions]",
        &[
            ("secret", ACTIONS),
            ("pii", ACTIONS),
            ("phi", ACTIONS),
            ("pci", ACTIONS),
            ("internal", ACTIONS),
        ],
    ),
    (
        "[audit]",
        &[
            ("enabled", &["true", "false"]),
            ("reads", &["\"off\"", "\"buffered\"", "\"durable\""]),
            ("keep", &["\"7y\"", "\"30d\""]),
        ],
    ),
    ("[[tenants]]", TENANTS),
    ("[[tenants]]", TENANTS),
];

const LIMITS: &[(&str, &[&str])] = &[
    (
        "max_file_bytes",
        &[
            "1024",
            "\"1KiB\"",
            "\"64KiB\"",
            "0x400",
            "\"1.5MB\"",
            "\"256KiB\"",
        ],
    ),
    ("max_image_bytes", &["\"1KiB\"", "\"3.5MiB\""]),
    ("max_files", &["1", "10_000", "10_000_000"]),
    ("max_total_bytes", &["\"64MiB\"", "\"1TiB\"", "67108864"]),
    ("max_line_chars", &["100", "16_000"]),
    ("store_max_bytes", &["\"off\"", "\"1MiB\"", "\"16TiB\""]),
];

const PATHS: &[(&str, &[&str])] = &[
    ("portable_names", &["true", "false"]),
    ("read_only", PATTERNS),
    ("denied", PATTERNS),
];

const PATTERNS: &[&str] = &[
    "[\"/memories/policies/**\"]",
    "[\"/memories/*/keep.md\", \"/memories/a*b\"]",
    "[\"/memories/é/日本\"]",
    "[\n  \"/memories/x/**\", # a remark\n  '/memories/y',\n]",
];

const AGES: &[&str] = &[
    "\"never\"",
    "\"1m\"",
    "\"90d\"",
    "\"1y2w3d4h5m6s\"",
    "\"1000y\"",
];
const ACTIONS: &[&str] = &[
    "\"label\"",
    "\"pseudonym\"",
    "\"last4\"",
    "\"reject\"",
    "\"allow\"",
];

const TENANTS: &[(&str, &[&str])] = &[
    ("extends", &["[]", "[\"strict\"]", "[\"hipaa\", \"pci\"]"]),
    (
        "limits",
        &[
            "{ max_files = 1 }",
            "{ max_line_chars = 100, max_file_bytes = \"1KiB\" }",
        ],
    ),
    ("view", &["{ max_entries = 10 }"]),
    (
        "write",
        &["{ images = false }", "{ on_existing = \"error\" }"],
    ),
    (
        "paths",
        &[
            "{ read_only = [\"/memories/**\"] }",
            "{ portable_names = true, denied = [\"/memories/d\"] }",
        ],
    ),
];

const MATCHES: &[&str] = &["team-a/*", "guests/**", "**", "one", "a@b:c", "x*y"];

/// A rule of the policy's own. They are few, since each is compiled and tried when the policy loads.
const RULE: &str = "[[redaction.rules]]\nid = \"employee-id\"\nclass = \"internal\"\nkeywords = [\"EMP-\"]\n\
    regex = '''(?P<secret>EMP-[0-9]{6})'''\nexamples = [\"badge EMP-123456\"]\nnegative_examples = [\"EMP-12\"]\n";

/// What does not belong where it comes to stand.
const WRONG: &[&str] = &[
    "max_filse = 1",
    "schema = 2",
    "extends = [\"strict\"]",
    "max_files = 0",
    "max_files = -1",
    "max_files = 1.5",
    "keep = \"1M\"",
    "x = 1979-05-27",
    "max_file_bytes = \"256K\"",
    "max_total_bytes = \"1KiB\"",
    "[limits]",
    "[unknown]",
    "[[limits]]",
    "[retention.rules]",
    "[redaction.rules]",
    "denied = [\"/etc\"]",
    "denied = [\"/memories/../x\"]",
    "denied = [\"/memories/**/a\"]",
    "match = \"\"",
    "reads = true",
    "= 1",
    "a.b.c = 1",
    "\"\" = 1",
    "x = \"",
    "x = '''",
    "\u{feff}",
    "\0",
    "\u{2028}",
    "é = 1",
    "x = [",
    "x = {",
    "x = \"\\ud800\"",
    "#",
    "max_chars = 1_000",
    "9 = 9",
    "rule_packs = [\"nothing\"]",
    "secret = \"shred\"",
    "extends = [\"./x.toml\"]",
    "max_files = 99999999999999999999",
];

impl<'a> Arbitrary<'a> for PolicyText {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut text = String::new();
        if u.ratio(7, 8)? {
            text.push_str("schema = 1\n");
        }
        if u.ratio(1, 3)? {
            let extended = *u.choose(&[
                "[]",
                "[\"default\"]",
                "[\"strict\"]",
                "[\"hipaa\", \"pci\"]",
            ])?;
            text.push_str(&format!("extends = {extended}\n"));
        }
        let has_rule = u.ratio(1, 16)?;
        let mut wrong_left = *u.choose(&[0, 0, 0, 1, 2])?;
        let mut matches = MATCHES.iter();
        for (header, keys) in SECTIONS {
            let is_forced = has_rule && *header == "[redaction]";
            if !is_forced && !u.ratio(1, 2)? {
                continue;
            }
            text.push_str(header);
            text.push('\n');
            if is_forced {
                // Without the packs the rule is tried in an engine that is built in no time.
                text.push_str("rule_packs = []\n");
                continue;
            }
            if *header == "[[tenants]]" {
                let pattern = matches.nth(u.int_in_range(0..=2)?).unwrap_or(&"last");
                text.push_str(&format!("match = \"{pattern}\"\n"));
            }
            for (key, values) in *keys {
                let is_needed = *header == "[[retention.rules]]" && *key == "paths";
                if is_needed || u.ratio(1, 3)? {
                    let value = u.choose(values)?;
                    text.push_str(&format!("{key} = {value}\n"));
                }
                if wrong_left > 0 && u.ratio(1, 8)? {
                    wrong_left -= 1;
                    text.push_str(u.choose(WRONG)?);
                    text.push('\n');
                }
            }
        }
        if has_rule {
            text.push_str(RULE);
        }
        if !u.is_empty() && u.ratio(1, 8)? {
            let at = u.int_in_range(0..=text.len())?;
            if text.is_char_boundary(at) {
                text.insert(at, char::arbitrary(u)?);
            }
        }
        Ok(Self(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::built;

    #[test]
    fn at_least_three_in_ten_built_policies_load() {
        let count = 3_000;
        let mut why = std::collections::BTreeMap::new();
        let mut loaded = 0;
        for PolicyText(text) in built(count, 120) {
            match strongroom::policy::load(&text, "p") {
                Ok(_) => loaded += 1,
                Err(error) => {
                    let what = error.to_string();
                    let what = what
                        .split_once(": ")
                        .map_or("", |(_, what)| what)
                        .chars()
                        .take(40)
                        .collect::<String>();
                    *why.entry(what).or_insert(0) += 1;
                }
            }
        }
        let mut why: Vec<_> = why.into_iter().collect();
        why.sort_by_key(|(_, n)| -n);
        why.truncate(12);
        println!("{loaded} of {count} load; otherwise {why:#?}");
        assert!(loaded * 10 > count * 3, "{loaded}");
    }
}
