//! Edits and views do what the naive ones do.
#![no_main]

use libfuzzer_sys::fuzz_target;
use strongroom::edit::{self, EditError};
use strongroom_fuzz::naive;
use strongroom_fuzz::texts::Edit;

fuzz_target!(|input: Edit| {
    let Edit {
        text,
        old,
        new,
        line,
        range,
        chars_max,
    } = &input;
    let lines = naive::lines(text).len();
    assert_eq!(edit::line_count(text), lines as u64);
    let longest = naive::lines(text)
        .iter()
        .map(|line| line.trim_end_matches('\n').chars().count())
        .max();
    assert_eq!(edit::longest_line_chars(text), longest.unwrap_or(0));

    // create and view
    let shown = edit::view_file("/memories/a", text, *range, *chars_max);
    let expected = naive::view("/memories/a", text, *range, *chars_max);
    assert_eq!(shown.as_ref().ok(), expected.as_ref());
    let numbered = edit::number_lines(text, *range, *chars_max);
    assert_eq!(numbered.is_ok(), expected.is_some());
    if let Err(error) = &shown {
        assert!(
            error
                .reply_text("/memories/a", "")
                .starts_with("Error: Invalid `view_range`")
        );
    }

    // insert
    let inserted = edit::insert(text, *line, new);
    assert_eq!(
        inserted.ok().map(|edited| edited.text),
        naive::insert(text, *line, new)
    );

    // str_replace and its snippet
    if old.is_empty() {
        assert_eq!(
            edit::str_replace(text, old, new),
            Err(EditError::EmptyOldStr)
        );
        return;
    }
    match (
        edit::str_replace(text, old, new),
        naive::str_replace(text, old, new),
    ) {
        (Ok(edited), Ok((expected, first, last))) => {
            assert_eq!(edited.text, expected);
            assert_eq!(
                (edited.first_line, edited.last_line),
                (first as u64, last as u64)
            );
            let total = naive::lines(&expected).len();
            let (from, to) = (first.saturating_sub(2).max(1), (last + 2).min(total));
            let rows = naive::numbered(&expected, from, to, *chars_max);
            let snippet = edit::snippet(&edited, *chars_max);
            let (_, shown) = snippet.split_once('\n').expect("the header is a line");
            if total > 0 {
                assert_eq!(shown, rows.join("\n"));
            } else {
                assert_eq!(shown, "Note: the file is empty (0 lines).");
            }
        }
        (Err(EditError::NotFound), Err(lines)) => assert!(lines.is_empty()),
        (Err(EditError::Multiple { lines, more }), Err(expected)) => {
            let expected: Vec<u64> = expected.iter().map(|line| *line as u64).collect();
            assert_eq!(
                (lines.as_slice(), more),
                (&expected[..lines.len()], lines.len() < expected.len())
            );
            assert!(lines.len() == expected.len() || lines.len() == edit::LINES_NAMED_MAX);
        }
        (answer, expected) => panic!("{answer:?} instead of {expected:?}"),
    }
});
