//! What the guard answers when it refuses.

use std::fmt;

use super::chars::CharacterClass;
use super::{
    COMBINING_RUN_MAX, COMPONENT_BYTES_MAX, DEPTH_MAX, ESCAPE_LAYERS_MAX, MemoryPath,
    PATH_BYTES_MAX, Quoted,
};

/// A path was refused. The display form is what follows `Error: ` in the reply to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The path is an empty string.
    #[error(
        "Path is empty. It must be /memories or start with /memories/, and have at most {PATH_BYTES_MAX} bytes"
    )]
    Empty,
    /// The path is neither `/memories` nor below it.
    #[error("Path must start with /memories, got: {raw}")]
    Outside {
        /// The path.
        raw: Quoted,
    },
    /// The path climbs out of `/memories` by `..`.
    #[error("Path {raw} would escape /memories directory")]
    Escapes {
        /// The path.
        raw: Quoted,
    },
    /// The path lies in `/memories`, but breaks another rule.
    #[error("Path {raw} {problem}.{suggestion}")]
    Refused {
        /// The path.
        raw: Quoted,
        /// The first rule it breaks.
        problem: Problem,
        /// A near path that would pass.
        suggestion: Suggestion,
    },
}

impl GuardError {
    /// A near path that would pass, where there is one.
    #[must_use]
    pub fn suggestion(&self) -> Option<&MemoryPath> {
        match self {
            Self::Refused { suggestion, .. } => suggestion.0.as_ref(),
            _ => None,
        }
    }
}

/// A near path that would pass, if there is one. The display form is a sentence or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion(pub(super) Option<MemoryPath>);

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => write!(f, " Try {path} instead."),
            None => Ok(()),
        }
    }
}

/// The rule that a path breaks. The display form continues `Path … `. Components are counted from
/// 1, below `/memories`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The path is longer than [`PATH_BYTES_MAX`].
    #[error("is {bytes} bytes long, the limit is {PATH_BYTES_MAX} bytes")]
    PathTooLong {
        /// Its length, after normalisation where that came so far.
        bytes: usize,
    },
    /// A character that is refused wherever it stands.
    #[error("contains U+{:04X} at character {position}: {class}", u32::from(*.character))]
    RefusedCharacter {
        /// The character.
        character: char,
        /// Its place in the whole path, counted in characters from 1.
        position: usize,
        /// Why it is refused.
        class: CharacterClass,
    },
    /// A percent escape that decodes to a character with a meaning in paths, or to a refused one.
    #[error(
        "has a percent escape in component {component} that stands for U+{:04X}: escapes are never decoded here, and such are refused",
        u32::from(*.character)
    )]
    EscapedCharacter {
        /// What it decodes to.
        character: char,
        /// The component it stands in.
        component: usize,
    },
    /// A `%uXXXX` that decodes to a surrogate.
    #[error("has a percent escape in component {component} that stands for a surrogate")]
    EscapedSurrogate {
        /// The component it stands in.
        component: usize,
    },
    /// Percent escapes that decode to bytes which UTF-8 never has.
    #[error(
        "has percent escapes in component {component} that are not UTF-8, from %{byte:02X} on: write the characters themselves"
    )]
    EscapedBytes {
        /// The first byte that does not fit.
        byte: u8,
        /// The component it stands in.
        component: usize,
    },
    /// Percent escapes of percent escapes, too many layers deep.
    #[error(
        "has percent escapes in component {component} nested {ESCAPE_LAYERS_MAX} layers deep or more"
    )]
    EscapedLayers {
        /// The component they stand in.
        component: usize,
    },
    /// A `..` that stays inside `/memories`.
    #[error("contains .. as component {component}: write the path without it")]
    ParentComponent {
        /// The component.
        component: usize,
    },
    /// `..;x`, which some software reads as `..`.
    #[error("has dots before a ; in component {component}, which some software cuts off at the ;")]
    PathParameter {
        /// The component.
        component: usize,
    },
    /// A component starts with a space.
    #[error("has a space (U+0020) at the start of component {component}")]
    LeadingSpace {
        /// The component.
        component: usize,
    },
    /// A component ends in a space.
    #[error("has a space (U+0020) at the end of component {component}")]
    TrailingSpace {
        /// The component.
        component: usize,
    },
    /// A component ends in a dot.
    #[error("has a dot (U+002E) at the end of component {component}")]
    TrailingDot {
        /// The component.
        component: usize,
    },
    /// A component starts with a combining mark.
    #[error(
        "has the combining mark U+{:04X} at the start of component {component}, with nothing to combine with",
        u32::from(*.character)
    )]
    LeadingMark {
        /// The mark.
        character: char,
        /// The component.
        component: usize,
    },
    /// A run of combining marks longer than [`COMBINING_RUN_MAX`].
    #[error(
        "has more than {COMBINING_RUN_MAX} combining marks in a row in component {component}, U+{:04X} is one too many",
        u32::from(*.character)
    )]
    TooManyMarks {
        /// The first mark past the limit, in decomposed form.
        character: char,
        /// The component.
        component: usize,
    },
    /// A component is longer than [`COMPONENT_BYTES_MAX`].
    #[error(
        "is too long in component {component}: {bytes} bytes, the limit is {COMPONENT_BYTES_MAX} bytes"
    )]
    ComponentTooLong {
        /// The component.
        component: usize,
        /// Its length after normalisation.
        bytes: usize,
    },
    /// The path has more than [`DEPTH_MAX`] components.
    #[error("is {depth} components deep, the limit is {DEPTH_MAX}")]
    TooDeep {
        /// Its number of components.
        depth: usize,
    },
    /// A character that not every file system takes; only with portable names.
    #[error(
        "contains {character} (U+{:04X}) in component {component}: names must be portable, without : * ? \" < > |",
        u32::from(*.character)
    )]
    ReservedCharacter {
        /// The character.
        character: char,
        /// The component.
        component: usize,
    },
    /// A name that is a device under Windows; only with portable names.
    #[error("uses {device} in component {component}, which is the name of a device under Windows")]
    DeviceName {
        /// The name without extension.
        device: String,
        /// The component.
        component: usize,
    },
    /// A name that is to be one component contains a slash, or is `.` or empty.
    #[error("does not stand for one name in its directory")]
    NotOneName,
}
