//! Counts and finds lines: LF ends one, and nothing else does.

use super::error::EditError;

/// A file may have this many lines, for their numbers have six digits
/// (the tool's specification, `view`).
pub const LINES_MAX: u64 = 999_999;

/// How many lines `text` has; 0 for an empty text.
#[must_use]
pub fn line_count(text: &str) -> u64 {
    let ended = newline_count(text);
    let is_open = !text.is_empty() && !text.ends_with('\n');
    ended.saturating_add(u64::from(is_open))
}

/// The number of lines, if it is one that may be stored and shown.
///
/// # Errors
/// [`EditError::TooManyLines`] above [`LINES_MAX`].
pub fn check_line_count(text: &str) -> Result<u64, EditError> {
    let lines = line_count(text);
    if lines > LINES_MAX {
        return Err(EditError::TooManyLines { lines });
    }
    Ok(lines)
}

/// The length of the longest line in Unicode scalars, its LF not counted.
#[must_use]
pub fn longest_line_chars(text: &str) -> usize {
    text.split('\n').fold(0, |most, line| {
        // A line has no more characters than bytes.
        if line.len() <= most {
            most
        } else {
            most.max(line.chars().count())
        }
    })
}

/// How many LF stand in `text`.
pub(super) fn newline_count(text: &str) -> u64 {
    memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64
}

/// The byte offset just after line `line`; the text's length past its end.
pub(super) fn offset_after(text: &str, line: u64) -> usize {
    let lines = usize::try_from(line).unwrap_or(usize::MAX);
    text.split_inclusive('\n').take(lines).map(str::len).sum()
}
