//! Where an adapter's key comes from: an argument, else a variable.

use std::path::PathBuf;

use strongroom::Code;
use strongroom::key::{KEY_COMMAND_TIMEOUT, KeySource};
use zeroize::Zeroizing;

use super::super::{failure::Stop, keys};
use super::Failure;

/// The ways in which an adapter's caller can name the key. At most one may be set.
///
/// With none, the variables `STRONGROOM_KEY_FILE`, `STRONGROOM_PASSPHRASE_FILE` and
/// `STRONGROOM_KEY_COMMAND` are asked, as by the `strongroom` command.
#[derive(Default)]
pub struct KeyChoice {
    /// The key is in this file.
    pub key_file: Option<PathBuf>,
    /// The passphrase itself. Never from a command line.
    pub passphrase: Option<Zeroizing<String>>,
    /// The passphrase is the first line of this file.
    pub passphrase_file: Option<PathBuf>,
    /// This program, with its arguments, prints the key line. No shell reads it.
    pub key_command: Option<Vec<String>>,
}

impl KeyChoice {
    /// The one that is named.
    ///
    /// # Errors
    /// When there is none, naming the ways, or more than one.
    pub fn source(self) -> Result<KeySource, Failure> {
        let named = [
            self.key_file.map(KeySource::KeyFile),
            self.passphrase.map(KeySource::Passphrase),
            self.passphrase_file.map(KeySource::PassphraseFile),
            self.key_command.map(|argv| KeySource::Command {
                argv,
                timeout: KEY_COMMAND_TIMEOUT,
            }),
        ];
        let mut named = named.into_iter().flatten();
        match (named.next(), named.next()) {
            (Some(source), None) => Ok(source),
            (Some(_), Some(_)) => Err(Failure {
                code: Code::Usage,
                text: "failed to choose a key: name one of key_file, passphrase, passphrase_file \
                       and key_command, not several"
                    .to_owned(),
            }),
            (None, _) => match keys::from_variables() {
                Ok(Some(source)) => Ok(source),
                Ok(None) => Err(no_key()),
                Err(Stop::Failed(failure)) => Err(Failure {
                    code: Code::Usage,
                    text: failure.line(),
                }),
                Err(_) => Err(no_key()),
            },
        }
    }
}

fn no_key() -> Failure {
    Failure {
        code: Code::Key,
        text: "failed to find the key: name key_file, passphrase, passphrase_file or key_command, \
               or set STRONGROOM_KEY_FILE, STRONGROOM_PASSPHRASE_FILE or STRONGROOM_KEY_COMMAND"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_names_the_four_ways_and_two_are_one_too_many() {
        let none = KeyChoice::default().source().unwrap_err();
        assert_eq!(none.code, Code::Key);
        for way in ["key_file", "passphrase,", "passphrase_file", "key_command"] {
            assert!(none.text.contains(way), "{way}");
        }
        let two = KeyChoice {
            key_file: Some("k".into()),
            passphrase_file: Some("p".into()),
            ..KeyChoice::default()
        };
        assert_eq!(two.source().unwrap_err().code, Code::Usage);
    }
}
