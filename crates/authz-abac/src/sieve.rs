//! Who may hold a policy for what, without looking anybody up.

/// Words for each holding, of which each sets up to four bits in one: of strangers, one in two
/// thousand passes.
const WORDS_PER_HOLDING: usize = 2;

/// The mask with which everybody passes.
pub(crate) const NO_MASK: u32 = 0;

/// Lets through who holds a policy for a target, by the hashes of both, and few others.
///
/// A user in fifty groups is no holder of what is asked for in almost all of fifty-one ways. A sieve
/// tells this from one word for each, however many targets cover the request: the hash of the holder
/// tells the word and how far it is turned, that of the target which of its bits are set. Sieves are
/// small enough to stay in the cache when tables do not.
///
/// All bits of a word may be set by somebody who holds very many targets. Such a holder passes
/// always, and so does the rare stranger with the same word.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sieve {
    words: Box<[u32]>,
}

impl Sieve {
    /// A sieve of holders and what they hold. It does no harm to give a holding twice.
    pub(crate) fn new(holdings: &[(u64, u64)]) -> Self {
        let mut words = vec![0; holdings.len() * WORDS_PER_HOLDING];
        let n_words = words.len();
        for (holder, target) in holdings {
            if let Some(word) = words.get_mut(place(n_words, *holder)) {
                *word |= mask(*target).rotate_left(turn(*holder));
            }
        }
        Self { words: words.into() }
    }

    /// The word of a holder, to be tried with the masks of targets.
    #[inline]
    pub(crate) fn word(&self, holder: u64) -> u32 {
        let word = self.words.get(place(self.words.len(), holder)).copied().unwrap_or(0);
        word.rotate_right(turn(holder))
    }

    /// Reports whether a holder is let through for a target.
    #[inline]
    pub(crate) fn pass(&self, holder: u64, target: u64) -> bool {
        passes(self.word(holder), mask(target))
    }
}

/// Reports whether a holder with this word is let through for a target with this mask.
#[inline]
pub(crate) fn passes(word: u32, mask: u32) -> bool {
    word & mask == mask
}

/// The bits of a target: one to four.
#[inline]
pub(crate) fn mask(target: u64) -> u32 {
    [0, 5, 10, 15].iter().fold(0, |bits, shift| bits | 1 << ((target >> shift) & 31))
}

/// The word in which the bits of a holder are, from the upper half of the hash.
#[inline]
fn place(n_words: usize, holder: u64) -> usize {
    // The upper half of the product is less than the number of words.
    (((holder >> 32) * n_words as u64) >> 32) as usize
}

/// How far the bits of targets are turned in the word of a holder. Two holders of one word are told
/// apart by this even if many hold the same target.
#[inline]
fn turn(holder: u64) -> u32 {
    (holder & 31) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn holders_pass(holdings in prop::collection::vec((any::<u64>(), any::<u64>()), 0..200)) {
            let sieve = Sieve::new(&holdings);
            for (holder, target) in holdings {
                prop_assert!(sieve.pass(holder, target));
            }
        }
    }

    fn hash(number: u64) -> u64 {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 32)
    }

    /// Counts strangers rather than trusting the arithmetic: where each target has one holder, where
    /// all are held by many, and where one is held by almost everybody.
    #[test]
    fn strangers_rarely_pass() {
        for n_targets in [2000, 20, 1] {
            let holdings: Vec<(u64, u64)> =
                (0..2000).map(|number| (hash(number), hash(5000 + number % n_targets))).collect();
            let sieve = Sieve::new(&holdings);
            let target = hash(5000);
            let strangers = (10_000..110_000).filter(|number| sieve.pass(hash(*number), target));
            let passed = strangers.count();
            assert!(
                passed < 3000 / n_targets as usize + 200,
                "{passed} pass with {n_targets} targets"
            );
        }
    }

    #[test]
    fn nobody_passes_an_empty_sieve() {
        assert!(!Sieve::default().pass(0, 0));
        assert!(!Sieve::new(&[]).pass(u64::MAX, u64::MAX));
    }
}
