//! Plain bytes that are gone from memory when they are dropped.

use std::ops::{Deref, DerefMut};

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of somebody's content. Overwritten with zeros when dropped, the spare room too.
///
/// Growing leaves a copy behind, so room is reserved before anything is put in.
/// (`Zeroizing<Vec<u8>>` does the same, one byte at a time.)
#[derive(Default)]
pub(crate) struct Plain(Vec<u8>);

impl Plain {
    /// Room for so many bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }
}

impl From<Vec<u8>> for Plain {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for Plain {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Plain {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Zeroize for Plain {
    fn zeroize(&mut self) {
        // Within the capacity, so nothing is moved.
        self.0.resize(self.0.capacity(), 0);
        self.0.as_mut_slice().zeroize();
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for Plain {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_overwritten_those_cut_off_too() {
        let mut plain = Plain::with_capacity(64);
        plain.extend_from_slice(&[7; 48]);
        plain.truncate(10);
        let (start, capacity) = (plain.as_ptr(), plain.capacity());
        plain.zeroize();
        assert_eq!(plain.as_ptr(), start, "the bytes were moved");
        assert_eq!(**plain, vec![0; capacity]);
    }
}
