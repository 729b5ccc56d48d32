//! An ordered map that is cheap to clone and to change after cloning.
//!
//! A clone shares everything with its origin. A change copies the few slots on the way to one
//! entry if somebody else still reads them, and changes them in place otherwise. This is what lets
//! a snapshot of a large graph be replaced for every pod that comes or goes.

use std::sync::Arc;

/// Bits of a key that one level looks at. More make lookups shorter and copies longer.
const DIGIT_BITS: usize = 5;
/// Levels that look at one half of a key; the last of them at what bits are left.
const LEVELS_PER_HALF: usize = 64_usize.div_ceil(DIGIT_BITS);

/// A key in two halves; all keys with the same high half lie together.
///
/// Halves should differ in their first bits, or the map grows deep: use hashes, or numbers that are
/// spread out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) high: u64,
    pub(crate) low: u64,
}

impl Key {
    fn digit(self, level: usize) -> usize {
        let half = if level < LEVELS_PER_HALF { self.high } else { self.low };
        let from = DIGIT_BITS * (level % LEVELS_PER_HALF);
        // What is shifted out was looked at before.
        ((half << from) >> (64 - DIGIT_BITS)) as usize
    }
}

/// A persistent map from keys to values.
#[derive(Debug, Clone)]
pub(crate) struct Trie<V> {
    root: Option<Slot<V>>,
}

/// INVARIANT: a branch has at least two entries below it.
#[derive(Debug, Clone)]
enum Slot<V> {
    Leaf(Key, V),
    /// Which digits are present, and their slots in order.
    Branch(u32, Arc<[Slot<V>]>),
}

impl<V> Default for Trie<V> {
    fn default() -> Self {
        Self { root: None }
    }
}

impl<V: Clone> Trie<V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    pub(crate) fn get(&self, key: Key) -> Option<&V> {
        let mut slot = self.root.as_ref()?;
        for level in 0.. {
            match slot {
                Slot::Leaf(own, value) => return (*own == key).then_some(value),
                Slot::Branch(present, slots) => slot = &slots[position(*present, key, level)?],
            }
        }
        None
    }

    /// The first entry with this high half whose value is wanted.
    pub(crate) fn find(&self, high: u64, is_wanted: impl Fn(&V) -> bool) -> Option<(Key, &V)> {
        let mut slot = self.root.as_ref()?;
        for level in 0..LEVELS_PER_HALF {
            match slot {
                Slot::Leaf(key, value) => {
                    return (key.high == high && is_wanted(value)).then_some((*key, value));
                }
                Slot::Branch(present, slots) => {
                    slot = &slots[position(*present, Key { high, low: 0 }, level)?];
                }
            }
        }
        slot.find(&|key, value| key.high == high && is_wanted(value))
    }

    /// All entries in the order of their keys.
    pub(crate) fn for_each<'t>(&'t self, visit: &mut dyn FnMut(Key, &'t V)) {
        if let Some(root) = &self.root {
            root.for_each(visit);
        }
    }

    /// All keys in order.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        self.for_each(&mut |key, _| keys.push(key));
        keys
    }

    /// The value of a key, to be changed. Copies what others share on the way to it.
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut V> {
        let mut slot = self.root.as_mut()?;
        for level in 0.. {
            match slot {
                Slot::Leaf(own, value) => return (*own == key).then_some(value),
                Slot::Branch(present, slots) => {
                    let position = position(*present, key, level)?;
                    slot = &mut Arc::make_mut(slots)[position];
                }
            }
        }
        None
    }

    /// Adds or replaces an entry, and reports whether it is new.
    pub(crate) fn insert(&mut self, key: Key, value: V) -> bool {
        match &mut self.root {
            Some(root) => root.insert(0, key, value),
            None => {
                self.root = Some(Slot::Leaf(key, value));
                true
            }
        }
    }

    /// Removes an entry, and reports whether there was one.
    pub(crate) fn remove(&mut self, key: Key) -> bool {
        // Looked for first, so that nothing is copied in vain.
        if self.get(key).is_none() {
            return false;
        }
        match &mut self.root {
            Some(root @ Slot::Branch(..)) => root.remove_below(0, key),
            root => *root = None,
        }
        true
    }
}

impl<V: Clone> Slot<V> {
    fn find(&self, is_wanted: &dyn Fn(Key, &V) -> bool) -> Option<(Key, &V)> {
        match self {
            Self::Leaf(key, value) => is_wanted(*key, value).then_some((*key, value)),
            Self::Branch(_, slots) => slots.iter().find_map(|slot| slot.find(is_wanted)),
        }
    }

    fn for_each<'t>(&'t self, visit: &mut dyn FnMut(Key, &'t V)) {
        match self {
            Self::Leaf(key, value) => visit(*key, value),
            Self::Branch(_, slots) => slots.iter().for_each(|slot| slot.for_each(visit)),
        }
    }

    fn insert(&mut self, level: usize, key: Key, value: V) -> bool {
        match self {
            Self::Leaf(own, old) if *own == key => {
                *old = value;
                false
            }
            Self::Leaf(own, _) => {
                let other = *own;
                *self = Self::pair(level, (other, self.clone()), (key, Self::Leaf(key, value)));
                true
            }
            Self::Branch(present, slots) => match position(*present, key, level) {
                Some(position) => Arc::make_mut(slots)[position].insert(level + 1, key, value),
                None => {
                    *present |= bit(key, level);
                    let at = before(*present, key, level);
                    let (left, right) = slots.split_at(at);
                    let new = std::iter::once(Self::Leaf(key, value));
                    *slots = left.iter().cloned().chain(new).chain(right.iter().cloned()).collect();
                    true
                }
            },
        }
    }

    /// The smallest tree of two leaves whose keys differ.
    fn pair(level: usize, a: (Key, Self), b: (Key, Self)) -> Self {
        let present = bit(a.0, level) | bit(b.0, level);
        let slots: Arc<[Self]> = match a.0.digit(level).cmp(&b.0.digit(level)) {
            std::cmp::Ordering::Less => [a.1, b.1].into(),
            std::cmp::Ordering::Greater => [b.1, a.1].into(),
            std::cmp::Ordering::Equal => [Self::pair(level + 1, a, b)].into(),
        };
        Self::Branch(present, slots)
    }

    /// Removes an entry that exists below this branch.
    fn remove_below(&mut self, level: usize, key: Key) {
        let Self::Branch(present, slots) = self else { return };
        let Some(position) = position(*present, key, level) else { return };
        if matches!(slots[position], Self::Leaf(..)) {
            *present &= !bit(key, level);
            let (left, right) = slots.split_at(position);
            *slots = left.iter().chain(right.iter().skip(1)).cloned().collect();
        } else {
            Arc::make_mut(slots)[position].remove_below(level + 1, key);
        }
        // Keeps the invariant: what is alone moves up.
        if let [only @ Self::Leaf(..)] = &slots[..] {
            *self = only.clone();
        }
    }
}

fn bit(key: Key, level: usize) -> u32 {
    1 << key.digit(level)
}

/// How many slots come before that of the key.
fn before(present: u32, key: Key, level: usize) -> usize {
    (present & (bit(key, level) - 1)).count_ones() as usize
}

fn position(present: u32, key: Key, level: usize) -> Option<usize> {
    (present & bit(key, level) != 0).then(|| before(present, key, level))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Keys that collide in many digits, and some that are far apart.
    fn key() -> impl Strategy<Value = Key> {
        let half = prop_oneof![0..4_u64, Just(1 << 60), Just(u64::MAX), Just(u64::MAX - 1)];
        (half.clone(), half).prop_map(|(high, low)| Key { high, low })
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_map_and_leaves_clones_alone(
            changes in prop::collection::vec((key(), prop::option::of(0..9_u8)), 0..60),
            cut in 0..60_usize,
        ) {
            let (mut trie, mut map) = (Trie::default(), BTreeMap::new());
            let mut earlier = None;
            for (idx, (key, value)) in changes.into_iter().enumerate() {
                if idx == cut {
                    earlier = Some((trie.clone(), map.clone()));
                }
                match value {
                    Some(value) => {
                        prop_assert_eq!(trie.insert(key, value), map.insert(key, value).is_none());
                    }
                    None => prop_assert_eq!(trie.remove(key), map.remove(&key).is_some()),
                }
                prop_assert_eq!(trie.get(key), map.get(&key));
                prop_assert_eq!(trie.get_mut(key), map.get_mut(&key));
            }
            for (trie, map) in earlier.into_iter().chain([(trie, map)]) {
                prop_assert_eq!(trie.keys(), map.keys().copied().collect::<Vec<_>>());
                prop_assert_eq!(trie.is_empty(), map.is_empty());
                for high in [0, 1, 2, 3, 1 << 60, u64::MAX, u64::MAX - 1, 77] {
                    let want = map.iter().find(|(key, value)| key.high == high && **value > 3);
                    let found = trie.find(high, |value| *value > 3);
                    prop_assert_eq!(found, want.map(|(key, value)| (*key, value)));
                }
            }
        }
    }
}
