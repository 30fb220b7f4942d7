//! STATE: two slots outside the engine that say what must at least be inside it.
//!
//! A slot is written and synced after every group sync, before anything is
//! acknowledged. So an engine that comes back older than the newest slot has lost
//! something that was promised.

use crate::backend::{Copy, Item, KeyStore};
use crate::key::StoreId;
use crate::key::mac::MacKey;

use super::StoreError;

/// The bytes that a slot's code covers.
const BODY_BYTES: usize = 1 + 16 + 8 + 4 + 8 + 32 + 1;

const FORMAT: u8 = 1;

/// What one slot says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    /// Which slot is newer.
    pub(super) counter: u64,
    /// The engine directory in use.
    pub(super) generation: u32,
    /// The newest commit known to be durable.
    pub(super) seq: u64,
    /// SHA-256 of the sealed root record of that commit.
    pub(super) root_digest: [u8; 32],
    /// Whether the store was closed in order, with nothing written since.
    pub(super) clean: bool,
}

impl State {
    pub(super) fn encode(&self, store: StoreId, key: &MacKey) -> Vec<u8> {
        let mut slot = Vec::with_capacity(BODY_BYTES + 32);
        slot.push(FORMAT);
        slot.extend_from_slice(&store.0);
        slot.extend_from_slice(&self.counter.to_be_bytes());
        slot.extend_from_slice(&self.generation.to_be_bytes());
        slot.extend_from_slice(&self.seq.to_be_bytes());
        slot.extend_from_slice(&self.root_digest);
        slot.push(u8::from(self.clean));
        let code = key.mac(&[&slot]);
        slot.extend_from_slice(&code);
        slot
    }

    fn decode(slot: &[u8], store: StoreId, key: &MacKey) -> Option<Self> {
        let (body, rest) = slot.split_at_checked(BODY_BYTES)?;
        let (code, _) = rest.split_first_chunk::<32>()?;
        let (id, state) = Self::unchecked(slot)?;
        (key.verify(&[body], code) && id == store).then_some(state)
    }

    /// What a slot says and of which store, without its code: to look at where there is no key.
    pub(super) fn unchecked(slot: &[u8]) -> Option<(StoreId, Self)> {
        let (body, rest) = slot.split_at_checked(BODY_BYTES)?;
        let (_, padding) = rest.split_first_chunk::<32>()?;
        if padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        let (&format, body) = body.split_first()?;
        let (id, body) = body.split_first_chunk::<16>()?;
        let (counter, body) = body.split_first_chunk::<8>()?;
        let (generation, body) = body.split_first_chunk::<4>()?;
        let (seq, body) = body.split_first_chunk::<8>()?;
        let (root_digest, body) = body.split_first_chunk::<32>()?;
        if format != FORMAT {
            return None;
        }
        let state = Self {
            counter: u64::from_be_bytes(*counter),
            generation: u32::from_be_bytes(*generation),
            seq: u64::from_be_bytes(*seq),
            root_digest: *root_digest,
            clean: body == [1],
        };
        Some((StoreId(*id), state))
    }

    /// The slot whose turn it is.
    pub(super) fn copy(&self) -> Copy {
        if self.counter.is_multiple_of(2) {
            Copy::A
        } else {
            Copy::B
        }
    }
}

/// Reads both slots; the valid one with the higher counter counts.
///
/// # Errors
/// [`StoreError::StateLost`] when there is no valid slot.
pub(super) fn read(keys: &dyn KeyStore, store: StoreId, key: &MacKey) -> Result<State, StoreError> {
    let mut newest: Option<State> = None;
    for copy in [Copy::A, Copy::B] {
        let slot = keys.read(Item::State, copy)?.unwrap_or_default();
        if let Some(state) = State::decode(&slot, store, key)
            && newest.is_none_or(|newest| state.counter > newest.counter)
        {
            newest = Some(state);
        }
    }
    newest.ok_or(StoreError::StateLost)
}

/// Writes the next state into the slot whose turn it is. Durable when it returns.
pub(super) fn write(
    keys: &dyn KeyStore,
    store: StoreId,
    key: &MacKey,
    state: &State,
) -> Result<(), StoreError> {
    Ok(keys.write(Item::State, state.copy(), &state.encode(store, key))?)
}

/// For the fuzz targets: a slot with this counter.
#[cfg(fuzzing)]
pub(crate) fn new_state_slot(counter: u64, store: StoreId, key: &MacKey) -> Vec<u8> {
    let state = State {
        counter,
        generation: 1,
        seq: counter,
        root_digest: [3; 32],
        clean: false,
    };
    state.encode(store, key)
}

/// For the fuzz targets: whether a slot counts.
#[cfg(fuzzing)]
pub(crate) fn is_state_slot(slot: &[u8], store: StoreId, key: &MacKey) -> bool {
    State::decode(slot, store, key).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::MemoryKeyStore;
    use crate::key::SecretKey;

    fn state(counter: u64) -> State {
        State {
            counter,
            generation: 1,
            seq: counter * 10,
            root_digest: [3; 32],
            clean: false,
        }
    }

    #[test]
    fn a_torn_slot_leaves_the_other_in_force() {
        let key = MacKey::new(&SecretKey::copy_of(&[1; 32]));
        let store = StoreId([2; 16]);
        let keys = MemoryKeyStore::new();
        assert!(matches!(
            read(&keys, store, &key),
            Err(StoreError::StateLost)
        ));
        write(&keys, store, &key, &state(4)).unwrap();
        write(&keys, store, &key, &state(5)).unwrap();
        assert_eq!(read(&keys, store, &key).unwrap(), state(5));
        let mut torn = keys.read(Item::State, Copy::B).unwrap().unwrap();
        for at in 0..torn.len() {
            torn[at] ^= 1;
            keys.write(Item::State, Copy::B, &torn).unwrap();
            assert_eq!(read(&keys, store, &key).unwrap(), state(4));
            torn[at] ^= 1;
        }
    }
}
