//! Pseudo-random numbers that are the same in every run and on every machine.
//!
//! The generator is SplitMix64. It is written here so that no update of a dependency changes the data.

/// A generator whose seed determines all its numbers.
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // The high half of the product is uniform, except for a negligible bias.
        let product = u128::from(self.next()) * (limit as u128);
        usize::try_from(product >> 64).unwrap_or_default()
    }

    /// True with this chance in percent.
    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// A random item of the list; `None` if the list is empty.
    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len()))
    }

    /// A random word of the list; empty if the list is empty.
    pub(crate) fn word<'a>(&mut self, words: &[&'a str]) -> &'a str {
        self.pick(words).copied().unwrap_or_default()
    }

    /// Up to `n` different numbers below `limit`.
    pub(crate) fn distinct(&mut self, n: usize, limit: usize) -> Vec<usize> {
        let mut found = Vec::with_capacity(n);
        while found.len() < n.min(limit) {
            let number = self.below(limit);
            if !found.contains(&number) {
                found.push(number);
            }
        }
        found
    }

    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.below(end + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_determines_the_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.below(1000), random.below(1000), random.below(1000), random.below(1000)]
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }

    #[test]
    fn numbers_stay_below_their_limit_and_reach_it() {
        let mut random = Random::new(7);
        let numbers: Vec<usize> = (0..1000).map(|_| random.below(10)).collect();
        assert_eq!(numbers.iter().max(), Some(&9));
        assert_eq!(numbers.iter().min(), Some(&0));
        assert_eq!(random.below(0), 0);
        assert_eq!(random.pick::<u8>(&[]), None);
        let mut distinct = random.distinct(20, 10);
        distinct.sort_unstable();
        assert_eq!(distinct, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
}
