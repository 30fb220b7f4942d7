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
            runs: runs(text),
        };
        let mut next = 0;
        while let Some(i) = next_of_a_kind(text, next) {
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

/// Where the next byte that has a kind stands, from `from` on.
fn next_of_a_kind(text: Text<'_>, from: usize) -> Option<usize> {
    // Most stretches have none: one look at a whole stretch, without a branch for each byte.
    const STRETCH: usize = 32;
    let mut at = from;
    for stretch in text.cut(from, text.len()).chunks(STRETCH) {
        if stretch.iter().fold(0, |any, &b| any | kind(b)) != 0 {
            return stretch
                .iter()
                .position(|&b| kind(b) != 0)
                .map(|step| at + step);
        }
        at += stretch.len();
    }
    None
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
    let last = text.before(end);
    if !is_token(last) && !is_mark(last) {
        return None;
    }
    let start = text.skip(i + 1, 24, |b| {
        matches!(b, b' ' | b'\t' | b'>' | b'#' | b'|' | b'*' | b';' | b'/')
    });
    // A token's own slash is not a comment's.
    let start = start - usize::from(text.before(start) == b'/' && text.before(start - 1) != b'/');
    let first = text.at(start);
    if !is_token(first) && !is_mark(first) {
        return None;
    }
    let inside = |b| is_token(b) || is_mark(b) || b == b':';
    let head = text.cut(start, text.skip(start, 40, inside));
    // A plain word begins a line of prose, not the rest of a token.
    let stop = text.skip(start, 40, is_token);
    // `sha256:` is the name of what follows; only digits stand before a colon in a token.
    let named = text.at(stop) == b':' && !text.cut(start, stop).iter().all(u8::is_ascii_digit);
    if !continued && named {
        return None;
    }
    let alone = !(is_mark(text.at(stop)) && is_token(text.at(stop + 1)));
    if !continued && alone && is_plain_word(text.cut(start, stop)) {
        return None;
    }
    let tail = text.cut(text.back(end, 40, inside), end);
    // A mark at the joint ends a sentence, or begins one's rest, unless both sides are random.
    if (is_mark(last) || is_mark(first))
        && !(tail.len() >= 8 && is_random(tail) && head.len() >= 8 && is_random(head))
    {
        return (continued && !tail.is_empty() && !is_plain_word(head)).then_some((end, start));
    }
    // The beginning of a known token, not a word: what follows is long and random.
    let prefix = head.len() >= 16
        && is_random(head)
        && (matches!(first, b'-' | b'_')
            || tail
                .iter()
                .any(|&b| b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.' | b'~')));
    if prefix && !tail.is_empty() {
        return Some((end, start));
    }
    // Nor does a token go on from one; a prefix in capitals may.
    if !continued && is_plain_word(tail) && tail.iter().any(u8::is_ascii_lowercase) {
        return None;
    }
    let plausible = (continued && !tail.is_empty())
        || (tail.len() >= 3 && is_random(tail))
        || (head.len() >= 3 && is_random(head) && tail.len() >= 3);
    plausible.then_some((end, start))
}

/// Signs that stand inside tokens as well as between words.
fn is_mark(b: u8) -> bool {
    matches!(b, b'.' | b'~' | b'$')
}

/// All runs that are worth decoding, in order.
fn runs(text: Text<'_>) -> Vec<(usize, usize)> {
    let mut runs = long_runs(text);
    let spaced = spaced_runs(text);
    if !spaced.is_empty() {
        runs.extend(spaced);
        runs.sort_unstable();
    }
    runs
}

/// Fewest characters, or bytes in hex, of a run that is written with a blank after each.
const SPACED_MIN: usize = 16;

/// Runs written as `s k - l i v e` or `73 6b 2d`.
fn spaced_runs(text: Text<'_>) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut i = 0;
    while i < text.len() {
        let run = [(i, 2), (i + 1, 2), (i, 3), (i + 1, 3), (i + 2, 3)]
            .into_iter()
            .filter(|&(at, period)| is_repeated(text, at, period))
            .find_map(|(at, period)| spaced(text, at, period));
        i = match run {
            Some((start, end)) if runs.last().is_none_or(|r| r.1 <= start) => {
                runs.push((start, end));
                end.max(i + SPACED_MIN)
            }
            _ => i + SPACED_MIN,
        };
    }
    runs
}

/// Whether a separator stands at `at`, and the same one on either side of it, as in every run.
fn is_repeated(text: Text<'_>, at: usize, period: usize) -> bool {
    let sign = text.at(at);
    let before = at.checked_sub(period).map_or(0, |before| text.at(before));
    matches!(sign, b' ' | b':') && (text.at(at + period) == sign || before == sign)
}

/// The run around the separator at `at` whose parts are `period - 1` characters long.
fn spaced(text: Text<'_>, at: usize, period: usize) -> Option<(usize, usize)> {
    let sign = text.at(at);
    let part = |from: usize| {
        let unit = text.cut(from, from + period - 1);
        unit.len() == period - 1
            && if period == 2 {
                sign == b' ' && unit.iter().all(u8::is_ascii_graphic)
            } else {
                unit.iter().all(u8::is_ascii_hexdigit)
            }
    };
    let mut end = at;
    while text.at(end) == sign && part(end + 1) {
        end += period;
    }
    // Back over whole parts: one that is glued to something is the end of a word.
    let mut start = at + 1;
    while start > period - 1 && text.at(start - 1) == sign && part(start - period) {
        let from = start - period;
        if from > 0 && text.at(from - 1) != sign && !text.at(from - 1).is_ascii_whitespace() {
            break;
        }
        start = from;
    }
    let count = (end + 1).saturating_sub(start) / period;
    (start <= at && count >= SPACED_MIN).then_some((start, end))
}

fn is_run(b: u8) -> bool {
    RUN.get(usize::from(b)).copied().unwrap_or(false)
}

/// The characters of base64 in both its alphabets, which those of hex are among.
const RUN: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0usize;
    while i < 256 {
        let b = i as u8;
        #[expect(clippy::indexing_slicing, reason = "i is below the table's length")]
        {
            table[i] = b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'_' | b'-');
        }
        i += 1;
    }
    table
};

/// Whether all bytes from one probe to the next belong to a run. All are looked at, for a
/// branch that depends on the letters of a word is never foreseen.
fn is_between_probes(text: Text<'_>, i: usize) -> bool {
    let stretch = text.cut(i, i + PROBE + 1);
    stretch.len() == PROBE + 1 && stretch.iter().fold(true, |all, &b| all & is_run(b))
}

fn long_runs(text: Text<'_>) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut i = PROBE - 1;
    while i < text.len() {
        if is_between_probes(text, i) {
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
