//! Lists directory rows, within a cap that says what it left out.

use std::fmt::Write as _;

use super::error::EditError;
use super::range::{Fitted, Unit, fit, rest_note};
use super::size::size_text;

/// One row of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The size in bytes; for a directory, of all that is below it.
    pub bytes: u64,
    /// The canonical path; that of a sub-directory already ends in `/`.
    pub path: String,
}

/// Which rows of a listing are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The first row, 1-based.
    pub first: u64,
    /// The last row; one less than `first` when there is none.
    pub last: u64,
    /// Sentences that come after the rows, each starting with `Note: `.
    pub notes: Vec<String>,
}

/// Chooses which of `total` rows are shown: those in `range`, at most
/// `entries_max` (at least one).
///
/// With [`listing_text`] this shows a part of a large directory without ever
/// holding all rows. What a cap leaves out is said as in a file's view:
/// `Note: rows 1001-3000 of 3000 are not shown. Continue with view_range
/// [1001, 3000].`
///
/// # Errors
/// [`EditError::Range`] as for a file's lines.
pub fn window(
    total: u64,
    range: Option<(i64, i64)>,
    entries_max: usize,
) -> Result<Window, EditError> {
    let Fitted { first, last, note } = fit(range, total, Unit::Rows)?;
    let mut notes: Vec<String> = note.into_iter().collect();
    let rows_max = u64::try_from(entries_max).unwrap_or(u64::MAX).max(1);
    let capped = last.min(first.saturating_add(rows_max - 1));
    if capped < last {
        notes.push(rest_note(capped.saturating_add(1), last, total, Unit::Rows));
    }
    Ok(Window {
        first,
        last: capped,
        notes,
    })
}

/// The whole text of a `view` of the directory `path`; `rows` are those of the
/// window and no others.
pub fn listing_text<'a>(
    path: &str,
    window: &Window,
    rows: impl IntoIterator<Item = &'a Row>,
) -> String {
    let mut text = format!(
        "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
    );
    for row in rows {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{}\t{}", size_text(row.bytes), row.path);
    }
    for note in &window.notes {
        text.push('\n');
        text.push_str(note);
    }
    text
}

/// [`window`] and [`listing_text`] over rows that are all at hand.
///
/// # Errors
/// As [`window`].
pub fn view_directory(
    path: &str,
    rows: &[Row],
    range: Option<(i64, i64)>,
    entries_max: usize,
) -> Result<String, EditError> {
    let total = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    let window = window(total, range, entries_max)?;
    let to_index = |row| usize::try_from(row).unwrap_or(usize::MAX);
    let shown = rows
        .get(to_index(window.first - 1)..to_index(window.last))
        .unwrap_or_default();
    Ok(listing_text(path, &window, shown))
}
