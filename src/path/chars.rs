//! Rule 3: which characters no path may hold, wherever they stand.

use std::fmt;

use unicode_general_category::{GeneralCategory, get_general_category};

/// Why a character is refused. The display form is the reason as a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CharacterClass {
    /// C0 or C1 control, or DEL.
    Control,
    /// U+2028 or U+2029.
    LineSeparator,
    /// A control of writing direction.
    Bidi,
    /// Zero-width, default-ignorable (UAX #44), or drawn as nothing.
    Invisible,
    /// U+FDD0 to U+FDEF, and the last two code points of each plane.
    Noncharacter,
    /// General category Co.
    PrivateUse,
    /// A space separator other than U+0020.
    Space,
    /// `\`.
    Backslash,
    /// Reads as, or has a compatibility form (NFKC) that holds, the ASCII character given.
    LookAlike(char),
    /// A variation selector outside an emoji.
    VariationSelector,
    /// U+200D outside an emoji.
    Joiner,
    /// No character yet, so its normal form could still change.
    Unassigned,
}

impl fmt::Display for CharacterClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Control => "control characters are not allowed",
            Self::LineSeparator => "line and paragraph separators are not allowed",
            Self::Bidi => "direction controls make a name read as something it is not",
            Self::Invisible => "characters that cannot be seen are not allowed",
            Self::Noncharacter => "this code point is not a character",
            Self::PrivateUse => "private-use characters have no agreed meaning",
            Self::Space => "the only space allowed is the ordinary one, U+0020",
            Self::Backslash => "backslashes are not allowed, components are separated by /",
            Self::LookAlike(ascii) => return write!(f, "it can be taken for '{ascii}'"),
            Self::VariationSelector => "variation selectors are allowed only in an emoji",
            Self::Joiner => "zero-width joiners are allowed only in an emoji",
            Self::Unassigned => "Unicode has not assigned this code point yet",
        })
    }
}

/// A refused character and where it stands.
pub(super) struct Refused {
    pub(super) character: char,
    /// Counted in characters, from 1.
    pub(super) position: usize,
    pub(super) class: CharacterClass,
}

/// The first character that rule 3 refuses.
pub(super) fn first_refused(text: &str) -> Option<Refused> {
    let mut previous = None;
    let mut rest = text.chars().enumerate().peekable();
    while let Some((index, character)) = rest.next() {
        let next = rest.peek().map(|(_, next)| *next);
        if let Some(class) = class(previous, character, next) {
            return Some(Refused {
                character,
                position: index + 1,
                class,
            });
        }
        previous = Some(character);
    }
    None
}

/// Why `character` is refused between these neighbours, if it is.
pub(super) fn class(
    previous: Option<char>,
    character: char,
    next: Option<char>,
) -> Option<CharacterClass> {
    if character.is_ascii() {
        return match character {
            '\\' => Some(CharacterClass::Backslash),
            _ if character.is_ascii_control() => Some(CharacterClass::Control),
            _ => None,
        };
    }
    match character {
        '\u{80}'..='\u{9f}' => Some(CharacterClass::Control),
        '\u{2028}' | '\u{2029}' => Some(CharacterClass::LineSeparator),
        '\u{200d}' => {
            let joins = previous.is_some_and(|c| is_emoji(c) || c == '\u{fe0f}')
                && next.is_some_and(is_emoji);
            (!joins).then_some(CharacterClass::Joiner)
        }
        '\u{fe00}'..='\u{fe0f}' => {
            let selects = matches!(character, '\u{fe0e}' | '\u{fe0f}')
                && previous.is_some_and(|c| is_emoji(c) || is_keycap_base(c));
            (!selects).then_some(CharacterClass::VariationSelector)
        }
        _ if is_bidi_control(character) => Some(CharacterClass::Bidi),
        _ if is_noncharacter(character) => Some(CharacterClass::Noncharacter),
        _ if is_invisible(character) => Some(CharacterClass::Invisible),
        _ => look_alike(character)
            .map(CharacterClass::LookAlike)
            .or_else(|| by_category(character)),
    }
}

/// Whether the character is a combining mark that counts towards a run (Mn or Me). The variation
/// selectors that emoji take are Mn too, but stack nothing.
pub(super) fn is_stacking_mark(character: char) -> bool {
    use GeneralCategory::{EnclosingMark, NonspacingMark};
    !character.is_ascii()
        && !matches!(character, '\u{fe00}'..='\u{fe0f}')
        && matches!(
            get_general_category(character),
            NonspacingMark | EnclosingMark
        )
}

/// Whether the character is a mark of any kind, and so needs a base before it.
pub(super) fn is_mark(character: char) -> bool {
    use GeneralCategory::{EnclosingMark, NonspacingMark, SpacingMark};
    !character.is_ascii()
        && matches!(
            get_general_category(character),
            NonspacingMark | EnclosingMark | SpacingMark
        )
}

fn by_category(character: char) -> Option<CharacterClass> {
    use GeneralCategory::{PrivateUse, SpaceSeparator, Unassigned};
    match get_general_category(character) {
        PrivateUse => Some(CharacterClass::PrivateUse),
        SpaceSeparator => Some(CharacterClass::Space),
        // A stored name must stay canonical under later Unicode versions, and only strings of
        // assigned characters are promised that (UAX #15, section 3). New emoji are let through:
        // they come every year, and nothing in their blocks has ever had a canonical mapping.
        Unassigned if !is_emoji(character) => Some(CharacterClass::Unassigned),
        _ => None,
    }
}

/// Bidi_Control (PropList.txt).
fn is_bidi_control(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

fn is_noncharacter(character: char) -> bool {
    let code = u32::from(character);
    (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}

/// Default_Ignorable_Code_Point (DerivedCoreProperties.txt) without what has a class of its own,
/// and what is drawn as nothing or as a stand-in: the blank Braille pattern, the interlinear
/// annotation controls, the object replacement and the replacement character.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffd}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The character of `. / \ % :` that this one is easily taken for, by people or by software that
/// applies compatibility normalisation.
fn look_alike(character: char) -> Option<char> {
    match character {
        '\u{2024}' | '\u{2025}' | '\u{2026}' | '\u{3002}' | '\u{fe12}' | '\u{fe19}'
        | '\u{fe30}' | '\u{fe52}' | '\u{ff0e}' | '\u{ff61}' => Some('.'),
        '\u{1735}' | '\u{2044}' | '\u{2100}' | '\u{2101}' | '\u{2105}' | '\u{2106}'
        | '\u{2215}' | '\u{2571}' | '\u{27cb}' | '\u{29f8}' | '\u{ff0f}' => Some('/'),
        '\u{2216}' | '\u{2572}' | '\u{27cd}' | '\u{29f5}' | '\u{29f9}' | '\u{fe68}'
        | '\u{ff3c}' => Some('\\'),
        '\u{66a}' | '\u{fe6a}' | '\u{ff05}' => Some('%'),
        '\u{2d0}' | '\u{2236}' | '\u{2a74}' | '\u{a789}' | '\u{fe13}' | '\u{fe55}' | '\u{ff1a}' => {
            Some(':')
        }
        _ => None,
    }
}

/// Blocks of emoji and of the symbols that have an emoji form. Generous: it only decides where a
/// joiner or a variation selector may stand.
fn is_emoji(character: char) -> bool {
    matches!(
        character,
        '\u{1f000}'..='\u{1faff}'
            | '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}'
            | '\u{2600}'..='\u{27bf}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{a9}'
            | '\u{ae}'
            | '\u{203c}'
            | '\u{2049}'
            | '\u{2122}'
            | '\u{2139}'
            | '\u{3030}'
            | '\u{303d}'
            | '\u{3297}'
            | '\u{3299}'
    )
}

fn is_keycap_base(character: char) -> bool {
    character.is_ascii_digit() || matches!(character, '#' | '*')
}
