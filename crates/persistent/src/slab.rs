//! A copy-on-write collection that numbers its values.

use std::sync::Arc;

/// The number of key bits that select a child of a node.
const DIGIT_BITS: u32 = 6;
/// The number of children of a node.
const NODE_CHILDREN: usize = 1 << DIGIT_BITS;
/// The slab cycles through at least this many keys before it reuses one.
const KEYS_MIN: usize = NODE_CHILDREN;

/// A collection that gives each value a small number as its key, and whose clones share memory.
///
/// A clone copies one pointer. A change after a clone copies one node of 64 children on each level, and
/// a lookup follows one pointer for every factor of 64 in the number of values. Keys of removed values
/// are given out again, so keys stay below twice the greatest number of values that there were.
///
/// ```
/// use persistent::Slab;
///
/// let mut names: Slab<&str> = Slab::default();
/// let key = names.insert("ana");
/// let before = names.clone();
/// assert_eq!(names.remove(key), Some("ana"));
/// assert_eq!((names.get(key), before.get(key)), (None, Some(&"ana")));
/// ```
#[derive(Debug)]
pub struct Slab<T> {
    root: Option<Node<T>>,
    /// The number of levels below the root.
    n_levels_below_root: u32,
    n_values: usize,
    last_assigned_key: u32,
}

#[derive(Debug)]
enum Node<T> {
    Leaf(Arc<[Option<T>; NODE_CHILDREN]>),
    Branch(Arc<[Option<Self>; NODE_CHILDREN]>),
}

impl<T> Slab<T> {
    /// Reports whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.n_values == 0
    }

    /// Returns the value of a key.
    #[inline]
    pub fn get(&self, key: u32) -> Option<&T> {
        let mut level = self.n_levels_below_root;
        if needs_more_levels(key, level) {
            return None;
        }
        let mut node = self.root.as_ref()?;
        loop {
            match node {
                Node::Leaf(values) => return values[key_digit_at_level(key, 0)].as_ref(),
                Node::Branch(children) => {
                    node = children[key_digit_at_level(key, level)].as_ref()?
                }
            }
            level -= 1;
        }
    }
}

impl<T: Clone> Slab<T> {
    /// Adds a value and returns its key.
    pub fn insert(&mut self, value: T) -> u32 {
        let n_keys = KEYS_MIN.max(2 * (self.n_values + 1));
        let n_keys = u32::try_from(n_keys).unwrap_or(u32::MAX);
        // At most half of the keys are in use, so this finds one.
        loop {
            self.last_assigned_key = (self.last_assigned_key + 1) % n_keys;
            if self.get(self.last_assigned_key).is_none() {
                break;
            }
        }
        let key = self.last_assigned_key;
        while needs_more_levels(key, self.n_levels_below_root) {
            let below = self.root.take();
            let mut children = [const { None }; NODE_CHILDREN];
            children[0] = below;
            self.root = Some(Node::Branch(Arc::new(children)));
            self.n_levels_below_root += 1;
        }
        *Node::slot_mut(&mut self.root, self.n_levels_below_root, key) = Some(value);
        self.n_values += 1;
        key
    }

    /// Returns the value of a key for a change. Copies the part of the path to it that clones share.
    pub fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        // A key that is not in use copies nothing.
        self.get(key)?;
        Node::slot_mut(&mut self.root, self.n_levels_below_root, key).as_mut()
    }

    /// Removes a value and returns it.
    pub fn remove(&mut self, key: u32) -> Option<T> {
        self.get(key)?;
        let removed_value = Node::slot_mut(&mut self.root, self.n_levels_below_root, key).take()?;
        self.n_values -= 1;
        if self.n_values == 0 {
            *self = Self::default();
        }
        Some(removed_value)
    }
}

impl<T: Clone> Node<T> {
    /// Returns the slot of a key below a node. Makes the node if there is none.
    fn slot_mut(node: &mut Option<Self>, level: u32, key: u32) -> &mut Option<T> {
        let node = node.get_or_insert_with(|| match level {
            0 => Self::Leaf(Arc::new([const { None }; NODE_CHILDREN])),
            _ => Self::Branch(Arc::new([const { None }; NODE_CHILDREN])),
        });
        match node {
            Self::Leaf(values) => &mut Arc::make_mut(values)[key_digit_at_level(key, 0)],
            Self::Branch(children) => Self::slot_mut(
                &mut Arc::make_mut(children)[key_digit_at_level(key, level)],
                level - 1,
                key,
            ),
        }
    }
}

/// The digit of a key that selects the child of a node on this level; leaves are level 0.
#[inline]
fn key_digit_at_level(key: u32, level: u32) -> usize {
    (key >> (level * DIGIT_BITS)) as usize % NODE_CHILDREN
}

/// Reports whether a key needs more levels than there are.
#[inline]
fn needs_more_levels(key: u32, n_levels: u32) -> bool {
    let n_bits = (n_levels + 1) * DIGIT_BITS;
    n_bits < u32::BITS && key >> n_bits != 0
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { root: None, n_levels_below_root: 0, n_values: 0, last_assigned_key: 0 }
    }
}

impl<T> Clone for Slab<T> {
    fn clone(&self) -> Self {
        let Self { root, n_levels_below_root: n_levels, n_values, last_assigned_key: last_key } =
            self;
        let (n_levels, n_values, last_key) = (*n_levels, *n_values, *last_key);
        Self {
            root: root.clone(),
            n_levels_below_root: n_levels,
            n_values,
            last_assigned_key: last_key,
        }
    }
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(values) => Self::Leaf(Arc::clone(values)),
            Self::Branch(children) => Self::Branch(Arc::clone(children)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_version_equals_a_standard_map(
            batches in prop::collection::vec((0..400u32, any::<u32>()), 1..12),
        ) {
            let (mut slab, mut model) = (Slab::default(), HashMap::new());
            let mut versions = Vec::new();
            for (n_inserted, seed) in batches {
                for value in 0..n_inserted {
                    let key = slab.insert(value);
                    prop_assert!(model.insert(key, value).is_none());
                    prop_assert!(key as usize <= KEYS_MIN.max(2 * 12 * 400));
                }
                let mut keys: Vec<u32> = model.keys().copied().collect();
                keys.sort_unstable();
                for key in keys.into_iter().filter(|key| (key ^ seed) % 3 == 0) {
                    prop_assert_eq!(slab.remove(key), model.remove(&key));
                    prop_assert_eq!(slab.remove(key), None);
                }
                for (key, value) in &mut model {
                    *value += 1;
                    *slab.get_mut(*key).unwrap() += 1;
                }
                versions.push((slab.clone(), model.clone()));
            }
            for (slab, model) in versions {
                prop_assert_eq!(slab.is_empty(), model.is_empty());
                for key in 0..10_000 {
                    prop_assert_eq!(slab.get(key), model.get(&key));
                }
                prop_assert_eq!(slab.get(u32::MAX), None);
            }
        }
    }

    #[test]
    fn keys_of_removed_values_are_reused() {
        let mut slab = Slab::default();
        let kept_key = slab.insert(0);
        for value in 1..10_000 {
            let key = slab.insert(value);
            assert!(key != kept_key && (key as usize) < KEYS_MIN);
            assert_eq!(slab.remove(key), Some(value));
        }
    }
}
