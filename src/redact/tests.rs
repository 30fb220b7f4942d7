//! Behaviour of the engine as a whole; every shipped rule's examples are run here.

use proptest::prelude::*;

use super::*;

fn engine(packs: &[&str]) -> Engine {
    Engine::builder().packs(packs).build().unwrap()
}

fn secrets() -> &'static Engine {
    static ENGINE: std::sync::OnceLock<Engine> = std::sync::OnceLock::new();
    ENGINE.get_or_init(|| engine(PACKS))
}

fn redact(text: &str) -> String {
    secrets().redact(text, None).unwrap().text.into_owned()
}

fn rule(toml: &str) -> Result<Engine, RedactError> {
    Engine::builder().rules(parse_rules(toml)?).build()
}

#[test]
fn every_example_of_every_pack_holds() {
    let engine = engine(PACKS);
    engine.compile_all().unwrap();
    let fallen = engine.check_examples();
    let list: Vec<String> = fallen.iter().map(ToString::to_string).collect();
    assert!(list.is_empty(), "{} fall:\n{}", list.len(), list.join("\n"));
}

#[test]
fn at_least_two_hundred_formats_name_their_vendor_and_source() {
    let rules: Vec<RuleDef> = pack::source("secrets")
        .unwrap()
        .iter()
        .flat_map(|t| parse_rules(t).unwrap())
        .collect();
    let formats: Vec<&RuleDef> = rules.iter().filter(|r| r.vendor.is_some()).collect();
    assert!(formats.len() >= 200, "{}", formats.len());
    assert!(rules.iter().all(|r| {
        r.source
            .as_deref()
            .is_some_and(|s| s.starts_with("https://"))
    }));
}

#[test]
fn a_secret_is_replaced_and_its_place_in_the_input_is_told() {
    let text = "first line\nDB_PASSWORD=hunter2 # rotate\nlast";
    let out = secrets().redact(text, None).unwrap();
    assert_eq!(
        out.text,
        "first line\nDB_PASSWORD=[REDACTED:password] # rotate\nlast"
    );
    let f = &out.findings[0];
    assert_eq!(
        (f.rule.as_str(), f.class.as_str(), f.action, f.line),
        ("password", "secret", Action::Label, 2)
    );
    assert_eq!(&text[f.start..f.end], "hunter2");
    assert!(!format!("{out:?}").contains("hunter2"));
}

#[test]
fn a_clean_text_is_borrowed() {
    let out = secrets().redact("nothing here", None).unwrap();
    assert!(matches!(out.text, std::borrow::Cow::Borrowed(_)));
    assert!(out.findings.is_empty());
}

#[test]
fn a_token_is_found_whatever_stands_behind_it() {
    for end in [
        ",", ".", ")", "]", ":", "|", "**", "`", "\"", "'", ";", "!", "?", "\\n", "</b>", "…", "_",
    ] {
        let token = example::expand("ghp_${A36}", 5);
        let out = redact(&format!("see {token}{end} now"));
        assert_eq!(
            out,
            format!("see [REDACTED:github-personal-token]{end} now")
        );
    }
}

#[test]
fn overlapping_findings_leave_no_tail() {
    let token = example::expand("sk_live_${A24}", 3);
    let out = redact(&format!("api_key: {token}-and-more-A1b2C3"));
    assert!(!out.contains("more"), "{out}");
}

#[test]
fn actions_go_by_rule_then_class_then_the_rules_own() {
    let build = |actions: &[(&str, Action)]| {
        Engine::builder()
            .packs(&["secrets", "pii", "pci"])
            .actions(actions.iter().copied())
            .build()
            .unwrap()
    };
    let text = "ssn 219-09-4821 and 219-09-4821, card 4111 1111 1111 1111";
    let key = |v: &[u8]| {
        let mut k = [0u8; 32];
        k.iter_mut().zip(v).for_each(|(k, v)| *k = *v);
        k
    };
    let out = build(&[("us-ssn", Action::Pseudonym), ("pci", Action::Last4)])
        .redact(text, Some(&key))
        .unwrap();
    assert!(
        out.text.contains("[REDACTED:card-number~1111]"),
        "{}",
        out.text
    );
    let tags: Vec<&str> = out
        .text
        .split("[REDACTED:us-ssn#")
        .skip(1)
        .map(|t| &t[..6])
        .collect();
    assert_eq!(tags.len(), 2);
    assert_eq!(tags[0], tags[1]);
    assert_eq!(
        build(&[("us-ssn", Action::Pseudonym), ("pci", Action::Last4)])
            .redact(&out.text, Some(&key))
            .unwrap()
            .text,
        out.text
    );
    assert!(
        build(&[("pii", Action::Allow), ("pci", Action::Allow)])
            .redact(text, None)
            .unwrap()
            .findings
            .is_empty()
    );
    let refused = build(&[("us-ssn", Action::Reject)])
        .redact(text, None)
        .unwrap_err();
    assert_eq!(
        refused,
        Refused::Rule {
            rule: "us-ssn".into(),
            class: "pii".into(),
            line: 1
        }
    );
    assert!(matches!(
        build(&[]).redact("cvv: 123", None).unwrap_err(),
        Refused::Rule { .. }
    ));
    assert!(
        Engine::builder()
            .packs(&["pii"])
            .actions([("no-such-rule", Action::Label)])
            .build()
            .is_err()
    );
}

#[test]
fn what_is_asked_of_a_keyword_or_a_number_before_a_rule_runs_loses_no_value() {
    let engine = rule(
        r#"
        [[rules]]
        id = "road"
        class = "pii"
        keywords = [" road"]
        whole_word = true
        digit_before = 20
        regex = '''[0-9]+ [A-Z][a-z]+ [Rr]oad'''
        examples = ["7 Mill Road."]
        negative_examples = ["7 Mill Roadmap", "Mill Road 7"]
        [[rules]]
        id = "badge"
        class = "pii"
        digits = [6, 6]
        near = ["Badge", "KARTE"]
        regex = '''[0-9]{6}'''
        examples = ["badge 123456", "123456 (Karte)", "BADGE\n123456"]
        negative_examples = ["number 123456", "badge\n\n\n123456"]
        "#,
    )
    .unwrap();
    let clean = |text: &str| engine.redact(text, None).unwrap().findings.is_empty();
    // The word may begin 80 bytes before the value, not 81.
    assert!(!clean(&format!("badge {} 123456", "x".repeat(73))));
    assert!(clean(&format!("badge {} 123456", "x".repeat(74))));
}

#[test]
fn an_allowed_value_stays() {
    let engine = Engine::builder()
        .packs(&["secrets"])
        .allow(["hunter2"])
        .build()
        .unwrap();
    assert_eq!(
        engine.redact("password: hunter2", None).unwrap().text,
        "password: hunter2"
    );
    assert_ne!(
        engine.redact("password: hunter22", None).unwrap().text,
        "password: hunter22"
    );
}

#[test]
fn markers_count_only_when_whole_and_known() {
    for stays in [
        "password: [REDACTED:password]",
        "key [REDACTED:aws-access-key-id], next",
        "postgres://a:[REDACTED:url-password]@h/d",
    ] {
        assert_eq!(redact(stays), stays);
    }
    for (text, secret) in [
        ("password: [REDACTED:hunter2]", "hunter2"),
        ("password: [REDACTED:password]hunter2", "hunter2"),
        ("password: [REDACTED:passw", "passw"),
        ("password: hunter2[REDACTED:password]", "hunter2"),
    ] {
        let out = redact(text);
        assert!(
            !out.contains(secret) || out == "password: [REDACTED:password]",
            "{out}"
        );
    }
}

#[test]
fn a_secret_at_a_line_joint_or_completed_by_an_edit_is_gone() {
    let token = example::expand("ghp_${A36}", 9);
    let (a, b) = token.split_at(20);
    for text in [
        format!("{a}{b}"),
        format!("x {a}\n{b}\n"),
        format!("> {a}\n> {b}\nend"),
        format!("\"{a}\" +\n  \"{b}\""),
    ] {
        let out = redact(&text);
        assert!(!out.contains(a) && !out.contains(b), "{out}");
    }
}

#[test]
fn rules_that_cannot_be_used_are_refused_with_their_line() {
    let head = "\n\n[[rules]]\nid = \"own-rule\"\nclass = \"internal\"\nkeywords = [\"EMP-\"]\n";
    let ok = format!(
        "{head}regex = '''EMP-[0-9]{{6}}'''\nexamples = [\"badge EMP-123456\"]\nnegative_examples = [\"EMP-12\"]"
    );
    assert_eq!(
        rule(&ok).unwrap().redact("EMP-123456.", None).unwrap().text,
        "[REDACTED:own-rule]."
    );
    let line = |toml: &str| match rule(toml).unwrap_err() {
        RedactError::Rule { line, .. } | RedactError::Syntax { line, .. } => line,
        other => panic!("{other}"),
    };
    assert_eq!(line(&ok.replace("123456", "12345x")), 3);
    assert_eq!(line(&ok.replace("[\"EMP-12\"]", "[\"EMP-654321\"]")), 3);
    assert_eq!(line(&ok.replace("{6}", "{6}(")), 3);
    assert_eq!(
        line(&ok.replace("[0-9]{6}", "(?:[0-9a-z]{1,900}){1,900}")),
        3
    );
    assert_eq!(line(&ok.replace("class", "klass")), 5);
    assert_eq!(line(&format!("{ok}\n{ok}")), 12);
    assert!(matches!(
        Engine::builder().packs(&["nope"]).build(),
        Err(RedactError::UnknownPack { .. })
    ));
}

#[test]
fn a_text_over_the_limit_is_refused() {
    let long = "a ".repeat(INPUT_BYTES_MAX / 2 + 1);
    assert!(matches!(
        secrets().redact(&long, None),
        Err(Refused::TooLong { .. })
    ));
}

/// Pieces that texts are put together from, so that rules are met often.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "\\PC{0,6}",
        prop::sample::select(vec![
            "password",
            ": ",
            "=",
            "\n",
            "hunter2",
            "token",
            "\"",
            "'",
            "AKIA",
            "ghp_",
            "-----BEGIN PRIVATE KEY-----",
            "://",
            "@",
            "Bearer ",
            "[REDACTED:password]",
            "[REDACTED:",
            "]",
            "\\n",
            "%41",
            "&#65;",
            "\u{200b}",
            "**",
            "`",
            "> ",
            "is ",
            "curl -u ",
            "cookie: a=",
            "| ",
            "api_key",
            "secret",
            "\\u0041",
            "\"kty\"",
            "\u{ff21}",
        ])
        .prop_map(str::to_owned),
        any::<u64>().prop_map(|seed| example::expand("${A36}", seed)),
        any::<u64>().prop_map(|seed| example::expand("ghp_${A36}", seed)),
        any::<u64>().prop_map(|seed| example::expand("4${d15}", seed)),
    ]
}

#[test]
fn places_lead_back_to_the_input_behind_a_marker_that_was_cut() {
    let token = "ghp_gQ8aI3UY2wQ7caZRhyD8EeF5Y9wa6M4l4fFw";
    let text = format!("0:*:{token}:;{token}: 0a0A1b\nDB_PASSWORD=hunter2");
    let out = secrets().redact(&text, None).unwrap();
    let (markers, cut) = (
        "0:*:[REDACTED:github-personal-token]:[REDACTED:pgpass-line]",
        ":github-personal-token]: [REDACTED:secret-value]\nDB_PASSWORD=[REDACTED:password]",
    );
    assert_eq!(out.text, format!("{markers}{cut}"));
    let places: Vec<_> = out.findings.iter().map(|f| &text[f.start..f.end]).collect();
    assert_eq!(places, [token, &format!(";{token}"), "0a0A1b", "hunter2"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn redacting_twice_changes_nothing_more(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        if let Ok(once) = secrets().redact(&text, None) {
            let again = secrets().redact(&once.text, None).unwrap();
            prop_assert_eq!(&again.text, &once.text);
            let mut at = 0;
            for f in &once.findings {
                prop_assert!(f.start < f.end && f.end <= text.len() && at <= f.start, "{:?}", once.findings);
                prop_assert!(text.is_char_boundary(f.start) && text.is_char_boundary(f.end));
                at = f.end;
            }
        }
    }
}

#[test]
fn every_shipped_example_comes_out_clean() {
    let engine = Engine::builder()
        .packs(PACKS)
        .actions([("pci", Action::Label)])
        .build()
        .unwrap();
    let mut stuck = Vec::new();
    for name in PACKS {
        for def in pack::source(name)
            .unwrap()
            .iter()
            .flat_map(|t| parse_rules(t).unwrap())
        {
            for text in &def.examples {
                if engine.redact(&example::expand(text, 1), None).is_err() {
                    stuck.push(def.id.clone());
                }
            }
        }
    }
    assert!(stuck.is_empty(), "{stuck:?}");
}
