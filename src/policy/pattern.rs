//! Patterns over paths (`/memories/policies/**`) and over tenant names (`team-a/*`).
//!
//! One small language for both: parts between `/` are literal, `*` stands for any run of
//! characters inside one part (also none), and `**` as the last part stands for everything
//! below, and for the directory itself: `X/**` covers `X` too. Case counts. There is no `?`,
//! no `[a-z]`, no `{a,b}` and no escape.

use std::fmt;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

/// Longest path pattern, in bytes: that of the longest path.
const PATTERN_BYTES_MAX: usize = 1_024;
/// Longest tenant pattern, in bytes: that of the longest tenant name.
const TENANT_PATTERN_BYTES_MAX: usize = 128;
/// Most parts in a pattern: those of the deepest path, and a final `**`.
const PARTS_MAX: usize = 33;
/// Longest part, in bytes: that of the longest file name.
const PART_BYTES_MAX: usize = 255;

/// A pattern over canonical paths. It always starts with `/memories`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern(Parts);

impl Pattern {
    /// Parses a path pattern. Literal parts are brought to NFC, as canonical paths are.
    ///
    /// # Errors
    /// A fragment that says what is wrong and what to write, without the pattern itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(format!("is longer than {PATTERN_BYTES_MAX} bytes"));
        }
        let below = text
            .strip_prefix("/memories")
            .filter(|below| below.is_empty() || below.starts_with('/'));
        if below.is_none() {
            return Err("must start with /memories".to_owned());
        }
        let relative = text.strip_prefix('/').unwrap_or(text);
        Parts::parse(relative).map(Self)
    }

    /// Whether the pattern covers this canonical path.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.0.matches(path_parts(path))
    }

    /// Whether the pattern covers this directory or could cover something below it.
    #[must_use]
    pub fn reaches_at_or_below(&self, directory: &str) -> bool {
        self.0.reaches_at_or_below(path_parts(directory))
    }

    /// Whether the pattern covers this path or a directory above it.
    #[must_use]
    pub fn reaches_at_or_above(&self, path: &str) -> bool {
        self.0.reaches_at_or_above(path_parts(path))
    }

    /// Whether the pattern covers this directory and everything that could be below it.
    #[must_use]
    pub fn covers_all_below(&self, directory: &str) -> bool {
        self.0.deep && self.matches(directory)
    }

    /// Whether the pattern has no `*` and so names exactly one path, or one and all below it.
    /// For others a caller may look which entries there really are.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.0.parts.iter().all(|part| !part.contains('*'))
    }
}

impl Pattern {
    /// Whether names with the pattern's characters exist while `paths.portable_names` is on.
    /// A `?` is mostly meant as "any character" and would then protect nothing.
    pub(super) fn is_portable(&self) -> bool {
        let unportable = [':', '?', '"', '<', '>', '|'];
        self.0.parts.iter().all(|part| !part.contains(unportable))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0)
    }
}

/// Path patterns, sorted and without repeats. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternSet(Arc<[Pattern]>);

impl Default for PatternSet {
    fn default() -> Self {
        Self(Arc::from([]))
    }
}

impl FromIterator<Pattern> for PatternSet {
    fn from_iter<I: IntoIterator<Item = Pattern>>(patterns: I) -> Self {
        let mut patterns: Vec<Pattern> = patterns.into_iter().collect();
        patterns.sort();
        patterns.dedup();
        Self(Arc::from(patterns))
    }
}

impl PatternSet {
    /// Whether any pattern covers this canonical path.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.first_match(path).is_some()
    }

    /// The first pattern that covers this canonical path.
    #[must_use]
    pub fn first_match(&self, path: &str) -> Option<&Pattern> {
        self.0.iter().find(|pattern| pattern.matches(path))
    }

    /// The first pattern that covers this directory or could cover something below it.
    ///
    /// A rename or delete of `directory` takes everything below along, so it asks this. With
    /// a `*` in the pattern the answer is about names that could exist, not ones that do.
    #[must_use]
    pub fn first_at_or_below(&self, directory: &str) -> Option<&Pattern> {
        self.0
            .iter()
            .find(|pattern| pattern.reaches_at_or_below(directory))
    }

    /// The first pattern that covers this path or a directory above it.
    #[must_use]
    pub fn first_at_or_above(&self, path: &str) -> Option<&Pattern> {
        self.0
            .iter()
            .find(|pattern| pattern.reaches_at_or_above(path))
    }

    /// The patterns in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Pattern> {
        self.0.iter()
    }

    /// How many patterns there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The patterns of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        self.iter().chain(other.iter()).cloned().collect()
    }

    /// The patterns that `other` does not have.
    pub(super) fn without(&self, other: &Self) -> Self {
        self.iter()
            .filter(|pattern| other.0.binary_search(pattern).is_err())
            .cloned()
            .collect()
    }
}

/// A pattern over tenant names, such as `team-a/*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantPattern(Parts);

impl TenantPattern {
    /// Parses a tenant pattern: the characters of tenant names, `/`, `*`, and `**` at the end.
    ///
    /// # Errors
    /// A fragment that says what is wrong and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > TENANT_PATTERN_BYTES_MAX {
            return Err(format!("is longer than {TENANT_PATTERN_BYTES_MAX} bytes"));
        }
        let accepted = |c: char| c.is_ascii_alphanumeric() || "._@:-/*".contains(c);
        if !text.chars().all(accepted) {
            return Err(
                "has a character that no tenant name has: use A-Z a-z 0-9 . _ @ : - with / between parts"
                    .to_owned(),
            );
        }
        Parts::parse(text).map(Self)
    }

    /// Whether the pattern covers this tenant name.
    #[must_use]
    pub fn matches(&self, tenant: &str) -> bool {
        self.0.matches(tenant.split('/'))
    }
}

impl fmt::Display for TenantPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The parts of a pattern; `deep` stands for a final `**`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Parts {
    parts: Vec<String>,
    deep: bool,
}

impl Parts {
    fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<String> = text.split('/').map(|part| part.nfc().collect()).collect();
        let deep = parts.last().is_some_and(|part| part == "**");
        if deep {
            parts.pop();
        }
        if parts.len() > PARTS_MAX {
            return Err(format!("has more than {PARTS_MAX} parts"));
        }
        parts.iter().try_for_each(|part| check_part(part))?;
        Ok(Self { parts, deep })
    }

    fn matches<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> bool {
        let covered = self
            .parts
            .iter()
            .all(|part| names.next().is_some_and(|name| part_matches(part, name)));
        covered && (self.deep || names.next().is_none())
    }

    fn reaches_at_or_below<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> bool {
        for part in &self.parts {
            match names.next() {
                // The directory lies above what the rest of the pattern names.
                None => return true,
                Some(name) if !part_matches(part, name) => return false,
                Some(_) => {}
            }
        }
        self.deep || names.next().is_none()
    }

    fn reaches_at_or_above<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> bool {
        self.parts
            .iter()
            .all(|part| names.next().is_some_and(|name| part_matches(part, name)))
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts.join("/"))?;
        match (self.deep, self.parts.is_empty()) {
            (true, true) => f.write_str("**"),
            (true, false) => f.write_str("/**"),
            (false, _) => Ok(()),
        }
    }
}

fn path_parts(path: &str) -> std::str::Split<'_, char> {
    path.strip_prefix('/').unwrap_or(path).split('/')
}

/// Refuses parts that could never match a canonical name, so that no protection is written
/// that protects nothing.
fn check_part(part: &str) -> Result<(), String> {
    if part.is_empty() {
        return Err("has an empty part: write one / between parts and none at the end".to_owned());
    }
    if part == "." || part == ".." {
        return Err("has a part . or .., which no path has".to_owned());
    }
    if part.contains("**") {
        return Err(
            "has ** where it is not accepted: ** is only the whole last part, * goes inside a part"
                .to_owned(),
        );
    }
    if part.len() > PART_BYTES_MAX {
        return Err(format!("has a part longer than {PART_BYTES_MAX} bytes"));
    }
    if part.chars().any(|c| c.is_control() || c == '\\') {
        return Err("has a character that no path has (a control character or \\)".to_owned());
    }
    if part.starts_with(' ') || part.ends_with([' ', '.']) {
        return Err(
            "has a part that starts with a space or ends in a space or dot, which no path has"
                .to_owned(),
        );
    }
    Ok(())
}

/// Whether `name` fits `part`, in which `*` stands for any run of characters, also none.
/// Only the last `*` is ever taken back, so the cost is at most the product of the lengths.
fn part_matches(part: &str, name: &str) -> bool {
    let (mut part, mut name) = (part.as_bytes(), name.as_bytes());
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (part.split_first(), name.split_first()) {
            (Some((b'*', after)), _) => {
                retry = Some((after, name));
                part = after;
            }
            (Some((wanted, after)), Some((found, rest))) if wanted == found => {
                (part, name) = (after, rest);
            }
            (None, None) => return true,
            _ => match retry.and_then(|(after, from)| Some((after, from.split_first()?.1))) {
                Some(next) => {
                    retry = Some(next);
                    (part, name) = next;
                }
                None => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests;
