//! Small parsers that read secrets by structure: keys and values, URLs, headers, command lines, keys in PEM.

mod cli;
mod header;
mod judge;
mod key;
mod keyvalue;
mod pem;
mod prose;
mod table;
mod url;
mod value;

use super::marker::Ids;
use super::text::Text;

/// Which parser reads a rule's hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Parser {
    /// The value of a key that names a password.
    PasswordValue,
    /// The value of a key that names a token, a key or another secret.
    SecretValue,
    /// "The password is …" and its kin in running text.
    PasswordProse,
    /// The user part of a URL (RFC 3986, 3.2.1).
    UrlUserinfo,
    /// `Authorization` and the like (RFC 9110, 11.6.2), also with curl's `-H`.
    AuthHeader,
    /// `Cookie` and `Set-Cookie` (RFC 6265).
    Cookie,
    /// Options of command-line tools that take a password.
    CommandLine,
    /// A private key in PEM or PuTTY form (RFC 7468), also without its end.
    PrivateKey,
    /// The last lines of a private key of which the beginning is gone.
    PrivateKeyTail,
    /// A column of a Markdown table under a sensitive heading.
    TableColumn,
    /// The private members of a JSON Web Key (RFC 7517, RFC 7518).
    Jwk,
}

/// A place of a text, in bytes.
pub(crate) type Span = (usize, usize);

/// What a parser sees of the engine.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) text: Text<'a>,
    pub(crate) ids: &'a Ids,
}

impl Parser {
    /// Reads the text around the keyword hit `hit` and gives the secrets found to `found`.
    ///
    /// Gives the place up to which the text needs no further reading by this parser, or 0.
    pub(crate) fn run(self, scene: Scene<'_>, hit: Span, found: &mut Vec<Span>) -> usize {
        match self {
            Self::PasswordValue => keyvalue::read(scene, hit, key::Class::Password, found),
            Self::SecretValue => keyvalue::read(scene, hit, key::Class::Secret, found),
            Self::PasswordProse => prose::read(scene, hit, found),
            Self::UrlUserinfo => url::read(scene, hit, found),
            Self::AuthHeader => header::authorization(scene, hit, found),
            Self::Cookie => return header::cookie(scene, hit, found),
            Self::CommandLine => cli::read(scene, hit, found),
            Self::PrivateKey => return pem::read(scene, hit, found),
            Self::PrivateKeyTail => pem::read_tail(scene, hit, found),
            Self::TableColumn => table::read(scene, hit, found),
            Self::Jwk => return keyvalue::jwk(scene, hit, found),
        }
        0
    }

    /// About how many bytes one run looks at.
    pub(crate) fn cost(self) -> usize {
        match self {
            Self::Jwk | Self::TableColumn => 2000,
            Self::CommandLine | Self::PasswordProse => 500,
            _ => 200,
        }
    }
}
