//! What leads to a node.

use std::sync::Arc;

use crate::set::{Set, gather, join, split, spread};
use crate::slab::Id;

/// The vertices that lead to a node, by the hashes of their names.
///
/// In front of the set is a sieve, which lets few strangers through. It is so small that the sieves
/// of all nodes stay in the cache when the sets do not, so most of what a node is refused is refused
/// without waiting for memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins {
    sieve: Sieve,
    n_vertices: u32,
    /// For each vertex: the hash of its name, and its place, spread.
    vertices: Set,
}

/// Bits of hashes. Those of hashes that were removed stay until there is no room for more.
#[derive(Debug, Clone)]
struct Sieve {
    /// INVARIANT: at least one.
    words: Arc<[u64]>,
    n_added: u32,
}

/// Hashes for each word of a sieve. At three bits for each, one stranger in a hundred passes when
/// there is no room for more, and far less before.
const HASHES_PER_WORD: u32 = 4;

impl Origins {
    /// The place of some vertex with this hash that is wanted.
    pub(crate) fn find(&self, hash: u32, mut is_wanted: impl FnMut(Id) -> bool) -> Option<Id> {
        if !self.sieve.may_have(hash) {
            return None;
        }
        self.vertices.find(hash, |place| is_wanted(gather(place))).map(gather)
    }

    pub(crate) fn insert(&mut self, hash: u32, id: Id) {
        if !self.vertices.insert(join(hash, spread(id))) {
            return;
        }
        self.n_vertices += 1;
        if self.sieve.has_room() {
            self.sieve.add(hash);
        } else {
            self.make_sieve();
        }
    }

    pub(crate) fn remove(&mut self, hash: u32, id: Id) {
        if self.vertices.remove(join(hash, spread(id))) {
            self.n_vertices -= 1;
            if self.sieve.n_words() > 1 + self.n_vertices {
                self.make_sieve();
            }
        }
    }

    /// Makes the sieve anew, with room for half as many vertices more. So this is done after a number
    /// of changes in proportion to what it costs.
    fn make_sieve(&mut self) {
        let n_words = self.n_vertices * 3 / (2 * HASHES_PER_WORD) + 1;
        self.sieve =
            Sieve { words: std::iter::repeat_n(0, n_words as usize).collect(), n_added: 0 };
        for number in self.vertices.numbers() {
            self.sieve.add(split(number).0);
        }
    }
}

impl Default for Sieve {
    fn default() -> Self {
        Self { words: [0].into(), n_added: 0 }
    }
}

impl Sieve {
    fn may_have(&self, hash: u32) -> bool {
        let word = self.words.get(place(self.words.len(), hash));
        word.is_some_and(|word| word & mask(hash) == mask(hash))
    }

    fn has_room(&self) -> bool {
        self.n_added < HASHES_PER_WORD * self.n_words()
    }

    fn add(&mut self, hash: u32) {
        let words = Arc::make_mut(&mut self.words);
        if let Some(word) = words.get_mut(place(words.len(), hash)) {
            *word |= mask(hash);
        }
        self.n_added += 1;
    }

    /// INVARIANT on Slab: there are fewer vertices, hence words, than a u32 can count.
    fn n_words(&self) -> u32 {
        u32::try_from(self.words.len()).unwrap_or(u32::MAX)
    }
}

/// The word in which the bits of a hash are.
fn place(n_words: usize, hash: u32) -> usize {
    // The upper half of the product is less than the number of words.
    ((u64::from(hash) * n_words as u64) >> 32) as usize
}

/// The bits of a hash within its word, from the end of the hash, since its beginning chose the word.
fn mask(hash: u32) -> u64 {
    1 << (hash & 63) | 1 << ((hash >> 6) & 63) | 1 << ((hash >> 12) & 63)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// As good as random, and the same for two vertices.
    fn hash(id: Id) -> u32 {
        let mixed = (u64::from(id / 2) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32
    }

    fn has(origins: &Origins, id: Id) -> bool {
        origins.find(hash(id), |own| own == id) == Some(id)
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_set_and_leaves_clones_alone(
            runs in prop::collection::vec((0..900_u32, 0..300_u32, any::<bool>()), 0..12),
            cut in 0..12_usize,
        ) {
            let (mut origins, mut model) = (Origins::default(), BTreeSet::new());
            let mut earlier = None;
            for (idx, (start, length, is_added)) in runs.into_iter().enumerate() {
                if idx == cut {
                    earlier = Some((origins.clone(), model.clone()));
                }
                for id in start..start + length {
                    if is_added {
                        origins.insert(hash(id), id);
                        model.insert(id);
                    } else {
                        origins.remove(hash(id), id);
                        model.remove(&id);
                    }
                }
            }
            for (origins, model) in earlier.into_iter().chain([(origins, model)]) {
                prop_assert_eq!(origins.n_vertices as usize, model.len());
                prop_assert!(origins.sieve.n_words() <= 1 + origins.n_vertices);
                for id in 0..1200 {
                    prop_assert_eq!(has(&origins, id), model.contains(&id), "{}", id);
                }
            }
        }
    }

    /// Counts strangers rather than trusting the arithmetic, at every size.
    #[test]
    fn strangers_rarely_pass_the_sieve() {
        let mut origins = Origins::default();
        let mut n_passed = 0;
        for id in 0..500 {
            origins.insert(hash(2 * id), id);
            n_passed +=
                (1000..1100).filter(|other| origins.sieve.may_have(hash(2 * other))).count();
        }
        assert!(n_passed < 50_000 / 100, "{n_passed} of 50000");
    }
}
