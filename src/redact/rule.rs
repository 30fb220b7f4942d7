//! A rule as its author writes it (TOML), and the tests that every rule must pass before it is used.

use super::error::RedactError;
use super::parse::Parser;
use super::validate::Validator;

/// What is done with a value that a rule finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Action {
    /// Replace it by `[REDACTED:rule-id]`.
    Label,
    /// Replace it by a marker with a tag that is the same for the same value, per tenant.
    Pseudonym,
    /// Replace it by a marker that keeps the last four characters.
    Last4,
    /// Refuse the whole text.
    Reject,
    /// Let it stand.
    Allow,
}

/// How strictly the bytes beside a match are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Boundary {
    /// No letter or digit may stand beside a letter or digit of the match.
    #[default]
    Token,
    /// Nor may any other character of base64.
    Base64,
    /// Anything may stand beside it.
    None,
}

/// A rule as it stands in a rule pack or a policy.
///
/// Exactly one of `regex` and `parser` is given. The secret is the group `secret` of the regular
/// expression, or the whole match. `examples` may hold templates of [`super::example::expand`].
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleDef {
    /// Lower-case letters, digits and `-`, 2 to 64 characters; the name in markers.
    pub id: String,
    /// What kind of value this is: `secret`, `pii`, `phi`, `pci`, `internal` …
    pub class: String,
    /// Who issues such values; packs count their formats by it.
    #[serde(default)]
    pub vendor: Option<String>,
    /// The vendor's page that describes the format.
    #[serde(default)]
    pub source: Option<String>,
    /// Words (any case) of which one stands in or near every value. The regex runs only near them.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// A keyword counts only where no letter or digit follows it. Default: anything may.
    #[serde(default)]
    pub whole_word: bool,
    /// A digit must stand within this many bytes before the keyword. Default: none need.
    #[serde(default)]
    pub digit_before: usize,
    /// What a value looks like; matched on bytes, ASCII classes.
    #[serde(default)]
    pub regex: Option<String>,
    /// The parser that reads values in place of a regular expression.
    #[serde(default)]
    pub parser: Option<Parser>,
    /// Run at every number with this many digits (least, most) instead of at keywords.
    #[serde(default)]
    pub digits: Option<(usize, usize)>,
    /// Words of which one must stand within 80 bytes of the value. Default: none.
    #[serde(default)]
    pub near: Vec<String>,
    /// A check that a match must pass. Default: none.
    #[serde(default)]
    pub validator: Option<Validator>,
    /// What may stand beside a match. Default: `token`.
    #[serde(default)]
    pub boundary: Boundary,
    /// What is done unless the policy says otherwise. Default: `label`.
    #[serde(default)]
    pub action: Option<Action>,
    /// Texts in which the rule must find something.
    #[serde(default)]
    pub examples: Vec<String>,
    /// Texts in which the rule must find nothing.
    #[serde(default)]
    pub negative_examples: Vec<String>,
    /// Line of the text at which the rule begins, from 1; 0 where it came from no text.
    #[serde(skip)]
    pub line: usize,
}

/// Shortest keyword: shorter ones would run a rule everywhere.
const KEYWORD_BYTES_MIN: usize = 2;

impl RuleDef {
    /// Checks everything that can be said without running the rule.
    ///
    /// # Errors
    /// [`RedactError::Rule`] with what is wrong.
    pub(crate) fn check(&self) -> Result<(), RedactError> {
        let id_fits = (2..=64).contains(&self.id.len())
            && self
                .id
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !id_fits {
            return Err(self.error("the id is not 2 to 64 lower-case letters, digits and dashes"));
        }
        if self.class.is_empty() {
            return Err(self.error("the class is empty"));
        }
        if self.regex.is_some() == self.parser.is_some() {
            return Err(self.error("exactly one of regex and parser is needed"));
        }
        if self.keywords.is_empty() && self.digits.is_none() {
            return Err(self.error("there are no keywords"));
        }
        if let Some(short) = self
            .keywords
            .iter()
            .find(|k| k.len() < KEYWORD_BYTES_MIN && *k != "@")
        {
            return Err(self.error(format!(
                "the keyword \"{short}\" is shorter than {KEYWORD_BYTES_MIN} bytes"
            )));
        }
        if self.examples.is_empty() {
            return Err(self.error("there is no example"));
        }
        Ok(())
    }

    pub(crate) fn error(&self, reason: impl Into<String>) -> RedactError {
        RedactError::Rule {
            id: self.id.clone(),
            line: self.line,
            reason: reason.into(),
        }
    }
}
