//! The path guard from outside: the golden families, and the laws that hold for every input.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;
use strongroom::path::{
    COMPONENT_BYTES_MAX, DEPTH_MAX, Guard, GuardError, MemoryPath, PATH_BYTES_MAX,
};

const GOLDEN: &str = include_str!("golden/path_guard.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    #[serde(default)]
    reject: Vec<String>,
    #[serde(default)]
    same: Vec<String>,
    #[serde(default)]
    becomes: Vec<(String, String)>,
}

#[test]
fn every_golden_family_holds() {
    let families: BTreeMap<String, Family> = toml::from_str(GOLDEN).unwrap();
    let guard = Guard::new();
    let mut cases = 0;
    let mut wrong = Vec::new();
    for (name, family) in &families {
        let rejected = family.reject.iter().map(|raw| (raw, None));
        let same = family.same.iter().map(|raw| (raw, Some(raw)));
        let becomes = family.becomes.iter().map(|(raw, to)| (raw, Some(to)));
        for (raw, expected) in rejected.chain(same).chain(becomes) {
            cases += 1;
            let got = guard.check(raw);
            if got.as_ref().ok().map(MemoryPath::as_str) != expected.map(String::as_str) {
                wrong.push(format!("{name}: {raw:?} gave {got:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases > 600, "only {cases} cases were read");
}

#[test]
fn names_that_are_not_portable_pass_when_that_is_switched_off() {
    let guard = Guard::new().portable_names(false);
    for raw in [
        "/memories/12:30 *what?* \"a\" <b> |c|",
        "/memories/nul",
        "/memories/COM1.log",
        "/memories/a/con/b",
        "/memories/a:b",
    ] {
        assert_eq!(guard.check(raw).unwrap().as_str(), raw);
        assert!(Guard::new().check(raw).is_err(), "{raw}");
    }
    // NFC makes one character of two, and the result stays canonical.
    let path = guard.check("/memories/1<\u{338}2").unwrap();
    assert_eq!(path.as_str(), "/memories/1\u{226e}2");
    // Escapes of a colon are refused in any case.
    assert!(guard.check("/memories/a%3ab").is_err());
}

/// Texts that matter to one rule or another, among plain ones.
fn token() -> impl Strategy<Value = String> {
    let hostile = prop::sample::select(vec![
        ".",
        "..",
        "...",
        "..;",
        ";",
        " ",
        "\\",
        ":",
        "*",
        "?",
        "\"",
        "<",
        "%",
        "%2e",
        "%2f",
        "%%32%65",
        "%25",
        "%u002e",
        "%u0041",
        "%41",
        "%c3%a9",
        "%ac",
        "%e2%80",
        "%f0",
        "\u{301}",
        "\u{338}",
        "\u{20dd}",
        "\u{344}",
        "\u{958}",
        "\u{37e}",
        "\u{2329}",
        "\u{fe0f}",
        "\u{200d}",
        "\u{1f468}",
        "\u{200b}",
        "\u{202e}",
        "\u{a0}",
        "\u{2028}",
        "\u{2024}",
        "\u{ff0f}",
        "\u{e000}",
        "\u{fdd0}",
        "\u{e0041}",
        "\0",
        "\n",
        "\t",
        "nul",
        "com1",
        "con.md",
    ]);
    prop_oneof![
        4 => "[a-z]{1,6}",
        3 => Just("/".to_owned()),
        2 => prop::sample::select(vec!["é", "e\u{301}", "日本", "한국", "\u{1112}\u{1161}", "ö", "-", "_"])
            .prop_map(str::to_owned),
        3 => hostile.prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => (1..300_usize).prop_map(|length| "x".repeat(length)),
    ]
}

fn raw_path() -> impl Strategy<Value = String> {
    let start = prop_oneof![
        12 => Just("/memories/".to_owned()),
        1 => Just("/memories".to_owned()),
        1 => any::<String>(),
    ];
    (start, prop::collection::vec(token(), 0..12))
        .prop_map(|(start, tokens)| start + &tokens.concat())
}

fn accepted_path() -> impl Strategy<Value = MemoryPath> {
    raw_path().prop_filter_map("refused", |raw| Guard::new().check(&raw).ok())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_canonical_path_is_checked_to_itself(raw in raw_path(), portable in any::<bool>()) {
        let guard = Guard::new().portable_names(portable);
        if let Ok(path) = guard.check(&raw) {
            prop_assert_eq!(guard.check(path.as_str()), Ok(path));
        }
    }

    #[test]
    fn a_canonical_path_stays_below_the_root_and_within_the_limits(
        raw in raw_path(),
        portable in any::<bool>(),
    ) {
        let guard = Guard::new().portable_names(portable);
        if let Ok(path) = guard.check(&raw) {
            let text = path.as_str();
            prop_assert!(text.len() <= PATH_BYTES_MAX);
            prop_assert!(path.depth() <= DEPTH_MAX);
            prop_assert!(text == "/memories" || text.starts_with("/memories/"));
            let below = text.strip_prefix("/memories").unwrap();
            for component in below.split('/').skip(1) {
                prop_assert!(!matches!(component, "" | "." | ".."));
                prop_assert!(component.len() <= COMPONENT_BYTES_MAX);
            }
        }
    }

    #[test]
    fn portable_names_only_take_away(raw in raw_path()) {
        if let Ok(path) = Guard::new().check(&raw) {
            prop_assert_eq!(Guard::new().portable_names(false).check(&raw), Ok(path));
        }
    }

    #[test]
    fn a_suggestion_passes_as_it_stands(raw in raw_path(), portable in any::<bool>()) {
        let guard = Guard::new().portable_names(portable);
        if let Err(error) = guard.check(&raw)
            && let Some(path) = error.suggestion()
        {
            prop_assert_eq!(guard.check(path.as_str()), Ok(path.clone()));
            prop_assert!(!path.is_root());
            let sentence = format!(" Try {path} instead.");
            prop_assert!(error.to_string().ends_with(&sentence));
        }
    }

    #[test]
    fn a_refusal_is_one_harmless_line(raw in raw_path()) {
        if let Err(error) = Guard::new().check(&raw) {
            let text = error.to_string();
            let harmless = |c: char| !c.is_control() && !('\u{2028}'..='\u{202e}').contains(&c);
            prop_assert!(text.chars().all(harmless), "{text:?}");
            // A suggestion is the only other text of any length, and it has passed the guard.
            let without = text.split(" Try /memories/").next().unwrap();
            prop_assert!(without.chars().count() < 400, "{text}");
        }
    }

    #[test]
    fn any_text_at_all_is_answered(raw in any::<String>()) {
        let answer = Guard::new().check(&format!("/memories/{raw}"));
        if let Ok(path) = answer {
            prop_assert_eq!(Guard::new().check(path.as_str()), Ok(path));
        }
    }

    #[test]
    fn components_put_together_give_the_path(path in accepted_path()) {
        let joined: String = path.components().flat_map(|name| ["/", name]).collect();
        prop_assert_eq!(format!("/memories{joined}"), path.as_str());
        prop_assert_eq!(path.components().count(), path.depth());
        prop_assert_eq!(path.components().next_back(), path.name());
        prop_assert_eq!(path.is_root(), path.depth() == 0);
    }

    #[test]
    fn a_path_is_the_child_of_its_parent(path in accepted_path()) {
        match (path.parent(), path.name()) {
            (Some(parent), Some(name)) => {
                prop_assert_eq!(parent.depth() + 1, path.depth());
                prop_assert_eq!(Guard::new().child(&parent, name), Ok(path));
            }
            (parent, name) => prop_assert!(path.is_root() && parent.is_none() && name.is_none()),
        }
    }

    #[test]
    fn a_path_contains_those_whose_first_components_are_its_own(
        a in accepted_path(),
        b in accepted_path(),
    ) {
        let mut above = Some(b.clone());
        let mut expected = false;
        while let Some(path) = above {
            prop_assert!(path.contains(&b));
            prop_assert!(path <= b);
            expected |= path == a;
            above = path.parent();
        }
        prop_assert_eq!(a.contains(&b), expected);
    }

    #[test]
    fn paths_are_ordered_by_their_components(a in accepted_path(), b in accepted_path()) {
        prop_assert_eq!(a.cmp(&b), a.components().cmp(b.components()));
    }
}

#[test]
fn the_generator_gives_both_outcomes() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let outcomes: Vec<Result<MemoryPath, GuardError>> = (0..2_000)
        .map(|_| Guard::new().check(&raw_path().new_tree(&mut runner).unwrap().current()))
        .collect();
    let accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let suggested = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Err(error) if error.suggestion().is_some()))
        .count();
    assert!(
        (300..1_700).contains(&accepted),
        "{accepted} of 2000 accepted"
    );
    assert!(suggested > 200, "{suggested} of 2000 with a suggestion");
}
