//! Puts whole lines after a line.

use super::Edited;
use super::error::EditError;
use super::lines::{line_count, newline_count, offset_after};

/// Inserts `insert_text` into `text` after line `line`, 0 for the start.
///
/// What goes in are whole lines: one trailing line end (LF or CRLF) of
/// `insert_text` is the end of its last line, and if there is none, LF is.
/// So `m` and `m\n` insert one line, `m\n\n` one more that is blank, `\n` and
/// an empty text one blank line. An insert always adds at least one line.
///
/// Nothing else changes: other lines keep their bytes and ends (CRLF too), and
/// the text has or lacks a final line end as before. For that, a text
/// without one that is inserted after its last line lends its line end to the
/// line before it: `a\nb` + `c\n` at 2 = `a\nb\nc`. Only a blank last line
/// cannot be without an end, so it has one. An empty text lacks nothing:
/// what goes in is ended.
///
/// `tests/golden/insert.toml` has the table.
///
/// # Errors
/// [`EditError::LineOutOfRange`] unless `0 <= line <= line_count(text)`.
pub fn insert(text: &str, line: i64, insert_text: &str) -> Result<Edited, EditError> {
    let lines = line_count(text);
    let line_before = match u64::try_from(line) {
        Ok(line_before) if line_before <= lines => line_before,
        _ => return Err(EditError::LineOutOfRange { line, lines }),
    };
    let (body, line_end) = split_line_end(insert_text);
    let (before, after) = text
        .split_at_checked(offset_after(text, line_before))
        .unwrap_or((text, ""));

    let is_after_open_line = !before.is_empty() && !before.ends_with('\n');
    let edited = if is_after_open_line {
        let is_last_blank = body.is_empty() || body.ends_with('\n');
        let last_end = if is_last_blank { line_end } else { "" };
        [before, line_end, body, last_end].concat()
    } else {
        [before, body, line_end, after].concat()
    };
    let inserted = newline_count(body).saturating_add(1);
    Ok(Edited {
        text: edited,
        first_line: line_before.saturating_add(1),
        last_line: line_before.saturating_add(inserted),
    })
}

/// Splits off one trailing line end; LF stands for a missing one.
fn split_line_end(text: &str) -> (&str, &str) {
    if let Some(body) = text.strip_suffix("\r\n") {
        (body, "\r\n")
    } else if let Some(body) = text.strip_suffix('\n') {
        (body, "\n")
    } else {
        (text, "\n")
    }
}
