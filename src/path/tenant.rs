//! Tenant names: parsed once, then passed as a type.

use std::fmt;

use super::TENANT_NAME_BYTES_MAX;

/// The name of a tenant: 1 to [`TENANT_NAME_BYTES_MAX`] bytes, parts of `A-Z a-z 0-9 . _ @ : -`
/// joined by `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(String);

/// A text is no tenant name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TenantNameError {
    /// The text is empty.
    #[error("a tenant name is empty, it needs 1 to {TENANT_NAME_BYTES_MAX} bytes")]
    Empty,
    /// The text is longer than [`TENANT_NAME_BYTES_MAX`].
    #[error("a tenant name of {bytes} bytes is too long, the limit is {TENANT_NAME_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A character outside the alphabet.
    #[error(
        "a tenant name has U+{:04X} at character {position}, allowed are A-Z a-z 0-9 . _ @ : - and / between parts",
        u32::from(*.character)
    )]
    RefusedCharacter {
        /// The character.
        character: char,
        /// Its place, counted in characters from 1.
        position: usize,
    },
    /// A slash at the start or the end, or two in a row.
    #[error("part {part} of a tenant name is empty, / stands only between parts")]
    EmptyPart {
        /// The part, counted from 1.
        part: usize,
    },
    /// A part is `.` or `..`.
    #[error("part {part} of a tenant name is . or .., which is not a name")]
    DotPart {
        /// The part, counted from 1.
        part: usize,
    },
}

impl TenantName {
    /// Checks a tenant name. Nothing is normalised: names are equal if their bytes are.
    ///
    /// # Errors
    /// Refuses every text that is not of the form above.
    pub fn parse(text: &str) -> Result<Self, TenantNameError> {
        if text.is_empty() {
            return Err(TenantNameError::Empty);
        }
        if text.len() > TENANT_NAME_BYTES_MAX {
            return Err(TenantNameError::TooLong { bytes: text.len() });
        }
        if let Some((index, character)) = text.chars().enumerate().find(|(_, c)| !is_allowed(*c)) {
            return Err(TenantNameError::RefusedCharacter {
                character,
                position: index + 1,
            });
        }
        for (index, part) in text.split('/').enumerate() {
            match part {
                "" => return Err(TenantNameError::EmptyPart { part: index + 1 }),
                "." | ".." => return Err(TenantNameError::DotPart { part: index + 1 }),
                _ => {}
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TenantName({:?})", self.0)
    }
}

fn is_allowed(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '@' | ':' | '-' | '/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_form_are_kept_as_they_are() {
        let longest = "a".repeat(TENANT_NAME_BYTES_MAX);
        for name in [
            "default",
            "a",
            "team-a/bob",
            "user@example.org",
            "urn:x:1",
            "...",
            "a/.b/c.",
            &longest,
        ] {
            assert_eq!(TenantName::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn other_names_are_refused_with_the_reason() {
        let too_long = "a".repeat(TENANT_NAME_BYTES_MAX + 1);
        let at = |character, position| TenantNameError::RefusedCharacter {
            character,
            position,
        };
        for (name, error) in [
            ("", TenantNameError::Empty),
            (too_long.as_str(), TenantNameError::TooLong { bytes: 129 }),
            ("a b", at(' ', 2)),
            ("é", at('é', 1)),
            ("a\0", at('\0', 2)),
            ("a\\b", at('\\', 2)),
            ("a\n", at('\n', 2)),
            ("/a", TenantNameError::EmptyPart { part: 1 }),
            ("a/", TenantNameError::EmptyPart { part: 2 }),
            ("a//b", TenantNameError::EmptyPart { part: 2 }),
            ("/", TenantNameError::EmptyPart { part: 1 }),
            ("..", TenantNameError::DotPart { part: 1 }),
            ("a/./b", TenantNameError::DotPart { part: 2 }),
            ("a/..", TenantNameError::DotPart { part: 2 }),
        ] {
            assert_eq!(TenantName::parse(name), Err(error), "{name:?}");
        }
    }

    #[test]
    fn an_error_does_not_repeat_the_text() {
        let error = TenantName::parse("secret name").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a tenant name has U+0020 at character 7, allowed are A-Z a-z 0-9 . _ @ : - and / between parts"
        );
    }
}
