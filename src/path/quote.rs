//! Shows text that was refused, so that it can neither act nor hide.

use std::fmt;

use super::chars::{self, CharacterClass};
use super::{COMBINING_RUN_MAX, QUOTED_CHARS_MAX};

/// Refused text in a form that is safe to print: what is unseen, acts on a terminal or stacks is
/// written as `\u{XXXX}`, and past [`QUOTED_CHARS_MAX`] characters there is only `…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoted(String);

impl Quoted {
    /// Shows `raw`, which may be anything.
    #[must_use]
    pub fn new(raw: &str) -> Self {
        let mut shown = String::new();
        let mut length = 0;
        let mut marks = 0;
        let mut previous = None;
        let mut rest = raw.chars().peekable();
        while let Some(character) = rest.next() {
            let hidden = is_hidden(chars::class(previous, character, rest.peek().copied()));
            marks = if chars::is_stacking_mark(character) {
                marks + 1
            } else {
                0
            };
            let stands_alone = matches!(previous, None | Some('/')) && chars::is_mark(character);
            let piece = if hidden || stands_alone || marks > COMBINING_RUN_MAX {
                format!("\\u{{{:04X}}}", u32::from(character))
            } else {
                character.to_string()
            };
            length += piece.chars().count();
            if length > QUOTED_CHARS_MAX {
                shown.push('…');
                break;
            }
            shown.push_str(&piece);
            previous = Some(character);
        }
        Self(shown)
    }

    /// The text as shown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_hidden(class: Option<CharacterClass>) -> bool {
    !matches!(
        class,
        None | Some(CharacterClass::Backslash | CharacterClass::LookAlike(_))
    )
}
