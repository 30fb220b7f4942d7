//! The plain byte layout of records: fixed-width big-endian numbers and length-prefixed bytes.

use super::RecordError;

/// Appends fields to a record.
#[derive(Default)]
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub(super) fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(super) fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(super) fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(super) fn array<const N: usize>(&mut self, value: &[u8; N]) -> &mut Self {
        self.0.extend_from_slice(value);
        self
    }

    /// A 16-bit length and the bytes. Callers keep them below 64 KiB.
    pub(super) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        debug_assert_eq!(
            usize::from(length),
            value.len(),
            "a length-prefixed field is short"
        );
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0
            .extend_from_slice(value.get(..usize::from(length)).unwrap_or(value));
        self
    }

    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// Takes fields off a record, strictly: nothing may be missing, nothing left over.
pub(super) struct Decoder<'a> {
    rest: &'a [u8],
    record: &'static str,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(record: &'static str, bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            record,
        }
    }

    pub(super) fn malformed(&self) -> RecordError {
        RecordError::Malformed(self.record)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(self.malformed())?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| self.malformed())
    }

    pub(super) fn u8(&mut self) -> Result<u8, RecordError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, RecordError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, RecordError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], RecordError> {
        let length = u16::from_be_bytes(self.array()?);
        self.take(usize::from(length))
    }

    pub(super) fn text(&mut self) -> Result<String, RecordError> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.to_vec()).map_err(|_| self.malformed())
    }

    /// Whether anything is left: fields that the first records of this kind did not have.
    pub(super) fn has_more(&self) -> bool {
        !self.rest.is_empty()
    }

    pub(super) fn finish(self) -> Result<(), RecordError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed())
        }
    }
}
