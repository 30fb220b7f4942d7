//! Folds one character: invisible ones are dropped, compatibility forms and look-alikes become ASCII.

use unicode_normalization::UnicodeNormalization;

/// What a character folds to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fold {
    /// Nothing: it cannot be seen.
    Drop,
    /// One ASCII character.
    To(char),
    /// Several ASCII characters.
    Text(&'static str),
}

/// What `c` folds to, if it is not itself.
pub(super) fn fold(c: char) -> Option<Fold> {
    if c.is_ascii() {
        return None;
    }
    if is_invisible(c) {
        return Some(Fold::Drop);
    }
    if let Some(ascii) = weak(c).or_else(|| look_alike(c)) {
        return Some(Fold::To(ascii));
    }
    if let Some(digit) = digit(c) {
        return Some(Fold::To(digit));
    }
    if !may_decompose(c) {
        return None;
    }
    // One character at a time: nothing can grow past the longest single decomposition.
    let mut parts = std::iter::once(c).nfkc();
    let first = parts.next()?;
    if parts.next().is_some() {
        return several(c);
    }
    if first.is_ascii() {
        return Some(Fold::To(first));
    }
    look_alike(first).map(Fold::To)
}

/// Whether `c` alone makes a text worth folding, whatever stands beside it.
///
/// Typographic dashes and quotes, combining marks and letters of other scripts are ordinary in prose;
/// they count only inside a token.
pub(super) fn is_strong(c: char) -> bool {
    matches!(c, '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether `c` is a dash, quote, space or ellipsis of ordinary typography.
pub(super) fn is_weak(c: char) -> bool {
    if matches!(c, '\u{ad}') {
        return false;
    }
    weak(c).is_some()
        || matches!(c, '\u{2024}'..='\u{2026}' | '\u{300}'..='\u{36f}' | '\u{aa}'..='\u{be}' | '\u{2100}'..='\u{214f}' | '\u{fe0e}' | '\u{fe0f}')
}

fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' | '\u{300}'..='\u{36f}' | '\u{80}'..='\u{84}' | '\u{86}'..='\u{9f}')
}

/// Dashes, quotes and spaces that typography puts in place of the ASCII ones.
fn weak(c: char) -> Option<char> {
    Some(match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{2043}' => '-',
        '\u{201c}'..='\u{201f}' | '\u{ab}' | '\u{bb}' | '\u{2033}' => '"',
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        '\u{2028}' | '\u{2029}' | '\u{85}' => '\n',
        '\u{2215}' | '\u{2044}' => '/',
        '\u{a789}' | '\u{2236}' | '\u{fe13}' => ':',
        '\u{203f}' | '\u{2040}' | '\u{fe33}' | '\u{fe34}' => '_',
        _ => return None,
    })
}

fn digit(c: char) -> Option<char> {
    // Each block of decimal digits starts at its zero.
    const ZEROS: &[u32] = &[
        0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50,
        0xed0, 0xf20, 0x1040, 0x17e0, 0x1810,
    ];
    let code = u32::from(c);
    let zero = ZEROS.iter().find(|&&z| code >= z && code < z + 10)?;
    char::from_digit(code - zero, 10)
}

fn may_decompose(c: char) -> bool {
    matches!(u32::from(c),
        0xaa..=0xbe | 0x17f | 0x2b0..=0x2e4 | 0x1d2c..=0x1dbf | 0x2024..=0x2026 | 0x2070..=0x209c
        | 0x2100..=0x218b | 0x2460..=0x24ff | 0x2c7c..=0x2c7d | 0x33a0..=0x33ff | 0xfb00..=0xfb06 | 0xfe50..=0xfe6b | 0xff01..=0xff5e
        | 0x1d400..=0x1d7ff | 0x1f100..=0x1f1ff | 0x1fbf0..=0x1fbf9 | 0x1ccd6..=0x1ccf9)
}

fn several(c: char) -> Option<Fold> {
    Some(Fold::Text(match c {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        '\u{2025}' => "..",
        '\u{2026}' => "...",
        '\u{2161}' => "II",
        '\u{2162}' => "III",
        '\u{2163}' => "IV",
        '\u{2171}' => "ii",
        '\u{2172}' => "iii",
        '\u{2173}' => "iv",
        _ => {
            // Parenthesised and full-stopped digits and letters: (1) and 1. stand for the character inside.
            let inner = std::iter::once(c)
                .nfkc()
                .find(|p| p.is_ascii_alphanumeric());
            return inner.map(Fold::To);
        }
    }))
}

/// Letters of other alphabets that look like ASCII ones (Unicode TR 39 confusables, the single-character ones in use).
fn look_alike(c: char) -> Option<char> {
    let pair = match u32::from(c) {
        0x180..=0x3ff => LATIN_GREEK,
        0x400..=0x52f => CYRILLIC,
        0x530..=0x58f | 0x2c80..=0x2cff => ARMENIAN_COPTIC,
        0x13a0..=0x13ff => CHEROKEE,
        0x1d00..=0x1d2b | 0xa730..=0xa7ff => SMALL_CAPITALS,
        0xa4d0..=0xa4ff => LISU,
        0x131 => return Some('i'),
        _ => return None,
    };
    pair.iter().find(|(from, _)| *from == c).map(|(_, to)| *to)
}

#[rustfmt::skip]
const LATIN_GREEK: &[(char, char)] = &[
    ('ƍ', 'g'), ('ƅ', 'b'), ('ƨ', 's'), ('ƽ', 's'), ('ƿ', 'p'), ('Ʀ', 'R'), ('ǀ', 'l'), ('ɑ', 'a'),
    ('ɡ', 'g'), ('ɩ', 'i'), ('ɪ', 'i'), ('ɯ', 'w'), ('ɴ', 'n'), ('ɢ', 'g'), ('ʀ', 'r'), ('ʏ', 'y'),
    ('ʙ', 'b'), ('ʜ', 'h'), ('ʟ', 'l'), ('ʋ', 'v'), ('ʃ', 'f'), ('ɦ', 'h'), ('ȷ', 'j'), ('Α', 'A'),
    ('Β', 'B'), ('Ε', 'E'), ('Ζ', 'Z'), ('Η', 'H'), ('Ι', 'I'), ('Κ', 'K'), ('Μ', 'M'), ('Ν', 'N'),
    ('Ο', 'O'), ('Ρ', 'P'), ('Τ', 'T'), ('Υ', 'Y'), ('Χ', 'X'), ('Ϲ', 'C'), ('Ϳ', 'J'), ('α', 'a'),
    ('γ', 'y'), ('ι', 'i'), ('κ', 'k'), ('ν', 'v'), ('ο', 'o'), ('ρ', 'p'), ('σ', 'o'), ('τ', 't'),
    ('υ', 'u'), ('χ', 'x'), ('ϲ', 'c'), ('ϳ', 'j'), ('ω', 'w'), ('η', 'n'), ('ε', 'e'),
];

#[rustfmt::skip]
const CYRILLIC: &[(char, char)] = &[
    ('А', 'A'), ('В', 'B'), ('Е', 'E'), ('К', 'K'), ('М', 'M'), ('Н', 'H'), ('О', 'O'), ('Р', 'P'),
    ('С', 'C'), ('Т', 'T'), ('У', 'Y'), ('Х', 'X'), ('З', '3'), ('Ѕ', 'S'), ('І', 'I'), ('Ј', 'J'),
    ('Ѵ', 'V'), ('Ү', 'Y'), ('Ԛ', 'Q'), ('Ԝ', 'W'), ('Ԍ', 'G'), ('Ӏ', 'I'), ('а', 'a'), ('в', 'b'),
    ('е', 'e'), ('к', 'k'), ('м', 'm'), ('н', 'h'), ('о', 'o'), ('р', 'p'), ('с', 'c'), ('т', 't'),
    ('у', 'y'), ('х', 'x'), ('ѕ', 's'), ('і', 'i'), ('ј', 'j'), ('һ', 'h'), ('ԁ', 'd'), ('ԛ', 'q'),
    ('ԝ', 'w'), ('ѵ', 'v'), ('ү', 'y'), ('ӏ', 'l'), ('Ь', 'b'), ('ь', 'b'), ('г', 'r'), ('п', 'n'),
    ('б', '6'), ('ё', 'e'), ('ѡ', 'w'), ('Ԁ', 'D'), ('Ԍ', 'G'), ('ӡ', '3'),
];

#[rustfmt::skip]
const ARMENIAN_COPTIC: &[(char, char)] = &[
    ('Լ', 'L'), ('Ս', 'U'), ('Տ', 'S'), ('Օ', 'O'), ('Ց', '8'), ('ա', 'w'), ('գ', 'q'), ('զ', 'q'),
    ('հ', 'h'), ('ո', 'n'), ('ռ', 'n'), ('ս', 'u'), ('ց', 'g'), ('օ', 'o'), ('ք', 'p'), ('յ', 'j'),
    ('Ⲟ', 'O'), ('ⲟ', 'o'), ('Ⲣ', 'P'), ('ⲣ', 'p'), ('Ⲥ', 'C'), ('ⲥ', 'c'), ('Ⲏ', 'H'), ('Ⲕ', 'K'),
    ('Ⲙ', 'M'), ('Ⲛ', 'N'), ('Ⲧ', 'T'), ('ⲭ', 'x'), ('ⲩ', 'y'),
];

#[rustfmt::skip]
const CHEROKEE: &[(char, char)] = &[
    ('Ꭰ', 'D'), ('Ꭱ', 'R'), ('Ꭲ', 'T'), ('Ꭵ', 'i'), ('Ꭹ', 'Y'), ('Ꭺ', 'A'), ('Ꭻ', 'J'), ('Ꭼ', 'E'),
    ('Ꮃ', 'W'), ('Ꮇ', 'M'), ('Ꮋ', 'H'), ('Ꮍ', 'Y'), ('Ꮐ', 'G'), ('Ꮓ', 'Z'), ('Ꮞ', '4'), ('Ꮟ', 'b'),
    ('Ꮢ', 'R'), ('Ꮤ', 'W'), ('Ꮩ', 'V'), ('Ꮪ', 'S'), ('Ꮮ', 'L'), ('Ꮯ', 'C'), ('Ꮲ', 'P'), ('Ꮶ', 'K'),
    ('Ꮷ', 'd'), ('Ᏻ', 'G'), ('Ᏼ', 'B'),
];

#[rustfmt::skip]
const SMALL_CAPITALS: &[(char, char)] = &[
    ('ᴀ', 'a'), ('ᴄ', 'c'), ('ᴅ', 'd'), ('ᴇ', 'e'), ('ᴊ', 'j'), ('ᴋ', 'k'), ('ᴍ', 'm'), ('ᴏ', 'o'),
    ('ᴘ', 'p'), ('ᴛ', 't'), ('ᴜ', 'u'), ('ᴠ', 'v'), ('ᴡ', 'w'), ('ᴢ', 'z'), ('ꜰ', 'f'), ('ꜱ', 's'),
    ('ꞯ', 'q'), ('ᴑ', 'o'), ('ᴨ', 'n'),
];

#[rustfmt::skip]
const LISU: &[(char, char)] = &[
    ('ꓐ', 'B'), ('ꓑ', 'P'), ('ꓓ', 'D'), ('ꓔ', 'T'), ('ꓖ', 'G'), ('ꓗ', 'K'), ('ꓙ', 'J'), ('ꓚ', 'C'),
    ('ꓜ', 'Z'), ('ꓝ', 'F'), ('ꓟ', 'M'), ('ꓠ', 'N'), ('ꓡ', 'L'), ('ꓢ', 'S'), ('ꓣ', 'R'), ('ꓦ', 'V'),
    ('ꓧ', 'H'), ('ꓪ', 'W'), ('ꓫ', 'X'), ('ꓬ', 'Y'), ('ꓮ', 'A'), ('ꓰ', 'E'), ('ꓲ', 'I'), ('ꓳ', 'O'),
    ('ꓴ', 'U'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_and_compatibility_forms_become_ascii() {
        for (c, want) in [
            ('Ａ', 'A'),
            ('𝐀', 'A'),
            ('𝟗', '9'),
            ('А', 'A'),
            ('ο', 'o'),
            ('①', '1'),
            ('٣', '3'),
            ('ⓖ', 'g'),
        ] {
            assert_eq!(fold(c), Some(Fold::To(want)), "{c}");
        }
        assert_eq!(fold('\u{200b}'), Some(Fold::Drop));
        assert_eq!(fold('é'), None);
        assert_eq!(fold('語'), None);
    }
}
