//! Access tokens, for servers that let others use a store: made, listed, revoked, checked.

use base64ct::{Base64UrlUnpadded, Encoding};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::clock::UnixMillis;
use crate::error::Error;
use crate::hex;
use crate::policy::TenantPattern;
use crate::record::{Access, TOKEN_TENANTS_MAX, Token, TokenId};

use super::Vault;

/// The longest label, in bytes.
const LABEL_BYTES_MAX: usize = 64;

/// What a token starts with.
const PREFIX: &str = "srt1_";

const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// An access token as it is to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Whom the audit log names as the one who acts: 1 to 64 visible characters and spaces,
    /// and no other token's label.
    pub label: String,
    /// What it allows.
    pub access: Access,
    /// The tenants it is for: 1 to 16 patterns; none for [`Access::Metrics`].
    pub tenants: Vec<TenantPattern>,
    /// From when on it is refused, in milliseconds since 1970; `None` is never.
    pub expires: Option<UnixMillis>,
}

/// An access token as the store knows it. Its secret is not among it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenInfo {
    /// Its id, which is no secret: the part of the token between its two underscores.
    pub id: String,
    /// Whom the audit log names as the one who acts.
    pub label: String,
    /// What it allows.
    pub access: Access,
    /// The tenants it is for.
    pub tenants: Vec<TenantPattern>,
    /// When it was made, in milliseconds since 1970.
    pub created: UnixMillis,
    /// From when on it is refused; `None` is never.
    pub expires: Option<UnixMillis>,
}

impl TokenInfo {
    /// Whether it is for this tenant.
    #[must_use]
    pub fn is_for(&self, tenant: &str) -> bool {
        self.tenants.iter().any(|pattern| pattern.matches(tenant))
    }
}

impl Vault {
    /// Makes an access token and returns its text, which is not stored and cannot be had
    /// again. Audited with its label.
    ///
    /// # Errors
    /// [`Error::Token`] for a label or a list of tenants that cannot be, and as any write.
    pub fn create_token(&self, new: &NewToken) -> Result<(TokenInfo, Zeroizing<String>), Error> {
        check(new)?;
        let store = &self.shared.store;
        let mut id = [0; ID_BYTES];
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        self.shared.fill_random(&mut id)?;
        self.shared.fill_random(&mut *secret)?;
        let text = text_of(&id, &secret);
        let token = Token {
            hash: hash_of(&text),
            label: new.label.clone(),
            access: new.access,
            tenants: new.tenants.iter().map(ToString::to_string).collect(),
            created: store.now(),
            expires: new.expires,
        };
        let id = TokenId(id);
        if !store.add_token(id, token.clone())? {
            return Err(Error::Token("another token has this label"));
        }
        Ok((info(id, &token), text))
    }

    /// All tokens, those that have expired too, by label.
    #[must_use]
    pub fn tokens(&self) -> Vec<TokenInfo> {
        let mut all: Vec<_> = self
            .shared
            .store
            .tokens()
            .iter()
            .map(|(id, token)| info(*id, token))
            .collect();
        all.sort_by(|a, b| a.label.cmp(&b.label));
        all
    }

    /// Removes the token of this id or label, which is refused from here on. Says which it
    /// was; `None` where there is none.
    ///
    /// # Errors
    /// As any write.
    pub fn revoke_token(&self, id_or_label: &str) -> Result<Option<TokenInfo>, Error> {
        let named = self
            .tokens()
            .into_iter()
            .find(|token| token.id == id_or_label || token.label == id_or_label);
        let Some(token) = named else {
            return Ok(None);
        };
        let Some(id) = id_of(&token.id) else {
            return Ok(None);
        };
        let was_there = self.shared.store.remove_token(id)?;
        Ok(was_there.then_some(token))
    }

    /// What this token allows; `None` for one that is unknown, revoked or expired. The time
    /// it takes does not depend on how much of a secret is right.
    #[must_use]
    pub fn token(&self, text: &str) -> Option<TokenInfo> {
        let store = &self.shared.store;
        let (id, _) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let id = id_of(id)?;
        let token = store.token(id)?;
        let is_right: bool = token.hash.ct_eq(&hash_of(text)).into();
        let is_due = token.expires.is_some_and(|at| at <= store.now());
        (is_right && !is_due).then(|| info(id, &token))
    }
}

/// A token as its holder has it.
fn text_of(id: &[u8; ID_BYTES], secret: &[u8; SECRET_BYTES]) -> Zeroizing<String> {
    let encoded = Zeroizing::new(Base64UrlUnpadded::encode_string(secret));
    Zeroizing::new(format!("{PREFIX}{}_{}", hex::encode(id), *encoded))
}

/// What the store keeps of a token's text.
fn hash_of(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn check(new: &NewToken) -> Result<(), Error> {
    let is_plain = !new.label.contains(char::is_control) && new.label.trim() == new.label;
    if new.label.is_empty() || new.label.len() > LABEL_BYTES_MAX || !is_plain {
        return Err(Error::Token(
            "its label must be 1 to 64 bytes, without control characters or blanks at the ends",
        ));
    }
    match (new.access, new.tenants.len()) {
        (Access::Metrics, 0) => Ok(()),
        (Access::Metrics, _) => Err(Error::Token("one for the figures is for no tenant")),
        (_, 1..=TOKEN_TENANTS_MAX) => Ok(()),
        _ => Err(Error::Token("it must be for 1 to 16 patterns of tenants")),
    }
}

fn info(id: TokenId, token: &Token) -> TokenInfo {
    TokenInfo {
        id: hex::encode(&id.0),
        label: token.label.clone(),
        access: token.access,
        // A pattern that a newer version wrote and this one cannot read covers no tenant.
        tenants: token
            .tenants
            .iter()
            .filter_map(|pattern| TenantPattern::parse(pattern).ok())
            .collect(),
        created: token.created,
        expires: token.expires,
    }
}

/// Lower-case hexadecimal only, so that each token has one form.
fn id_of(text: &str) -> Option<TokenId> {
    hex::decode(text).map(TokenId)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::ManualClock;
    use crate::vectors::vector;

    const NOW: UnixMillis = 1_767_225_600_000;

    fn new(label: &str) -> NewToken {
        NewToken {
            label: label.to_owned(),
            access: Access::ReadWrite,
            tenants: vec![TenantPattern::parse("clinic/*").unwrap()],
            expires: None,
        }
    }

    fn vault(clock: &Arc<ManualClock>) -> Vault {
        let clock = Arc::clone(clock);
        Vault::builder().in_memory().clock(clock).open().unwrap()
    }

    #[test]
    fn a_tokens_text_and_hash_are_those_of_an_independent_implementation() {
        let text = text_of(&[1; ID_BYTES], &[2; SECRET_BYTES]);
        assert_eq!(*text, vector("token"));
        assert_eq!(hex::encode(&hash_of(&text)), vector("token_hash"));
    }

    #[test]
    fn a_token_is_known_until_it_is_revoked_and_no_other_text_is() {
        let vault = vault(&Arc::new(ManualClock::at(NOW)));
        let (info, text) = vault.create_token(&new("intake")).unwrap();
        let (other, other_text) = vault.create_token(&new("other")).unwrap();
        assert_eq!(vault.token(&text).as_ref(), Some(&info));
        assert!(info.is_for("clinic/7") && !info.is_for("clinic/7/x") && !info.is_for("lab/7"));
        let swapped = text.replace(&info.id, &other.id);
        let upper = text.replace(&info.id, &info.id.to_uppercase());
        let cut = &text[..text.len() - 1];
        for wrong in ["", "srt1_", PREFIX, cut, &format!("{}x", *text), &swapped] {
            assert_eq!(vault.token(wrong), None, "{wrong}");
        }
        assert!(upper == *text || vault.token(&upper).is_none());
        assert_eq!(vault.revoke_token("intake").unwrap(), Some(info));
        assert_eq!(vault.token(&text), None);
        assert_eq!(vault.token(&other_text), Some(other.clone()));
        assert_eq!(vault.revoke_token("intake").unwrap(), None);
        assert_eq!(vault.revoke_token(&other.id).unwrap(), Some(other));
        assert!(vault.tokens().is_empty());
    }

    #[test]
    fn a_token_expires_and_a_clock_that_is_put_back_does_not_revive_it() {
        let clock = Arc::new(ManualClock::at(NOW));
        let vault = vault(&clock);
        let expires = Some(NOW + 1_000);
        let token = NewToken {
            expires,
            ..new("a")
        };
        let (_, text) = vault.create_token(&token).unwrap();
        clock.set(NOW + 999);
        assert!(vault.token(&text).is_some());
        clock.set(NOW + 1_000);
        assert!(vault.token(&text).is_none());
        // Any write moves the trusted time on.
        vault.create_token(&new("b")).unwrap();
        clock.set(NOW);
        assert!(vault.token(&text).is_none());
    }

    #[test]
    fn what_no_token_can_be_is_refused() {
        let vault = vault(&Arc::new(ManualClock::at(NOW)));
        vault.create_token(&new("taken")).unwrap();
        for label in ["", " a", "a\n", "taken", &"x".repeat(65)] {
            assert!(
                matches!(vault.create_token(&new(label)), Err(Error::Token(_))),
                "{label:?}"
            );
        }
        let tenants = |access, count| NewToken {
            access,
            tenants: vec![TenantPattern::parse("a/*").unwrap(); count],
            ..new("many")
        };
        for wrong in [
            tenants(Access::ReadOnly, 0),
            tenants(Access::ReadWrite, TOKEN_TENANTS_MAX + 1),
            tenants(Access::Metrics, 1),
        ] {
            assert!(vault.create_token(&wrong).is_err());
        }
        assert!(vault.create_token(&tenants(Access::Metrics, 0)).is_ok());
    }
}
