//! A byte text that is read with clamped positions, so that parsers need no bounds checks of their own.

/// A borrowed text. Reads past either end give 0 or an empty slice.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(pub(crate) &'a [u8]);

impl<'a> Text<'a> {
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// The byte at `i`, or 0 past the end.
    pub(crate) fn at(self, i: usize) -> u8 {
        self.0.get(i).copied().unwrap_or(0)
    }

    /// The byte before `i`, or 0 at the start.
    pub(crate) fn before(self, i: usize) -> u8 {
        i.checked_sub(1).map_or(0, |j| self.at(j))
    }

    /// The bytes from `start` to `end`, clamped.
    pub(crate) fn cut(self, start: usize, end: usize) -> &'a [u8] {
        let end = end.min(self.len());
        self.0.get(start.min(end)..end).unwrap_or(&[])
    }

    /// Steps forward from `i` while `test` holds, at most `cap` bytes.
    pub(crate) fn skip(self, i: usize, cap: usize, test: impl Fn(u8) -> bool) -> usize {
        let run = self.cut(i, i.saturating_add(cap)).iter();
        i + run.take_while(|&&b| test(b)).count()
    }

    /// Steps back from `i` while `test` holds for the byte before, at most `cap` bytes.
    pub(crate) fn back(self, i: usize, cap: usize, test: impl Fn(u8) -> bool) -> usize {
        let run = self.cut(i.saturating_sub(cap), i).iter().rev();
        i - run.take_while(|&&b| test(b)).count()
    }

    /// The start of the line that holds `i`, at most `cap` bytes back.
    pub(crate) fn line_start(self, i: usize, cap: usize) -> usize {
        self.back(i, cap, |b| b != b'\n')
    }

    /// The end of the line that holds `i` (its LF is not included), at most `cap` bytes on.
    pub(crate) fn line_end(self, i: usize, cap: usize) -> usize {
        self.skip(i, cap, |b| b != b'\n')
    }

    /// Whether `word` (lower case) stands at `i`, in any case.
    pub(crate) fn has(self, i: usize, word: &[u8]) -> bool {
        self.cut(i, i + word.len()).eq_ignore_ascii_case(word)
    }

    /// Where `word` (lower case) first stands in `start..end`, in any case.
    pub(crate) fn find(self, start: usize, end: usize, word: &[u8]) -> Option<usize> {
        let place = self.cut(start, end);
        let first = word.first().copied().unwrap_or(0).to_ascii_lowercase();
        let mut from = 0;
        loop {
            let rest = place.get(from..)?;
            from += rest.iter().position(|b| b.to_ascii_lowercase() == first)?;
            let here = place.get(from..from + word.len())?;
            if here.eq_ignore_ascii_case(word) {
                return Some(start + from);
            }
            from += 1;
        }
    }
}

/// Letters, digits and underscore.
pub(crate) fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// What a token of a credential is usually made of.
pub(crate) fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+' | b'/' | b'=')
}

/// Space and tab.
pub(crate) fn is_blank(b: u8) -> bool {
    b == b' ' || b == b'\t'
}

/// Whether `v` holds a digit and a letter, or changes case inside more often than words do.
pub(crate) fn is_random(v: &[u8]) -> bool {
    let digit = v.iter().any(u8::is_ascii_digit);
    let letter = v.iter().any(u8::is_ascii_alphabetic);
    (digit && letter) || case_turns(v) >= 3
}

/// Letters as words of prose have them: all small, a capital first, or a short word in capitals.
pub(crate) fn is_plain_word(v: &[u8]) -> bool {
    let upper = v.iter().filter(|b| b.is_ascii_uppercase()).count();
    let small = v.iter().skip(1).all(|b| !b.is_ascii_uppercase());
    v.len() <= 16
        && v.iter().all(|&b| b.is_ascii_alphabetic() || b == b'-')
        && (small || (upper == v.len() && upper <= 8))
}

/// How often a lower-case letter is followed by an upper-case one.
pub(crate) fn case_turns(v: &[u8]) -> usize {
    let pairs = v.iter().zip(v.iter().skip(1));
    pairs
        .filter(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase())
        .count()
}

/// How many different bytes `v` holds.
pub(crate) fn distinct(v: &[u8]) -> usize {
    let mut seen = [0u64; 4];
    for &b in v {
        if let Some(word) = seen.get_mut(usize::from(b >> 6)) {
            *word |= 1 << (b & 63);
        }
    }
    seen.iter().map(|w| w.count_ones() as usize).sum()
}
