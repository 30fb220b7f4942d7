//! Replaces the one place where a text stands.

use super::Edited;
use super::error::{EditError, LINES_NAMED_MAX};
use super::lines::{line_count, newline_count};

/// Puts `new` where `old` stands in `text`, if it stands there exactly once.
///
/// Both are literal. Overlapping hits count, for then it is not certain which
/// is meant: `aa` stands twice in `aaa`. Time is linear in the lengths.
///
/// # Errors
/// [`EditError::EmptyOldStr`], [`EditError::NotFound`] and
/// [`EditError::Multiple`].
pub fn str_replace(text: &str, old: &str, new: &str) -> Result<Edited, EditError> {
    if old.is_empty() {
        return Err(EditError::EmptyOldStr);
    }
    let (before, after) = text.split_once(old).ok_or(EditError::NotFound)?;
    // The hit from the right is another one if there is any other.
    if text.rfind(old) != Some(before.len()) {
        let (lines, more) = hit_lines(text, old);
        return Err(EditError::Multiple { lines, more });
    }

    let edited = [before, new, after].concat();
    // A deletion at the text's end may stand past its last line.
    let lines = line_count(&edited);
    let first_line = newline_count(before).saturating_add(1);
    let new_lines_below = line_count(new).saturating_sub(1);
    Ok(Edited {
        text: edited,
        first_line: first_line.min(lines),
        last_line: first_line.saturating_add(new_lines_below).min(lines),
    })
}

/// The first line of each hit, ascending and each once, at most
/// [`LINES_NAMED_MAX`] of them; and whether there are more.
///
/// Knuth-Morris-Pratt, because starting a search anew after each hit is
/// quadratic on a text such as `aaaa…`.
#[expect(
    clippy::indexing_slicing,
    reason = "Invariant: matched < old.len() == fallback.len() wherever it indexes"
)]
fn hit_lines(text: &str, old: &str) -> (Vec<u64>, bool) {
    let (text, old) = (text.as_bytes(), old.as_bytes());
    let fallback = fallback_table(old);
    let mut lines: Vec<u64> = Vec::new();
    let mut line = 1_u64;
    let mut start_bytes = text.iter(); // stands at the start of the last hit
    let mut start = 0;
    let mut matched = 0;
    for (at, &byte) in text.iter().enumerate() {
        while matched > 0 && old[matched] != byte {
            matched = fallback[matched - 1];
        }
        if old[matched] == byte {
            matched += 1;
        }
        if matched < old.len() {
            continue;
        }
        let hit = at + 1 - old.len();
        let passed = start_bytes.by_ref().take(hit - start);
        line += passed.map(|&byte| u64::from(byte == b'\n')).sum::<u64>();
        start = hit;
        if lines.last() != Some(&line) {
            if lines.len() == LINES_NAMED_MAX {
                return (lines, true);
            }
            lines.push(line);
        }
        matched = fallback[matched - 1];
    }
    (lines, false)
}

/// For each prefix of `old`, the length of its longest proper prefix that is
/// also its suffix.
#[expect(
    clippy::indexing_slicing,
    reason = "Invariant: matched < at < old.len() == table.len()"
)]
fn fallback_table(old: &[u8]) -> Vec<usize> {
    let mut table = vec![0; old.len()];
    let mut matched = 0;
    for at in 1..old.len() {
        while matched > 0 && old[matched] != old[at] {
            matched = table[matched - 1];
        }
        if old[matched] == old[at] {
            matched += 1;
        }
        table[at] = matched;
    }
    table
}
