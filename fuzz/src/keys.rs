//! Keys that are the same in every run, so that a finding repeats.

use std::sync::atomic::{AtomicU64, Ordering};

use strongroom::key::{KeyError, KeySource, Random};

/// A key line of no worth: its key is the bytes 1 to 32.
const LINE: &str = "strongroom-key-1 AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyASeEOP";

/// The key of every store here. Needs no derivation.
#[must_use]
pub fn key_source() -> KeySource {
    KeySource::Line(LINE.to_owned().into())
}

/// Numbers in place of randomness (SplitMix64).
#[derive(Default)]
pub struct Counted(AtomicU64);

impl Random for Counted {
    fn fill(&self, out: &mut [u8]) -> Result<(), KeyError> {
        for chunk in out.chunks_mut(8) {
            let mut z = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let bytes = (z ^ (z >> 31)).to_be_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
        Ok(())
    }
}
