//! Records laid out by docs/FORMAT.md, not by the code that reads them.

use arbitrary::{Arbitrary, Result, Unstructured};

/// The kinds of records, in the order of the product's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Arbitrary)]
pub enum Kind {
    Key,
    Root,
    Head,
    Dirent,
    Job,
    Token,
}

/// The bytes of one whole record.
#[derive(Debug)]
pub struct Record {
    /// What it is.
    pub kind: Kind,
    /// Its bytes before sealing.
    pub bytes: Vec<u8>,
}

impl<'a> Arbitrary<'a> for Record {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let kind = Kind::arbitrary(u)?;
        let mut out = Layout(Vec::new());
        match kind {
            Kind::Key => out.key(u)?,
            Kind::Root => out.any(u, 8 + 4 + 8 + 32 + 8 + 8 + CHAIN + 8 * 8 + 4 * 8)?,
            Kind::Head => out.head(u)?,
            Kind::Dirent => out.dirent(u)?,
            Kind::Job => out.job(u)?,
            Kind::Token => out.token(u)?,
        }
        Ok(Self { kind, bytes: out.0 })
    }
}

/// First, hash before the first, last, tip.
const CHAIN: usize = 8 + 32 + 8 + 32;
/// Entries, set hash, seven totals and bounds.
const SUMMARY: usize = 8 + 32 + 7 * 8;

struct Layout(Vec<u8>);

impl Layout {
    /// Any bytes; what the input lacks is zeros.
    fn any(&mut self, u: &mut Unstructured<'_>, count: usize) -> Result<()> {
        let start = self.0.len();
        self.0.resize(start + count, 0);
        let have = u.len().min(count);
        u.fill_buffer(&mut self.0[start..start + have])
    }

    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Two bytes of length, then UTF-8.
    fn text(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let text: String = match u.ratio(1, 16)? {
            true => "x".repeat(usize::from(u16::arbitrary(u)?)),
            false => u
                .choose(&["", "a", "notes.md", "é", "日本", "\0", "a/b", "team-a/*"])?
                .to_string(),
        };
        self.0.extend_from_slice(&(text.len() as u16).to_be_bytes());
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn key(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let (space, rest) = *u.choose(&[
            (1, 0),
            (2, 16),
            (3, 48),
            (4, 36),
            (5, 4),
            (6, 16),
            (7, 24),
            (8, 8),
        ])?;
        self.byte(space);
        self.any(u, rest)
    }

    fn head(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.any(u, 16 + 8 + 2 * SUMMARY + CHAIN)?;
        // The epoch of new records lies above those that are retired.
        let retired = u.int_in_range(0..=u32::MAX - 1)?;
        let epoch = u.int_in_range(retired + 1..=u32::MAX)?;
        self.0.extend_from_slice(&epoch.to_be_bytes());
        self.0.extend_from_slice(&retired.to_be_bytes());
        Ok(())
    }

    fn dirent(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.text(u)?;
        self.any(u, 16 + 16)?;
        let kind = u.int_in_range(0..=3_u8)?;
        self.byte(kind);
        match kind {
            0 => self.any(u, 8 + SUMMARY),
            3 => {
                self.text(u)?;
                self.any(u, 16)
            }
            _ => self.any(u, 16 + 5 * 8 + 32),
        }
    }

    fn job(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let kind = u.int_in_range(1..=3_u8)?;
        self.byte(kind);
        self.any(u, 32)?;
        match kind {
            1 => {
                let count = u.int_in_range(0..=4_u32)? * u.int_in_range(1..=16)?;
                self.0.extend_from_slice(&count.to_be_bytes());
                for _ in 0..count {
                    self.any(u, 16)?;
                    self.option(u, 40)?;
                }
                self.option(u, 20)
            }
            2 => self.any(u, 4),
            _ => {
                let stage = u.int_in_range(0..=4)?;
                self.byte(stage);
                self.any(u, 3 * 8 + CHAIN)?;
                let traces = u.int_in_range(0..=4_u8)?;
                self.byte(traces);
                self.any(u, usize::from(traces) * 24)
            }
        }
    }

    fn token(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.any(u, 32)?;
        self.text(u)?;
        let access = u.int_in_range(1..=3)?;
        self.byte(access);
        let tenants = u.int_in_range(0..=16_u32)?;
        self.0.extend_from_slice(&tenants.to_be_bytes());
        for _ in 0..tenants {
            self.text(u)?;
        }
        self.any(u, 8)?;
        self.option(u, 8)
    }

    fn option(&mut self, u: &mut Unstructured<'_>, bytes: usize) -> Result<()> {
        let is_there = bool::arbitrary(u)?;
        self.byte(u8::from(is_there));
        if is_there { self.any(u, bytes) } else { Ok(()) }
    }
}

/// The product's kind, and what it makes of bytes.
#[cfg(fuzzing)]
impl Kind {
    /// See [`strongroom::fuzzing::Kind::recode`].
    #[must_use]
    pub fn recode(self, bytes: &[u8]) -> Option<Vec<u8>> {
        strongroom::fuzzing::Kind::ALL[self as usize].recode(bytes)
    }
}

#[cfg(all(test, fuzzing))]
mod tests {
    use super::*;
    use crate::testing::built;

    #[test]
    fn every_built_record_is_read_and_written_back() {
        for record in built::<Record>(20_000, 700) {
            let kind = record.kind;
            assert_eq!(kind.recode(&record.bytes), Some(record.bytes), "{kind:?}");
        }
    }
}
