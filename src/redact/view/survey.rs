//! One pass over a text that finds what would read differently folded, unescaped, joined or decoded.

use super::super::text::{Text, is_plain_word, is_random, is_token};
use super::{add_region, clean, join};

/// Shortest run of base64 or hex characters that is worth decoding.
const RUN_MIN: usize = 20;
/// Step of the search for such runs: a run of `RUN_MIN` always covers two probes.
const PROBE: usize = 10;

/// What was found. All offsets are bytes of the surveyed text, in ascending order.
pub(super) struct Survey {
    /// Neighbourhoods of characters that fold or unescape to something else.
    pub(super) regions: Vec<(usize, usize)>,
    /// Bytes to leave out so that wrapped lines and split literals come together.
    pub(super) cuts: Vec<(usize, usize)>,
    /// Runs of base64 or hex characters.
    pub(super) runs: Vec<(usize, usize)>,
}

impl Survey {
    pub(super) fn of(text: Text<'_>) -> Self {
        let mut survey = Self {
            regions: Vec::new(),
            cuts: Vec::new(),
            runs: long_runs(text),
        };
        let mut next = 0;
        while let Some(step) = text
            .cut(next, text.len())
            .iter()
            .position(|&b| kind(b) != 0)
        {
            let i = next + step;
            next = i + 1;
            match kind(text.at(i)) {
                NEWLINE => {
                    if let Some(cut) = wrapped(text, i) {
                        survey.cut(cut);
                    }
                }
                QUOTE => {
                    if let Some(cut) = join::split_literal(text, i) {
                        survey.cut(cut);
                    }
                }
                _ => {
                    if clean::step(text, i).is_some() && clean::is_trigger(text, i) {
                        add_region(&mut survey.regions, text, i, i + 1);
                    }
                }
            }
        }
        survey
    }

    pub(super) fn is_empty(&self) -> bool {
        self.regions.is_empty() && self.cuts.is_empty() && self.runs.is_empty()
    }

    fn cut(&mut self, cut: (usize, usize)) {
        if self.cuts.last().is_none_or(|last| last.1 <= cut.0) {
            self.cuts.push(cut);
        }
    }
}

const NEWLINE: u8 = 1;
const QUOTE: u8 = 2;
const OTHER: u8 = 3;

const KIND: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut i = 0usize;
    while i < 256 {
        #[expect(clippy::indexing_slicing, reason = "i is below the table's length")]
        {
            table[i] = match i as u8 {
                b'\n' => NEWLINE,
                b'"' | b'\'' => QUOTE,
                b'\\' | b'%' | b'&' | b'*' | b'`' | b'~' | b'<' | 0x80..=0xff => OTHER,
                _ => 0,
            };
        }
        i += 1;
    }
    table
};

fn kind(b: u8) -> u8 {
    KIND.get(usize::from(b)).copied().unwrap_or(0)
}

/// The bytes to leave out at the line feed at `i` when a token seems to go on in the next line.
fn wrapped(text: Text<'_>, i: usize) -> Option<(usize, usize)> {
    let mut end = text.back(i, 8, |b| matches!(b, b'\r' | b' ' | b'\t'));
    let continued = text.before(end) == b'\\';
    if continued {
        end = text.back(end - 1, 8, |b| b == b' ' || b == b'\t' || b == b'\\');
    }
    // Quoted-printable ends a line that goes on with `=` (RFC 2045, 6.7).
    if text.before(end) == b'=' && end == i && text.before(end - 1).is_ascii_alphanumeric() {
        end -= 1;
    }
    if !is_token(text.before(end)) {
        return None;
    }
    let start = text.skip(i + 1, 24, |b| {
        matches!(b, b' ' | b'\t' | b'>' | b'#' | b'|' | b'*' | b';' | b'/')
    });
    // A token's own slash is not a comment's.
    let start = start - usize::from(text.before(start) == b'/' && text.before(start - 1) != b'/');
    let goes_on = is_token(text.at(start)) || (continued && text.at(start) == b'.');
    if !goes_on {
        return None;
    }
    let head = text.cut(start, text.skip(start, 40, is_token));
    // A plain word begins a line of prose, not the rest of a token.
    if !continued && is_plain_word(head) {
        return None;
    }
    let tail = text.cut(text.back(end, 40, is_token), end);
    // Nor does a token go on from one; a prefix in capitals may.
    if !continued && is_plain_word(tail) && tail.iter().any(u8::is_ascii_lowercase) {
        return None;
    }
    let plausible = (continued && !tail.is_empty())
        || (tail.len() >= 3 && is_random(tail))
        || (head.len() >= 3 && is_random(head) && tail.len() >= 3);
    plausible.then_some((end, start))
}

fn is_run(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'_' | b'-')
}

fn long_runs(text: Text<'_>) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut i = PROBE - 1;
    while i < text.len() {
        if is_run(text.at(i)) && is_run(text.at(i + PROBE)) {
            let end = text.skip(i, text.len(), is_run);
            if end > i + PROBE {
                let low = runs.last().map_or(0, |r: &(usize, usize)| r.1);
                let start = text.back(i, i - low.min(i), is_run);
                let end = text.skip(end, 2, |b| b == b'=');
                if end - start >= RUN_MIN {
                    runs.push((start, end));
                }
            }
            i = end.max(i + PROBE);
        } else {
            i += PROBE;
        }
    }
    runs
}
