//! The rule packs that ship with the library, and the reader for rules in TOML.

use super::error::RedactError;
use super::rule::RuleDef;

/// Names of the rule packs.
pub const PACKS: &[&str] = &["secrets", "pii", "phi", "pci"];

/// The text of a shipped pack: one or more TOML files.
pub(crate) fn source(name: &str) -> Result<&'static [&'static str], RedactError> {
    Ok(match name {
        "secrets" => &[
            include_str!("../../policies/rules/secrets.toml"),
            include_str!("../../policies/rules/structure.toml"),
        ],
        "pii" => &[include_str!("../../policies/rules/pii.toml")],
        "phi" => &[include_str!("../../policies/rules/phi.toml")],
        "pci" => &[include_str!("../../policies/rules/pci.toml")],
        _ => {
            return Err(RedactError::UnknownPack {
                name: name.to_owned(),
            });
        }
    })
}

/// SHA-256 over the named packs' rules, so that a stored file can tell whether it was
/// scanned with the rules of this build.
///
/// # Errors
/// [`RedactError::UnknownPack`].
pub fn fingerprint<S: AsRef<str>>(packs: &[S]) -> Result<[u8; 32], RedactError> {
    use sha2::Digest;
    let mut hash = sha2::Sha256::new();
    for name in packs {
        for text in source(name.as_ref())? {
            hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(text.as_bytes());
        }
    }
    Ok(hash.finalize().into())
}

/// Reads rules from TOML: a list of `[[rules]]` tables.
///
/// # Errors
/// [`RedactError::Syntax`] with the line, from 1.
pub fn parse_rules(text: &str) -> Result<Vec<RuleDef>, RedactError> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        rules: Vec<toml::Spanned<RuleDef>>,
    }
    let file: File = toml::from_str(text).map_err(|e| RedactError::Syntax {
        line: e.span().map_or(0, |s| line_of(text, s.start)),
        reason: e.message().to_owned(),
    })?;
    // They stand in the order of the text, so each line feed is counted once.
    let (mut at, mut line) = (0, 1);
    let rules = file.rules.into_iter().map(|spanned| {
        let start = spanned.span().start;
        line += text.get(at..start).map_or(0, line_feeds);
        at = start;
        RuleDef {
            line,
            ..spanned.into_inner()
        }
    });
    Ok(rules.collect())
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).map_or(0, line_feeds) + 1
}

fn line_feeds(text: &str) -> usize {
    text.bytes().filter(|&b| b == b'\n').count()
}
