//! Random bytes as a fuzzer without feedback would give them.

use arbitrary::{Arbitrary, Unstructured};

/// `count` inputs of up to `bytes_max` bytes each (xorshift64, fixed seed), made into what is asked for.
pub fn built<T: for<'a> Arbitrary<'a>>(count: usize, bytes_max: u64) -> impl Iterator<Item = T> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count).map(move |_| {
        let length = (next() % bytes_max) as usize;
        let bytes: Vec<u8> = (0..length).map(|_| (next() >> 32) as u8).collect();
        T::arbitrary(&mut Unstructured::new(&bytes)).expect("a builder takes any bytes")
    })
}
