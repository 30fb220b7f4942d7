//! Audit entries: what was done, by whom, to what; each carries the hash of the one before it.
//!
//! An entry's bytes are its JSON text, exactly as it is exported, and its hash is the
//! SHA-256 of those bytes. So an exported log can be checked with any SHA-256 tool. Nothing
//! here reads or writes a store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::clock::UnixMillis;
// As entries write hashes.
pub(crate) use crate::hex::encode as hex;

mod export;

pub use export::{ExportCheck, ExportError, ExportedChain};

/// The longest actor or session, in bytes.
pub const ACTOR_BYTES_MAX: usize = 128;

/// How many rules an entry names; the others are counted under `other`.
const RULES_MAX: usize = 20;

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Outcome {
    /// It was carried out.
    Ok,
    /// It was refused, with a reply that said why.
    Refused,
}

/// What is known of an operation before it has a place in a chain. Paths are plain here.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) actor: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) command: String,
    pub(crate) path: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) outcome: Outcome,
    pub(crate) rules: BTreeMap<String, u64>,
    pub(crate) bytes: u64,
    pub(crate) detail: Option<String>,
}

impl Draft {
    /// An operation of the store's own.
    pub(crate) fn new(command: impl Into<String>) -> Self {
        Self {
            actor: None,
            session: None,
            command: command.into(),
            path: None,
            to: None,
            outcome: Outcome::Ok,
            rules: BTreeMap::new(),
            bytes: 0,
            detail: None,
        }
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Counts a value that a redaction rule removed.
    pub(crate) fn count_rule(&mut self, rule: &str) {
        let is_full = self.rules.len() >= RULES_MAX && !self.rules.contains_key(rule);
        let rule = if is_full { "other" } else { rule };
        *self.rules.entry(rule.to_owned()).or_default() += 1;
    }
}

/// One entry of an audit chain. It holds no content, no secret and no plain path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Entry {
    /// Its number in its chain, from 1.
    pub seq: u64,
    /// When, in milliseconds since 1970, as the store believes it.
    pub time: UnixMillis,
    /// The tenant's id in hexadecimal; all zeros for the store's own chain.
    pub tenant: String,
    /// On whose behalf, as the embedder said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// In which session, as the embedder said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What was asked for.
    pub command: String,
    /// The path, sealed under the tenant's key, in base64: it is gone with the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The destination of a rename, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// How many values were removed by which redaction rules.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, u64>,
    /// Bytes stored, or shown.
    pub bytes: u64,
    /// More about an operation of the operator's. Never content, never a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The hash of the entry before this one, in hexadecimal; zeros for the first.
    pub prev: String,
}

impl Entry {
    /// The entry's bytes: its JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[expect(clippy::expect_used, reason = "plain fields always have a JSON form")]
        serde_json::to_string(self).expect("an entry has a JSON form")
    }

    /// The entry that this JSON text is.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_json(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }
}

/// The hash of an entry's bytes.
#[must_use]
pub fn entry_hash(json: &[u8]) -> [u8; 32] {
    Sha256::digest(json).into()
}

/// Where a chain begins and ends: what the head or root vouches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chain {
    /// The number of the first entry that is kept (older ones were pruned).
    pub first: u64,
    /// The hash of the entry before it.
    pub first_prev: [u8; 32],
    /// The number of the newest entry; below `first` when there is none.
    pub last: u64,
    /// The hash of the newest entry.
    pub tip: [u8; 32],
}

impl Chain {
    /// A chain without entries.
    pub const EMPTY: Self = Self {
        first: 1,
        first_prev: [0; 32],
        last: 0,
        tip: [0; 32],
    };

    /// How many entries are kept.
    #[must_use]
    pub fn len(&self) -> u64 {
        (self.last + 1).saturating_sub(self.first)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::vector;

    #[test]
    fn an_entry_survives_the_round_trip_and_any_change_shows_in_its_hash() {
        let entry = Entry {
            seq: 7,
            time: 1_767_225_600_000,
            tenant: hex(&[1; 16]),
            actor: Some("dr \"x\"\n".to_owned()),
            session: None,
            command: "create".to_owned(),
            path: Some("c2VhbGVk".to_owned()),
            to: None,
            outcome: Outcome::Ok,
            rules: BTreeMap::from([("password".to_owned(), 2)]),
            bytes: 10,
            detail: None,
            prev: hex(&[0; 32]),
        };
        let json = entry.to_json();
        assert!(!json.contains('\n'));
        assert_eq!(Entry::from_json(json.as_bytes()).unwrap(), entry);
        let other = Entry { bytes: 11, ..entry };
        assert_ne!(
            entry_hash(json.as_bytes()),
            entry_hash(other.to_json().as_bytes())
        );
    }

    #[test]
    fn an_entrys_text_and_hash_are_those_of_an_independent_implementation() {
        let entry = Entry {
            seq: 7,
            time: 1_700_000_000_000,
            tenant: hex(&[1; 16]),
            actor: Some("dr \"x\"".to_owned()),
            session: None,
            command: "create".to_owned(),
            path: Some("c2VhbGVk".to_owned()),
            to: None,
            outcome: Outcome::Ok,
            rules: BTreeMap::from([("password".to_owned(), 2), ("email".to_owned(), 1)]),
            bytes: 10,
            detail: Some("ü".to_owned()),
            prev: hex(&[0; 32]),
        };
        let json = entry.to_json();
        assert_eq!(json, vector("audit_entry"));
        assert_eq!(
            hex(&entry_hash(json.as_bytes())),
            vector("audit_entry_hash")
        );
    }

    #[test]
    fn a_draft_names_a_limited_number_of_rules() {
        let mut draft = Draft::new("create");
        for rule in 0..100 {
            draft.count_rule(&format!("rule-{rule}"));
        }
        assert_eq!(draft.rules.len(), RULES_MAX + 1);
        assert_eq!(draft.rules.values().sum::<u64>(), 100);
    }
}
