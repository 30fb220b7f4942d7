//! Reads the column of a Markdown table whose heading names a secret.

use super::super::text::{Text, is_word};
use super::value::Value;
use super::{Scene, Span, judge, key};

/// How many rows of a table are read.
const ROWS_MAX: usize = 500;
/// Longest row that is read, in bytes.
const ROW_MAX: usize = 2000;

/// Reads the cells below the heading that holds `hit`.
pub(super) fn read(scene: Scene<'_>, hit: Span, found: &mut Vec<Span>) {
    let text = scene.text;
    if is_word(text.before(hit.0)) && text.before(hit.0) != b'_' {
        return;
    }
    // A heading fills its cell.
    let word = |b: u8| is_word(b) || matches!(b, b' ' | b'-' | b'*' | b'`' | b'"');
    let (low, high) = (text.back(hit.0, 40, word), text.skip(hit.1, 40, word));
    let edge = |b: u8| matches!(b, b'|' | b',' | b'\t' | b'\n' | b'\r' | 0);
    if !edge(text.before(low)) || !edge(text.at(high)) {
        return;
    }
    let start = text.line_start(hit.0, ROW_MAX);
    let end = text.line_end(hit.1, ROW_MAX);
    let separator = if text.cut(start, end).contains(&b'|') {
        b'|'
    } else if text.cut(start, end).contains(&b'\t') {
        b'\t'
    } else {
        b','
    };
    let next_end = text.line_end(end + 1, ROW_MAX);
    let next = text.cut(end + 1, next_end);
    let ruled = next.contains(&b'-')
        && next
            .iter()
            .all(|b| matches!(b, b'|' | b'-' | b':' | b' ' | b'+' | b'\r'));
    let heading = cells(text, start, end, separator).len() > 1
        && text.cut(start, end).iter().all(|b| {
            b.is_ascii_alphanumeric()
                || matches!(b, b' ' | b'_' | b'-' | b'/' | b'"' | b'*' | b'\r')
                || *b == separator
        });
    // Lines of code have commas too; a heading begins its line and ends without one.
    let heading = heading
        && text.at(start).is_ascii_alphanumeric()
        && !matches!(text.before(end), b',' | b' ')
        && !text
            .cut(end + 1, next_end)
            .iter()
            .any(|b| matches!(b, b'(' | b'{' | b'['));
    let is_table = if separator == b'|' { ruled } else { heading };
    if !is_table {
        return;
    }
    let column = text
        .cut(start, hit.0)
        .iter()
        .filter(|&&b| b == separator)
        .count();
    let name = cells(text, start, end, separator)
        .get(column)
        .copied()
        .unwrap_or((0, 0));
    let name_bytes = text.cut(name.0, name.1);
    let class = key::classify(
        &name_bytes
            .iter()
            .map(|&b| if b == b' ' { b'_' } else { b })
            .collect::<Vec<u8>>(),
        b"",
    );
    let Some(class) = class else { return };
    let width = cells(text, start, end, separator).len();
    let mut at = if ruled { next_end } else { end };
    for _ in 0..ROWS_MAX {
        if at >= text.len() {
            return;
        }
        let row_end = text.line_end(at + 1, ROW_MAX);
        let row = cells(text, at + 1, row_end, separator);
        if row.len() != width {
            return;
        }
        let cell = row.get(column).copied().unwrap_or((0, 0));
        let v = Value {
            span: cell,
            quoted: true,
        };
        let spaced = text.cut(cell.0, cell.1).contains(&b' ');
        if separator != b'|' && text.cut(cell.0, cell.1).contains(&b'(') {
            return;
        }
        let sure = match class {
            key::Class::Password => judge::is_password(scene, name_bytes, v, false) && !spaced,
            key::Class::Secret => judge::is_secret(scene, name_bytes, v, false),
        };
        if sure {
            found.push(cell);
        }
        at = row_end;
    }
}

fn cells(text: Text<'_>, start: usize, end: usize, separator: u8) -> Vec<Span> {
    let mut out = Vec::new();
    let mut from = start;
    for i in start..=end {
        if i == end || (text.at(i) == separator && text.before(i) != b'\\') {
            let mark = |b: u8| b.is_ascii_whitespace() || matches!(b, b'`' | b'*' | b'"');
            let low = text.skip(from, i - from, mark);
            let high = text.back(i, i - low.min(i), mark);
            out.push((low, high.max(low)));
            from = i + 1;
        }
    }
    out
}
