//! Rules 5 to 7 for one component: its shape, its marks, its length, portability.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use super::chars::{is_mark, is_stacking_mark};
use super::error::Problem;
use super::{COMBINING_RUN_MAX, COMPONENT_BYTES_MAX};

/// Checks the `number`th component, which is neither empty nor `.` nor `..`, and gives it in NFC.
pub(super) fn check(
    raw: &str,
    number: usize,
    portable_names: bool,
) -> Result<Cow<'_, str>, Problem> {
    if portable_names {
        // Before NFC, which would turn `<` and U+0338 into one character.
        check_reserved(raw, number)?;
    }
    let name = nfc(raw);
    check_shape(&name, number)?;
    if !name.is_ascii() {
        check_marks(&name, number)?;
    }
    if name.len() > COMPONENT_BYTES_MAX {
        return Err(Problem::ComponentTooLong {
            component: number,
            bytes: name.len(),
        });
    }
    if portable_names {
        check_device(&name, number)?;
    }
    Ok(name)
}

/// Characters that Windows refuses in names or reads as something else.
pub(super) fn is_reserved(character: char) -> bool {
    matches!(character, '<' | '>' | '"' | '|' | '?' | '*' | ':')
}

/// The part of a name that Windows takes for a device, if there is one: `nul` of `nul.tar.gz`.
///
/// Extensions, letter case and spaces before the extension do not matter (Microsoft, "Naming
/// Files, Paths, and Namespaces").
pub(super) fn device(name: &str) -> Option<&str> {
    let base = name.split('.').next()?.trim_end_matches(' ');
    let folded: String = base.chars().map(fold).collect();
    let numbered = |prefix| {
        folded.strip_prefix(prefix).is_some_and(|digit| {
            digit.chars().count() == 1
                && digit
                    .chars()
                    .all(|c| c.is_ascii_digit() || matches!(c, '\u{b9}' | '\u{b2}' | '\u{b3}'))
        })
    };
    let is_device = matches!(
        folded.as_str(),
        "con" | "prn" | "aux" | "nul" | "conin$" | "conout$" | "clock$"
    ) || numbered("com")
        || numbered("lpt");
    is_device.then_some(base)
}

fn check_shape(name: &str, number: usize) -> Result<(), Problem> {
    // `..;x` is `..` to servers that cut path parameters off.
    if let Some((head, _)) = name.split_once(';')
        && head.contains('.')
        && head.chars().all(|c| matches!(c, '.' | ' '))
    {
        return Err(Problem::PathParameter { component: number });
    }
    if name.starts_with(' ') {
        return Err(Problem::LeadingSpace { component: number });
    }
    match name.chars().next_back() {
        Some(' ') => Err(Problem::TrailingSpace { component: number }),
        Some('.') => Err(Problem::TrailingDot { component: number }),
        _ => Ok(()),
    }
}

fn check_marks(name: &str, number: usize) -> Result<(), Problem> {
    if let Some(character) = name.chars().next().filter(|first| is_mark(*first)) {
        return Err(Problem::LeadingMark {
            character,
            component: number,
        });
    }
    let mut run = 0;
    for character in name.nfd() {
        run = if is_stacking_mark(character) {
            run + 1
        } else {
            0
        };
        if run > COMBINING_RUN_MAX {
            return Err(Problem::TooManyMarks {
                character,
                component: number,
            });
        }
    }
    Ok(())
}

fn check_reserved(name: &str, number: usize) -> Result<(), Problem> {
    match name.chars().find(|c| is_reserved(*c)) {
        Some(character) => Err(Problem::ReservedCharacter {
            character,
            component: number,
        }),
        None => Ok(()),
    }
}

fn check_device(name: &str, number: usize) -> Result<(), Problem> {
    match device(name) {
        Some(device) => Err(Problem::DeviceName {
            device: device.to_owned(),
            component: number,
        }),
        None => Ok(()),
    }
}

fn nfc(component: &str) -> Cow<'_, str> {
    if component.is_ascii() {
        Cow::Borrowed(component)
    } else {
        Cow::Owned(component.nfc().collect())
    }
}

/// Simple case folding for device names, with the letters that fold into ASCII somewhere.
fn fold(character: char) -> char {
    match character {
        '\u{130}' | '\u{131}' => 'i',
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        _ => character.to_ascii_lowercase(),
    }
}
