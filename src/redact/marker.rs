//! Markers that stand in a text where a value was removed: `[REDACTED:rule-id]`, `[REDACTED:rule-id#k3f9q2]`.

use std::collections::HashSet;

/// What every marker begins with.
pub(crate) const OPEN: &[u8] = b"[REDACTED:";
/// Longest marker, in bytes.
const MARKER_MAX: usize = 96;

/// The rule ids that exist: a marker counts as one only with such an id.
#[derive(Default)]
pub(crate) struct Ids(HashSet<Box<[u8]>>);

impl Ids {
    pub(crate) fn insert(&mut self, id: &str) -> bool {
        self.0.insert(id.as_bytes().into())
    }

    /// The length of the marker that `text` begins with, if it is one.
    pub(crate) fn marker_len(&self, text: &[u8]) -> Option<usize> {
        let rest = text.strip_prefix(OPEN)?;
        let close = rest.iter().take(MARKER_MAX).position(|&b| b == b']')?;
        let inner = rest.get(..close)?;
        let cut = inner
            .iter()
            .position(|&b| b == b'#' || b == b'~')
            .unwrap_or(inner.len());
        let (id, tail) = inner.split_at(cut);
        let tail_fits = match tail.split_first() {
            None => true,
            Some((b'#', tag)) => tag.len() == TAG_LEN && tag.iter().all(|b| ALPHABET.contains(b)),
            // The last four characters of a value, as receipts show them.
            Some((_, last)) => last.len() == 4 && last.iter().all(u8::is_ascii_alphanumeric),
        };
        (tail_fits && self.0.contains(id)).then_some(OPEN.len() + close + 1)
    }

    /// Whether `value` is nothing but markers, blanks and separators between them.
    pub(crate) fn is_all_markers(&self, value: &[u8]) -> bool {
        if !value.contains(&b'[') {
            return false;
        }
        let mut rest = value;
        let mut any = false;
        while !rest.is_empty() {
            if let Some(n) = self.marker_len(rest) {
                rest = rest.get(n..).unwrap_or(&[]);
                any = true;
            } else if let Some(tail) = [&b"\\n"[..], b"\\r", b"\\t"]
                .iter()
                .find_map(|e| rest.strip_prefix(*e))
            {
                rest = tail;
            } else if let Some((b, tail)) = rest.split_first()
                && (b.is_ascii_whitespace()
                    || matches!(
                        b,
                        b',' | b'.'
                            | b':'
                            | b';'
                            | b'"'
                            | b'\''
                            | b'`'
                            | b'*'
                            | b'@'
                            | b'/'
                            | b'|'
                            | b')'
                            | b'('
                            | b'\\'
                            | b'='
                            | b'-'
                            | b'&'
                            | b'<'
                            | b'>'
                            | b'}'
                            | b'{'
                            | b']'
                    ))
            {
                rest = tail;
            } else {
                return false;
            }
        }
        any
    }
}

/// Characters of a pseudonym's tag.
const TAG_LEN: usize = 6;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The marker of a removed value.
pub(crate) fn label(id: &str) -> String {
    format!("[REDACTED:{id}]")
}

/// The marker of a value that keeps its identity: the same value gives the same tag under the same key.
pub(crate) fn pseudonym(id: &str, digest: &[u8; 32]) -> String {
    let tag: String = digest
        .iter()
        .take(TAG_LEN)
        .map(|b| {
            ALPHABET
                .get(usize::from(b & 31))
                .map_or('a', |c| char::from(*c))
        })
        .collect();
    format!("[REDACTED:{id}#{tag}]")
}

/// The marker of a value of which the last four characters stay.
pub(crate) fn last4(id: &str, value: &str) -> String {
    let kept: Vec<char> = value.chars().filter(char::is_ascii_alphanumeric).collect();
    // A short value would be given away: four characters stay only of twelve or more.
    match kept.get(kept.len().saturating_sub(4)..) {
        Some(last) if kept.len() >= 12 => {
            format!("[REDACTED:{id}~{}]", last.iter().collect::<String>())
        }
        _ => label(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_counts_only_with_an_id_that_exists() {
        let mut ids = Ids::default();
        ids.insert("password");
        assert_eq!(ids.marker_len(b"[REDACTED:password] x"), Some(19));
        assert_eq!(ids.marker_len(b"[REDACTED:password#k3f9q2"), None);
        assert_eq!(ids.marker_len(b"[REDACTED:password#k3f9q2]"), Some(26));
        assert_eq!(ids.marker_len(b"[REDACTED:hunter2]"), None);
        assert!(ids.is_all_markers(b"[REDACTED:password]"));
        assert!(!ids.is_all_markers(b"[REDACTED:password]tail"));
        assert!(ids.is_all_markers(b"[REDACTED:password]\\n"));
    }
}
