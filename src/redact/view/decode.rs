//! The decoded text: runs of base64 or hex that hold readable text.

use base64ct::{Base64Unpadded, Base64UrlUnpadded, Encoding};

use super::super::text::Text;
use super::Draft;

/// Bytes of a decoded run that must all be printable before the rest is looked at.
const PROBE: usize = 12;

/// Builds the decoded texts of `runs`, one a line.
pub(super) fn build(text: Text<'_>, runs: &[(usize, usize)]) -> Draft {
    let mut draft = Draft::default();
    for &(start, end) in runs {
        if let Some(bytes) = decode(text.cut(start, end)) {
            draft.gap(start);
            draft.put(&bytes, start, end);
            continue;
        }
        if is_spaced(text.cut(start, end)) {
            continue;
        }
        // A run may begin with a path or a name: what follows its last separator can be base64 by itself.
        let mut from = start;
        for at in start..end {
            if matches!(text.at(at), b'/' | b'-' | b'_') && end - at > 20 && at > from {
                from = at + 1;
                if let Some(bytes) = decode(text.cut(from, end)) {
                    draft.gap(from);
                    draft.put(&bytes, from, end);
                    break;
                }
                if at - start > 200 {
                    break;
                }
            }
        }
    }
    draft
}

/// Whether the run is one of single characters or of bytes in hex with a sign between them.
fn is_spaced(run: &[u8]) -> bool {
    matches!(run.get(1), Some(b' ')) || matches!(run.get(2), Some(b' ' | b':'))
}

fn decode(run: &[u8]) -> Option<Vec<u8>> {
    if is_spaced(run) {
        let joined: Vec<u8> = match run.get(1) {
            Some(b' ') => run.iter().copied().step_by(2).collect(),
            _ => run.iter().copied().filter(u8::is_ascii_hexdigit).collect(),
        };
        let letters = joined.iter().filter(|b| b.is_ascii_alphabetic()).count();
        return if run.get(1) == Some(&b' ') {
            // Columns of digits are none.
            (letters * 12 >= joined.len()).then_some(joined)
        } else {
            from_hex(&joined).and_then(readable)
        };
    }
    let run = run.strip_suffix(b"=").unwrap_or(run);
    let run = run.strip_suffix(b"=").unwrap_or(run);
    if run.len() >= 24 && run.len().is_multiple_of(2) && run.iter().all(u8::is_ascii_hexdigit) {
        return from_hex(run).and_then(readable);
    }
    let head = run.get(..16)?;
    let url = run.iter().any(|b| matches!(b, b'-' | b'_'));
    let head = base64(head, url)?;
    if !head.iter().all(|&b| is_text(b) || b == 0 || b >= 0xc2) {
        return None;
    }
    readable(base64(run, url)?)
}

fn base64(run: &[u8], url: bool) -> Option<Vec<u8>> {
    // Non-zero trailing bits and a lone last character are common in hand-cut text: what is whole is decoded.
    let whole = run.get(..run.len() / 4 * 4)?;
    let take = |run: &[u8]| {
        let run = str::from_utf8(run).ok()?;
        if url {
            Base64UrlUnpadded::decode_vec(run).ok()
        } else {
            Base64Unpadded::decode_vec(run).ok()
        }
    };
    if let Some(bytes) = take(run) {
        return Some(bytes);
    }
    take(whole)
}

fn from_hex(run: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(run.len() / 2);
    for pair in run.chunks_exact(2) {
        let value = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
        if out.len() < PROBE && !is_text(value) && value != 0 {
            return None;
        }
        out.push(value);
    }
    Some(out)
}

fn is_text(b: u8) -> bool {
    matches!(b, b' '..=b'~' | b'\n' | b'\r' | b'\t')
}

fn readable(bytes: Vec<u8>) -> Option<Vec<u8>> {
    let zeros = bytes.iter().filter(|&&b| b == 0).count();
    // UTF-16 of ASCII has a zero in every second byte.
    let bytes = if zeros * 5 >= bytes.len() * 2 {
        bytes.into_iter().filter(|&b| b != 0).collect()
    } else {
        bytes
    };
    let text = bytes.iter().filter(|&&b| is_text(b) || b >= 0x80).count();
    let ascii = bytes.iter().filter(|&&b| is_text(b)).count();
    (bytes.len() >= 8 && text * 20 >= bytes.len() * 19 && ascii * 3 >= bytes.len() * 2)
        .then_some(bytes)
}
