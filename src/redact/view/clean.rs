//! The cleaned text: folded and unescaped, without markup inside tokens.

use super::super::text::{Text, is_word};
use super::{Draft, fold};

/// What one place of the text becomes.
pub(super) struct Step {
    /// How many bytes of the text it takes.
    pub(super) takes: usize,
    /// What it becomes.
    pub(super) gives: Gives,
}

/// The replacement of a step.
pub(super) enum Gives {
    /// Nothing.
    Nothing,
    /// One character.
    Char(char),
    /// A short ASCII text.
    Text(&'static str),
}

/// Builds the cleaned text of the given regions.
pub(super) fn build(text: Text<'_>, regions: &[(usize, usize)]) -> Draft {
    let mut draft = Draft::default();
    for &(start, end) in regions {
        draft.gap(start);
        let mut copied = start;
        let mut i = start;
        while i < end {
            let b = text.at(i);
            let plain =
                b.is_ascii() && !matches!(b, b'\\' | b'%' | b'&' | b'*' | b'`' | b'~' | b'<');
            let Some(step) = (if plain { None } else { step(text, i) }) else {
                i += 1;
                continue;
            };
            draft.copy(text, copied, i);
            let next = i + step.takes.max(1);
            match step.gives {
                Gives::Nothing => {}
                Gives::Char(c) => draft.put(c.encode_utf8(&mut [0; 4]).as_bytes(), i, next),
                Gives::Text(s) => draft.put(s.as_bytes(), i, next),
            }
            i = next;
            copied = next;
        }
        draft.copy(text, copied, end.max(copied));
    }
    draft
}

/// What stands at `i`, if it reads differently cleaned.
pub(super) fn step(text: Text<'_>, i: usize) -> Option<Step> {
    match text.at(i) {
        b'\\' => backslash(text, i),
        b'%' => {
            let value = hex(text, i + 1, 2)?;
            (value < 0x80).then(|| char_step(3, value))?
        }
        b'&' => entity(text, i),
        b'*' | b'`' | b'~' => emphasis(text, i),
        b'<' => tag(text, i),
        0x80.. => folded(text, i),
        _ => None,
    }
}

/// Whether the step at `i` is by itself a reason to build the cleaned text.
pub(super) fn is_trigger(text: Text<'_>, i: usize) -> bool {
    let b = text.at(i);
    if b.is_ascii() {
        // `\n` in the middle of prose or code is common, but it can hide a boundary or a whole key.
        return true;
    }
    let Some((c, len)) = decode(text, i) else {
        return false;
    };
    let glued = |b: u8| is_word(b) || b == b'-' || b == b'=';
    if fold::is_strong(c) {
        return true;
    }
    if !glued(text.before(i)) && !glued(text.at(i + len)) {
        return false;
    }
    // Typographic dashes and quotes are ordinary in prose; in a token that holds a digit they are not.
    if fold::is_weak(c) {
        let low = text.back(i, 40, |b| !b.is_ascii_whitespace());
        let high = text.skip(i + len, 40, |b| !b.is_ascii_whitespace());
        return text
            .cut(low, high)
            .iter()
            .filter(|b| b.is_ascii_digit())
            .count()
            >= 2;
    }
    true
}

fn char_step(takes: usize, value: u32) -> Option<Step> {
    let c = char::from_u32(value)?;
    let gives = match fold::fold(c) {
        Some(fold::Fold::Drop) => Gives::Nothing,
        Some(fold::Fold::To(s)) => Gives::Char(s),
        Some(fold::Fold::Text(s)) => Gives::Text(s),
        None => Gives::Char(c),
    };
    Some(Step { takes, gives })
}

fn folded(text: Text<'_>, i: usize) -> Option<Step> {
    let (c, takes) = decode(text, i)?;
    let gives = match fold::fold(c)? {
        fold::Fold::Drop => Gives::Nothing,
        fold::Fold::To(c) => Gives::Char(c),
        fold::Fold::Text(s) => Gives::Text(s),
    };
    Some(Step { takes, gives })
}

/// The character that starts at `i`.
fn decode(text: Text<'_>, i: usize) -> Option<(char, usize)> {
    let len = match text.at(i) {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let c = str::from_utf8(text.cut(i, i + len)).ok()?.chars().next()?;
    Some((c, len))
}

fn backslash(text: Text<'_>, i: usize) -> Option<Step> {
    match text.at(i + 1) {
        b'n' => Some(Step {
            takes: 2,
            gives: Gives::Text("\n"),
        }),
        b'r' => Some(Step {
            takes: 2,
            gives: Gives::Nothing,
        }),
        b't' => Some(Step {
            takes: 2,
            gives: Gives::Text("\t"),
        }),
        b'x' => char_step(4, hex(text, i + 2, 2)?),
        b'u' if text.at(i + 2) == b'{' => {
            let end = text.skip(i + 3, 6, |b| b.is_ascii_hexdigit());
            (text.at(end) == b'}')
                .then(|| char_step(end + 1 - i, hex(text, i + 3, end - i - 3)?))?
        }
        b'u' => {
            let high = hex(text, i + 2, 4)?;
            if (0xd800..0xdc00).contains(&high) && text.has(i + 6, b"\\u") {
                let low = hex(text, i + 8, 4)?;
                return char_step(
                    12,
                    0x10000 + ((high - 0xd800) << 10) + low.wrapping_sub(0xdc00) % 0x400,
                );
            }
            char_step(6, high)
        }
        b'U' => char_step(10, hex(text, i + 2, 8)?),
        b'0'..=b'7' => {
            let digits = text.cut(i + 1, i + 4);
            let value = u32::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()?;
            (digits.len() == 3 && value < 0x80).then(|| char_step(4, value))?
        }
        b'\n' => None,
        b if b.is_ascii_punctuation() => Some(Step {
            takes: 2,
            gives: Gives::Char(char::from(b)),
        }),
        _ => None,
    }
}

fn hex(text: Text<'_>, i: usize, len: usize) -> Option<u32> {
    let digits = text.cut(i, i + len);
    if digits.len() != len || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

fn entity(text: Text<'_>, i: usize) -> Option<Step> {
    if text.at(i + 1) == b'#' {
        let is_hex = matches!(text.at(i + 2), b'x' | b'X');
        let from = i + 2 + usize::from(is_hex);
        let end = text.skip(from, 8, |b| b.is_ascii_hexdigit());
        let digits = str::from_utf8(text.cut(from, end)).ok()?;
        let value = u32::from_str_radix(digits, if is_hex { 16 } else { 10 }).ok()?;
        let semicolon = usize::from(text.at(end) == b';');
        return char_step(end + semicolon - i, value);
    }
    let end = text.skip(i + 1, 12, |b| b.is_ascii_alphanumeric());
    if text.at(end) != b';' {
        return None;
    }
    let name = text.cut(i + 1, end);
    let gives = ENTITIES
        .iter()
        .find(|(n, _)| n.as_bytes() == name)
        .map(|(_, s)| *s)?;
    Some(Step {
        takes: end + 1 - i,
        gives: Gives::Text(gives),
    })
}

const ENTITIES: &[(&str, &str)] = &[
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("shy", ""),
    ("zwnj", ""),
    ("zwj", ""),
    ("ZeroWidthSpace", ""),
    ("NoBreak", ""),
    ("lowbar", "_"),
    ("hyphen", "-"),
    ("dash", "-"),
    ("colon", ":"),
    ("semi", ";"),
    ("equals", "="),
    ("commat", "@"),
    ("sol", "/"),
    ("bsol", "\\"),
    ("period", "."),
    ("comma", ","),
    ("plus", "+"),
    ("num", "#"),
    ("percnt", "%"),
    ("dollar", "$"),
    ("excl", "!"),
    ("ast", "*"),
    ("lpar", "("),
    ("rpar", ")"),
    ("Tab", "\t"),
    ("NewLine", "\n"),
];

/// Emphasis, code and strike-through marks between two characters of a token.
fn emphasis(text: Text<'_>, i: usize) -> Option<Step> {
    let mark = text.at(i);
    let end = text.skip(i, 4, |b| matches!(b, b'*' | b'`' | b'~'));
    let goes_on = glue(text.at(end))
        || (end - i > 1 && matches!(text.at(end), b'/' | b'+' | b'.') && glue(text.at(end + 1)));
    let inside =
        (glue(text.before(i)) || (end - i > 1 && matches!(text.before(i), b'/' | b'+'))) && goes_on;
    if !inside || end - i > 3 || (mark == b'~' && end - i < 2) {
        return None;
    }
    Some(Step {
        takes: end - i,
        gives: Gives::Nothing,
    })
}

fn glue(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

/// An inline tag between two characters of a token, such as `<wbr>` or `<b>`.
fn tag(text: Text<'_>, i: usize) -> Option<Step> {
    if !glue(text.before(i)) && text.before(i) != b'>' {
        return None;
    }
    let name = i + 1 + usize::from(text.at(i + 1) == b'/');
    let end = text.skip(name, 8, |b| b.is_ascii_alphabetic());
    let known = TAGS
        .iter()
        .any(|t| text.cut(name, end).eq_ignore_ascii_case(t.as_bytes()));
    let close = text.skip(end, 40, |b| b != b'>' && b != b'\n' && b != b'<');
    let comment = text.has(i, b"<!--");
    if comment {
        let close = text.find(i, i + 80, b"-->")?;
        return Some(Step {
            takes: close + 3 - i,
            gives: Gives::Nothing,
        });
    }
    (known && text.at(close) == b'>').then_some(Step {
        takes: close + 1 - i,
        gives: Gives::Nothing,
    })
}

const TAGS: &[&str] = &[
    "b", "i", "u", "s", "em", "strong", "span", "wbr", "code", "font", "mark", "sub", "sup", "tt",
];
