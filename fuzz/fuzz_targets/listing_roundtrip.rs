//! Whatever names and texts are stored, a listing and a view are read back by a naive reader as what they show.
#![no_main]

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use strongroom::edit::{self, Row};
use strongroom::path::Guard;
use strongroom_fuzz::naive;
use strongroom_fuzz::paths::RawPath;
use strongroom_fuzz::texts::Text;

#[derive(Debug, Arbitrary)]
struct Input {
    portable: bool,
    entries: Vec<(RawPath, u64, u8, bool)>,
    entries_max: u8,
    text: Text,
    range: Option<(i8, i8)>,
    chars_max: u8,
}

/// Where any reader, however careless, may see a line end.
const LINE_ENDS: [char; 8] = [
    '\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{85}', '\u{2028}', '\u{2029}',
];

fuzz_target!(|input: Input| {
    let guard = Guard::new().portable_names(input.portable);
    let mut rows = BTreeMap::new();
    for (RawPath(raw), bytes, shift, is_directory) in &input.entries {
        if let Ok(path) = guard.check(raw) {
            let slash = if *is_directory { "/" } else { "" };
            rows.insert(format!("{path}{slash}"), bytes >> (shift % 64));
        }
    }
    let rows: Vec<Row> = rows
        .into_iter()
        .map(|(path, bytes)| Row { bytes, path })
        .collect();
    let range = input.range.map(|(start, end)| (start.into(), end.into()));
    let top = rows
        .first()
        .map_or("/memories", |row| row.path.trim_end_matches('/'))
        .to_owned();
    if let Ok(text) = edit::view_directory(&top, &rows, range, input.entries_max.into()) {
        let mut lines = text.split(LINE_ENDS);
        let header = format!(
            "Here're the files and directories up to 2 levels deep in {top}, excluding hidden items and node_modules:"
        );
        assert_eq!(lines.next(), Some(&*header));
        let (first, last, notes) =
            naive::fit(range, rows.len(), "row").expect("the range was taken");
        let capped = last.min(first - 1 + usize::from(input.entries_max).max(1));
        for row in &rows[first - 1..capped] {
            let (size, path) = lines
                .next()
                .and_then(|line| line.split_once('\t'))
                .expect("a row");
            assert_eq!((size, path), (&*naive::size(row.bytes), &*row.path));
        }
        let rest = (capped < last).then(|| naive::rest(capped + 1, last, rows.len(), "rows"));
        assert!(lines.eq(notes.into_iter().chain(rest)), "{text:?}");
    }

    let Text(stored) = &input.text;
    if let Ok(text) = edit::view_file(&top, stored, range, input.chars_max.into()) {
        let mut lines = text.split('\n');
        assert_eq!(
            lines.next(),
            Some(&*format!("Here's the content of {top} with line numbers:"))
        );
        // A line of the file begins with its number; what does not is a note, and notes come last.
        let start = range.map_or(1, |(start, _)| start) as usize;
        let mut number = start;
        let mut lines = lines.peekable();
        let mut read = String::new();
        while let Some((shown, line)) = lines.peek().and_then(|line| line.split_once('\t'))
            && shown.trim_start().parse() == Ok(number)
        {
            read.push_str(line);
            read.push('\n');
            number += 1;
            lines.next();
        }
        let expected: String = naive::lines(stored)[start - 1..number - 1].concat();
        assert_eq!(read.trim_end_matches('\n'), expected.trim_end_matches('\n'));
        for note in lines {
            let is_note = note.starts_with("Note: lines ")
                || note.starts_with("Note: view_range was cut to ")
                || note == "Note: the file is empty (0 lines).";
            assert!(is_note, "{text:?}");
        }
    }
});
