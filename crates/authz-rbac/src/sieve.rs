//! Who may hold a role, at a glance.
//!
//! Few roles speak of what is asked, and most of those as whom somebody asks hold none of them. A
//! sieve tells that by four bits of a word for each. It is small enough to stay in the cache when the
//! table of all holders does not. What passes proves nothing, since holders share bits.

use std::sync::Arc;

use crate::journal::Journal;

/// Holders for each word. At four bits for each, fewer than one stranger in a hundred passes.
const HOLDERS_PER_WORD: usize = 3;

/// The most words. A change copies them, so they must not be too many; of a role with more holders
/// than they have room for, more strangers pass.
const WORDS_MAX: usize = 4096;

/// How many changes are kept in any case, however few holders are left.
const CHANGES_MIN: usize = 64;

/// The most holders that are looked up together: as many as a word has bits.
pub(crate) const BATCH_MAX: usize = u64::BITS as usize;

/// The holders of a role. Those in the cluster are kept apart from those in namespaces, so that who
/// asks for some need not look among the others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sieve {
    cluster: Part,
    local: Part,
}

#[derive(Debug, Clone)]
struct Part {
    /// INVARIANT: at least one word, in which the bits of all holders are set. Bits of holders that
    /// were removed stay until the words are made anew.
    words: Arc<[u64]>,
    /// How many more holders there is room for before that.
    n_free: usize,
    /// Who became a holder by some binding, and who is one no longer.
    changes: Journal<Change>,
    /// By how many bindings somebody is a holder.
    n_holders: usize,
}

/// Somebody becomes a holder by one more binding, or by one less.
#[derive(Debug, Clone, Copy)]
struct Change {
    holder: ShortHolder,
    is_added: bool,
}

/// A holder in the cluster or in a namespace, in four bytes. Holders may share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShortHolder(u32);

/// The cluster, or the namespace of a hash, as the place of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u64);

impl Place {
    pub(crate) const CLUSTER: Self = Self(0);

    /// The namespace of this hash.
    pub(crate) fn namespace(hash: u64) -> Self {
        Self(hash | LOCAL)
    }

    pub(crate) fn is_local(self) -> bool {
        self.0 & LOCAL != 0
    }

    /// The key of a holder, as it is here.
    #[inline]
    pub(crate) fn mixed(self, key: u64) -> u64 {
        key ^ self.0.rotate_left(32)
    }

    /// The holder of this key here.
    #[inline]
    pub(crate) fn holder(self, key: u64) -> ShortHolder {
        ShortHolder((((key & !LOCAL) ^ self.0) >> 32) as u32)
    }
}

impl ShortHolder {
    #[inline]
    fn is_local(self) -> bool {
        self.0 & 1 == 1
    }
}

/// The lowest bit of what is left of a key in a [`ShortHolder`].
const LOCAL: u64 = 1 << 32;

impl Default for Part {
    fn default() -> Self {
        Self {
            words: [0].into(),
            n_free: HOLDERS_PER_WORD,
            changes: Journal::default(),
            n_holders: 0,
        }
    }
}

/// Reading.
impl Sieve {
    /// Reports whether somebody holds the role there, or in some other namespace.
    #[inline]
    pub(crate) fn is_about(&self, place: Place) -> bool {
        self.part(place.is_local()).n_holders > 0
    }

    /// Reports whether somebody may be a holder.
    #[inline]
    pub(crate) fn lets_pass(&self, holder: ShortHolder) -> bool {
        lets_pass(&self.part(holder.is_local()).words, holder)
    }

    /// What [`passing`] looks at.
    #[inline]
    pub(crate) fn words(&self, place: Place) -> &[u64] {
        &self.part(place.is_local()).words
    }

    #[inline]
    fn part(&self, is_local: bool) -> &Part {
        if is_local { &self.local } else { &self.cluster }
    }
}

/// Which of these keys may be those of holders there, of each of the roles whose words these are: a
/// bit for each key, the lowest for the first. Returns those of any of the roles.
pub(crate) fn passing(sieves: &[&[u64]], keys: &[u64], place: Place, found: &mut [u64]) -> u64 {
    // It is told how many there are when it is compiled, so that it need not count for each key.
    match *sieves {
        [a] => passing_each([a], keys, place, found),
        [a, b] => passing_each([a, b], keys, place, found),
        [a, b, c] => passing_each([a, b, c], keys, place, found),
        [a, b, c, d] => passing_each([a, b, c, d], keys, place, found),
        [a, b, c, d, ref rest @ ..] => {
            let (own, others) = found.split_at_mut(found.len().min(4));
            passing_each([a, b, c, d], keys, place, own) | passing(rest, keys, place, others)
        }
        [] => 0,
    }
}

#[inline]
fn passing_each<const N: usize>(
    sieves: [&[u64]; N],
    keys: &[u64],
    place: Place,
    found: &mut [u64],
) -> u64 {
    // From the last to the first, so that every bit is shifted to its place.
    let mut passing = [0; N];
    for key in keys.iter().rev() {
        let holder = place.holder(*key);
        for (own, words) in passing.iter_mut().zip(sieves) {
            *own = *own << 1 | u64::from(lets_pass(words, holder));
        }
    }
    found.iter_mut().zip(passing).for_each(|(found, own)| *found = own);
    passing.iter().fold(0, |any, own| any | own)
}

#[inline]
fn lets_pass(words: &[u64], holder: ShortHolder) -> bool {
    let bits = bits(holder);
    let word = words.get(word_idx(holder, words.len())).copied().unwrap_or_default();
    word & bits == bits
}

/// Changes.
impl Sieve {
    /// Makes somebody a holder by one more binding.
    pub(crate) fn insert(&mut self, holder: ShortHolder) {
        self.part_mut(holder).insert(holder);
    }

    /// The reverse of [`insert`](Self::insert). Whoever removes a holder has inserted it.
    pub(crate) fn remove(&mut self, holder: ShortHolder) {
        self.part_mut(holder).remove(holder);
    }

    /// Adds the holders of another role.
    pub(crate) fn insert_all(&mut self, other: &Self) {
        other.holders().for_each(|holder| self.insert(holder));
    }

    /// The reverse of [`insert_all`](Self::insert_all).
    pub(crate) fn remove_all(&mut self, other: &Self) {
        other.holders().for_each(|holder| self.remove(holder));
    }

    /// The holders, each as often as there are bindings that make it one.
    fn holders(&self) -> impl Iterator<Item = ShortHolder> {
        self.cluster.holders().into_iter().chain(self.local.holders())
    }

    fn part_mut(&mut self, holder: ShortHolder) -> &mut Part {
        if holder.is_local() { &mut self.local } else { &mut self.cluster }
    }
}

impl Part {
    fn insert(&mut self, holder: ShortHolder) {
        self.changes.push(Change { holder, is_added: true });
        self.n_holders += 1;
        match self.n_free {
            0 => self.make_anew(),
            _ => self.set_bits(holder),
        }
    }

    fn remove(&mut self, holder: ShortHolder) {
        self.changes.push(Change { holder, is_added: false });
        self.n_holders = self.n_holders.saturating_sub(1);
        let n_changes_max = CHANGES_MIN + 2 * self.n_holders;
        if self.words.len() > 1 + self.n_holders || self.changes.len() > n_changes_max {
            self.make_anew();
        }
    }

    fn holders(&self) -> Vec<ShortHolder> {
        let mut changes: Vec<Change> = self.changes.iter().collect();
        changes.sort_unstable_by_key(|change| change.holder);
        let of_holder = changes.chunk_by(|a, b| a.holder == b.holder);
        let left = of_holder.flat_map(|own| {
            let n_added = own.iter().filter(|change| change.is_added).count();
            let n_left = n_added.saturating_sub(own.len() - n_added);
            own.iter().map(|change| change.holder).take(n_left)
        });
        left.collect()
    }

    /// Makes the words anew, with room for half as many holders more. So this is done after a number
    /// of changes in proportion to what it costs.
    fn make_anew(&mut self) {
        let holders = self.holders();
        let n_wanted = holders.len() + holders.len() / 2;
        let n_words = (n_wanted / HOLDERS_PER_WORD + 1).min(WORDS_MAX);
        self.words = std::iter::repeat_n(0, n_words).collect();
        self.n_free = n_wanted.max(n_words * HOLDERS_PER_WORD);
        self.changes = Journal::default();
        for holder in holders {
            self.changes.push(Change { holder, is_added: true });
            self.set_bits(holder);
        }
    }

    fn set_bits(&mut self, holder: ShortHolder) {
        let (idx, bits) = (word_idx(holder, self.words.len()), bits(holder));
        let is_set = |word: &u64| word & bits == bits;
        // Nothing is copied in vain.
        if !self.words.get(idx).is_some_and(is_set)
            && let Some(word) = Arc::make_mut(&mut self.words).get_mut(idx)
        {
            *word |= bits;
        }
        self.n_free = self.n_free.saturating_sub(1);
    }
}

/// The word in which the bits of a holder are. INVARIANT: less than `n_words`. Goes above all by the
/// highest bits, which leaves the others for the bits.
#[inline]
fn word_idx(holder: ShortHolder, n_words: usize) -> usize {
    ((u64::from(holder.0) * n_words as u64) >> 32) as usize
}

/// The bits of a holder within its word. They go by what follows the lowest bit of the holder, which
/// is the same for all of a place.
#[inline]
fn bits(holder: ShortHolder) -> u64 {
    FIRST_PAIR.rotate_left(holder.0 >> 1) | SECOND_PAIR.rotate_left(holder.0 >> 7)
}

/// Two bits each, at different distances. To turn a pair is as quick as to set one bit.
const FIRST_PAIR: u64 = 1 << 21 | 1;
const SECOND_PAIR: u64 = 1 << 9 | 1;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// As good as random, and the same for two numbers.
    fn key(number: u32) -> u64 {
        let mixed = (u64::from(number / 2) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    fn place(number: u32) -> Place {
        match number % 3 {
            0 => Place::CLUSTER,
            _ => Place::namespace(key(number % 3)),
        }
    }

    fn holder(number: u32) -> ShortHolder {
        place(number).holder(key(number))
    }

    fn has(sieve: &Sieve, number: u32) -> bool {
        let keys = [1_000_001, 1_000_003, 1_000_005, number].map(key);
        let place = place(number);
        let mut found = [0; 2];
        let any = passing(&[&[0], sieve.words(place)], &keys, place, &mut found);
        assert!(found == [0, any] && sieve.is_about(place) | (any == 0));
        any >> 3 == 1
    }

    fn check(sieve: &Sieve, plain: &BTreeSet<u32>) -> Result<(), TestCaseError> {
        for is_local in [false, true] {
            let part = sieve.part(is_local);
            let all = plain.iter().map(|number| holder(*number));
            let mut holders: Vec<ShortHolder> =
                all.filter(|own| own.is_local() == is_local).collect();
            holders.sort_unstable();
            prop_assert_eq!(part.n_holders, holders.len());
            prop_assert!(part.words.len() <= 1 + part.n_holders);
            prop_assert!(part.changes.len() <= CHANGES_MIN + 2 * part.n_holders);
            prop_assert_eq!(part.holders(), holders);
        }
        prop_assert!(plain.iter().all(|number| has(sieve, *number)));
        Ok(())
    }

    proptest! {
        #[test]
        fn every_holder_passes_and_clones_are_left_alone(
            runs in prop::collection::vec((0..3000_u32, 0..900_u32, any::<bool>()), 0..10),
            cut in 0..10_usize,
        ) {
            let (mut sieve, mut plain) = (Sieve::default(), BTreeSet::new());
            let mut earlier = None;
            for (idx, (start, length, is_added)) in runs.into_iter().enumerate() {
                if idx == cut {
                    earlier = Some((sieve.clone(), plain.clone()));
                }
                for number in start..start + length {
                    if is_added && plain.insert(number) {
                        sieve.insert(holder(number));
                    } else if !is_added && plain.remove(&number) {
                        sieve.remove(holder(number));
                    }
                }
            }
            for (sieve, plain) in earlier.into_iter().chain([(sieve, plain)]) {
                check(&sieve, &plain)?;
                // Into another and out again.
                let mut other = Sieve::default();
                other.insert(holder(1_000_000));
                other.insert_all(&sieve);
                prop_assert!(plain.iter().all(|number| has(&other, *number)));
                other.remove_all(&sieve);
                check(&other, &BTreeSet::from([1_000_000]))?;
            }
        }
    }

    /// Counts strangers rather than trusting the arithmetic, at every size.
    #[test]
    fn strangers_rarely_pass() {
        let mut sieve = Sieve::default();
        let strangers: Vec<u64> = (0..64).map(|number| key(10_000 + 2 * number)).collect();
        let mut n_passed = 0;
        for number in 0..2000 {
            sieve.insert(holder(2 * number));
            let place = place(number);
            n_passed += passing(&[sieve.words(place)], &strangers, place, &mut [0]).count_ones();
        }
        assert!(n_passed < 64 * 2000 / 100, "{n_passed}");
    }

    #[test]
    fn a_sieve_stops_growing_and_still_lets_holders_pass() {
        let mut sieve = Sieve::default();
        let n_holders = (WORDS_MAX * HOLDERS_PER_WORD * 3) as u32;
        (0..n_holders).for_each(|number| sieve.insert(holder(2 * number)));
        assert_eq!(sieve.local.words.len(), WORDS_MAX);
        assert!((0..n_holders).all(|number| has(&sieve, 2 * number)));
        (0..n_holders).for_each(|number| sieve.remove(holder(2 * number)));
        assert_eq!((sieve.cluster.words.len(), sieve.local.words.len()), (1, 1));
        assert!(!sieve.is_about(Place::CLUSTER) && !sieve.is_about(Place::namespace(0)));
    }

    #[test]
    fn one_holder_is_told_as_all_of_them_are() {
        let mut sieve = Sieve::default();
        (0..1000).for_each(|number| sieve.insert(holder(6 * number)));
        for number in (0..2000).map(|number| 6 * number) {
            let words = sieve.words(Place::CLUSTER);
            let passes = passing(&[words], &[key(number)], Place::CLUSTER, &mut [0]) == 1;
            assert_eq!(sieve.lets_pass(holder(number)), passes);
            assert!(passes || number >= 6000);
        }
    }

    #[test]
    fn whoever_passes_one_of_several_sieves_passes() {
        let sieves = [2, 4, 6, 8, 10, 12, 14, 16].map(|number| {
            let mut sieve = Sieve::default();
            sieve.insert(Place::CLUSTER.holder(key(number)));
            sieve
        });
        let words = sieves.each_ref().map(|sieve| sieve.words(Place::CLUSTER));
        let keys = [2, 4, 6, 8, 10, 12, 14, 16, 18].map(key);
        for n_sieves in 0..=sieves.len() {
            let mut found = [0; 8];
            let any = passing(&words[..n_sieves], &keys, Place::CLUSTER, &mut found);
            assert_eq!(any, (1 << n_sieves) - 1);
            let is_own = |(idx, own): (usize, &u64)| *own == u64::from(idx < n_sieves) << idx;
            assert!(found.iter().enumerate().all(is_own));
        }
    }

    #[test]
    fn the_cluster_and_namespaces_are_kept_apart() {
        let places = [Place::CLUSTER, Place::namespace(key(5)), Place::namespace(key(9))];
        for (idx, own) in places.into_iter().enumerate() {
            let mut sieve = Sieve::default();
            sieve.insert(own.holder(key(7)));
            let keys = [key(9), key(7)];
            let passing =
                places.map(|place| passing(&[sieve.words(place)], &keys, place, &mut [0]));
            assert_eq!(passing.map(|bits| bits == 0b10), [0, 1, 2].map(|other| other == idx));
            let are_about = places.map(|place| sieve.is_about(place));
            assert_eq!(are_about, [idx == 0, idx != 0, idx != 0]);
        }
    }
}
