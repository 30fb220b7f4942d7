//! Checks an exported log line by line. Needs no store and no key.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{Entry, entry_hash, hex};

/// Follows the chains of an exported log: one entry's JSON text a line, the oldest first.
/// Entries of several chains may come in any mix.
///
/// It finds every line that was altered, dropped, inserted or moved, unless it is at an end
/// of its chain: what a file does not hold before its first and after its last line, and
/// what its last line said, only [`ExportedChain`] or a checkpoint kept elsewhere can tell.
#[derive(Debug, Clone, Default)]
pub struct ExportCheck {
    chains: BTreeMap<String, ExportedChain>,
}

/// What an exported log holds of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportedChain {
    /// The number of its first entry. Above 1, older ones were pruned, or left out.
    pub first: u64,
    /// The number of its last entry.
    pub last: u64,
    /// The hash of its last entry, in hexadecimal.
    pub hash: String,
}

/// Why a line cannot be where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// It is not the text of an entry, byte for byte as one is written.
    #[error("it is not an audit entry as it was exported")]
    NotAnEntry,
    /// Its number does not follow the one before in its chain.
    #[error("entry {found} stands where entry {expected} must be")]
    OutOfPlace {
        /// The number that follows.
        expected: u64,
        /// Its own number.
        found: u64,
    },
    /// It is chained to another entry than the one before it, or that one was altered.
    #[error("entry {seq} does not belong to the entry before it: one of them was altered")]
    NotLinked {
        /// Its number.
        seq: u64,
    },
}

impl ExportCheck {
    /// Nothing checked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the next line, without its line feed.
    ///
    /// # Errors
    /// When it is no entry, or not the next one of its chain.
    pub fn line(&mut self, text: &str) -> Result<Entry, ExportError> {
        let entry = Entry::from_json(text.as_bytes()).map_err(|_| ExportError::NotAnEntry)?;
        if entry.seq == 0 || entry.to_json() != text {
            return Err(ExportError::NotAnEntry);
        }
        let known = self.chains.get(&entry.tenant);
        let expected = known.and_then(|chain| chain.last.checked_add(1));
        if let Some(expected) = expected
            && entry.seq != expected
        {
            let found = entry.seq;
            return Err(ExportError::OutOfPlace { expected, found });
        }
        let nothing_before = hex(&[0; 32]);
        let is_linked = match known {
            Some(chain) => entry.prev == chain.hash,
            None => (entry.seq == 1) == (entry.prev == nothing_before),
        };
        if !is_linked {
            return Err(ExportError::NotLinked { seq: entry.seq });
        }
        let chain = ExportedChain {
            first: known.map_or(entry.seq, |chain| chain.first),
            last: entry.seq,
            hash: hex(&entry_hash(text.as_bytes())),
        };
        self.chains.insert(entry.tenant.clone(), chain);
        Ok(entry)
    }

    /// What was read, by the tenant's id as entries write it: in hexadecimal, all zeros for
    /// the store's own chain.
    #[must_use]
    pub fn chains(&self) -> &BTreeMap<String, ExportedChain> {
        &self.chains
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Outcome;

    fn chain(tenant: u8, first: u64, count: u64) -> Vec<String> {
        let mut prev = if first == 1 { [0; 32] } else { [7; 32] };
        let mut lines = Vec::new();
        for seq in first..first + count {
            let entry = Entry {
                seq,
                time: seq,
                tenant: hex(&[tenant; 16]),
                actor: None,
                session: None,
                command: "view".to_owned(),
                path: None,
                to: None,
                outcome: Outcome::Ok,
                rules: BTreeMap::new(),
                bytes: 0,
                detail: None,
                prev: hex(&prev),
            };
            prev = entry_hash(entry.to_json().as_bytes());
            lines.push(entry.to_json());
        }
        lines
    }

    fn check(lines: &[String]) -> Result<BTreeMap<String, ExportedChain>, (usize, ExportError)> {
        let mut check = ExportCheck::new();
        for (at, line) in lines.iter().enumerate() {
            check.line(line).map_err(|error| (at, error))?;
        }
        Ok(check.chains().clone())
    }

    #[test]
    fn chains_may_be_mixed_and_may_begin_late() {
        let (one, two) = (chain(1, 1, 3), chain(2, 9, 2));
        let mixed = [&one[..2], &two, &one[2..]].concat();
        let chains = check(&mixed).unwrap();
        let ends: Vec<_> = chains.values().map(|c| (c.first, c.last)).collect();
        assert_eq!(ends, [(1, 3), (9, 10)]);
        assert_eq!(
            chains[&hex(&[1; 16])].hash,
            hex(&entry_hash(one[2].as_bytes()))
        );
    }

    #[test]
    fn each_kind_of_damage_is_named_with_its_line() {
        let whole = chain(1, 1, 5);
        let mut dropped = whole.clone();
        dropped.remove(2);
        let out_of_place = |expected, found| ExportError::OutOfPlace { expected, found };
        assert_eq!(check(&dropped), Err((2, out_of_place(3, 4))));
        let mut swapped = whole.clone();
        swapped.swap(1, 2);
        assert_eq!(check(&swapped), Err((1, out_of_place(2, 3))));
        let mut repeated = whole.clone();
        repeated.insert(3, whole[2].clone());
        assert_eq!(check(&repeated), Err((3, out_of_place(4, 3))));
        let mut altered = whole.clone();
        altered[1] = altered[1].replace("\"bytes\":0", "\"bytes\":1");
        assert_eq!(check(&altered), Err((2, ExportError::NotLinked { seq: 3 })));
        let mut spaced = whole.clone();
        spaced[4].push(' ');
        assert_eq!(check(&spaced), Err((4, ExportError::NotAnEntry)));
        let mut cut = whole.clone();
        cut[4].pop();
        assert_eq!(check(&cut), Err((4, ExportError::NotAnEntry)));
        let mut renamed = chain(1, 2, 3);
        renamed[0] = renamed[0].replace("\"seq\":2", "\"seq\":1");
        assert_eq!(check(&renamed), Err((0, ExportError::NotLinked { seq: 1 })));
    }
}
