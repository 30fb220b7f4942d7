//! Keeps access tokens: sealed records that the root counts, held in memory while the store is open.

use std::sync::{Arc, PoisonError};

use crate::audit::Draft;
use crate::backend::Batch;
use crate::record::{RecordKey, Token, TokenId};

use super::core::{Core, Extra, TopChange};
use super::{Store, StoreError};

/// The most tokens that a store has. All of them are in memory.
const TOKENS_MAX: usize = 1_000;

/// A token, and the hash of its record as the root counts it.
#[derive(Clone)]
pub(super) struct StoredToken {
    pub(super) token: Arc<Token>,
    pub(super) mac: [u8; 32],
}

impl Store {
    /// The token of this id.
    pub(crate) fn token(&self, id: TokenId) -> Option<Arc<Token>> {
        let tokens = self
            .core
            .tokens
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        tokens.get(&id).map(|stored| Arc::clone(&stored.token))
    }

    /// All tokens, by id.
    pub(crate) fn tokens(&self) -> Vec<(TokenId, Arc<Token>)> {
        let tokens = self
            .core
            .tokens
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let all = tokens.iter();
        all.map(|(id, stored)| (*id, Arc::clone(&stored.token)))
            .collect()
    }

    /// Adds a token with a label that no other has. Durable when it returns; says whether the
    /// label was free.
    pub(crate) fn add_token(&self, id: TokenId, token: Token) -> Result<bool, StoreError> {
        let core: &Core = &self.core;
        let mut tokens = core.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let is_taken = tokens
            .iter()
            .any(|(other, stored)| *other == id || stored.token.label == token.label);
        if is_taken {
            return Ok(false);
        }
        if tokens.len() >= TOKENS_MAX {
            return Err(StoreError::Limit("there are 1000 tokens already"));
        }
        let key = RecordKey::Token(id);
        let sealed = core.seal_top(&key, &token.encode())?;
        let mac = core.top_mac(&key, &sealed);
        let seq = commit(core, "token create", &token, key, None, Some(sealed))?;
        let token = Arc::new(token);
        tokens.insert(id, StoredToken { token, mac });
        drop(tokens);
        core.wait_durable(seq)?;
        Ok(true)
    }

    /// Removes a token. Durable when it returns; says whether there was one.
    pub(crate) fn remove_token(&self, id: TokenId) -> Result<bool, StoreError> {
        let core: &Core = &self.core;
        let mut tokens = core.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let Some(stored) = tokens.get(&id).cloned() else {
            return Ok(false);
        };
        let key = RecordKey::Token(id);
        let old = Some(stored.mac);
        let seq = commit(core, "token revoke", &stored.token, key, old, None)?;
        tokens.remove(&id);
        drop(tokens);
        core.wait_durable(seq)?;
        Ok(true)
    }
}

fn commit(
    core: &Core,
    event: &str,
    token: &Token,
    key: RecordKey,
    old: Option<[u8; 32]>,
    new: Option<Vec<u8>>,
) -> Result<u64, StoreError> {
    let extra = Extra {
        drafts: vec![Draft::new(event).detail(token.label.as_str())],
        ..Extra::default()
    };
    core.commit_with(extra, Batch::default(), vec![TopChange { key, old, new }])
}
