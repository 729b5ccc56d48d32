//! A copy-on-write hash map.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::hint::black_box;
use std::mem;
use std::sync::Arc;

use foldhash::fast::RandomState;

/// The number of hash bits that select the child of a branch.
const DIGIT_BITS: u32 = 3;
/// The number of children of a branch.
const BRANCH_CHILDREN: usize = 1 << DIGIT_BITS;
/// At this depth the bits of the hash are used up, and leaves no longer split.
const DEPTH_MAX: u32 = u64::BITS / DIGIT_BITS;
/// A leaf with more entries than this becomes a branch.
const LEAF_ENTRIES_MAX: usize = 16;
/// A branch with at most this many entries becomes a leaf again. The gap to [`LEAF_ENTRIES_MAX`] keeps
/// a map whose size alternates from splitting and joining the same leaf on every change.
const JOINED_ENTRIES_MAX: usize = LEAF_ENTRIES_MAX / 2;

/// A hash map whose clones share memory.
///
/// A clone copies one pointer. A change after a clone copies one leaf of at most 16 entries and the
/// branches above it, so it costs a few hundred nanoseconds however many entries the map has, and
/// other clones keep what they had. A lookup hashes the key once and follows one pointer for every
/// factor of 8 in the number of entries; the upper levels are few and stay in the CPU cache.
///
/// The hash is seeded at random, so an attacker cannot choose keys that collide. Iteration order is unspecified.
///
/// ```
/// use persistent::Map;
///
/// let mut ports: Map<String, u16> = Map::default();
/// ports.insert("http".to_owned(), 80);
/// let before = ports.clone();
/// ports.insert("https".to_owned(), 443);
/// assert_eq!(ports.get("https"), Some(&443));
/// assert_eq!(before.get("https"), None);
/// ```
pub struct Map<K, V> {
    hash_builder: RandomState,
    n_entries: usize,
    root: Node<K, V>,
}

/// INVARIANT: an entry is in the leaf to which the digits of its hash lead, lowest digit first.
enum Node<K, V> {
    Leaf(Arc<[Entry<K, V>]>),
    Branch(Arc<[Self; BRANCH_CHILDREN]>),
}

#[derive(Clone)]
struct Entry<K, V> {
    /// The hash of the key. A lookup compares it before the key, so that it reads no other key unless two
    /// hashes collide.
    hash: u64,
    key: K,
    value: V,
}

impl<K, V> Map<K, V> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.n_entries
    }

    /// Reports whether the map has no entry.
    pub fn is_empty(&self) -> bool {
        self.n_entries == 0
    }

    /// Iterates over all entries in unspecified order.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { unvisited_nodes: vec![&self.root], leaf_entries: [].iter() }
    }

    /// Iterates over all values in unspecified order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Hash + Eq, V> Map<K, V> {
    /// Returns the value of a key.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.hash_builder.hash_one(key);
        let entry =
            self.root.find_leaf(hash).iter().find(|entry| entry.has_hash_and_key(hash, key));
        entry.map(|entry| &entry.value)
    }

    /// Looks up the first `N` keys and returns their values in the order of the keys.
    ///
    /// In a map that is larger than the CPU caches this is quicker than one `get` after the other: it
    /// reads memory for all keys before it waits for the first.
    #[inline]
    pub fn get_batch<Q, B, const N: usize>(&self, keys: &[B]) -> [Option<&V>; N]
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        B: Borrow<Q>,
    {
        let mut leaves: [(u64, &[Entry<K, V>]); N] = [(0, &[]); N];
        for ((hash, leaf), key) in leaves.iter_mut().zip(keys) {
            *hash = self.hash_builder.hash_one(key.borrow());
            *leaf = self.root.find_leaf(*hash);
        }
        // Reads every second entry, so that most cache lines of each leaf are loaded at once.
        let entries = leaves.iter().flat_map(|(_, leaf)| leaf.iter().step_by(2));
        black_box(entries.fold(0, |all, entry| all ^ entry.hash));
        let mut values = [None; N];
        for ((value, (hash, leaf)), key) in values.iter_mut().zip(leaves).zip(keys) {
            let entry = leaf.iter().find(|entry| entry.has_hash_and_key(hash, key.borrow()));
            *value = entry.map(|entry| &entry.value);
        }
        values
    }

    /// Reports whether the map has an entry for the key.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.get(key).is_some()
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Map<K, V> {
    /// Returns the value of a key for a change. Copies the part of the path to it that clones share.
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        // A key that is absent copies nothing.
        self.get(key)?;
        let hash = self.hash_builder.hash_one(key);
        self.root.get_mut(hash, hash, key)
    }

    /// Returns the value of a key for a change. Inserts a value if there is none.
    pub fn get_or_insert_with(&mut self, key: K, make_value: impl FnOnce() -> V) -> &mut V {
        let Self { hash_builder, n_entries, root } = self;
        let hash = hash_builder.hash_one(&key);
        root.get_or_insert_with(0, hash, key, || {
            *n_entries += 1;
            make_value()
        })
    }

    /// Sets the value of a key and returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(existing_value) = self.get_mut(&key) {
            return Some(mem::replace(existing_value, value));
        }
        self.get_or_insert_with(key, || value);
        None
    }

    /// Removes a key and returns its value.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        // A key that is absent copies nothing.
        self.get(key)?;
        let hash = self.hash_builder.hash_one(key);
        let removed_value = self.root.remove(hash, hash, key)?;
        self.n_entries -= 1;
        Some(removed_value)
    }
}

impl<K, V> Entry<K, V> {
    #[inline]
    fn has_hash_and_key<Q>(&self, hash: u64, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        self.hash == hash && self.key.borrow() == key
    }
}

impl<K, V> Node<K, V> {
    /// The entries of the leaf to which a hash leads.
    #[inline]
    fn find_leaf(&self, hash: u64) -> &[Entry<K, V>] {
        let (mut node, mut digits) = (self, hash);
        loop {
            match node {
                Self::Leaf(entries) => return entries,
                Self::Branch(children) => node = &children[lowest_hash_digit(digits)],
            }
            digits >>= DIGIT_BITS;
        }
    }
}

impl<K: Eq + Clone, V: Clone> Node<K, V> {
    fn get_mut<Q>(&mut self, hash: u64, digits: u64, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        match self {
            Self::Branch(children) => Arc::make_mut(children)[lowest_hash_digit(digits)].get_mut(
                hash,
                digits >> DIGIT_BITS,
                key,
            ),
            Self::Leaf(entries) => {
                let entries = Arc::make_mut(entries).iter_mut();
                let mut matching_entries =
                    entries.filter(|entry| entry.has_hash_and_key(hash, key));
                matching_entries.next().map(|entry| &mut entry.value)
            }
        }
    }

    fn get_or_insert_with(
        &mut self,
        depth: u32,
        hash: u64,
        key: K,
        make_value: impl FnOnce() -> V,
    ) -> &mut V {
        if let Self::Leaf(entries) = self
            && entries.len() >= LEAF_ENTRIES_MAX
            && depth < DEPTH_MAX
            && !entries.iter().any(|entry| entry.has_hash_and_key(hash, &key))
        {
            *self = Self::split_leaf(entries, depth);
        }
        match self {
            Self::Branch(children) => {
                let child =
                    &mut Arc::make_mut(children)[lowest_hash_digit(hash >> (depth * DIGIT_BITS))];
                child.get_or_insert_with(depth + 1, hash, key, make_value)
            }
            Self::Leaf(entries) => {
                let existing_idx =
                    entries.iter().position(|entry| entry.has_hash_and_key(hash, &key));
                let idx = existing_idx.unwrap_or_else(|| {
                    let entry = Entry { hash, key, value: make_value() };
                    *entries = entries.iter().cloned().chain([entry]).collect();
                    entries.len() - 1
                });
                &mut Arc::make_mut(entries)[idx].value
            }
        }
    }

    fn remove<Q>(&mut self, hash: u64, digits: u64, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        match self {
            Self::Branch(children) => {
                let child = &mut Arc::make_mut(children)[lowest_hash_digit(digits)];
                let removed_value = child.remove(hash, digits >> DIGIT_BITS, key);
                if let Some(joined_entries) = Self::try_join_leaves(children) {
                    *self = Self::Leaf(joined_entries);
                }
                removed_value
            }
            Self::Leaf(entries) => {
                let removed_entry =
                    entries.iter().find(|entry| entry.has_hash_and_key(hash, key))?.clone();
                let is_kept = |entry: &&Entry<K, V>| !entry.has_hash_and_key(hash, key);
                *entries = entries.iter().filter(is_kept).cloned().collect();
                Some(removed_entry.value)
            }
        }
    }

    /// Makes a branch of a leaf at this depth.
    fn split_leaf(entries: &[Entry<K, V>], depth: u32) -> Self {
        let children = std::array::from_fn(|child| {
            let is_below = |entry: &&Entry<K, V>| {
                lowest_hash_digit(entry.hash >> (depth * DIGIT_BITS)) == child
            };
            Self::Leaf(entries.iter().filter(is_below).cloned().collect())
        });
        Self::Branch(Arc::new(children))
    }

    /// The entries of a branch that is small enough to be a leaf.
    fn try_join_leaves(children: &[Self; BRANCH_CHILDREN]) -> Option<Arc<[Entry<K, V>]>> {
        let mut n_entries = 0;
        for child in children {
            match child {
                Self::Leaf(entries) => n_entries += entries.len(),
                Self::Branch(_) => return None,
            }
        }
        let leaves = children.iter().filter_map(|child| match child {
            Self::Leaf(entries) => Some(entries),
            Self::Branch(_) => None,
        });
        (n_entries <= JOINED_ENTRIES_MAX)
            .then(|| leaves.flat_map(|entries| entries.iter()).cloned().collect())
    }
}

/// The lowest digit of a hash.
#[inline]
fn lowest_hash_digit(digits: u64) -> usize {
    digits as usize % BRANCH_CHILDREN
}

/// The entries of a [`Map`].
pub struct Iter<'a, K, V> {
    unvisited_nodes: Vec<&'a Node<K, V>>,
    leaf_entries: std::slice::Iter<'a, Entry<K, V>>,
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(Entry { key, value, .. }) = self.leaf_entries.next() {
                return Some((key, value));
            }
            match self.unvisited_nodes.pop()? {
                Node::Branch(children) => self.unvisited_nodes.extend(children.iter()),
                Node::Leaf(entries) => self.leaf_entries = entries.iter(),
            }
        }
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        let root = Node::Leaf(Arc::default());
        Self { hash_builder: RandomState::default(), n_entries: 0, root }
    }
}

impl<K, V> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        let Self { hash_builder, n_entries, root } = self;
        Self { hash_builder: hash_builder.clone(), n_entries: *n_entries, root: root.clone() }
    }
}

impl<K, V> Clone for Node<K, V> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(entries) => Self::Leaf(Arc::clone(entries)),
            Self::Branch(children) => Self::Branch(Arc::clone(children)),
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::hash::Hasher;

    use proptest::prelude::*;

    use super::*;

    /// A key of which many have the same hash.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Colliding(u16);

    impl Hash for Colliding {
        fn hash<H: Hasher>(&self, state: &mut H) {
            (self.0 % 3).hash(state);
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Change {
        Insert(u16, u32),
        Remove(u16),
        Add(u16, u32),
        GetOrInsert(u16, u32),
    }

    fn change() -> impl Strategy<Value = Change> {
        let key = 0..400u16;
        prop_oneof![
            4 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Change::Insert(key, value)),
            3 => key.clone().prop_map(Change::Remove),
            1 => (key.clone(), 0..9u32).prop_map(|(key, value)| Change::Add(key, value)),
            1 => (key, any::<u32>()).prop_map(|(key, value)| Change::GetOrInsert(key, value)),
        ]
    }

    fn apply<K: Hash + Eq + Copy + fmt::Debug>(
        map: &mut Map<K, u32>,
        model: &mut HashMap<K, u32>,
        change: Change,
        key_of: fn(u16) -> K,
    ) {
        match change {
            Change::Insert(key, value) => {
                assert_eq!(map.insert(key_of(key), value), model.insert(key_of(key), value));
            }
            Change::Remove(key) => {
                assert_eq!(map.remove(&key_of(key)), model.remove(&key_of(key)));
            }
            Change::Add(key, value) => {
                let slots = [map.get_mut(&key_of(key)), model.get_mut(&key_of(key))];
                for slot in slots.into_iter().flatten() {
                    *slot = slot.wrapping_add(value);
                }
            }
            Change::GetOrInsert(key, value) => {
                let got = *map.get_or_insert_with(key_of(key), || value);
                assert_eq!(got, *model.entry(key_of(key)).or_insert(value));
            }
        }
    }

    fn assert_equal<K: Hash + Eq + Copy + fmt::Debug>(
        map: &Map<K, u32>,
        model: &HashMap<K, u32>,
        key_of: fn(u16) -> K,
    ) {
        assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
        assert_eq!(
            &map.iter().map(|(key, value)| (*key, *value)).collect::<HashMap<_, _>>(),
            model
        );
        assert_eq!(map.values().count(), model.len());
        let keys: Vec<K> = (0..400).map(key_of).collect();
        for batch in keys.chunks(7) {
            let values: [Option<&u32>; 7] = map.get_batch::<K, K, 7>(batch);
            for (key, value) in batch.iter().zip(values) {
                assert_eq!((map.get(key), value), (model.get(key), model.get(key)));
            }
        }
    }

    fn check<K: Hash + Eq + Copy + fmt::Debug>(changes: &[Vec<Change>], key_of: fn(u16) -> K) {
        let (mut map, mut model) = (Map::default(), HashMap::new());
        let mut versions = Vec::new();
        for batch in changes {
            for change in batch {
                apply(&mut map, &mut model, *change, key_of);
            }
            versions.push((map.clone(), model.clone()));
        }
        for (map, model) in &versions {
            assert_equal(map, model, key_of);
        }
        for key in (0..400).map(key_of) {
            assert_eq!(map.remove(&key), model.remove(&key));
        }
        assert!(map.is_empty() && matches!(map.root, Node::Leaf(_)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_version_equals_a_standard_map(
            changes in prop::collection::vec(prop::collection::vec(change(), 0..200), 1..6),
        ) {
            check(&changes, |key| key);
            check(&changes, Colliding);
        }
    }

    #[test]
    fn a_clone_shares_all_nodes_but_the_changed_path() {
        let mut map: Map<u32, Arc<u32>> = Map::default();
        (0..10_000).for_each(|key| drop(map.insert(key, Arc::new(key))));
        let before = map.clone();
        map.insert(7, Arc::new(8));
        let n_copied = before.values().filter(|value| Arc::strong_count(value) > 1).count();
        assert!(n_copied < LEAF_ENTRIES_MAX, "{n_copied}");
        let value_of_7 = |map: &Map<u32, Arc<u32>>| map.get(&7).map(|value| **value);
        assert_eq!((value_of_7(&before), value_of_7(&map)), (Some(7), Some(8)));
    }
}
