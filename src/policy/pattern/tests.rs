//! Examples and laws of the pattern language.

use proptest::prelude::*;

use super::*;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

#[test]
fn patterns_cover_what_the_language_says() {
    for (text, path, covered) in [
        ("/memories", "/memories", true),
        ("/memories", "/memories/a", false),
        ("/memories/**", "/memories", true),
        ("/memories/**", "/memories/a/b", true),
        ("/memories/a/**", "/memories/a", true),
        ("/memories/a/**", "/memories/a/b/c", true),
        ("/memories/a/**", "/memories/ab", false),
        ("/memories/a/**", "/memories", false),
        ("/memories/a", "/memories/a", true),
        ("/memories/a", "/memories/A", false),
        ("/memories/a", "/memories/a/b", false),
        ("/memories/*.md", "/memories/.md", true),
        ("/memories/*.md", "/memories/x.md", true),
        ("/memories/*.md", "/memories/x.md.md", true),
        ("/memories/*.md", "/memories/d/x.md", false),
        ("/memories/*", "/memories/a", true),
        ("/memories/*", "/memories", false),
        ("/memories/*/keys/**", "/memories/a/keys/b", true),
        ("/memories/*/keys/**", "/memories/a/b/keys", false),
        ("/memories/a*b*c", "/memories/abbbc", true),
        ("/memories/a*b*c", "/memories/acb", false),
        ("/memories/*ab", "/memories/aab", true),
        ("/memories/[a]?", "/memories/[a]?", true),
        ("/memories/[a]", "/memories/a", false),
        ("/memories/é*", "/memories/éa", true),
    ] {
        assert_eq!(pattern(text).matches(path), covered, "{text} {path}");
    }
}

#[test]
fn a_directory_above_a_pattern_is_reached() {
    for (text, directory, reached) in [
        ("/memories/a/b/**", "/memories", true),
        ("/memories/a/b/**", "/memories/a", true),
        ("/memories/a/b/**", "/memories/a/b", true),
        ("/memories/a/b/**", "/memories/a/b/c", true),
        ("/memories/a/b/**", "/memories/a/c", false),
        ("/memories/a/b/**", "/memories/b", false),
        ("/memories/a/b", "/memories/a/b/c", false),
        ("/memories/*/locked.md", "/memories/a", true),
        ("/memories/*/locked.md", "/memories/a/b", false),
        ("/memories/*/locked.md", "/memories/a/locked.md", true),
        ("/memories/x*/locked.md", "/memories/a", false),
        ("/memories/*/b/*/d", "/memories/a/b/c", true),
        ("/memories/*/b/*/d", "/memories/a/x", false),
    ] {
        let set = PatternSet::from_iter([pattern(text)]);
        let found = set.first_at_or_below(directory);
        assert_eq!(found.is_some(), reached, "{text} {directory}");
    }
}

#[test]
fn a_path_below_a_covered_one_is_reached_from_above() {
    let set = PatternSet::from_iter([pattern("/memories/secret")]);
    assert!(set.first_at_or_above("/memories/secret/a/b").is_some());
    assert!(set.first_at_or_above("/memories/secret").is_some());
    assert!(set.first_at_or_above("/memories").is_none());
    assert!(set.first_at_or_above("/memories/secrets").is_none());
}

#[test]
fn bad_patterns_say_what_to_write() {
    for (text, part) in [
        ("", "must start with /memories"),
        ("memories/a", "must start with /memories"),
        ("/memoriesX", "must start with /memories"),
        ("/mem*/a", "must start with /memories"),
        ("/memories/", "empty part"),
        ("/memories//a", "empty part"),
        ("/memories/a/", "empty part"),
        ("/memories/../a", ". or .."),
        ("/memories/./a", ". or .."),
        ("/memories/**/a", "only the whole last part"),
        ("/memories/a**", "only the whole last part"),
        ("/memories/***", "only the whole last part"),
        ("/memories/a\\b", "control character"),
        ("/memories/a\nb", "control character"),
        ("/memories/ a", "space"),
        ("/memories/a.", "dot"),
    ] {
        let error = Pattern::parse(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    assert!(Pattern::parse(&format!("/memories/{}", "a".repeat(256))).is_err());
    assert!(Pattern::parse(&format!("/memories{}", "/a".repeat(33))).is_err());
    assert!(Pattern::parse(&format!("/memories{}", "/abc".repeat(300))).is_err());
}

#[test]
fn literal_parts_are_normalised_like_paths() {
    assert!(pattern("/memories/e\u{301}").matches("/memories/\u{e9}"));
}

#[test]
fn tenant_patterns_cover_names() {
    for (text, tenant, covered) in [
        ("team-a/*", "team-a/x", true),
        ("team-a/*", "team-a", false),
        ("team-a/*", "team-a/x/y", false),
        ("team-a/**", "team-a", true),
        ("team-a/**", "team-a/x/y", true),
        ("**", "anyone/at/all", true),
        ("*@example.com", "a@example.com", true),
        ("default", "default", true),
        ("default", "Default", false),
    ] {
        let pattern = TenantPattern::parse(text).unwrap();
        assert_eq!(pattern.matches(tenant), covered, "{text} {tenant}");
        assert_eq!(pattern.to_string(), text);
    }
    for text in ["", "a//b", "a b", "ä", "**/a", "a?", "/a", "a/"] {
        assert!(TenantPattern::parse(text).is_err(), "{text}");
    }
}

/// Small alphabets, so that patterns and paths meet.
fn any_pattern() -> impl Strategy<Value = String> {
    (
        prop::collection::vec("[ab*]|a\\*b|\\*a\\*", 0..4),
        any::<bool>(),
    )
        .prop_map(|(parts, deep)| {
            let tail = if deep { "/**" } else { "" };
            let parts: String = parts.iter().map(|part| format!("/{part}")).collect();
            format!("/memories{parts}{tail}")
        })
}

fn any_path() -> impl Strategy<Value = String> {
    prop::collection::vec("[ab]{1,4}", 0..5).prop_map(|parts| {
        let parts: String = parts.iter().map(|part| format!("/{part}")).collect();
        format!("/memories{parts}")
    })
}

/// `*` by definition: try every split.
fn slow_match(part: &[char], name: &[char]) -> bool {
    match part.split_first() {
        None => name.is_empty(),
        Some(('*', rest)) => (0..=name.len()).any(|at| slow_match(rest, &name[at..])),
        Some((c, rest)) => name.first() == Some(c) && slow_match(rest, &name[1..]),
    }
}

proptest! {
    #[test]
    fn parts_match_as_defined(part in "[aé*]{0,8}", name in "[aé]{0,8}") {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        prop_assert_eq!(part_matches(&part, &name), slow_match(&chars(&part), &chars(&name)));
    }

    #[test]
    fn patterns_print_as_they_parse(text in any_pattern()) {
        let pattern = pattern(&text);
        prop_assert_eq!(pattern.to_string(), text.clone());
    }

    /// A covered path is seen from every directory above it: no delete can miss it.
    #[test]
    fn a_covered_path_is_reached_from_every_ancestor(text in any_pattern(), path in any_path()) {
        let set = PatternSet::from_iter([pattern(&text)]);
        if set.matches(&path) {
            for (at, _) in path.match_indices('/').skip(1) {
                prop_assert!(set.first_at_or_below(&path[..at]).is_some());
            }
            prop_assert!(set.first_at_or_below(&path).is_some());
            prop_assert!(set.first_at_or_above(&path).is_some());
        }
    }

    /// And no directory is reached without a path at or below it that is covered.
    #[test]
    fn a_reached_directory_has_a_witness(text in any_pattern(), directory in any_path()) {
        let pattern = pattern(&text);
        if pattern.reaches_at_or_below(&directory) {
            let depth = directory.matches('/').count();
            let parts = &pattern.0.parts;
            let rest: String = parts
                .iter()
                .skip(depth)
                .map(|part| format!("/{}", part.replace('*', "x")))
                .collect();
            let witness = format!("{directory}{rest}");
            prop_assert!(pattern.matches(&witness), "{text} {witness}");
        }
    }
}

#[test]
fn patterns_may_be_as_long_as_names_may() {
    let of = |bytes: usize| "a".repeat(bytes);
    assert!(TenantPattern::parse(&of(TENANT_PATTERN_BYTES_MAX)).is_ok());
    assert!(TenantPattern::parse(&of(TENANT_PATTERN_BYTES_MAX + 1)).is_err());
    let path = |bytes: usize| format!("/memories/{}", of(bytes));
    assert!(Pattern::parse(&path(PART_BYTES_MAX)).is_ok());
    assert!(Pattern::parse(&path(PART_BYTES_MAX + 1)).is_err());
    // `/memories` is a part itself.
    let deep = |parts: usize| format!("/memories{}", "/a".repeat(parts - 1));
    assert!(Pattern::parse(&deep(PARTS_MAX)).is_ok());
    assert!(Pattern::parse(&format!("{}/**", deep(PARTS_MAX))).is_ok());
    assert!(Pattern::parse(&deep(PARTS_MAX + 1)).is_err());
    let long = |bytes: usize| {
        let start = format!("/memories{}", format!("/{}", of(200)).repeat(4));
        format!("{start}/{}", of(bytes - start.len() - 1))
    };
    assert!(Pattern::parse(&long(PATTERN_BYTES_MAX)).is_ok());
    assert!(Pattern::parse(&long(PATTERN_BYTES_MAX + 1)).is_err());
}
