//! Reads private keys in PEM, OpenSSH, PGP and PuTTY form (RFC 7468), also indented, quoted, escaped or cut off.

use super::super::text::Text;
use super::{Scene, Span};

/// Longest key that is read, in bytes.
const KEY_MAX: usize = 32 * 1024;

/// Reads the private key whose `-----BEGIN` (or PuTTY header) is at `hit`; gives its end.
pub(super) fn read(scene: Scene<'_>, hit: Span, found: &mut Vec<Span>) -> usize {
    let text = scene.text;
    let putty = text.has(hit.0, b"putty");
    if !putty && text.at(hit.0) != b'-' {
        // The base64 of a key without its BEGIN line.
        let start = text.back(hit.0, 16, is_base64);
        let end = body_end(text, start, (start + KEY_MAX).min(text.len()));
        if end >= start + 60 {
            found.push((start, end));
            return end;
        }
        return 0;
    }
    let label_end = text.skip(hit.1, 64, |b| b.is_ascii_alphanumeric() || b == b' ');
    let label = text.cut(hit.1, label_end);
    let private = putty
        || label
            .windows(11)
            .any(|w| w.eq_ignore_ascii_case(b"PRIVATE KEY"));
    if !private {
        return 0;
    }
    let body = text.skip(label_end, 6, |b| b == b'-');
    let limit = (body + KEY_MAX).min(text.len());
    let another = text.find(body, limit, b"-----begin").unwrap_or(limit);
    let end = if putty {
        text.find(body, limit, b"private-mac:")
            .map(|n| text.line_end(n, 200))
    } else {
        text.find(body, another, b"-----end").map(|n| {
            let label = text.skip(n + 8, 64, |b| b.is_ascii_alphanumeric() || b == b' ');
            text.skip(label, 5, |b| b == b'-')
        })
    };
    let end = end.unwrap_or_else(|| body_end(text, body, another));
    if end <= body && !putty {
        // A lone BEGIN line, as documents quote it, holds no key.
        return 0;
    }
    if has_material(text, body, end) {
        found.push((hit.0, end));
        return end;
    }
    0
}

/// Reads what stands before an `-----END … PRIVATE KEY` at `hit` that has no beginning.
pub(super) fn read_tail(scene: Scene<'_>, hit: Span, found: &mut Vec<Span>) {
    let text = scene.text;
    let label_end = text.skip(hit.1, 64, |b| b.is_ascii_alphanumeric() || b == b' ');
    if !text
        .cut(hit.1, label_end)
        .windows(11)
        .any(|w| w.eq_ignore_ascii_case(b"PRIVATE KEY"))
    {
        return;
    }
    let mut start = hit.0;
    while start > 0 {
        let end = text.back(start, 4, |b| b.is_ascii_whitespace());
        let line = text.line_start(end, 200);
        if line == end || line >= start || !is_body_line(text.cut(line, end)) {
            break;
        }
        start = line;
    }
    if start < hit.0 && has_material(text, start, hit.0) {
        found.push((start, text.skip(label_end, 5, |b| b == b'-')));
    }
}

/// Where the body of a key without an END line ends.
fn body_end(text: Text<'_>, body: usize, limit: usize) -> usize {
    let mut end = body;
    // What follows on the BEGIN line itself: everything may stand on one line, also with `\n` between.
    let line = text.line_end(body, KEY_MAX).min(limit);
    let first = text.skip(body, line - body.min(line), |b| {
        is_base64(b) || matches!(b, b'\\' | b' ' | b'"' | b'\'')
    });
    if first - body >= 16 {
        end = text.back(first, 4, |b| matches!(b, b'"' | b'\'' | b' '));
    }
    let mut at = line;
    while at < limit {
        let next = text.line_end(at + 1, KEY_MAX).min(limit);
        let content = text.cut(at + 1, next);
        if is_body_line(content) {
            end = at + 1 + content.trim_ascii_end().len();
        } else if !content
            .iter()
            .all(|b| b.is_ascii_whitespace() || is_prefix(*b))
        {
            // The last line of a key is short; a word of prose is not part of it.
            let word = strip(content);
            if end > body
                && word.len() <= 64
                && word.iter().all(|b| is_base64(*b))
                && word.ends_with(b"=")
            {
                end = at + 1 + content.trim_ascii_end().len();
            }
            break;
        }
        at = next;
        if next == at && next >= limit {
            break;
        }
    }
    end
}

fn is_base64(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
}

fn is_prefix(b: u8) -> bool {
    matches!(
        b,
        b'>' | b'#' | b'|' | b'*' | b'"' | b'\'' | b'+' | b';' | b'-' | b',' | b'\\' | b'n'
    )
}

/// A line of a key without the marks that quoting puts around it.
fn strip(line: &[u8]) -> &[u8] {
    let mut line = line.trim_ascii();
    while let Some((first, rest)) = line.split_first() {
        if !(is_prefix(*first) && *first != b'n' || *first == b' ') || line.len() < 8 {
            break;
        }
        line = rest;
    }
    let end = line
        .iter()
        .rposition(|b| is_base64(*b))
        .map_or(0, |n| n + 1);
    let line = line.get(..end).unwrap_or(line);
    line.strip_suffix(b"\\n")
        .or_else(|| line.strip_suffix(b"\" +"))
        .unwrap_or(line)
}

fn is_body_line(line: &[u8]) -> bool {
    let word = strip(line);
    #[rustfmt::skip]
    let header = [
        &b"proc-type:"[..], b"dek-info:", b"comment:", b"version:", b"hash:", b"charset:",
        b"encryption:", b"public-lines:", b"private-lines:", b"key-derivation:", b"argon2-",
    ];
    if header.iter().any(|h| {
        word.get(..h.len())
            .is_some_and(|w| w.eq_ignore_ascii_case(h))
    }) {
        return true;
    }
    let n = word
        .iter()
        .filter(|b| is_base64(**b) || **b == b'\\')
        .count();
    word.len() >= 24 && n == word.len() && word.len() <= 4096
}

fn has_material(text: Text<'_>, start: usize, end: usize) -> bool {
    let mut run = 0usize;
    for &b in text.cut(start, end) {
        run = if is_base64(b) { run + 1 } else { 0 };
        if run >= 16 {
            return true;
        }
    }
    // Emphasis, invisible characters or line breaks may cut the body into short parts.
    text.cut(start, end)
        .iter()
        .filter(|b| is_base64(**b))
        .count()
        >= 100
}
