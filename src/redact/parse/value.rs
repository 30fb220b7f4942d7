//! Reads the value that starts at a place: quoted, in a block, or up to where it ends by itself.

use super::super::text::{Text, is_blank};
use super::Span;

/// Longest value that is read, in bytes.
const VALUE_MAX: usize = 1024;

/// A value and how it was written.
#[derive(Clone, Copy)]
pub(super) struct Value {
    pub(super) span: Span,
    /// It stood between quotes, so its end is certain.
    pub(super) quoted: bool,
}

/// Reads the value at `i`, which may begin with blanks, emphasis, quotes and literal prefixes.
pub(super) fn read(text: Text<'_>, i: usize) -> Option<Value> {
    let mut at = text.skip(i, 64, is_blank);
    at = skip_marks(text, at);
    // `key: |` and `key: >-` of YAML: the value is the next line.
    if matches!(text.at(at), b'|' | b'>') {
        let end = text.skip(at + 1, 4, |b| matches!(b, b'-' | b'+' | b' ' | b'0'..=b'9'));
        if text.at(end) == b'\n' {
            let from = text.skip(end + 1, 64, is_blank);
            if from == end + 1 {
                return None;
            }
            let to = text.line_end(from, VALUE_MAX);
            return value(from, trim_end(text, from, to), false);
        }
    }
    // Literal prefixes: b"…", r'…', f"…", @"…", $'…', L"…".
    if matches!(
        text.at(at),
        b'b' | b'r' | b'f' | b'u' | b'@' | b'$' | b'L' | b'B'
    ) && is_quote(text.at(at + 1))
    {
        at += 1;
    }
    let (mark, mark_len) = quote(text, at);
    if mark_len > 0 {
        return quoted(text, at, mark, mark_len);
    }
    let end = bare_end(text, at);
    value(at, trim_end(text, at, end), false)
}

fn value(start: usize, end: usize, quoted: bool) -> Option<Value> {
    (start < end).then_some(Value {
        span: (start, end),
        quoted,
    })
}

/// Skips emphasis and opening brackets before a value.
fn skip_marks(text: Text<'_>, i: usize) -> usize {
    let mut at = text.skip(i, 3, |b| b == b'*' || b == b'_');
    if at > i {
        at = text.skip(at, 8, is_blank);
    }
    if text.has(at, b"\\\"") || text.has(at, b"\\'") {
        at += 1;
    }
    at
}

pub(super) fn is_quote(b: u8) -> bool {
    matches!(b, b'"' | b'\'' | b'`')
}

/// The quote at `i` and its length; typographic quotes close with their own kind.
fn quote(text: Text<'_>, i: usize) -> (&'static [u8], usize) {
    match text.at(i) {
        b'"' if text.has(i, b"\"\"\"") => (b"\"\"\"", 3),
        b'"' => (b"\"", 1),
        b'\'' if text.has(i, b"'''") => (b"'''", 3),
        b'\'' => (b"'", 1),
        b'`' if text.has(i, b"``") => (b"``", 2),
        b'`' => (b"`", 1),
        0xe2 if text.cut(i, i + 3) == "\u{201c}".as_bytes() => ("\u{201d}".as_bytes(), 3),
        0xe2 if text.cut(i, i + 3) == "\u{2018}".as_bytes() => ("\u{2019}".as_bytes(), 3),
        0xc2 if text.cut(i, i + 2) == "\u{ab}".as_bytes() => ("\u{bb}".as_bytes(), 2),
        _ => (b"", 0),
    }
}

fn quoted(text: Text<'_>, i: usize, mark: &[u8], mark_len: usize) -> Option<Value> {
    let start = i + mark_len;
    let stop = text.line_end(start, VALUE_MAX);
    let escaped_quote = text.before(i) == b'\\';
    let mut at = start;
    while at < stop {
        if text.at(at) == b'\\' && !escaped_quote {
            at += 2;
            continue;
        }
        if text.cut(at, at + mark.len()) == mark {
            let end = if escaped_quote && text.before(at) == b'\\' {
                at - 1
            } else {
                at
            };
            return value(start, end, true);
        }
        at += 1;
    }
    // No closing quote on the line: the value ends where a bare one would.
    let end = bare_end(text, start);
    value(start, trim_end(text, start, end), false)
}

/// Where a value without quotes ends.
fn bare_end(text: Text<'_>, i: usize) -> usize {
    let in_query = || is_in_query(text, i);
    let in_list =
        || text.cut(text.line_start(i, 400), i).contains(&b';') || is_followed_by_pair(text, i);
    let mut at = i;
    let stop = text.line_end(i, VALUE_MAX);
    while at < stop {
        let b = text.at(at);
        let ends = match b {
            b if b.is_ascii_whitespace() || b == 0 => true,
            b'&' | b'#' => in_query(),
            b';' => in_list(),
            b'<' => matches!(text.at(at + 1), b'/' | b'b' | b'!'),
            b'"' | b'\'' | b'`' => at > i,
            b',' => is_pair(text, at + 1),
            b'\\' => {
                matches!(text.at(at + 1), b'n' | b'r' | b't' | b'"')
                    && !text.at(at + 2).is_ascii_lowercase()
            }
            b'|' => is_blank(text.at(at + 1)) || text.at(at + 1) == b'|',
            _ => false,
        };
        if ends {
            break;
        }
        at += 1;
    }
    at
}

/// Whether the value at `i` stands in the query of a URL.
fn is_in_query(text: Text<'_>, i: usize) -> bool {
    let name = text.back(i, 60, |b| {
        !b.is_ascii_whitespace() && !matches!(b, b'?' | b'&' | b'"')
    });
    matches!(text.before(name), b'?' | b'&')
        || text
            .find(i.saturating_sub(300), i, b"://")
            .is_some_and(|u| {
                !text.cut(u, i).iter().any(|b| b.is_ascii_whitespace())
                    && text.cut(u, i).contains(&b'?')
            })
}

/// Whether a `name=value;` list goes on after the value at `i`.
fn is_followed_by_pair(text: Text<'_>, i: usize) -> bool {
    let end = text.skip(i, 200, |b| b != b';' && !b.is_ascii_whitespace());
    text.at(end) == b';'
        && (is_pair(text, end + 1) || matches!(text.at(end + 1), b'"' | b'\'' | b'\n' | 0))
}

fn is_pair(text: Text<'_>, i: usize) -> bool {
    let from = text.skip(i, 2, |b| b == b' ');
    let name = text.skip(from, 40, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b' ' | b'-' | b'"')
    });
    name > from && matches!(text.at(name), b'=' | b':')
}

/// Drops what closes the sentence, the call or the markup around a value.
fn trim_end(text: Text<'_>, start: usize, end: usize) -> usize {
    let mut end = end;
    while end > start {
        let keep = match text.before(end) {
            b'.' | b',' | b';' | b':' | b'"' | b'\'' | b'`' | b'|' | b'\r' | b' ' | b'\\' => false,
            b'*' => text.before(end - 1) != b'*' && !text.cut(start, end - 1).is_empty(),
            b')' => opens(text, start, end, b'('),
            b']' => opens(text, start, end, b'['),
            b'}' => opens(text, start, end, b'{'),
            b'>' => opens(text, start, end, b'<'),
            _ => true,
        };
        if keep {
            break;
        }
        end -= if text.cut(end.saturating_sub(2), end) == b"**" {
            2
        } else {
            1
        };
    }
    end.max(start)
}

fn opens(text: Text<'_>, start: usize, end: usize, mark: u8) -> bool {
    text.cut(start, end).contains(&mark)
}
