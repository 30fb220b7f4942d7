//! Laws of edits and views, against naive models.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

#[test]
fn lines_are_counted_by_lf_only() {
    for (text, lines) in [
        ("", 0),
        ("\n", 1),
        ("a", 1),
        ("a\n", 1),
        ("a\nb", 2),
        ("a\n\n", 2),
        ("a\rb\u{85}c\u{2028}d\u{b}e\u{c}f", 1),
    ] {
        assert_eq!(line_count(text), lines, "{text:?}");
    }
    assert_eq!(longest_line_chars(""), 0);
    assert_eq!(longest_line_chars("ä\nöü\r\nx"), 3);
}

#[test]
fn one_line_more_than_six_digits_is_refused() {
    let mut text = "x\n".repeat(999_999);
    assert_eq!(check_line_count(&text), Ok(LINES_MAX));
    let shown = view_file("/memories/a.md", &text, Some((999_999, -1)), 16_000).unwrap();
    assert!(shown.ends_with(":\n999999\tx"));
    text.push('x');
    let error = view_file("/memories/a.md", &text, None, 16_000).unwrap_err();
    assert_eq!(
        error.reply_text("/memories/a.md", ""),
        "File /memories/a.md exceeds maximum line limit of 999,999 lines."
    );
}

#[test]
fn sizes_are_rounded_half_up() {
    const K: u64 = 1024;
    const M: u64 = K * K;
    const G: u64 = K * M;
    for (bytes, text) in [
        (0, "0B"),
        (1023, "1023B"),
        (K, "1.0K"),
        (K + 51, "1.0K"),
        (K + 52, "1.1K"), // 1.0508
        (4096, "4.0K"),
        (5632, "5.5K"),
        (1_048_524, "1023.9K"), // 1023.9492
        (1_048_525, "1.0M"),    // 1023.9502
        (M - 1, "1.0M"),
        (M, "1.0M"),
        (M + M / 4, "1.3M"), // 1.25 goes up
        (G - 1, "1.0G"),
        (5 * G / 2, "2.5G"),
        (u64::MAX, "17179869184.0G"),
    ] {
        assert_eq!(size_text(bytes), text, "{bytes}");
    }
}

#[test]
fn long_old_text_is_cut_in_errors() {
    assert_eq!(quote_old(&"ä".repeat(1_000)), "ä".repeat(1_000));
    let quoted = quote_old(&"ä".repeat(1_001));
    assert_eq!(quoted, format!("{}…", "ä".repeat(1_000)));
}

#[test]
fn no_more_than_a_thousand_lines_are_named() {
    let named = |lines| match str_replace(&"x\n".repeat(lines), "x", "y") {
        Err(EditError::Multiple { lines, more }) => (lines.len(), more),
        other => panic!("{other:?}"),
    };
    assert_eq!(named(1_000), (1_000, false));
    assert_eq!(named(1_001), (1_000, true));
    let error = EditError::Multiple {
        lines: vec![2, 5],
        more: true,
    };
    let text = error.reply_text("/memories/a.md", "x");
    assert!(text.ends_with("in lines: 2, 5, …. Please ensure it is unique"));
}

#[test]
fn hostile_search_texts_take_linear_time() {
    // Two-way and Knuth-Morris-Pratt need some 10 ms for each, a search begun
    // anew after each hit needs minutes.
    let text = "a".repeat(1_000_000);
    let half = "a".repeat(500_000);
    let near_miss = format!("{}b", "a".repeat(500_000));
    let started = Instant::now();
    for old in ["aa", &half] {
        let error = str_replace(&text, old, "").unwrap_err();
        assert_eq!(
            error,
            EditError::Multiple {
                lines: vec![1],
                more: false
            }
        );
    }
    assert_eq!(str_replace(&text, &near_miss, ""), Err(EditError::NotFound));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn debug_shows_no_text() {
    let edited = insert("hunter2\n", 0, "swordfish").unwrap();
    let numbered = number_lines("hunter2\n", None, 9).unwrap();
    let shown = format!("{edited:?} {numbered:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("swordfish"));
}

fn row(bytes: u64, path: &str) -> Row {
    Row {
        bytes,
        path: path.to_owned(),
    }
}

const HEADER: &str = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:";

#[test]
fn listings_are_exact() {
    let rows = [
        row(4_100, "/memories"),
        row(4_096, "/memories/d/"),
        row(4, "/memories/a.md"),
    ];
    let list = |range, entries_max| {
        view_directory("/memories", &rows, range, entries_max)
            .map(|text| text.strip_prefix(HEADER).unwrap().to_owned())
            .map_err(|error| error.reply_text("/memories", ""))
    };
    assert_eq!(
        list(None, 1_000).unwrap(),
        "\n4.0K\t/memories\n4.0K\t/memories/d/\n4B\t/memories/a.md"
    );
    assert_eq!(
        list(None, 1).unwrap(),
        "\n4.0K\t/memories\nNote: rows 2-3 of 3 are not shown. Continue with view_range [2, 3]."
    );
    assert_eq!(list(None, 0), list(None, 1));
    assert_eq!(list(Some((3, -1)), 1).unwrap(), "\n4B\t/memories/a.md");
    assert_eq!(
        list(Some((2, 9)), 1).unwrap(),
        "\n4.0K\t/memories/d/\nNote: view_range was cut to [2, 3]; the last row is 3.\
         \nNote: rows 3-3 of 3 are not shown. Continue with view_range [3, 3]."
    );
    assert_eq!(
        list(Some((4, 5)), 10).unwrap_err(),
        "Error: Invalid `view_range` parameter: [4, 5]. The start lies past the end. The listing of /memories has 3 rows."
    );
    assert_eq!(
        view_directory("/memories", &[], None, 10).as_deref(),
        Ok(HEADER)
    );
}

/// What `insert` makes, by splicing lists of lines without their LF.
fn model_insert(text: &str, line: usize, insert_text: &str) -> String {
    let mut lines = model_lines(text);
    let mut new: Vec<String> = insert_text
        .strip_suffix('\n')
        .unwrap_or(insert_text)
        .split('\n')
        .map(str::to_owned)
        .collect();
    let is_open = !text.is_empty() && !text.ends_with('\n');
    let is_at_open_end = is_open && line == lines.len();
    let is_cr_lent = is_at_open_end && insert_text.ends_with("\r\n");
    if is_cr_lent {
        lines.last_mut().unwrap().push('\r');
        new.last_mut().unwrap().pop();
    }
    let is_blank_end = is_at_open_end && new.last().unwrap().is_empty();
    if is_blank_end && is_cr_lent {
        new.last_mut().unwrap().push('\r');
    }
    lines.splice(line..line, new);
    let last_end = if is_open && !is_blank_end { "" } else { "\n" };
    lines.join("\n") + last_end
}

fn model_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    if text.is_empty() || text.ends_with('\n') {
        lines.pop();
    }
    lines
}

/// Follows the notes from a first view to the end, and gives the shown lines.
fn read_by_notes(text: &str, first: Option<(i64, i64)>, chars_max: usize) -> Vec<String> {
    let mut shown = Vec::new();
    let mut range = first;
    loop {
        let numbered = number_lines(text, range, chars_max).unwrap();
        for line in numbered.body.split('\n') {
            let (number, line) = line.split_once('\t').unwrap();
            assert_eq!(
                number,
                format!(
                    "{:>6}",
                    shown.len() + first.map_or(1, |(start, _)| start as usize)
                )
            );
            shown.push(line.to_owned());
        }
        let Some(note) = numbered.notes.last() else {
            return shown;
        };
        let (_, next) = note.rsplit_once("Continue with view_range [").unwrap();
        let (start, end) = next.strip_suffix("].").unwrap().split_once(", ").unwrap();
        range = Some((start.parse().unwrap(), end.parse().unwrap()));
    }
}

const TEXT: &str = "[ab\\r\\t\u{e4}\u{2028}N]{0,6}(\n[ab\\r\u{e4}]{0,3}){0,8}\n?";

proptest! {
    #[test]
    fn insert_is_a_splice_of_lines(text in TEXT, insert_text in TEXT, at in 0_usize..12) {
        let lines = model_lines(&text).len();
        match insert(&text, at as i64, &insert_text) {
            Ok(edited) => {
                let inserted = edited.last_line - at as u64;
                prop_assert_eq!(edited.first_line, at as u64 + 1);
                prop_assert!(inserted >= 1);
                prop_assert_eq!(line_count(&edited.text), lines as u64 + inserted);
                prop_assert_eq!(edited.text, model_insert(&text, at, &insert_text));
            }
            Err(error) => {
                prop_assert!(at > lines);
                prop_assert_eq!(
                    error,
                    EditError::LineOutOfRange { line: at as i64, lines: lines as u64 }
                );
            }
        }
    }

    #[test]
    fn str_replace_agrees_with_a_naive_search(
        text in "[ab\n]{0,24}", old in "[ab\n]{0,4}", new in "[abc\n]{0,4}"
    ) {
        let hits: Vec<usize> = (0..text.len())
            .filter(|&at| !old.is_empty() && text[at..].starts_with(&old))
            .collect();
        let mut lines: Vec<u64> = hits
            .iter()
            .map(|&at| 1 + text[..at].matches('\n').count() as u64)
            .collect();
        lines.dedup();
        match str_replace(&text, &old, &new) {
            Ok(edited) => {
                prop_assert_eq!(hits.len(), 1);
                let total = line_count(&edited.text);
                prop_assert_eq!(edited.first_line, lines[0].min(total));
                prop_assert!(edited.first_line <= edited.last_line && edited.last_line <= total);
                prop_assert_eq!(edited.text, text.replacen(&old, &new, 1));
            }
            Err(EditError::EmptyOldStr) => prop_assert!(old.is_empty()),
            Err(EditError::NotFound) => prop_assert!(hits.is_empty()),
            Err(error) => {
                prop_assert!(hits.len() > 1);
                prop_assert_eq!(error, EditError::Multiple { lines, more: false });
            }
        }
    }

    #[test]
    fn every_line_is_reached_by_following_the_notes(text in TEXT, chars_max in 0_usize..20) {
        let lines = model_lines(&text);
        if !lines.is_empty() {
            prop_assert_eq!(&read_by_notes(&text, None, chars_max), &lines);
            let middle = lines.len().div_ceil(2);
            let shown = read_by_notes(&text, Some((middle as i64, lines.len() as i64)), chars_max);
            prop_assert_eq!(&shown[..], &lines[middle - 1..]);
        }
    }

    #[test]
    fn a_view_stays_within_its_cap(text in TEXT, chars_max in 0_usize..20) {
        let numbered = number_lines(&text, None, chars_max).unwrap();
        let shown = numbered.body.split('\n').filter(|line| !line.is_empty()).count();
        let chars: usize = text.split_inclusive('\n').take(shown).map(|l| l.chars().count()).sum();
        prop_assert!(shown <= 1 || chars <= chars_max);
    }

    #[test]
    fn no_line_of_a_file_can_pass_for_a_note_or_header(
        text in "(Note: x|Here's the content|\n|\r|\t|     1\tx|\u{85}|\u{2028}){0,12}",
        chars_max in 0_usize..40,
    ) {
        let view = view_file("/memories/a.md", &text, None, chars_max).unwrap();
        let mut lines = view.split('\n').skip(1).peekable();
        let mut number = 0;
        while let Some(line) = lines.next_if(|line| !line.starts_with("Note: ")) {
            number += 1;
            let prefix = format!("{number:>6}\t");
            prop_assert!(line.starts_with(&prefix));
        }
        // Nothing but notes of our own comes after the first note.
        let notes: Vec<&str> = lines.collect();
        prop_assert!(notes.len() <= 1);
        for note in notes {
            let own = note.starts_with("Note: the file is empty") || note.starts_with("Note: lines ");
            prop_assert!(own);
        }
    }

    #[test]
    fn ranges_never_panic(text in TEXT, start: i64, end: i64, small in -3_i64..12, last in -3_i64..12) {
        for range in [(start, end), (small, last), (small, end), (start, last)] {
            let lines = line_count(&text) as i64;
            let is_valid = (1..=lines).contains(&range.0) && (range.1 == -1 || range.1 >= range.0);
            prop_assert_eq!(number_lines(&text, Some(range), 10).is_ok(), is_valid);
            let shown = window(lines as u64, Some(range), 3);
            prop_assert_eq!(shown.is_ok(), is_valid);
            if let Ok(shown) = shown {
                prop_assert!(shown.first <= shown.last && shown.last - shown.first < 3);
            }
        }
    }

    #[test]
    fn snippets_hold_the_changed_lines(text in TEXT, first in 0_u64..20, more in 0_u64..20) {
        // Also for line numbers that the text does not have.
        let edited = Edited { text, first_line: first, last_line: first + more };
        let reply = snippet(&edited, 16_000);
        let total = line_count(&edited.text);
        for number in first.max(1)..=(first + more).min(total) {
            let prefix = format!("\n{number:>6}\t");
            prop_assert!(reply.contains(&prefix));
        }
        prop_assert_eq!(reply.ends_with("(0 lines)."), total == 0);
    }
}
