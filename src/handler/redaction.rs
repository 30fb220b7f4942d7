//! The redaction step: what of a text may be stored, and what of it may be shown.

use std::borrow::Cow;
use std::ops::Deref;

use zeroize::Zeroizing;

use crate::path::MemoryPath;
use crate::redact::{Finding, Redacted, Refused};
use crate::wire::{Content, Reply};

use super::{Line, Stop, refuse};

/// How many findings a note names.
const FINDINGS_NAMED_MAX: usize = 20;

/// A text without what policy removes.
pub(super) enum Clean<'t> {
    /// There was nothing to remove.
    AsGiven(&'t str),
    /// What is left.
    Changed(Zeroizing<String>),
}

impl Deref for Clean<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Clean::AsGiven(text) => text,
            Clean::Changed(text) => text,
        }
    }
}

impl<'t> From<Cow<'t, str>> for Clean<'t> {
    fn from(text: Cow<'t, str>) -> Self {
        match text {
            Cow::Borrowed(text) => Clean::AsGiven(text),
            Cow::Owned(text) => Clean::Changed(Zeroizing::new(text)),
        }
    }
}

/// A text without what policy removes, and what the model is told about it.
pub(super) struct Cleaned<'t> {
    pub(super) text: Clean<'t>,
    pub(super) note: Option<String>,
    /// How many values were removed.
    pub(super) removed: u64,
}

impl Line<'_> {
    /// Removes from a whole after-image what policy does not let into the store.
    pub(super) fn clean<'t>(
        &self,
        pseudonym: &dyn Fn(&[u8]) -> [u8; 32],
        path: &MemoryPath,
        text: &'t str,
    ) -> Result<Cleaned<'t>, Stop> {
        let Some(engine) = &self.rules.in_force.engine else {
            return Ok(Cleaned {
                text: Clean::AsGiven(text),
                note: None,
                removed: 0,
            });
        };
        match engine.redact(text, Some(pseudonym)) {
            Ok(Redacted { text, findings }) => {
                let mut draft = self.draft.borrow_mut();
                for finding in &findings {
                    draft.count_rule(&finding.rule);
                }
                drop(draft);
                let notify = self.rules.in_force.policy.redaction.notify_model;
                let note = if notify { note(&findings) } else { None };
                Ok(Cleaned {
                    text: text.into(),
                    note,
                    removed: findings.len() as u64,
                })
            }
            Err(refused) => {
                self.draft.borrow_mut().count_rule(refused_rule(&refused));
                Err(refuse(format!(
                    "Error: {path} was not written: {}",
                    refusal(&refused)
                )))
            }
        }
    }

    /// A name is scanned as contents are, but never changed: it is refused.
    pub(super) fn check_name(&self, path: &MemoryPath) -> Result<(), Stop> {
        match self.secret_in(path.as_str()) {
            Some(rule) => Err(refuse(format!(
                "Error: The path was not used: it holds what looks like a secret (rule {rule}). Choose a name without it"
            ))),
            None => Ok(()),
        }
    }

    /// The rule that finds something in a text, if there is one.
    pub(super) fn secret_in(&self, text: &str) -> Option<String> {
        let engine = self.rules.in_force.engine.as_ref()?;
        match engine.scrub(text, None) {
            Ok(redacted) => redacted
                .findings
                .into_iter()
                .next()
                .map(|finding| finding.rule),
            Err(refused) => Some(refused_rule(&refused).to_owned()),
        }
    }

    /// A text as it may be quoted to the model.
    pub(super) fn showable(&self, text: &str) -> String {
        let Some(engine) = &self.rules.in_force.engine else {
            return text.to_owned();
        };
        match engine.scrub(text, None) {
            Ok(redacted) => redacted.text.into_owned(),
            Err(_) => "…".to_owned(),
        }
    }

    /// A file's text as it may be shown: one that an older policy let through is scanned
    /// before it is. The flag says that the stored text must be cleaned too.
    pub(super) fn stored_text<'t>(
        &self,
        text: &'t str,
        policy_digest: &[u8; 32],
        pseudonym: &dyn Fn(&[u8]) -> [u8; 32],
    ) -> Result<(Clean<'t>, bool), Stop> {
        let in_force = &self.rules.in_force;
        let Some(engine) = in_force
            .engine
            .as_ref()
            .filter(|_| *policy_digest != in_force.digest)
        else {
            return Ok((Clean::AsGiven(text), false));
        };
        match engine.scrub(text, Some(pseudonym)) {
            Ok(redacted) => {
                let is_dirty = !redacted.findings.is_empty();
                Ok((redacted.text.into(), is_dirty))
            }
            Err(refused) => Err(refuse(format!(
                "Error: the file cannot be shown: {}",
                refusal(&refused)
            ))),
        }
    }

    /// The last look at an error text: whatever it quotes must carry no secret.
    pub(super) fn scrub_error(&self, reply: Reply) -> Reply {
        match &reply.content {
            Content::Text(text) if reply.is_error && self.secret_in(text).is_some() => {
                Reply::error(self.showable(text))
            }
            _ => reply,
        }
    }
}

/// Adds a note on a line of its own, after everything else.
pub(super) fn with_note(text: String, note: Option<String>) -> String {
    match note {
        Some(note) => format!("{text}\n{note}"),
        None => text,
    }
}

/// `Note: 2 values were removed by policy: aws-access-key-id (line 4), password (line 9).`
fn note(findings: &[Finding]) -> Option<String> {
    if findings.is_empty() {
        return None;
    }
    let named: Vec<String> = findings
        .iter()
        .take(FINDINGS_NAMED_MAX)
        .map(|finding| format!("{} (line {})", finding.rule, finding.line))
        .collect();
    let rest = findings.len().saturating_sub(FINDINGS_NAMED_MAX);
    let rest = if rest > 0 {
        format!(" and {rest} more")
    } else {
        String::new()
    };
    let were = if findings.len() == 1 {
        "value was"
    } else {
        "values were"
    };
    Some(format!(
        "Note: {} {were} removed by policy: {}{rest}.",
        findings.len(),
        named.join(", ")
    ))
}

fn refusal(refused: &Refused) -> String {
    match refused {
        Refused::Rule { rule, line, .. } => format!(
            "line {line} holds a value that must not be stored (rule {rule}). Remove it and write the rest"
        ),
        other => format!("{other}. Write less of such text at once"),
    }
}

fn refused_rule(refused: &Refused) -> &str {
    match refused {
        Refused::Rule { rule, .. } => rule,
        _ => "of size",
    }
}
