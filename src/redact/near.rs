//! Whether the words around a value say that it is one.

use super::pass::clip;
use super::scan::Rule;
use super::text::Text;

/// Bytes around a value in which one of the rule's `near` words must stand.
pub(super) const NEAR: usize = 80;

/// Whether one of the rule's `near` words stands close to the value, and no name beside it says that it is a digest.
pub(super) fn is_near(text: Text<'_>, rule: &Rule, start: usize, end: usize) -> bool {
    if rule.def.class == "secret" && names_digest(text, start) {
        return false;
    }
    let (low, high) = clip(
        text,
        start.saturating_sub(NEAR),
        end + NEAR / 2,
        (start, end),
    );
    // Words of another paragraph say nothing: the line counts, and the one before.
    let line = text.line_start(start, NEAR);
    let low = low.max(text.line_start(line.saturating_sub(1), NEAR));
    let high = high.min(text.line_end(end, NEAR));
    let stands = |word: &[u8]| {
        let mut from = low;
        while let Some(i) = text.find(from, high, word) {
            let inside = i < end && i + word.len() > start;
            // Short words count only by themselves: "sin" is not in "single".
            let alone = word.len() > 3
                || !(text.before(i).is_ascii_alphabetic()
                    || text.at(i + word.len()).is_ascii_alphabetic());
            if alone && !inside {
                return true;
            }
            from = i + 1;
        }
        false
    };
    // A variable's name has other signs in place of blanks, or none.
    let joined = |word: &str| {
        ["_", "-", ""]
            .into_iter()
            .any(|sign| stands(word.replace(' ', sign).as_bytes()))
    };
    rule.def
        .near
        .iter()
        .any(|word| stands(word.as_bytes()) || (word.contains(' ') && joined(word)))
}

/// Whether the name in front of the value is one of an id or digest.
fn names_digest(text: Text<'_>, start: usize) -> bool {
    let end = text.back(start, 6, |b| {
        matches!(b, b' ' | b'"' | b'\'' | b'=' | b':' | b'`')
    });
    let low = text.back(end, 40, |b| {
        b.is_ascii_alphanumeric() || b == b'_' || b == b'-'
    });
    let name = text.cut(low, end);
    let last = name
        .rsplit(|b| matches!(b, b'_' | b'-'))
        .next()
        .unwrap_or(name);
    // The id of an access key is one half of a credential.
    let long = text.cut(low.saturating_sub(12), end).to_ascii_lowercase();
    if ["access_id", "access id", "access_key_id", "access key id"]
        .iter()
        .any(|n| long.ends_with(n.as_bytes()))
    {
        return false;
    }
    #[rustfmt::skip]
    let words: &[&str] = &[
        "id", "hash", "sha", "sha1", "sha256", "sha512", "md5", "etag", "digest", "checksum",
        "commit", "rev", "revision", "uuid", "guid", "integrity", "version", "ref", "cid",
        "fingerprint", "build", "blob", "tree", "parent", "trace", "span", "request", "correlation",
        "image",
    ];
    words
        .iter()
        .any(|w| last.eq_ignore_ascii_case(w.as_bytes()))
}
