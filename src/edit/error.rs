//! Why an edit or a view cannot be, and the exact texts that say so.

use std::fmt::Write as _;

use thiserror::Error;

use super::range::Unit;

/// An error quotes this many characters of `old_str`.
pub const OLD_CHARS_MAX: usize = 1_000;

/// An error names this many lines at most.
pub const LINES_NAMED_MAX: usize = 1_000;

/// Why an edit or a view cannot be.
///
/// `Display` quotes no content; [`EditError::reply_text`] is what the model is
/// told.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EditError {
    /// The text to replace is empty, so it stands everywhere.
    #[error("replace an empty text")]
    EmptyOldStr,
    /// The text to replace does not stand in the file.
    #[error("replace a text that does not stand in the file")]
    NotFound,
    /// The text to replace stands in several places, overlapping ones counted.
    #[error("replace a text that stands in several places")]
    Multiple {
        /// The first line of each hit, ascending, each once; at most
        /// [`LINES_NAMED_MAX`].
        lines: Vec<u64>,
        /// Whether there are hits on further lines.
        more: bool,
    },
    /// There is no such line to insert after.
    #[error("insert after line {line} of {lines}")]
    LineOutOfRange {
        /// The line that was asked for.
        line: i64,
        /// How many lines the file has; 0 to this many are valid.
        lines: u64,
    },
    /// The range does not fit the file or listing.
    #[error("show {unit} {start} to {end} of {total}")]
    Range {
        /// The first line or row that was asked for.
        start: i64,
        /// The last one, as it was sent.
        end: i64,
        /// How many there are.
        total: u64,
        /// Lines of a file or rows of a listing.
        unit: Unit,
    },
    /// The file has more than [`LINES_MAX`](super::LINES_MAX) lines.
    #[error("number {lines} lines, which is more than 999999")]
    TooManyLines {
        /// How many it has.
        lines: u64,
    },
}

impl EditError {
    /// The exact text of the reply (which is an error).
    ///
    /// `path` is the canonical path, `old` the `old_str` of the command, from
    /// which secrets are already removed; it is cut here ([`quote_old`]) and
    /// not used by other errors than those of `str_replace`.
    #[must_use]
    pub fn reply_text(&self, path: &str, old: &str) -> String {
        match self {
            EditError::EmptyOldStr => format!(
                "Error: The field `old_str` is empty. It must be the text to replace, exactly as it stands in {path}."
            ),
            EditError::NotFound => format!(
                "No replacement was performed, old_str `{}` did not appear verbatim in {path}.",
                quote_old(old)
            ),
            EditError::Multiple { lines, more } => format!(
                "No replacement was performed. Multiple occurrences of old_str `{}` in lines: {}. Please ensure it is unique",
                quote_old(old),
                line_list(lines, *more)
            ),
            EditError::LineOutOfRange { line, lines } => format!(
                "Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, {lines}]"
            ),
            EditError::Range {
                start,
                end,
                total,
                unit,
            } => {
                let fault = if *start < 1 {
                    "The start must be 1 or more"
                } else if u64::try_from(*start).is_ok_and(|start| start > *total) {
                    "The start lies past the end"
                } else {
                    "The end must not lie before the start; -1 means the last one"
                };
                let there_are = match (unit, total) {
                    (Unit::Lines, 1) => format!("{path} has 1 line"),
                    (Unit::Lines, _) => format!("{path} has {total} lines"),
                    (Unit::Rows, 1) => format!("The listing of {path} has 1 row"),
                    (Unit::Rows, _) => format!("The listing of {path} has {total} rows"),
                };
                format!(
                    "Error: Invalid `view_range` parameter: [{start}, {end}]. {fault}. {there_are}."
                )
            }
            EditError::TooManyLines { .. } => {
                format!("File {path} exceeds maximum line limit of 999,999 lines.")
            }
        }
    }
}

/// `old` as an error quotes it: cut with `…` past [`OLD_CHARS_MAX`] characters.
#[must_use]
pub fn quote_old(old: &str) -> String {
    match old.char_indices().nth(OLD_CHARS_MAX) {
        Some((end, _)) => format!("{}…", old.get(..end).unwrap_or_default()),
        None => old.to_owned(),
    }
}

fn line_list(lines: &[u64], more: bool) -> String {
    let mut list = String::new();
    for line in lines {
        let separator = if list.is_empty() { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(list, "{separator}{line}");
    }
    if more {
        list.push_str(", …");
    }
    list
}
