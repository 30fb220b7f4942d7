//! The keyring: key slots, the master key behind them, the store's keys.

mod format;
mod open;
mod rotate;
mod store_keys;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::format::{Body, SealedStoreKeys};
use super::kdf::{self, KdfParams, SALT_BYTES, Stretcher};
use super::mac::{HASH_BYTES, MacKey};
use super::secret::random_bytes;
use super::{Credential, KEY_BYTES, KeyError, Random, SecretKey, StoreId, aead};

pub use self::format::KEYRING_BYTES_MAX;
pub use self::store_keys::StoreKeys;

/// Most key slots of a store.
pub const MAX_SLOTS: usize = 8;
/// Most bytes of a slot's label.
pub const LABEL_BYTES_MAX: usize = 64;

/// The format of keyring copies and tenant key files that this code writes.
pub(super) const FORMAT: u8 = 1;
const WRAPPED_BYTES: usize = KEY_BYTES + aead::TAG_BYTES;
const MASTER_MAC_LABEL: &str = "strongroom/v1/keyring-mac";

/// The set of algorithms of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Suite {
    /// XChaCha20-Poly1305, HKDF- and HMAC-SHA256, Argon2id 0x13.
    XChaCha20Poly1305 = 1,
}

impl Suite {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        (byte == Self::XChaCha20Poly1305 as u8).then_some(Self::XChaCha20Poly1305)
    }
}

/// What opens a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum SlotKind {
    /// A passphrase, through Argon2id.
    Passphrase = 1,
    /// A key from a key file.
    KeyFile = 2,
    /// A key that a command prints.
    Command = 3,
    /// A key line that the embedding program supplies.
    Supplied = 4,
}

impl SlotKind {
    fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Passphrase,
            Self::KeyFile,
            Self::Command,
            Self::Supplied,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// What the operator may know about a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotInfo {
    /// Names the slot for its life and is never given twice: the keyring's
    /// counter at the time the slot was added.
    pub id: u64,
    /// What opens it.
    pub kind: SlotKind,
    /// The operator's note.
    pub label: String,
    /// When it was added, Unix milliseconds.
    pub created_ms: u64,
    /// Cost of a passphrase slot; `None` for keys, which need no stretching.
    pub params: Option<KdfParams>,
}

/// What a new slot is to say; its kind is the credential's.
#[derive(Debug, Clone, Copy)]
pub struct NewSlot<'a> {
    /// At most 64 bytes, no control characters; may be empty.
    pub label: &'a str,
    /// The time, Unix milliseconds.
    pub created_ms: u64,
    /// Cost of a passphrase slot; not used for keys.
    pub params: KdfParams,
}

/// Names one of the two copies, `keyring.a` and `keyring.b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyName {
    /// `keyring.a`.
    A,
    /// `keyring.b`.
    B,
}

/// An opened keyring and what the copies looked like.
pub struct Opened {
    /// The keyring.
    pub keyring: Keyring,
    /// The id of the slot that opened it.
    pub slot: u64,
    /// The copy that is missing, damaged or older, to be rewritten with
    /// [`Keyring::encode`].
    pub repair: Option<CopyName>,
}

/// An opened keyring. It holds the master key, so that slots can be added.
///
/// A change is made in memory and raises the counter; the caller then writes
/// [`Self::encode`] to one copy after the other. An error leaves the keyring
/// as it was.
pub struct Keyring {
    suite: Suite,
    counter: u64,
    store_id: StoreId,
    slots: Vec<Slot>,
    sealed_store_keys: SealedStoreKeys,
    store_keys: StoreKeys,
    master: SecretKey,
    /// The slot whose credential opened this keyring.
    opener: u64,
    /// What the slots whose credentials this process has seen are sealed under: only these
    /// can take a new master key.
    wraps: BTreeMap<u64, SecretKey>,
}

impl Keyring {
    /// A new keyring with random keys, a random store id and one slot.
    ///
    /// # Errors
    /// [`KeyError::Random`], [`KeyError::Label`], [`KeyError::KdfOutOfRange`],
    /// [`KeyError::KdfTooExpensive`].
    pub fn create(
        suite: Suite,
        credential: &Credential,
        slot: NewSlot<'_>,
        random: &dyn Random,
    ) -> Result<Self, KeyError> {
        let store_id = StoreId(random_bytes(random)?);
        let master = SecretKey::random(random)?;
        let store_keys = StoreKeys::random(random)?;
        let sealed_store_keys = store_keys.seal(&master, suite, store_id, random)?;
        let mut keyring = Self {
            suite,
            counter: 0,
            store_id,
            slots: Vec::with_capacity(MAX_SLOTS),
            sealed_store_keys,
            store_keys,
            master,
            opener: 1,
            wraps: BTreeMap::new(),
        };
        keyring.add_slot(credential, slot, random)?;
        Ok(keyring)
    }

    /// Opens the better of the two copies (`keyring.a`, `keyring.b`; `None`
    /// for one that does not exist).
    ///
    /// Takes one key derivation per slot tried; a derivation that both copies
    /// ask for is run once.
    ///
    /// # Errors
    /// [`KeyError::NoKeyring`], [`KeyError::WrongCredential`],
    /// [`KeyError::NoSlotForSource`], [`KeyError::DamagedSlot`],
    /// [`KeyError::DamagedHeader`], [`KeyError::UnknownFormat`] (also when
    /// only one copy is newer), [`KeyError::KdfTooExpensive`].
    pub fn open(copies: [Option<&[u8]>; 2], credential: &Credential) -> Result<Opened, KeyError> {
        let mut stretcher = Stretcher::new(credential, kdf::memory_available_kib());
        open::open(copies, credential, &mut stretcher)
    }

    /// Opens another copy of this store's keyring, as a backup has it, with the master key of
    /// this one.
    ///
    /// # Errors
    /// [`KeyError::WrongCredential`] when it is another store's or under another master key;
    /// [`KeyError::DamagedHeader`], [`KeyError::UnknownFormat`].
    pub(crate) fn open_sibling(&self, bytes: &[u8]) -> Result<Self, KeyError> {
        open::open_sibling(self, bytes)
    }

    /// The bytes of a copy; the same until the next change.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = format::encode(&Body {
            suite: self.suite,
            counter: self.counter,
            store_id: self.store_id,
            slots: self.slots.clone(),
            store_keys: self.sealed_store_keys.clone(),
        });
        let mac: [u8; HASH_BYTES] =
            MacKey::new(&self.master.derive(MASTER_MAC_LABEL)).mac(&[&bytes]);
        bytes.extend_from_slice(&mac);
        bytes
    }

    /// Adds a slot for another credential and returns its id.
    ///
    /// # Errors
    /// [`KeyError::SlotsFull`], [`KeyError::Label`], [`KeyError::Random`],
    /// [`KeyError::KdfOutOfRange`], [`KeyError::KdfTooExpensive`],
    /// [`KeyError::CounterExhausted`].
    pub fn add_slot(
        &mut self,
        credential: &Credential,
        slot: NewSlot<'_>,
        random: &dyn Random,
    ) -> Result<u64, KeyError> {
        if self.slots.len() >= MAX_SLOTS {
            return Err(KeyError::SlotsFull);
        }
        let (new, wrap) = self.new_slot(credential, slot, random)?;
        let id = new.info.id;
        self.slots.push(new);
        self.wraps.insert(id, wrap);
        self.counter = id;
        Ok(id)
    }

    /// A slot for the master key, with the next counter as its id.
    fn new_slot(
        &self,
        credential: &Credential,
        slot: NewSlot<'_>,
        random: &dyn Random,
    ) -> Result<(Slot, SecretKey), KeyError> {
        if !is_label(slot.label) {
            return Err(KeyError::Label);
        }
        let id = self.next_counter()?;
        let kind = credential.kind();
        let params = (kind == SlotKind::Passphrase).then_some(slot.params);
        let salt = random_bytes(random)?;
        let nonce = random_bytes(random)?;
        let mut stretcher = Stretcher::new(credential, kdf::memory_available_kib());
        let keys = stretcher.slot_keys(params, &salt)?;
        let mut new = Slot {
            info: SlotInfo {
                id,
                kind,
                label: slot.label.to_owned(),
                created_ms: slot.created_ms,
                params,
            },
            salt,
            commitment: keys.commitment(),
            nonce,
            wrapped: [0; WRAPPED_BYTES],
        };
        let aad = format::slot_aad(self.suite, self.store_id, &new);
        new.wrapped = fixed(&aead::seal(&keys.wrap, &nonce, &aad, self.master.expose()));
        Ok((new, SecretKey::copy_of(keys.wrap.expose())))
    }

    /// Removes a slot. Its credential opens nothing any more once both copies
    /// are written; whoever kept an older copy *and* has the credential still
    /// has the master key of that time.
    ///
    /// # Errors
    /// [`KeyError::NoSuchSlot`], [`KeyError::LastSlot`],
    /// [`KeyError::CounterExhausted`].
    pub fn remove_slot(&mut self, id: u64) -> Result<(), KeyError> {
        let at = self
            .slots
            .iter()
            .position(|slot| slot.info.id == id)
            .ok_or(KeyError::NoSuchSlot { id })?;
        // Every slot of an opened keyring is usable, because its MAC held.
        if self.slots.len() == 1 {
            return Err(KeyError::LastSlot);
        }
        self.counter = self.next_counter()?;
        self.slots.remove(at);
        self.wraps.remove(&id);
        Ok(())
    }

    /// The slots, by ascending id.
    pub fn slots(&self) -> impl Iterator<Item = &SlotInfo> {
        self.slots.iter().map(|slot| &slot.info)
    }

    /// The store's keys.
    #[must_use]
    pub fn store_keys(&self) -> &StoreKeys {
        &self.store_keys
    }

    /// The store's id.
    #[must_use]
    pub fn store_id(&self) -> StoreId {
        self.store_id
    }

    /// The store's algorithms.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The number of changes; the root record remembers it, so that an older
    /// keyring is noticed.
    #[must_use]
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// A keyed hash over the challenge, which shows that its maker could open this keyring.
    /// Slots that come and go do not change it.
    pub(crate) fn prove(&self, challenge: &[u8]) -> [u8; HASH_BYTES] {
        self.control_key().mac(&[challenge])
    }

    /// Whether [`Keyring::prove`] made this for the same challenge.
    pub(crate) fn is_proof(&self, challenge: &[u8], proof: &[u8; HASH_BYTES]) -> bool {
        self.control_key().verify(&[challenge], proof)
    }

    /// The other way round: shows whoever made a proof for this challenge that its reader could
    /// open this keyring too. Under a key of its own, so neither stands for the other.
    pub(crate) fn answer(&self, challenge: &[u8]) -> [u8; HASH_BYTES] {
        MacKey::new(&self.master.derive("strongroom/v1/control-answer")).mac(&[challenge])
    }

    fn control_key(&self) -> MacKey {
        MacKey::new(&self.master.derive("strongroom/v1/control"))
    }

    fn next_counter(&self) -> Result<u64, KeyError> {
        self.counter
            .checked_add(1)
            .ok_or(KeyError::CounterExhausted)
    }
}

/// A slot as it is stored. Holds no secret in the clear.
#[derive(Clone)]
struct Slot {
    info: SlotInfo,
    salt: [u8; SALT_BYTES],
    commitment: [u8; KEY_BYTES],
    nonce: [u8; aead::NONCE_BYTES],
    wrapped: [u8; WRAPPED_BYTES],
}

/// Control characters would let a label rewrite the operator's terminal.
fn is_label(label: &str) -> bool {
    label.len() <= LABEL_BYTES_MAX && !label.contains(char::is_control)
}

/// Sealed bytes as an array of the length they have.
#[expect(
    clippy::expect_used,
    reason = "sealing adds exactly 16 bytes to a plain text of fixed length"
)]
fn fixed<const N: usize>(sealed: &[u8]) -> [u8; N] {
    sealed.try_into().expect("sealed length is fixed")
}
