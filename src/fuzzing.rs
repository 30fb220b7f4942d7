//! What the fuzz targets reach below the public interface. Built with `--cfg fuzzing` only.

use crate::key::aead::Cipher;
use crate::key::mac::MacKey;
use crate::key::{KeyError, Random, SecretKey, StoreId};
use crate::record::{Dirent, Head, Job, RecordKey, Root, Token};
use crate::seal::{self, Place};
use crate::store::{is_state_slot, new_state_slot};

/// The kinds of bytes that lie sealed in a store, and the keys under which they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A record key.
    Key,
    /// The root record.
    Root,
    /// A tenant's head.
    Head,
    /// An entry of a directory.
    Dirent,
    /// A job.
    Job,
    /// An access token.
    Token,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Key,
        Self::Root,
        Self::Head,
        Self::Dirent,
        Self::Job,
        Self::Token,
    ];

    /// Reads bytes and writes what was read. `None` where they are refused.
    #[must_use]
    pub fn recode(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Key => RecordKey::from_bytes(bytes).map(RecordKey::to_bytes),
            Self::Root => Root::decode(bytes).ok().map(|record| record.encode()),
            Self::Head => Head::decode(bytes).ok().map(|record| record.encode()),
            Self::Dirent => Dirent::decode(bytes).ok().map(|record| record.encode()),
            Self::Job => Job::decode(bytes).ok().map(|record| record.encode()),
            Self::Token => Token::decode(bytes).ok().map(|record| record.encode()),
        }
    }
}

/// Seals and opens records of one store under one key.
pub struct Sealer {
    store: StoreId,
    cipher: Cipher,
}

impl Sealer {
    /// One with a key from `random`.
    ///
    /// # Errors
    /// Those of `random`.
    pub fn new(store: StoreId, random: &dyn Random) -> Result<Self, KeyError> {
        Ok(Self {
            store,
            cipher: Cipher::new(&SecretKey::random(random)?),
        })
    }

    /// The value that a record is stored as; `None` when `random` fails.
    #[must_use]
    pub fn seal(
        &self,
        epoch: u32,
        key: &[u8],
        plain: &[u8],
        random: &dyn Random,
    ) -> Option<Vec<u8>> {
        seal::seal_record(&self.place(epoch, key), &self.cipher, random, plain).ok()
    }

    /// The record that a stored value is, if it was sealed for this place.
    #[must_use]
    pub fn open(&self, epoch: u32, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        seal::open_record(&self.place(epoch, key), &self.cipher, value)
            .ok()
            .map(|plain| plain.to_vec())
    }

    fn place<'a>(&self, epoch: u32, key: &'a [u8]) -> Place<'a> {
        Place {
            store: self.store,
            epoch,
            key,
        }
    }
}

/// Makes and checks slots of STATE of one store.
pub struct Slots {
    store: StoreId,
    key: MacKey,
}

impl Slots {
    /// Those with a key from `random`.
    ///
    /// # Errors
    /// Those of `random`.
    pub fn new(store: StoreId, random: &dyn Random) -> Result<Self, KeyError> {
        Ok(Self {
            store,
            key: MacKey::new(&SecretKey::random(random)?),
        })
    }

    /// A slot that says something of this counter.
    #[must_use]
    pub fn slot(&self, counter: u64) -> Vec<u8> {
        new_state_slot(counter, self.store, &self.key)
    }

    /// Whether a slot counts.
    #[must_use]
    pub fn accepts(&self, slot: &[u8]) -> bool {
        is_state_slot(slot, self.store, &self.key)
    }
}
