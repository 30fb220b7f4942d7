//! Why an engine cannot be built, and why a text is refused. Neither quotes a text or a value.

use super::rule::Action;

/// A rule or pack that cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone)]
#[non_exhaustive]
pub enum RedactError {
    /// No rule pack has this name.
    #[error(
        "use the rule pack \"{name}\": there is none of that name (there are secrets, pii, phi, pci)"
    )]
    UnknownPack {
        /// The name that was asked for.
        name: String,
    },
    /// The rules are not valid TOML, or hold a key that no rule has.
    #[error("read the rules at line {line}: {reason}")]
    Syntax {
        /// Line of the rules' text, from 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// A rule cannot be used as it stands.
    #[error("use the rule \"{id}\" (line {line}): {reason}")]
    Rule {
        /// The rule's id.
        id: String,
        /// Line of the rules' text at which the rule begins, from 1; 0 where it came from no text.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// An action is named for a class or rule that does not exist.
    #[error("take the action {action:?} for \"{name}\": there is no rule or class of that name")]
    UnknownTarget {
        /// The class or rule id.
        name: String,
        /// The action.
        action: Action,
    },
    /// All keywords together are too many for one search.
    #[error("build the keyword search: too many keywords")]
    TooManyKeywords,
}

/// Why a text was not redacted but refused as a whole.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone)]
#[non_exhaustive]
pub enum Refused {
    /// A rule whose action is `reject` found something.
    #[error("the rule {rule} refuses what line {line} holds")]
    Rule {
        /// The rule's id.
        rule: String,
        /// The rule's class.
        class: String,
        /// Line of the text, from 1.
        line: usize,
    },
    /// The text is longer than the engine takes.
    #[error("the text has {bytes} bytes of {bytes_max}")]
    TooLong {
        /// Bytes of the text.
        bytes: usize,
        /// Bytes that are taken.
        bytes_max: usize,
    },
    /// Decoding and unescaping would yield too much text to be scanned.
    #[error("the text unfolds to more than {bytes_max} bytes")]
    TooMuchDerived {
        /// Bytes that all derived texts together may have.
        bytes_max: usize,
    },
    /// Scanning would take too much work.
    #[error("the text holds too many places that look like secrets")]
    TooMuchWork,
    /// A rule's regular expression could not be compiled.
    #[error("the rule {rule} cannot be run")]
    BrokenRule {
        /// The rule's id.
        rule: String,
    },
    /// There are more keywords than can be searched for at once.
    #[error("the rules have too many keywords")]
    NoSearch,
    /// What is left after redaction still holds something that a rule finds.
    #[error("the text is not clean after redaction")]
    NotClean,
}
