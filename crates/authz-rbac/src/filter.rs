//! Which keys a small table can not have.
//!
//! Somebody with fifty groups asks a namespace about fifty keys, and it knows two or three of them.
//! The filter turns most of the others away at the price of two lines of memory for them all, where
//! the table would take one for each.

const BITS: u64 = 1024;

/// How many keys the filter tells apart well: at this number it still turns away three of four.
pub(crate) const FILTER_KEYS_MAX: usize = 256;

/// A set of keys that may report a key that was never added, but never misses one that was.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter([u64; BITS as usize / u64::BITS as usize]);

impl Filter {
    pub(crate) fn add(&mut self, key: u64) {
        let bit = bit(key);
        self.0[word(bit)] |= 1 << (bit % u64::from(u64::BITS));
    }

    /// Reports whether the key may have been added.
    #[inline]
    pub(crate) fn may_have(&self, key: u64) -> bool {
        let bit = bit(key);
        self.0[word(bit)] >> (bit % u64::from(u64::BITS)) & 1 == 1
    }
}

#[inline]
fn bit(key: u64) -> u64 {
    key % BITS
}

/// INVARIANT: bits are less than [`BITS`].
#[inline]
fn word(bit: u64) -> usize {
    (bit / u64::from(u64::BITS)) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_added_is_reported(keys in prop::collection::vec(any::<u64>(), 0..300)) {
            let mut filter = Filter::default();
            keys.iter().for_each(|key| filter.add(*key));
            prop_assert!(keys.iter().all(|key| filter.may_have(*key)));
        }
    }

    #[test]
    fn most_of_what_was_not_added_is_turned_away() {
        let key = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        let mut filter = Filter::default();
        assert!((0..1000).all(|n| !filter.may_have(key(n))));
        (0..FILTER_KEYS_MAX as u64).for_each(|n| filter.add(key(n)));
        let n_reported = (1_000..11_000).filter(|n| filter.may_have(key(*n))).count();
        assert!(n_reported < 10_000 / 3, "{n_reported}");
    }
}
