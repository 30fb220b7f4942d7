//! Reads credentials in HTTP headers: `Authorization` (RFC 9110), `X-Api-Key` and kin, cookies (RFC 6265).

use super::super::placeholder;
use super::super::text::{Text, is_blank, is_random};
use super::{Scene, Span};

/// Longest header value that is read, in bytes.
const VALUE_MAX: usize = 8192;

/// Reads the credentials of an `Authorization` header, or of a scheme (`Bearer …`) standing alone.
pub(super) fn authorization(scene: Scene<'_>, hit: Span, found: &mut Vec<Span>) {
    let text = scene.text;
    if text.before(hit.0).is_ascii_alphanumeric() {
        return;
    }
    let scheme = text.cut(hit.0, hit.1).trim_ascii();
    if SCHEMES
        .iter()
        .any(|s| scheme.eq_ignore_ascii_case(s.as_bytes()))
    {
        let strict =
            scheme.eq_ignore_ascii_case(b"digest") || scheme.eq_ignore_ascii_case(b"token");
        credentials(scene, hit.1, scheme, strict, found);
        return;
    }
    // The header's name: on to its value.
    let mut at = text.skip(hit.1, 4, |b| {
        matches!(b, b'"' | b'\'' | b'`' | b'*' | b']' | b'\\')
    });
    at = text.skip(at, 4, is_blank);
    if !matches!(text.at(at), b':' | b'=' | b',') {
        return;
    }
    at = text.skip(at + 1, 12, |b| {
        is_blank(b) || matches!(b, b'"' | b'\'' | b'`' | b'*' | b'>' | b'[' | b'\\' | b'=')
    });
    let word_end = text.skip(at, 32, |b| b.is_ascii_alphanumeric() || b == b'-');
    let word = text.cut(at, word_end);
    if word.eq_ignore_ascii_case(b"digest") {
        digest(scene, word_end, found);
    } else if is_blank(text.at(word_end))
        && word.iter().all(|b| b.is_ascii_alphabetic() || *b == b'-')
    {
        credentials(scene, word_end, word, false, found);
    } else {
        // `Authorization: <token>` without a scheme, `X-Api-Key: <key>`.
        take(scene, at, 6, found);
    }
}

const SCHEMES: &[&str] = &[
    "bearer",
    "basic",
    "digest",
    "token",
    "negotiate",
    "apikey",
    "sso-key",
    "splunk",
];

fn credentials(scene: Scene<'_>, at: usize, scheme: &[u8], strict: bool, found: &mut Vec<Span>) {
    let text = scene.text;
    let at = text.skip(at, 4, |b| {
        is_blank(b) || matches!(b, b'"' | b'\'' | b'*' | b'`')
    });
    if scheme.eq_ignore_ascii_case(b"basic") {
        let end = text.skip(at, VALUE_MAX, is_token68);
        let bytes = text.cut(at, end);
        let decoded = {
            use base64ct::Encoding as _;
            let trimmed = bytes
                .iter()
                .filter(|&&b| b != b'=')
                .copied()
                .collect::<Vec<u8>>();
            str::from_utf8(&trimmed)
                .ok()
                .and_then(|s| base64ct::Base64Unpadded::decode_vec(s).ok())
        };
        let pair = decoded.is_some_and(|d| d.contains(&b':'));
        if bytes.len() >= 6
            && (pair || (bytes.len() >= 16 && is_random(bytes)))
            && is_live(scene, bytes)
        {
            found.push((at, end));
        }
        return;
    }
    if text.has(at, b"token=") || text.has(at, b"signature=") || text.has(at, b"credential=") {
        return take(scene, text.skip(at, 12, |b| b != b'=') + 1, 8, found);
    }
    let end = text.skip(at, VALUE_MAX, is_token68);
    let bytes = text.cut(at, end);
    let enough = if strict {
        bytes.len() >= 16
    } else {
        bytes.len() >= 8
    };
    if enough && is_random(bytes) && is_live(scene, bytes) {
        found.push((at, text.back(end, 3, |b| b == b'.' || b == b'-')));
    }
}

/// `response="…"` and `nonce="…"` of Digest (RFC 7616).
fn digest(scene: Scene<'_>, at: usize, found: &mut Vec<Span>) {
    let text = scene.text;
    let end = text.line_end(at, 2000);
    if let Some(n) = text.find(at, end, b"response=") {
        let from = text.skip(n + 9, 2, |b| b == b'"' || b == b'\\');
        take(scene, from, 8, found);
    }
}

fn take(scene: Scene<'_>, at: usize, min: usize, found: &mut Vec<Span>) {
    let text = scene.text;
    let end = text.skip(at, VALUE_MAX, |b| is_token68(b) || b == b':');
    let end = text.back(end, 2, |b| matches!(b, b'.' | b':'));
    let bytes = text.cut(at, end);
    if bytes.len() >= min && is_random(bytes) && is_live(scene, bytes) {
        found.push((at, end));
    }
}

fn is_token68(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || matches!(
            b,
            b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'!' | b'%' | b'$' | b'#'
        )
}

fn is_live(scene: Scene<'_>, v: &[u8]) -> bool {
    !scene.ids.is_all_markers(v)
        && !placeholder::is_placeholder(v)
        && !placeholder::is_reference(v, true)
}

/// Reads the values of session cookies; gives the end of what was read.
pub(super) fn cookie(scene: Scene<'_>, hit: Span, found: &mut Vec<Span>) -> usize {
    let text = scene.text;
    if text.before(hit.0).is_ascii_alphanumeric() {
        return 0;
    }
    let mut at = text.skip(hit.1, 6, |b| {
        matches!(b, b'"' | b'\'' | b':' | b' ' | b'=' | b'*')
    });
    if at == hit.1 {
        return 0;
    }
    let end = text.line_end(at, VALUE_MAX);
    while at < end {
        let name_end = text.skip(at, 64, |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
        });
        if text.at(name_end) != b'=' || name_end == at {
            return at;
        }
        let stop = text.skip(name_end + 1, VALUE_MAX, |b| {
            !b.is_ascii_whitespace() && !matches!(b, b';' | b'"' | b'\'' | b'`')
        });
        let value = text.cut(name_end + 1, stop);
        let session = names_session(text, at, name_end);
        let enough = if session {
            value.len() >= 6
        } else {
            value.len() >= 20 && is_random(value)
        };
        if enough
            && is_random(value)
            && is_live(scene, value)
            && !names_tracking(text, at, name_end)
        {
            found.push((name_end + 1, stop));
        }
        at = text.skip(stop, 3, |b| matches!(b, b';' | b' '));
        if at == stop {
            return at;
        }
    }
    at
}

fn names_session(text: Text<'_>, start: usize, end: usize) -> bool {
    let words: &[&[u8]] = &[
        b"sess",
        b"sid",
        b"auth",
        b"token",
        b"jwt",
        b"remember",
        b"login",
        b"csrf",
        b"xsrf",
    ];
    words.iter().any(|w| text.find(start, end, w).is_some())
}

fn names_tracking(text: Text<'_>, start: usize, end: usize) -> bool {
    text.has(start, b"_ga")
        || text.has(start, b"_gid")
        || text.has(start, b"_fbp")
        || text.has(start, b"expires")
        || (end - start == 4 && text.has(start, b"path"))
}
