//! The bytes of a backup file: a header, sections chained by SHA-256, and an end.
//!
//! docs/FORMAT.md has the table. Nothing here needs a key, and nothing is trusted: every length
//! has a cap, and a section is handed out only after its hash, which covers all before it, fits.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

use crate::backend::VALUE_BYTES_MAX;
use crate::clock::UnixMillis;
use crate::key::{StoreId, TENANT_FILE_BYTES_MAX};

use super::BackupError;

const MAGIC: &[u8; 8] = b"SRBACKUP";
const FORMAT: u8 = 1;
const SUITE: u8 = 1;
const HEADER_BYTES: usize = 53;
const HEAD_BYTES: usize = 9;
const HASH_BYTES: usize = 32;

/// A section of records is written once it has this many bytes.
const SECTION_BYTES: usize = 256 * 1_024;

/// The most bytes of a section that is read.
const SECTION_BYTES_MAX: usize = SECTION_BYTES + TENANT_FILE_BYTES_MAX;

/// The longest record key, in bytes.
const KEY_BYTES_MAX: usize = 64;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BackupKind {
    /// The sealed records.
    Records = 1,
    /// The keyring and the tenants' key files, all of them sealed too.
    Keys = 2,
}

impl BackupKind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Keys => "keys",
        }
    }
}

/// How a file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: BackupKind,
    pub(super) store: StoreId,
    /// Random; the same in the files of records and keys that were made together.
    pub(super) id: [u8; 16],
    pub(super) made: UnixMillis,
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&[FORMAT, SUITE, !FORMAT, !SUITE, self.kind as u8]);
        out.extend_from_slice(&self.store.0);
        out.extend_from_slice(&self.id);
        out.extend_from_slice(&self.made.to_be_bytes());
        debug_assert_eq!(out.len(), HEADER_BYTES);
        out
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, BackupError> {
        let damaged = || BackupError::Damaged("it does not begin as one");
        let mut from = Fields(bytes);
        if from.array() != Some(*MAGIC) {
            return Err(damaged());
        }
        let [format, suite, not_format, not_suite] = from.array().ok_or_else(damaged)?;
        if format != !not_format || suite != !not_suite || format == 0 || suite == 0 {
            return Err(damaged());
        }
        if (format, suite) != (FORMAT, SUITE) {
            return Err(BackupError::NewerFormat(format));
        }
        let kind = match from.array() {
            Some([1]) => BackupKind::Records,
            Some([2]) => BackupKind::Keys,
            _ => return Err(damaged()),
        };
        Ok(Self {
            kind,
            store: StoreId(from.array().ok_or_else(damaged)?),
            id: from.array().ok_or_else(damaged)?,
            made: from.u64().ok_or_else(damaged)?,
        })
    }
}

/// What a section holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Part {
    /// Records, and removals of records that an earlier layer has.
    Records = 1,
    /// A file tag and that tenant's key file.
    KeyFile = 2,
    /// The keyring.
    Keyring = 3,
    /// Ids of tenants that were erased.
    Erased = 4,
    /// The last section.
    End = 5,
}

/// One section as it was read.
pub(super) struct Section {
    pub(super) part: Part,
    pub(super) layer: u32,
    pub(super) payload: Vec<u8>,
}

/// Writes a backup file.
pub(super) struct Writer<W> {
    to: W,
    hash: [u8; HASH_BYTES],
    layer: u32,
    waiting: Vec<u8>,
}

impl<W: Write> Writer<W> {
    pub(super) fn begin(mut to: W, header: &Header) -> io::Result<Self> {
        let bytes = header.encode();
        to.write_all(&bytes)?;
        Ok(Self {
            to,
            hash: Sha256::digest(&bytes).into(),
            layer: 0,
            waiting: Vec::new(),
        })
    }

    /// Adds a record, or (`None`) the removal of one. Keys are ascending within a layer.
    pub(super) fn record(&mut self, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
        debug_assert!(key.len() <= KEY_BYTES_MAX);
        let key_bytes = u8::try_from(key.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        self.waiting.push(u8::from(value.is_some()));
        self.waiting.push(key_bytes);
        self.waiting.extend_from_slice(key);
        if let Some(value) = value {
            debug_assert!(value.len() <= VALUE_BYTES_MAX);
            let value_bytes = u16::try_from(value.len()).map_err(|_| io::ErrorKind::InvalidData)?;
            self.waiting.extend_from_slice(&value_bytes.to_be_bytes());
            self.waiting.extend_from_slice(value);
        }
        if self.waiting.len() >= SECTION_BYTES {
            self.flush_records()?;
        }
        Ok(())
    }

    /// What comes from here on replaces what was written so far.
    pub(super) fn next_layer(&mut self) -> io::Result<()> {
        self.flush_records()?;
        self.layer += 1;
        Ok(())
    }

    pub(super) fn section(&mut self, part: Part, payload: &[u8]) -> io::Result<()> {
        self.flush_records()?;
        self.write(part, payload)
    }

    /// Writes the last section. Nothing is synced.
    pub(super) fn end(mut self, payload: &[u8]) -> io::Result<W> {
        self.section(Part::End, payload)?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn flush_records(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let payload = std::mem::take(&mut self.waiting);
        self.write(Part::Records, &payload)
    }

    fn write(&mut self, part: Part, payload: &[u8]) -> io::Result<()> {
        debug_assert!(payload.len() <= SECTION_BYTES_MAX);
        let length = u32::try_from(payload.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        let mut head = vec![part as u8];
        head.extend_from_slice(&self.layer.to_be_bytes());
        head.extend_from_slice(&length.to_be_bytes());
        self.hash = chained(&self.hash, &head, payload);
        for bytes in [&head, payload, &self.hash] {
            self.to.write_all(bytes)?;
        }
        Ok(())
    }
}

/// Reads a backup file, section by section.
pub(super) struct Sections<R> {
    from: R,
    hash: [u8; HASH_BYTES],
    layer: u32,
    is_ended: bool,
}

impl<R: Read> Sections<R> {
    pub(super) fn open(mut from: R) -> Result<(Header, Self), BackupError> {
        let mut bytes = [0; HEADER_BYTES];
        from.read_exact(&mut bytes)
            .map_err(|error| BackupError::reading(&error))?;
        let header = Header::decode(&bytes)?;
        let sections = Self {
            from,
            hash: Sha256::digest(bytes).into(),
            layer: 0,
            is_ended: false,
        };
        Ok((header, sections))
    }

    /// The next section, the end among them; `None` behind it.
    pub(super) fn next(&mut self) -> Result<Option<Section>, BackupError> {
        let reading = |error: io::Error| BackupError::reading(&error);
        if self.is_ended {
            return match self.from.read(&mut [0]).map_err(reading)? {
                0 => Ok(None),
                _ => Err(BackupError::Damaged("something comes after its end")),
            };
        }
        let mut head = [0; HEAD_BYTES];
        self.from.read_exact(&mut head).map_err(reading)?;
        let mut fields = Fields(&head);
        let damaged = || BackupError::Damaged("a section of it is malformed");
        let [part] = fields.array().ok_or_else(damaged)?;
        let layer = fields.u32().ok_or_else(damaged)?;
        let length = fields.u32().ok_or_else(damaged)? as usize;
        if length > SECTION_BYTES_MAX {
            return Err(damaged());
        }
        let mut payload = vec![0; length];
        self.from.read_exact(&mut payload).map_err(reading)?;
        let mut hash = [0; HASH_BYTES];
        self.from.read_exact(&mut hash).map_err(reading)?;
        self.hash = chained(&self.hash, &head, &payload);
        if self.hash != hash {
            return Err(BackupError::Damaged("a part of it was altered"));
        }
        let part = [
            Part::Records,
            Part::KeyFile,
            Part::Keyring,
            Part::Erased,
            Part::End,
        ]
        .into_iter()
        .find(|known| *known as u8 == part)
        .ok_or_else(damaged)?;
        if layer < self.layer {
            return Err(damaged());
        }
        self.layer = layer;
        self.is_ended = part == Part::End;
        Ok(Some(Section {
            part,
            layer,
            payload,
        }))
    }
}

/// Hands every record of a section's payload to `each`; `None` for a removal.
pub(super) fn each_record(
    payload: &[u8],
    mut each: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let mut from = Fields(payload);
    while !from.0.is_empty() {
        let (key, value) =
            record(&mut from).ok_or(BackupError::Damaged("a section of it is malformed"))?;
        each(key, value)?;
    }
    Ok(())
}

fn record<'a>(from: &mut Fields<'a>) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let [has_value, key_bytes] = from.array()?;
    let key = from.bytes(usize::from(key_bytes))?;
    if key.len() > KEY_BYTES_MAX {
        return None;
    }
    let value = match has_value {
        0 => None,
        1 => {
            let bytes = usize::from(u16::from_be_bytes(from.array()?));
            Some(from.bytes(bytes).filter(|_| bytes <= VALUE_BYTES_MAX)?)
        }
        _ => return None,
    };
    Some((key, value))
}

/// Takes fields of fixed length from the beginning of what is left.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }
}

fn chained(before: &[u8; HASH_BYTES], head: &[u8], payload: &[u8]) -> [u8; HASH_BYTES] {
    let mut hash = Sha256::new();
    for part in [before.as_slice(), head, payload] {
        hash.update(part);
    }
    hash.finalize().into()
}
