//! Gets the credential from where the operator keeps it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unicode_normalization::{UnicodeNormalization, is_nfc};
use zeroize::Zeroizing;

use super::{KeyError, SecretKey, SlotKind, command, file, line};

/// Most bytes of a passphrase.
const PASSPHRASE_BYTES_MAX: usize = 1024;
/// How long a key command may take when nothing else is said.
pub const KEY_COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Where a passphrase or key comes from.
///
/// `Debug` names the kind and the path, never a secret and no argument of a
/// command.
#[non_exhaustive]
pub enum KeySource {
    /// A file with one key line, mode 0600, outside the store.
    KeyFile(PathBuf),
    /// A file whose first line is the passphrase, mode 0600, outside the store.
    PassphraseFile(PathBuf),
    /// A passphrase from a prompt or the embedding program.
    Passphrase(Zeroizing<String>),
    /// A program that prints a key line.
    Command {
        /// The program and its arguments; no shell reads them.
        argv: Vec<String>,
        /// The time limit (see [`KEY_COMMAND_TIMEOUT`]).
        timeout: Duration,
    },
    /// A key line from the embedding program.
    Line(Zeroizing<String>),
}

impl KeySource {
    /// Reads the file, runs the command, or takes what is given.
    ///
    /// `store_dir` is the store that is opened or will be made: a key or
    /// passphrase file inside it is refused, since it would travel with every
    /// copy of what it protects.
    ///
    /// # Errors
    /// Every file, command, key line and passphrase variant of [`KeyError`].
    pub fn resolve(&self, store_dir: Option<&Path>) -> Result<Credential, KeyError> {
        match self {
            Self::KeyFile(path) => {
                let key = line::parse(&file::read_secret(path, store_dir)?)?;
                Ok(Credential::from_key(key, SlotKind::KeyFile))
            }
            Self::PassphraseFile(path) => {
                let bytes = file::read_secret(path, store_dir)?;
                let text = std::str::from_utf8(&bytes).map_err(|_| KeyError::PassphraseNotUtf8)?;
                Credential::from_passphrase(text.lines().next().unwrap_or_default())
            }
            Self::Passphrase(text) => Credential::from_passphrase(text),
            Self::Command { argv, timeout } => {
                let key = line::parse(&command::run(argv, *timeout)?)?;
                Ok(Credential::from_key(key, SlotKind::Command))
            }
            Self::Line(text) => {
                let key = line::parse(text.as_bytes())?;
                Ok(Credential::from_key(key, SlotKind::Supplied))
            }
        }
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyFile(path) => f.debug_tuple("KeyFile").field(path).finish(),
            Self::PassphraseFile(path) => f.debug_tuple("PassphraseFile").field(path).finish(),
            Self::Passphrase(_) => f.write_str("Passphrase(..)"),
            Self::Command { timeout, .. } => f
                .debug_struct("Command")
                .field("timeout", timeout)
                .finish_non_exhaustive(),
            Self::Line(_) => f.write_str("Line(..)"),
        }
    }
}

/// A passphrase or a 256-bit key that may open a key slot. Zeroed when
/// dropped; no `Debug`, `Clone` or `Serialize`.
pub struct Credential {
    kind: SlotKind,
    secret: Secret,
}

enum Secret {
    Passphrase(Zeroizing<String>),
    Raw(SecretKey),
}

impl Credential {
    /// A passphrase. Unicode text is brought to NFC (as in RFC 8265), because
    /// keyboards and systems differ in how they compose the same letters.
    ///
    /// # Errors
    /// [`KeyError::EmptyPassphrase`], [`KeyError::PassphraseTooLong`].
    pub fn from_passphrase(text: &str) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Err(KeyError::EmptyPassphrase);
        }
        if text.len() > PASSPHRASE_BYTES_MAX {
            return Err(KeyError::PassphraseTooLong);
        }
        // NFC grows UTF-8 at most threefold; reserved first, so that growing
        // leaves no copy behind.
        let mut passphrase = Zeroizing::new(String::with_capacity(3 * text.len()));
        if is_nfc(text) {
            passphrase.push_str(text);
        } else {
            passphrase.extend(text.nfc());
        }
        Ok(Self {
            kind: SlotKind::Passphrase,
            secret: Secret::Passphrase(passphrase),
        })
    }

    pub(super) fn from_key(key: SecretKey, kind: SlotKind) -> Self {
        Self {
            kind,
            secret: Secret::Raw(key),
        }
    }

    /// The kind of slot that this credential makes.
    #[must_use]
    pub fn kind(&self) -> SlotKind {
        self.kind
    }

    pub(super) fn passphrase(&self) -> Option<&str> {
        match &self.secret {
            Secret::Passphrase(text) => Some(text),
            Secret::Raw(_) => None,
        }
    }

    pub(super) fn raw_key(&self) -> Option<&SecretKey> {
        match &self.secret {
            Secret::Passphrase(_) => None,
            Secret::Raw(key) => Some(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passphrases_are_compared_in_nfc() {
        let composed = Credential::from_passphrase("caf\u{e9}").unwrap_or_else(|_| panic!());
        let decomposed = Credential::from_passphrase("cafe\u{301}").unwrap_or_else(|_| panic!());
        assert_eq!(composed.passphrase(), decomposed.passphrase());
        assert_eq!(composed.passphrase(), Some("caf\u{e9}"));
    }

    #[test]
    fn passphrases_have_one_to_1024_bytes() {
        let error = |text: &str| Credential::from_passphrase(text).err();
        assert!(matches!(error(""), Some(KeyError::EmptyPassphrase)));
        assert!(error(&"x".repeat(1024)).is_none());
        assert!(matches!(
            error(&"x".repeat(1025)),
            Some(KeyError::PassphraseTooLong)
        ));
    }

    #[test]
    fn a_line_from_the_embedder_makes_a_supplied_credential() {
        let key = SecretKey::copy_of(&[5; 32]);
        let source = KeySource::Line(line::write(&key));
        let credential = source.resolve(None).ok().unwrap();
        assert_eq!(credential.kind(), SlotKind::Supplied);
        assert_eq!(credential.raw_key().unwrap().expose(), &[5; 32]);
    }

    #[test]
    fn debug_of_a_source_shows_no_secret() {
        let sources = [
            KeySource::Passphrase(Zeroizing::new("hunter2".to_owned())),
            KeySource::Line(Zeroizing::new("hunter2".to_owned())),
            KeySource::Command {
                argv: vec!["pass".to_owned(), "--token=hunter2".to_owned()],
                timeout: KEY_COMMAND_TIMEOUT,
            },
        ];
        for source in sources {
            let shown = format!("{source:?}");
            assert!(
                !shown.contains("hunter2") && !shown.contains("token"),
                "{shown}"
            );
            if let Err(error) = source.resolve(None) {
                assert!(!format!("{error} {error:?}").contains("hunter2"));
            }
        }
    }
}
