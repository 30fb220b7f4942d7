//! Helpers for this layer's tests.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use super::{Credential, KeyError, OsRandom, Random, SecretKey, SlotKind};

pub(crate) use crate::hex::encode as hex;

pub(super) fn unhex<const N: usize>(text: &str) -> [u8; N] {
    crate::hex::decode(text).unwrap()
}

/// A key credential with the byte `f(i)` at place i.
pub(crate) fn raw_credential(f: impl Fn(u8) -> u8) -> Credential {
    let key = std::array::from_fn(|i| f(u8::try_from(i).unwrap()));
    Credential::from_key(SecretKey::copy_of(&key), SlotKind::KeyFile)
}

/// A source that always fails, after it has written something.
pub(crate) struct FailingRandom;

impl Random for FailingRandom {
    fn fill(&self, out: &mut [u8]) -> Result<(), KeyError> {
        out.fill(0xaa);
        Err(KeyError::Random)
    }
}

/// A source that works `n` times and then fails.
pub(super) struct RandomFor(pub(super) AtomicUsize);

impl Random for RandomFor {
    fn fill(&self, out: &mut [u8]) -> Result<(), KeyError> {
        let left = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        left.map_err(|_| KeyError::Random)?;
        OsRandom.fill(out)
    }
}

/// A source whose n-th draw is bytes of the value n, from 1.
#[derive(Default)]
pub(crate) struct Counting(AtomicU8);

impl Random for Counting {
    fn fill(&self, out: &mut [u8]) -> Result<(), KeyError> {
        out.fill(self.0.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(())
    }
}
