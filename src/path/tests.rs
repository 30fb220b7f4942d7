//! Tests of the guard's words and of its parts; the families are in `tests/path_guard.rs`.

use super::percent::{self, Trouble};
use super::*;

fn refusal(raw: &str) -> String {
    Guard::new().check(raw).unwrap_err().to_string()
}

fn suggestion(raw: &str) -> Option<String> {
    let error = Guard::new().check(raw).unwrap_err();
    error.suggestion().map(ToString::to_string)
}

#[test]
fn refusals_say_what_is_wrong_and_where() {
    for (raw, text) in [
        (
            "",
            "Path is empty. It must be /memories or start with /memories/, and have at most 1024 bytes",
        ),
        (
            "/etc/passwd",
            "Path must start with /memories, got: /etc/passwd",
        ),
        (
            "C:\\memories",
            "Path must start with /memories, got: C:\\memories",
        ),
        (
            "/memories/../../secrets.env",
            "Path /memories/../../secrets.env would escape /memories directory",
        ),
        (
            "/memories/a/../../memories",
            "Path /memories/a/../../memories would escape /memories directory",
        ),
        (
            "/memories/a/../b.md",
            "Path /memories/a/../b.md contains .. as component 2: write the path without it. Try /memories/b.md instead.",
        ),
        (
            "/memories/a\u{202e}dm.b",
            "Path /memories/a\\u{202E}dm.b contains U+202E at character 12: direction controls make a name read as something it is not. Try /memories/adm.b instead.",
        ),
        (
            "/memories/a\u{ff0e}md",
            "Path /memories/a\u{ff0e}md contains U+FF0E at character 12: it can be taken for '.'. Try /memories/a.md instead.",
        ),
        (
            "/memories/x/%2e%2e/y",
            "Path /memories/x/%2e%2e/y has a percent escape in component 2 that stands for U+002E: escapes are never decoded here, and such are refused. Try /memories/x/--/y instead.",
        ),
        (
            "/memories/%c0%af",
            "Path /memories/%c0%af has percent escapes in component 1 that are not UTF-8, from %C0 on: write the characters themselves. Try /memories/-- instead.",
        ),
        (
            "/memories/a. /b",
            "Path /memories/a. /b has a space (U+0020) at the end of component 1. Try /memories/a/b instead.",
        ),
        (
            "/memories/x/..;v=1/a",
            "Path /memories/x/..;v=1/a has dots before a ; in component 2, which some software cuts off at the ;.",
        ),
        (
            "/memories/\u{301}a",
            "Path /memories/\\u{0301}a has the combining mark U+0301 at the start of component 1, with nothing to combine with. Try /memories/a instead.",
        ),
        (
            "/memories/12:30.md",
            "Path /memories/12:30.md contains : (U+003A) in component 1: names must be portable, without : * ? \" < > |. Try /memories/12-30.md instead.",
        ),
        (
            "/memories/a/AUX.md",
            "Path /memories/a/AUX.md uses AUX in component 2, which is the name of a device under Windows. Try /memories/a/AUX_.md instead.",
        ),
    ] {
        assert_eq!(refusal(raw), text);
    }
}

#[test]
fn refusals_for_length_name_the_limit() {
    let long = format!("/memories/{}", "a".repeat(1100));
    assert!(refusal(&long).ends_with("… is 1110 bytes long, the limit is 1024 bytes."));
    let wide = format!("/memories/x/{}", "é".repeat(128));
    assert!(
        refusal(&wide).ends_with(" is too long in component 2: 256 bytes, the limit is 255 bytes.")
    );
    let deep = format!("/memories{}", "/d".repeat(33));
    assert!(refusal(&deep).ends_with(" is 33 components deep, the limit is 32."));
    let stacked = format!("/memories/Z{}", "\u{310}".repeat(5));
    assert!(refusal(&stacked).contains(
        " has more than 4 combining marks in a row in component 1, U+0310 is one too many. Try "
    ));
}

#[test]
fn normalisation_can_take_a_path_over_a_limit_or_under_it() {
    // U+0958 has three bytes, its NFC form six; `e` and U+0301 have three, the NFC form two.
    let grows = format!("/memories/{}", "\u{958}".repeat(43));
    assert!(refusal(&grows).contains("258 bytes, the limit is 255 bytes"));
    let grows = format!(
        "/memories{}",
        format!("/{}", "\u{958}".repeat(40)).repeat(5)
    );
    assert!(grows.len() <= PATH_BYTES_MAX);
    assert!(refusal(&grows).contains("is 1214 bytes long, the limit is 1024 bytes"));
    let shrinks = format!("/memories/{}", "e\u{301}".repeat(100));
    assert!(Guard::new().check(&shrinks).is_ok());
}

#[test]
fn what_normalisation_makes_is_judged_too() {
    // The Greek question mark becomes `;`.
    assert!(refusal("/memories/..\u{37e}x").contains("dots before a ;"));
    // An angle bracket with a variation selector becomes one that takes none.
    assert!(refusal("/memories/a\u{2329}\u{fe0f}").contains("U+FE0F"));
}

#[test]
fn shown_text_is_cut_after_200_characters_and_never_inside_an_escape() {
    assert_eq!(Quoted::new(&"é".repeat(200)).as_str(), "é".repeat(200));
    assert_eq!(
        Quoted::new(&"é".repeat(201)).as_str(),
        format!("{}…", "é".repeat(200))
    );
    // 24 escapes of 8 characters, then 8 plain ones fill the 200.
    let mixed = format!("{}{}", "\u{202e}".repeat(24), "abcdefgh\0");
    let shown = format!("{}abcdefgh…", "\\u{202E}".repeat(24));
    assert_eq!(Quoted::new(&mixed).as_str(), shown);
}

#[test]
fn shown_text_escapes_what_acts_or_hides() {
    let raw = "a\n\u{1b}[2K\u{85}\u{200b}\u{2066}\u{feff}\u{e0041}\u{a0}\u{e000}\u{ffff}b";
    assert_eq!(
        Quoted::new(raw).as_str(),
        "a\\u{000A}\\u{001B}[2K\\u{0085}\\u{200B}\\u{2066}\\u{FEFF}\\u{E0041}\\u{00A0}\\u{E000}\\u{FFFF}b"
    );
    let tower = format!("Z{}", "\u{310}".repeat(6));
    let shown = format!("Z{}\\u{{0310}}\\u{{0310}}", "\u{310}".repeat(4));
    assert_eq!(Quoted::new(&tower).as_str(), shown);
    assert_eq!(
        Quoted::new("👨\u{200d}👩 ❤\u{fe0f}").as_str(),
        "👨\u{200d}👩 ❤\u{fe0f}"
    );
}

#[test]
fn suggestions_are_near() {
    for (raw, near) in [
        ("/memories/a\u{200b}b.md", Some("/memories/ab.md")),
        ("/memories/a\u{a0}b.md", Some("/memories/a b.md")),
        ("/memories/a\tb\n", Some("/memories/a b")),
        ("/memories/a\\b.md", Some("/memories/a/b.md")),
        ("/memories/a\u{2215}b", Some("/memories/a-b")),
        ("/memories/a%2Fb", Some("/memories/a-b")),
        ("/memories/50\u{ff05}", Some("/memories/50%")),
        ("/memories/\"a\".md", Some("/memories/-a-.md")),
        ("/memories/com1.log", Some("/memories/com1_.log")),
        ("/memories/ a. /b..", Some("/memories/a/b")),
        ("/memories/a/b/../c", Some("/memories/a/c")),
        // Nothing near: what is left would be another file, the root, or no path.
        ("/memories/...", None),
        ("/memories/\u{200b}", None),
        ("/memories/a/..", None),
        ("/memories/a\\..\\..\\x", None),
        ("/memories/../x", None),
        ("/etc/passwd", None),
    ] {
        assert_eq!(suggestion(raw).as_deref(), near, "{raw:?}");
    }
}

#[test]
fn a_suggestion_keeps_what_passes_without_portable_names() {
    let guard = Guard::new().portable_names(false);
    let error = guard.check("/memories/nul/a\u{200b}: b").unwrap_err();
    let near = error.suggestion().map(MemoryPath::as_str);
    assert_eq!(near, Some("/memories/nul/a: b"));
}

#[test]
fn a_suggestion_has_a_space_for_white_space_and_nothing_for_other_controls() {
    for (raw, near) in [
        ("/memories/a\tb", "/memories/a b"),
        ("/memories/a\nb", "/memories/a b"),
        ("/memories/a\u{1}b", "/memories/ab"),
        ("/memories/a\u{7f}b", "/memories/ab"),
        ("/memories/a\u{2028}b", "/memories/a b"),
    ] {
        let error = Guard::new().check(raw).unwrap_err();
        let suggested = error.suggestion().map(MemoryPath::as_str);
        assert_eq!(suggested, Some(near), "{raw:?}");
    }
}

#[test]
fn escapes_are_seen_through_all_their_layers() {
    // Writes each `%XX` with escaped digits, which is one layer more.
    let wrap = |text: &str| -> String {
        text.split('%')
            .enumerate()
            .map(|(index, part)| match (index, part.split_at_checked(2)) {
                (0, _) => part.to_owned(),
                (_, None) => format!("%{part}"),
                (_, Some((digits, rest))) => {
                    let escaped: String =
                        digits.bytes().map(|byte| format!("%{byte:02x}")).collect();
                    format!("%{escaped}{rest}")
                }
            })
            .collect()
    };
    let (mut dot, mut letter) = ("%2e".to_owned(), "%41".to_owned());
    // The last look has to find nothing more to decode.
    for layer in 1..ESCAPE_LAYERS_MAX {
        assert_eq!(
            percent::check(&dot),
            Err(Trouble::Character('.')),
            "{layer}"
        );
        assert_eq!(percent::check(&letter), Ok(()), "{layer}");
        (dot, letter) = (wrap(&dot), wrap(&letter));
    }
    assert_eq!(percent::check(&letter), Err(Trouble::Layers), "{letter}");
    assert_eq!(
        percent::check("%u%30%30%32%65"),
        Err(Trouble::Character('.'))
    );
    assert_eq!(percent::check("%%75002f"), Err(Trouble::Character('/')));
    assert_eq!(percent::check("%a%63%ac"), Err(Trouble::Bytes(0xac)));
}

#[test]
fn one_escape_alone_may_be_text_but_no_run_of_them() {
    for text in [
        "100%accuracy",
        "20%decrease",
        "100%effective",
        "%9f",
        "%f4",
        "100%",
    ] {
        assert_eq!(percent::check(text), Ok(()), "{text}");
    }
    for byte in [0xc0_u8, 0xc1, 0xe0, 0xf0, 0xf5, 0xff] {
        let text = format!("a%{byte:02x}b");
        assert_eq!(percent::check(&text), Err(Trouble::Bytes(byte)));
    }
    for (text, byte) in [
        ("%e2%80", 0xe2),
        ("%41%ac", 0xac),
        ("%c3%28", 0xc3),
        ("%ed%a0%80", 0xed),
        ("%f4%90%80%80", 0xf4),
        ("%e0%40%ae", 0xe0),
    ] {
        assert_eq!(percent::check(text), Err(Trouble::Bytes(byte)), "{text}");
    }
    assert_eq!(percent::check("%ud800"), Err(Trouble::Surrogate));
}

#[test]
fn every_default_ignorable_is_refused_outside_an_emoji() {
    // Default_Ignorable_Code_Point, DerivedCoreProperties.txt of Unicode 16.0.
    let ranges = [
        (0xad, 0xad),
        (0x34f, 0x34f),
        (0x61c, 0x61c),
        (0x115f, 0x1160),
        (0x17b4, 0x17b5),
        (0x180b, 0x180f),
        (0x200b, 0x200f),
        (0x202a, 0x202e),
        (0x2060, 0x206f),
        (0x3164, 0x3164),
        (0xfe00, 0xfe0f),
        (0xfeff, 0xfeff),
        (0xffa0, 0xffa0),
        (0xfff0, 0xfff8),
        (0x1bca0, 0x1bca3),
        (0x1d173, 0x1d17a),
        (0xe0000, 0xe0fff),
    ];
    let mut seen = 0;
    for character in ranges
        .into_iter()
        .flat_map(|(first, last)| (first..=last).filter_map(char::from_u32))
    {
        seen += 1;
        for raw in [
            format!("/memories/a{character}b"),
            format!("/memories/{character}"),
            format!("/memories/a{character}"),
        ] {
            assert!(
                Guard::new().check(&raw).is_err(),
                "U+{:04X}",
                u32::from(character)
            );
        }
    }
    assert_eq!(seen, 4174, "the list has 4,174 code points");
}

#[test]
fn emoji_sequences_pass_and_their_parts_alone_do_not() {
    for name in [
        "👨\u{200d}👩\u{200d}👧",
        "🏳\u{fe0f}\u{200d}🌈",
        "👩🏽\u{200d}💻",
        "❤\u{fe0f}",
        "✉\u{fe0e}",
        "1\u{fe0f}\u{20e3}",
        "#\u{fe0f}\u{20e3}",
        "🇩🇪",
    ] {
        let raw = format!("/memories/{name}.md");
        assert_eq!(Guard::new().check(&raw).unwrap().as_str(), raw);
    }
    for name in [
        "\u{200d}👩",
        "👩\u{200d}",
        "a\u{200d}👩",
        "👩\u{200d}a",
        "a\u{fe0f}",
        "❤\u{fe0f}\u{fe0f}",
        "❤\u{fe00}",
        "\u{fe0f}",
    ] {
        assert!(
            Guard::new().check(&format!("/memories/{name}.md")).is_err(),
            "{name:?}"
        );
    }
}

#[test]
fn a_child_is_one_name_in_canonical_form() {
    let guard = Guard::new();
    let root = MemoryPath::root();
    let child = guard.child(&root, "a b.md").unwrap();
    assert_eq!(child.as_str(), "/memories/a b.md");
    for name in ["", ".", "..", "a/b", "/a", "a/", "e\u{301}", "a\0", "nul"] {
        assert!(guard.child(&child, name).is_err(), "{name:?}");
    }
    assert_eq!(
        guard.child(&root, "a/b").unwrap_err().to_string(),
        "Path /memories/a/b does not stand for one name in its directory."
    );
}

#[test]
fn the_root_has_no_name_and_no_parent() {
    for raw in ["/memories", "/memories/", "/memories//", "/memories/./."] {
        let path = Guard::new().check(raw).unwrap();
        assert_eq!(path, MemoryPath::root());
        assert!(path.is_root());
        assert_eq!((path.name(), path.parent(), path.depth()), (None, None, 0));
        assert_eq!(path.components().count(), 0);
    }
}

#[test]
fn containing_goes_by_components() {
    let path = |raw| Guard::new().check(raw).unwrap();
    let a = path("/memories/a");
    assert!(a.contains(&a));
    assert!(a.contains(&path("/memories/a/b/c")));
    assert!(!a.contains(&path("/memories/ab")));
    assert!(!a.contains(&path("/memories/A/b")));
    assert!(!a.contains(&MemoryPath::root()));
    assert!(MemoryPath::root().contains(&a));
}

#[test]
fn a_directory_is_directly_followed_by_what_is_below_it() {
    let mut paths: Vec<_> = [
        "/memories/a b",
        "/memories/a/z",
        "/memories/a",
        "/memories/a-b",
        "/memories",
    ]
    .into_iter()
    .map(|raw| Guard::new().check(raw).unwrap())
    .collect();
    paths.sort();
    let sorted: Vec<_> = paths.iter().map(MemoryPath::as_str).collect();
    assert_eq!(
        sorted,
        [
            "/memories",
            "/memories/a",
            "/memories/a/z",
            "/memories/a b",
            "/memories/a-b"
        ]
    );
}
