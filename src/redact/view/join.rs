//! The joined text: wrapped lines, quoted prefixes and split string literals put together.

use super::super::text::{Text, is_token};
use super::{Draft, add_region};

/// How far apart two parts of a split literal may stand.
const BETWEEN_MAX: usize = 64;

/// Builds the text around `cuts` without them.
pub(super) fn build(text: Text<'_>, cuts: &[(usize, usize)]) -> Draft {
    let mut regions = Vec::new();
    for &(start, end) in cuts {
        add_region(&mut regions, text, start, end);
    }
    let mut draft = Draft::default();
    let mut cuts = cuts.iter().copied().peekable();
    for (start, end) in regions {
        draft.gap(start);
        let mut at = start;
        while let Some((from, to)) = cuts.next_if(|c| c.0 < end) {
            draft.copy(text, at, from);
            at = to.max(at);
        }
        draft.copy(text, at, end);
    }
    draft
}

/// The bytes to leave out when the quote at `i` ends one part of a literal and another part follows.
pub(super) fn split_literal(text: Text<'_>, i: usize) -> Option<(usize, usize)> {
    if !is_token(text.before(i)) && !matches!(text.before(i), b'.' | b'$' | b'!' | b':') {
        return None;
    }
    let stop = i + BETWEEN_MAX;
    let mut at = i + 1;
    let mut operators = 0;
    let mut comma = false;
    while at < stop {
        match text.at(at) {
            b' ' | b'\t' | b'\r' | b'\n' | b'\\' | b'(' | b')' => at += 1,
            b'+' | b'.' | b'&' | b'|' | b'~' if operators < 3 => {
                operators += 1;
                at += 1;
            }
            b'>' | b'#' | b'*' if text.before(at).is_ascii_whitespace() => at += 1,
            b',' if !comma => {
                comma = true;
                at += 1;
            }
            b'f' | b'b' | b'r' | b'u' | b'@' | b'$' if matches!(text.at(at + 1), b'"' | b'\'') => {
                at += 1
            }
            b'"' | b'\'' | b'`' => {
                let apart = at > i + 1 || text.at(at) != text.at(i) || is_token(text.before(i));
                let listed = comma && !is_joined_list(text, i);
                let goes_on = is_token(text.at(at + 1))
                    || matches!(text.at(at + 1), b'.' | b'$' | b'!' | b':');
                return (apart && goes_on && !listed).then_some((i, at + 1));
            }
            _ => return None,
        }
    }
    None
}

/// Whether a list of literals near `i` is put together by a `join` or `concat` call.
fn is_joined_list(text: Text<'_>, i: usize) -> bool {
    let (low, high) = (i.saturating_sub(160), i + 160);
    text.find(low, high, b"join").is_some() || text.find(low, high, b"concat").is_some()
}
