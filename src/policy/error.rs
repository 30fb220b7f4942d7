//! What can be wrong with a policy, and where: file, line, column.

use std::fmt;

/// A place in a policy text. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The name under which the text was loaded: a shipped policy's name or a path.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Why a policy does not load.
///
/// Every text reads `file:line:column: what. what to do`. Texts may name keys, units and
/// patterns; they never quote `redaction.allow`, examples or a rule's expression.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The text is not TOML.
    #[error("{at}: {what}")]
    Syntax {
        /// Where.
        at: Position,
        /// What and what to do.
        what: String,
    },
    /// A key that no policy has, or that a required key is missing.
    #[error("{at}: {what}")]
    Key {
        /// Where.
        at: Position,
        /// What and what to do.
        what: String,
    },
    /// A value of the wrong type, with a bad unit, or outside floor and ceiling.
    #[error("{at}: {what}")]
    Value {
        /// Where.
        at: Position,
        /// What and what to do.
        what: String,
    },
    /// Two values that cannot both hold (for example a line limit above the view limit).
    #[error("{at}: {what}")]
    Conflict {
        /// Where.
        at: Position,
        /// What and what to do.
        what: String,
    },
    /// A `[[tenants]]` entry that would give a tenant more than the policy gives everyone.
    #[error("{at}: {what}")]
    Loosens {
        /// Where.
        at: Position,
        /// What and what to do.
        what: String,
    },
    /// A value that asks for something this build does not have. Never ignored.
    #[error("{at}: {what}")]
    NotInThisBuild {
        /// Where.
        at: Position,
        /// What and what to do.
        what: String,
    },
    /// `extends` names something that cannot be found, read, or that leads back to itself.
    #[error("{at}: {what}")]
    Extends {
        /// Where.
        at: Position,
        /// What and what to do.
        what: String,
    },
    /// A policy text, or the text of the flattened policy, above its cap.
    #[error("{file}: {what}")]
    TooLarge {
        /// The policy's name or path.
        file: String,
        /// What and what to do.
        what: String,
    },
    /// The policy asked for by name or path is not there or cannot be read.
    #[error("{file}: {what}")]
    Unreadable {
        /// The name or path as given.
        file: String,
        /// What and what to do.
        what: String,
    },
}

impl PolicyError {
    /// Where the policy is wrong; `None` when a whole file is (unreadable, too large).
    #[must_use]
    pub fn position(&self) -> Option<&Position> {
        match self {
            Self::Syntax { at, .. }
            | Self::Key { at, .. }
            | Self::Value { at, .. }
            | Self::Conflict { at, .. }
            | Self::Loosens { at, .. }
            | Self::NotInThisBuild { at, .. }
            | Self::Extends { at, .. } => Some(at),
            Self::TooLarge { .. } | Self::Unreadable { .. } => None,
        }
    }
}

/// A word from a policy as a message quotes it: escaped, and cut past 64 characters.
pub(super) fn shown(word: &str) -> String {
    match word.char_indices().nth(64) {
        Some((end, _)) => format!("{:?}…", word.get(..end).unwrap_or("")),
        None => format!("{word:?}"),
    }
}
