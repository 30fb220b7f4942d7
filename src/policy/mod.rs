//! The policy: what agents may store, see and touch, read strictly from TOML.
//!
//! [`load`] reads a text, [`load_named_or_path`] a shipped policy or a file. Either gives a
//! [`Policy`] with a value for every key, or a [`PolicyError`] that points at the line. A store
//! keeps [`Policy::to_toml`], so that an upgrade of this program never changes its rules.
//! Every key is described in docs/POLICY.md.
//!
//! ```
//! use strongroom::policy;
//!
//! let text = r#"
//! schema = 1
//! [limits]
//! max_files = 500
//! [[tenants]]
//! match = "guests/*"
//! paths = { read_only = ["/memories/**"] }
//! "#;
//! let policy = policy::load(text, "example.toml")?;
//! assert_eq!(policy.limits.max_files, 500);
//! assert!(policy.for_tenant("guests/7").paths.read_only.matches("/memories/a.md"));
//! assert!(!policy.for_tenant("staff").paths.read_only.matches("/memories/a.md"));
//! # Ok::<(), policy::PolicyError>(())
//! ```

mod audit;
mod emit;
mod error;
mod limits;
mod load;
mod node;
mod numbers;
mod pattern;
mod redaction;
mod refusal;
mod retention;
mod section;
mod tenants;
mod units;

#[cfg(test)]
mod tests;

use sha2::{Digest, Sha256};

pub use self::audit::{Audit, AuditReads};
pub use self::emit::Change;
pub use self::error::{PolicyError, Position};
pub use self::limits::{EffectivePolicy, Limits, OnExisting, Paths, View, Write};
pub use self::pattern::{Pattern, PatternSet, TenantPattern};
pub use self::redaction::{Redaction, RedactionAction, RedactionRule, RulePack};
pub use self::refusal::Refusal;
pub use self::retention::{Retention, RetentionRule};
pub use self::tenants::TenantRule;
pub use self::units::parse_duration;

/// Longest policy text, also of the flattened one: 1 MiB.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// Most path patterns in a policy, those of tenants and retention rules included.
pub const MAX_PATTERNS: usize = 1_000;
/// Most `[[tenants]]` entries.
pub const MAX_TENANT_RULES: usize = 1_000;
/// Most policies in a row by `extends`.
pub const MAX_DEPTH: usize = 8;
/// Most policy texts that one policy is made of.
pub const MAX_TEXTS: usize = 32;

/// The shipped policies by name. The first is the one that holds for keys left out.
pub const SHIPPED: [(&str, &str); 4] = [
    ("default", include_str!("../../policies/default.toml")),
    ("strict", include_str!("../../policies/strict.toml")),
    ("hipaa", include_str!("../../policies/hipaa.toml")),
    ("pci", include_str!("../../policies/pci.toml")),
];

/// A flattened policy: every key has a value, nothing is extended any more.
///
/// It can only be made by loading a text, so its values are within their floors and ceilings.
/// A change made to the fields afterwards is not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// What one tenant may store.
    pub limits: Limits,
    /// How much one view shows.
    pub view: View,
    /// How writing behaves.
    pub write: Write,
    /// Which paths agents may use.
    pub paths: Paths,
    /// When files expire.
    pub retention: Retention,
    /// Which values are removed before text is stored.
    pub redaction: Redaction,
    /// What is logged.
    pub audit: Audit,
    /// Narrower rules for some tenants, sorted by pattern. Order has no meaning.
    pub tenants: Vec<TenantRule>,
}

/// Loads a policy text; `name` is what messages call it.
///
/// It may extend shipped policies by name. Nothing is read from disk.
///
/// # Errors
/// A [`PolicyError`] that points at file, line and column, for anything that is not exactly
/// a policy of this build.
pub fn load(source: &str, name: &str) -> Result<Policy, PolicyError> {
    load::load_text(source, name)
}

/// Loads a shipped policy by its name, or a file if the word has a `/` or ends in `.toml`.
///
/// A file may extend others by a path relative to its own directory.
///
/// # Errors
/// As [`load`]; [`PolicyError::Unreadable`] if there is no such policy.
pub fn load_named_or_path(name_or_path: &str) -> Result<Policy, PolicyError> {
    load::load_named_or_path(name_or_path)
}

impl Default for Policy {
    /// The shipped `default` policy.
    fn default() -> Self {
        #[expect(
            clippy::expect_used,
            reason = "the text is part of the program and a test loads it"
        )]
        load::load_text("", "default").expect("the shipped default policy loads")
    }
}

impl Policy {
    /// The rules for one tenant: those for everyone, tightened by every entry that matches.
    ///
    /// Cost: one pattern match for each `[[tenants]]` entry; hold on to the result.
    #[must_use]
    pub fn for_tenant(&self, tenant: &str) -> EffectivePolicy {
        let mut rules = self.base();
        for rule in self.tenants.iter().filter(|rule| rule.matches(tenant)) {
            rule.tighten(&mut rules);
        }
        rules
    }

    /// The canonical text: every key, no `extends`. It loads to an equal policy.
    #[must_use]
    pub fn to_toml(&self) -> String {
        emit::text(&self.blocks())
    }

    /// SHA-256 of the canonical text. Equal policies, and only they, have equal digests.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_toml().as_bytes()).into()
    }

    /// The keys whose values differ, from this policy to `other`, in the order of the text.
    #[must_use]
    pub fn diff(&self, other: &Self) -> Vec<Change> {
        emit::diff(&self.blocks(), &other.blocks())
    }

    /// The rules for a tenant that no entry matches.
    fn base(&self) -> EffectivePolicy {
        EffectivePolicy {
            limits: self.limits.clone(),
            view: self.view.clone(),
            write: self.write.clone(),
            paths: self.paths.clone(),
            retention: self.retention.clone(),
        }
    }

    fn blocks(&self) -> Vec<emit::Block> {
        let mut blocks = self.base().blocks();
        blocks.extend(self.retention.blocks());
        blocks.extend(self.redaction.blocks());
        blocks.extend(self.audit.blocks());
        blocks.extend(self.tenants.iter().flat_map(TenantRule::blocks));
        blocks
    }
}
