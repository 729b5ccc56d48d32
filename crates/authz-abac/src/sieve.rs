//! Who may hold a policy for a target, without looking anybody up.

/// Holders for each word of a sieve. At three bits for each holder, one stranger in a thousand
/// passes.
const HOLDERS_PER_WORD: usize = 2;

/// The most large sieves that are tried one by one. A resource is covered in eight ways, and a path
/// is rarely covered by more prefixes.
const LARGE_MAX: usize = 8;

/// Lets through the holders of one target, by the hashes of their names, and few others.
///
/// A user in fifty groups is no holder of what is asked for in almost all of fifty-one ways. Sieves
/// tell this from a few words that are the same for all groups, where a table of subjects would be
/// read in fifty-one places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sieve {
    /// The sieve of few holders is a word.
    Small(u64),
    /// That of many holders is several words of [`Sieves`]; a hash tells in which its bits are.
    Large { start: u32, n_words: u32 },
}

/// The words of all large sieves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sieves {
    words: Box<[u64]>,
}

/// Lets through whom any of several sieves lets through, and few others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Combined<'s> {
    /// Small sieves, laid over each other.
    small: u64,
    large: [&'s [u64]; LARGE_MAX],
    n_large: usize,
}

impl Sieves {
    /// Makes a sieve for each of a number of targets. Every holder of a target is given with the
    /// number of the target and the hash of the holder's name.
    pub(crate) fn new(n_targets: usize, holders: &[(u32, u64)]) -> (Self, Vec<Sieve>) {
        let mut counts = vec![0_usize; n_targets];
        for (target, _) in holders {
            if let Some(count) = counts.get_mut(*target as usize) {
                *count += 1;
            }
        }
        let mut n_words_before = 0;
        let empty = |count: &usize| match count.div_ceil(HOLDERS_PER_WORD) {
            0 | 1 => Sieve::Small(0),
            n_words => {
                // INVARIANT on Policies: at two targets a policy, a u32 can count the words.
                let n_words = u32::try_from(n_words).unwrap_or(u32::MAX);
                let start = n_words_before;
                n_words_before += n_words;
                Sieve::Large { start, n_words }
            }
        };
        let mut all: Vec<Sieve> = counts.iter().map(empty).collect();
        let mut words = vec![0; n_words_before as usize];
        for (target, hash) in holders {
            match all.get_mut(*target as usize) {
                Some(Sieve::Small(word)) => *word |= mask(*hash),
                Some(Sieve::Large { start, n_words }) => {
                    let at = *start as usize + place(*n_words as usize, *hash);
                    if let Some(word) = words.get_mut(at) {
                        *word |= mask(*hash);
                    }
                }
                None => {}
            }
        }
        (Self { words: words.into() }, all)
    }

    /// Reports whether a sieve lets a hash through.
    pub(crate) fn pass(&self, sieve: Sieve, hash: u64) -> bool {
        match sieve {
            Sieve::Small(word) => passes(word, mask(hash)),
            Sieve::Large { start, n_words } => passes_any_of(self.words_of(start, n_words), hash),
        }
    }

    /// Lets more through: whom this sieve lets through.
    pub(crate) fn add<'s>(&'s self, to: &mut Combined<'s>, sieve: Sieve) {
        match sieve {
            Sieve::Small(word) => to.small |= word,
            Sieve::Large { start, n_words } => match to.large.get_mut(to.n_large) {
                Some(place) => {
                    *place = self.words_of(start, n_words);
                    to.n_large += 1;
                }
                // Not to be told apart any more.
                None => to.small = u64::MAX,
            },
        }
    }

    fn words_of(&self, start: u32, n_words: u32) -> &[u64] {
        let start = start as usize;
        self.words.get(start..start + n_words as usize).unwrap_or_default()
    }
}

impl Combined<'_> {
    /// Lets nobody through.
    pub(crate) const CLOSED: Self = Self { small: 0, large: [&[]; LARGE_MAX], n_large: 0 };

    /// Reports whether a hash is let through.
    pub(crate) fn pass(&self, hash: u64) -> bool {
        let mut large = self.large.iter().take(self.n_large);
        passes(self.small, mask(hash)) || large.any(|words| passes_any_of(words, hash))
    }
}

fn passes(word: u64, mask: u64) -> bool {
    word & mask == mask
}

fn passes_any_of(words: &[u64], hash: u64) -> bool {
    words.get(place(words.len(), hash)).is_some_and(|word| passes(*word, mask(hash)))
}

/// The word in which the bits of a hash are, from the upper half of the hash.
fn place(n_words: usize, hash: u64) -> usize {
    // The upper half of the product is less than the number of words.
    (((hash >> 32) * n_words as u64) >> 32) as usize
}

/// The bits of a hash within its word, up to three, from the lower half.
fn mask(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << ((hash >> 6) & 63) | 1 << ((hash >> 12) & 63)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const N_TARGETS: u32 = 12;

    fn combine<'s>(sieves: &'s Sieves, all: &[Sieve]) -> Combined<'s> {
        let mut combined = Combined::CLOSED;
        all.iter().for_each(|sieve| sieves.add(&mut combined, *sieve));
        combined
    }

    proptest! {
        #[test]
        fn holders_pass(
            holders in prop::collection::vec((0..N_TARGETS, any::<u64>()), 0..200),
            n_combined in 0..N_TARGETS as usize,
            stranger in any::<u64>(),
        ) {
            let (sieves, all) = Sieves::new(N_TARGETS as usize, &holders);
            prop_assert_eq!(all.len(), N_TARGETS as usize);
            let combined = combine(&sieves, &all[..n_combined]);
            for (target, hash) in &holders {
                let target = *target as usize;
                prop_assert!(sieves.pass(all[target], *hash));
                prop_assert!(target >= n_combined || combined.pass(*hash));
            }
            let is_let_through = all[..n_combined].iter().any(|one| sieves.pass(*one, stranger));
            prop_assert!(!is_let_through || combined.pass(stranger));
        }
    }

    /// Counts strangers rather than trusting the arithmetic, for targets of one and of many holders.
    #[test]
    fn strangers_rarely_pass() {
        let hash = |number: u64| {
            let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        let holders: Vec<(u32, u64)> =
            (0..1000).map(|number| (u32::from(number > 0), hash(number))).collect();
        let (sieves, all) = Sieves::new(3, &holders);
        assert!(matches!(all[..], [Sieve::Small(_), Sieve::Large { .. }, Sieve::Small(0)]));
        for sieve in all {
            let passed = (1000..101_000).filter(|number| sieves.pass(sieve, hash(*number))).count();
            assert!(passed < 400, "{passed} of 100000 pass {sieve:?}");
        }
    }

    #[test]
    fn of_too_many_sieves_everybody_passes() {
        let holders: Vec<(u32, u64)> = (0..9).flat_map(|target| [(target, 0); 5]).collect();
        let (sieves, all) = Sieves::new(9, &holders);
        assert!(!combine(&sieves, &all[..LARGE_MAX]).pass(u64::MAX));
        assert!(combine(&sieves, &all).pass(u64::MAX));
        assert!(!Combined::CLOSED.pass(0));
    }
}
