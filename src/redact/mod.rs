//! Removes secrets from text before it is stored.
//!
//! An [`Engine`] is built once from rule packs and a policy's own rules; [`Engine::redact`] then
//! replaces what the rules find by markers such as `[REDACTED:password]`, or refuses the text.
//! Texts are read in several views (as they stand, folded and unescaped, with wrapped lines joined,
//! decoded), so a secret is found whatever way it is written.

mod engine;
mod error;
pub mod example;
mod marker;
mod near;
mod number;
mod pack;
mod parse;
mod pass;
mod placeholder;
mod resolve;
mod rule;
mod scan;
mod text;
mod validate;
mod view;

#[cfg(test)]
mod tests;

pub use engine::{Builder, CLASSES, Engine, Finding, INPUT_BYTES_MAX, Pseudonym, Redacted};
pub use error::{RedactError, Refused};
pub use pack::{PACKS, fingerprint, parse_rules};
pub use parse::Parser;
pub use rule::{Action, RuleDef};
pub use validate::Validator;
