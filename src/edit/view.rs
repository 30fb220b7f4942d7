//! Numbers the lines of a file, within a cap that says what it left out.

use std::fmt;

use super::Edited;
use super::error::EditError;
use super::lines::{check_line_count, line_count};
use super::range::{Fitted, Unit, fit, rest_note};

/// What stands before a line, in bytes: the columns of its number and a tab.
const NUMBER_BYTES: usize = 6 + 1;

/// Numbered lines and what has to be said about them.
///
/// `Debug` shows lengths, never the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Numbered {
    /// Lines of `{number:>6}`, tab, text, joined by LF; no LF at the end.
    pub body: String,
    /// Sentences that come after them, each starting with `Note: `.
    pub notes: Vec<String>,
}

impl fmt::Debug for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Numbered")
            .field("body_bytes", &self.body.len())
            .field("notes", &self.notes)
            .finish()
    }
}

/// Numbers the lines of `text`, or those in `range`.
///
/// At most `chars_max` Unicode scalars of `text` are shown, each line's LF
/// counted: whole lines and at least one. What is then left of the range is
/// named in the last note, in the same words whether or not a range was given:
/// `Note: lines 941-1200 of 3000 are not shown. Continue with view_range
/// [941, 1200].` says what is left of `[1, 1200]`.
///
/// # Errors
/// [`EditError::Range`] for a range whose start is below 1 or past the last
/// line, or whose end is neither -1 nor at least the start (so for any range
/// of an empty file); [`EditError::TooManyLines`].
pub fn number_lines(
    text: &str,
    range: Option<(i64, i64)>,
    chars_max: usize,
) -> Result<Numbered, EditError> {
    let total = check_line_count(text)?;
    let fitted = fit(range, total, Unit::Lines)?;
    let mut body = String::new();
    let notes = push_numbered(&mut body, text, fitted, total, chars_max);
    Ok(Numbered { body, notes })
}

/// The whole text of a `view` of the file `path`.
///
/// # Errors
/// As [`number_lines`].
pub fn view_file(
    path: &str,
    text: &str,
    range: Option<(i64, i64)>,
    chars_max: usize,
) -> Result<String, EditError> {
    let total = check_line_count(text)?;
    let fitted = fit(range, total, Unit::Lines)?;
    let header = format!("Here's the content of {path} with line numbers:");
    Ok(number_below(header, text, fitted, total, chars_max))
}

/// The whole text of a `str_replace` that succeeded: the lines of `edited` from
/// 2 before the first changed one to 2 after the last, capped as in
/// [`number_lines`].
///
/// Line numbers past the end of `edited.text` are cut to it, so a text that was
/// changed again since (by redaction) does no harm.
#[must_use]
pub fn snippet(edited: &Edited, chars_max: usize) -> String {
    const CONTEXT_LINES: u64 = 2;
    let total = line_count(&edited.text);
    let around = Fitted {
        first: edited
            .first_line
            .min(total)
            .saturating_sub(CONTEXT_LINES)
            .max(1),
        last: edited.last_line.saturating_add(CONTEXT_LINES).min(total),
        note: None,
    };
    let header = "The memory file has been edited. Here is the snippet showing the change (with line numbers):";
    number_below(header.to_owned(), &edited.text, around, total, chars_max)
}

/// Numbered lines below a header, and their notes below them.
fn number_below(
    header: String,
    text: &str,
    fitted: Fitted,
    total: u64,
    chars_max: usize,
) -> String {
    let mut shown = header;
    shown.push('\n');
    let below = shown.len();
    let notes = push_numbered(&mut shown, text, fitted, total, chars_max);
    if shown.len() == below {
        shown.truncate(below - 1);
    }
    for note in notes {
        shown.push('\n');
        shown.push_str(&note);
    }
    shown
}

/// Appends numbered lines. Returns their notes.
fn push_numbered(
    body: &mut String,
    text: &str,
    fitted: Fitted,
    total: u64,
    chars_max: usize,
) -> Vec<String> {
    let Fitted { first, last, note } = fitted;
    let mut notes: Vec<String> = note.into_iter().collect();
    if total == 0 {
        notes.push("Note: the file is empty (0 lines).".to_owned());
    }
    let lines = usize::try_from(last.saturating_sub(first).saturating_add(1)).unwrap_or(0);
    let room = text
        .len()
        .saturating_add(lines.saturating_mul(NUMBER_BYTES));
    body.reserve(room.min(chars_max.saturating_mul(4)));
    // A text has no more characters than bytes, so most need no counting.
    let fits = text.len() <= chars_max;
    let mut chars_left = chars_max;
    let lines_before = usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX);
    let lines = lines_of(text).skip(lines_before);
    let mut margin = Margin::of(first);
    for (number, line) in (first..=last).zip(lines) {
        if !fits {
            let left = chars_left.checked_sub(line.chars().count());
            if left.is_none() && number > first {
                notes.push(rest_note(number, last, total, Unit::Lines));
                break;
            }
            chars_left = left.unwrap_or(0);
        }
        if number > first {
            body.push('\n');
        }
        body.push_str(margin.as_str());
        margin.count();
        body.push_str(line.strip_suffix('\n').unwrap_or(line));
    }
    notes
}

/// What stands before a line: its number, right-aligned in six columns, and a tab. It is counted
/// up in place, since a formatter would take longer for it than all else takes for the line.
struct Margin {
    text: [u8; Margin::BYTES],
    start: usize,
}

impl Margin {
    /// Room for any number.
    const BYTES: usize = 21;

    fn of(number: u64) -> Self {
        let mut margin = Self {
            text: [b' '; Self::BYTES],
            start: Self::BYTES - NUMBER_BYTES,
        };
        if let Some(tab) = margin.text.last_mut() {
            *tab = b'\t';
        }
        let mut rest = number;
        for (place, digit) in margin.text.iter_mut().enumerate().rev().skip(1) {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
            if rest == 0 {
                margin.start = margin.start.min(place);
                break;
            }
        }
        margin
    }

    /// Goes on to the next number.
    fn count(&mut self) {
        let digits = self.text.iter_mut().enumerate().rev().skip(1);
        for (place, digit) in digits {
            match *digit {
                b'9' => *digit = b'0',
                b' ' => {
                    *digit = b'1';
                    self.start = self.start.min(place);
                    return;
                }
                _ => {
                    *digit += 1;
                    return;
                }
            }
        }
    }

    fn as_str(&self) -> &str {
        let shown = self.text.get(self.start..).unwrap_or_default();
        std::str::from_utf8(shown).unwrap_or_default()
    }
}

/// The lines of a text, each with its LF, as `split_inclusive` cuts it: only faster.
fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let mut ends = memchr::memchr_iter(b'\n', text.as_bytes());
    let mut start = 0;
    std::iter::from_fn(move || {
        let end = ends.next().map_or(text.len(), |lf| lf + 1);
        let line = text.get(start..end).filter(|line| !line.is_empty());
        start = end;
        line
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_are_those_of_the_standard_library(text in "[a-zä\n\r]{0,60}") {
            let lines: Vec<&str> = lines_of(&text).collect();
            prop_assert_eq!(lines, text.split_inclusive('\n').collect::<Vec<_>>());
        }

        #[test]
        fn margins_are_those_of_the_formatter(start in prop_oneof![0..1_200_u64, any::<u64>(), 999_990..1_000_010_u64]) {
            let mut margin = Margin::of(start);
            for number in start..start.saturating_add(120) {
                prop_assert_eq!(margin.as_str(), format!("{number:>6}\t"));
                margin.count();
            }
        }
    }
}
