//! A hash of a set of records that one addition or subtraction keeps up to date.

/// The sum, modulo 2^256, of the keyed hashes of the records in a set.
///
/// The terms are HMAC-SHA256 values under a key that only the store knows, so nobody
/// else can find two sets of one sum (Bellare and Micciancio, "A new paradigm for
/// collision-free hashing", 1997).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetHash(pub [u8; 32]);

impl SetHash {
    /// Adds a record's hash.
    pub fn add(&mut self, term: &[u8; 32]) {
        let mut carry = false;
        self.with(term, |sum, add| {
            let (sum, first) = sum.overflowing_add(add);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            carry = first || second;
            sum
        });
    }

    /// Takes a record's hash away.
    pub fn remove(&mut self, term: &[u8; 32]) {
        let mut borrow = false;
        self.with(term, |sum, sub| {
            let (difference, first) = sum.overflowing_sub(sub);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            borrow = first || second;
            difference
        });
    }

    /// Replaces each word of the sum, the lowest first.
    fn with(&mut self, term: &[u8; 32], mut step: impl FnMut(u64, u64) -> u64) {
        let (sums, _) = self.0.as_chunks_mut::<8>();
        let (terms, _) = term.as_chunks::<8>();
        for (sum, term) in sums.iter_mut().zip(terms).rev() {
            *sum = step(u64::from_be_bytes(*sum), u64::from_be_bytes(*term)).to_be_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn carries_run_through_all_bytes() {
        let mut hash = SetHash([0xFF; 32]);
        let mut one = [0; 32];
        one[31] = 1;
        hash.add(&one);
        assert_eq!(hash, SetHash::default());
        hash.remove(&one);
        assert_eq!(hash, SetHash([0xFF; 32]));
    }

    #[test]
    fn the_sum_is_that_of_an_independent_implementation() {
        let mut hash = SetHash::default();
        for term in crate::vectors::vector("set_terms").as_bytes().chunks(64) {
            hash.add(&crate::hex::decode(std::str::from_utf8(term).unwrap()).unwrap());
        }
        let expected = crate::vectors::vector("set_hash");
        assert_eq!(crate::hex::encode(&hash.0), expected);
    }

    proptest! {
        #[test]
        fn order_does_not_matter_and_removal_undoes(a: [u8; 32], b: [u8; 32], c: [u8; 32]) {
            let mut one = SetHash::default();
            one.add(&a);
            one.add(&b);
            one.add(&c);
            one.remove(&b);
            let mut other = SetHash::default();
            other.add(&c);
            other.add(&a);
            prop_assert_eq!(one, other);
        }
    }
}
