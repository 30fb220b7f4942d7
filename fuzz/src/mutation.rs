//! Small changes to bytes that were whole.

use arbitrary::{Arbitrary, Result, Unstructured};

/// One to four changes.
#[derive(Debug)]
pub struct Changes(Vec<Change>);

/// Places count from the beginning, and wrap.
#[derive(Debug, Clone, Copy, Arbitrary)]
enum Change {
    Flip { at: u16, bit: u8 },
    Set { at: u16, to: u8 },
    Insert { at: u16, byte: u8 },
    Remove { at: u16, count: u8 },
    Zero { at: u16, count: u8 },
    Copy { from: u16, to: u16, count: u8 },
    Cut { at: u16 },
    Append { byte: u8, count: u8 },
}

const CHANGES_MAX: usize = 4;

impl<'a> Arbitrary<'a> for Changes {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut changes = vec![Change::arbitrary(u)?];
        while changes.len() < CHANGES_MAX && u.ratio(1, 4)? {
            changes.push(Change::arbitrary(u)?);
        }
        Ok(Self(changes))
    }
}

impl Changes {
    /// The bytes after the changes; they may be the same.
    #[must_use]
    pub fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for change in &self.0 {
            change.apply(&mut bytes);
        }
        bytes
    }
}

impl Change {
    fn apply(self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        let place = |at: u16| usize::from(at) % length.max(1);
        let range = |at: u16, count: u8| {
            let from = place(at).min(length);
            from..(from + usize::from(count) + 1).min(length)
        };
        match self {
            _ if length == 0 => bytes.push(0),
            Self::Flip { at, bit } => bytes[place(at)] ^= 1 << (bit % 8),
            Self::Set { at, to } => bytes[place(at)] = to,
            Self::Insert { at, byte } => bytes.insert(place(at), byte),
            Self::Remove { at, count } => {
                bytes.drain(range(at, count));
            }
            Self::Zero { at, count } => bytes[range(at, count)].fill(0),
            Self::Copy { from, to, count } => {
                let copied = bytes[range(from, count)].to_vec();
                let to = place(to);
                let fits = copied.len().min(length - to);
                bytes[to..to + fits].copy_from_slice(&copied[..fits]);
            }
            Self::Cut { at } => bytes.truncate(place(at)),
            Self::Append { byte, count } => bytes.resize(length + usize::from(count) + 1, byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::built;

    #[test]
    fn eight_in_ten_changes_change_something() {
        let whole: Vec<u8> = (0..=255).cycle().take(700).collect();
        let count = 10_000;
        let changed = built::<Changes>(count, 40)
            .filter(|changes| changes.apply(&whole) != whole)
            .count();
        println!(
            "{:.1} % change something",
            changed as f64 * 100.0 / count as f64
        );
        assert!(changed * 10 > count * 8, "{changed}");
    }
}
