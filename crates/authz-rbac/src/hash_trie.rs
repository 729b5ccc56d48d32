//! A map from names to values of which old versions stay readable.
//!
//! A clone is one pointer. A change copies the path from the root to one leaf, so it costs the same
//! in a map of a hundred names and in one of a hundred thousand, and readers of the old version
//! notice nothing. Nodes that nobody else holds are changed in place, which makes loading quick.

use std::hash::BuildHasher;
use std::mem::take;
use std::sync::Arc;

use foldhash::fast::RandomState;

const BITS: u32 = 5;
const FANOUT: usize = 1 << BITS;

/// The most entries of a leaf that can still be split.
const LEAF_ENTRIES_MAX: usize = 8;

/// Below this depth the bits of the hash are used up and leaves are no longer split.
const SHIFT_MAX: u32 = u64::BITS - u64::BITS % BITS - BITS;

/// The map. Names are hashed with a seed of its own, so that nobody can choose names that collide.
#[derive(Debug, Clone)]
pub(crate) struct HashTrie<V> {
    root: Option<Arc<Node<V>>>,
    hasher: RandomState,
}

#[derive(Debug, Clone)]
enum Node<V> {
    Leaf(Vec<Entry<V>>),
    Branch(Box<[Option<Arc<Node<V>>>; FANOUT]>),
}

#[derive(Debug, Clone)]
struct Entry<V> {
    hash: u64,
    name: Arc<str>,
    value: V,
}

impl<V> Default for HashTrie<V> {
    fn default() -> Self {
        Self { root: None, hasher: RandomState::default() }
    }
}

impl<V> HashTrie<V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&V> {
        let mut node = self.root.as_deref()?;
        let hash = self.hasher.hash_one(name);
        let mut shift = 0;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let entry = entries.iter().find(|entry| entry.is(hash, name))?;
                    return Some(&entry.value);
                }
                Node::Branch(children) => {
                    node = children[child_idx(hash, shift)].as_deref()?;
                    shift += BITS;
                }
            }
        }
    }

    /// Visits every entry, in no particular order.
    pub(crate) fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a V)) {
        if let Some(root) = &self.root {
            root.for_each(visit);
        }
    }
}

impl<V: Clone> HashTrie<V> {
    /// The value of a name, which is made if it is missing.
    pub(crate) fn slot(&mut self, name: &str, make: impl FnOnce() -> V) -> &mut V {
        let hash = self.hasher.hash_one(name);
        let mut shift = 0;
        let mut node = self.root.get_or_insert_with(Node::empty);
        loop {
            let own = Arc::make_mut(node);
            if let Node::Leaf(entries) = own
                && entries.len() >= LEAF_ENTRIES_MAX
                && shift <= SHIFT_MAX
                && !entries.iter().any(|entry| entry.is(hash, name))
            {
                *own = Node::split(take(entries), shift);
            }
            match own {
                Node::Leaf(entries) => {
                    let found = entries.iter().position(|entry| entry.is(hash, name));
                    let at = found.unwrap_or_else(|| {
                        entries.push(Entry { hash, name: name.into(), value: make() });
                        entries.len() - 1
                    });
                    return &mut entries[at].value;
                }
                Node::Branch(children) => {
                    node = children[child_idx(hash, shift)].get_or_insert_with(Node::empty);
                    shift += BITS;
                }
            }
        }
    }

    /// Sets the value of a name.
    pub(crate) fn put(&mut self, name: &str, value: V) {
        // Values are pointers here, so that the clone for a new slot costs next to nothing.
        let slot = self.slot(name, || value.clone());
        *slot = value;
    }

    /// Takes a name out; `None` if it is not there, and then nothing is copied.
    pub(crate) fn remove(&mut self, name: &str) -> Option<V> {
        self.get(name)?;
        let hash = self.hasher.hash_one(name);
        let removed = Node::remove(self.root.as_mut()?, hash, name, 0);
        if self.root.as_ref().is_some_and(|root| root.is_empty()) {
            self.root = None;
        }
        removed
    }
}

impl<V> Entry<V> {
    fn is(&self, hash: u64, name: &str) -> bool {
        self.hash == hash && *self.name == *name
    }
}

impl<V> Node<V> {
    fn empty() -> Arc<Self> {
        Arc::new(Self::Leaf(Vec::new()))
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Leaf(entries) => entries.is_empty(),
            Self::Branch(children) => children.iter().all(Option::is_none),
        }
    }

    fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a V)) {
        match self {
            Self::Leaf(entries) => {
                for entry in entries {
                    visit(&entry.name, &entry.value);
                }
            }
            Self::Branch(children) => {
                for child in children.iter().flatten() {
                    child.for_each(visit);
                }
            }
        }
    }
}

impl<V: Clone> Node<V> {
    fn split(entries: Vec<Entry<V>>, shift: u32) -> Self {
        let mut leaves: [Vec<Entry<V>>; FANOUT] = std::array::from_fn(|_| Vec::new());
        for entry in entries {
            leaves[child_idx(entry.hash, shift)].push(entry);
        }
        let children = leaves.map(|leaf| (!leaf.is_empty()).then(|| Arc::new(Self::Leaf(leaf))));
        Self::Branch(Box::new(children))
    }

    fn remove(node: &mut Arc<Self>, hash: u64, name: &str, shift: u32) -> Option<V> {
        match Arc::make_mut(node) {
            Self::Leaf(entries) => {
                let at = entries.iter().position(|entry| entry.is(hash, name))?;
                Some(entries.swap_remove(at).value)
            }
            Self::Branch(children) => {
                let child = &mut children[child_idx(hash, shift)];
                let removed = Self::remove(child.as_mut()?, hash, name, shift + BITS);
                if child.as_ref().is_some_and(|child| child.is_empty()) {
                    *child = None;
                }
                removed
            }
        }
    }
}

/// INVARIANT: less than [`FANOUT`]. Past the last bit of the hash there are only leaves.
fn child_idx(hash: u64, shift: u32) -> usize {
    (hash.checked_shr(shift).unwrap_or(0) % FANOUT as u64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn contents(trie: &HashTrie<u32>) -> BTreeMap<String, u32> {
        let mut all = BTreeMap::new();
        trie.for_each(&mut |name, value| assert!(all.insert(name.to_owned(), *value).is_none()));
        all
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_map_and_keeps_old_versions(
            changes in prop::collection::vec((0..200u32, prop::option::weighted(0.7, any::<u32>())), 0..600),
        ) {
            let (mut trie, mut plain) = (HashTrie::default(), BTreeMap::new());
            let mut versions = Vec::new();
            for (key, value) in changes {
                let name = format!("name-{key}");
                match value {
                    Some(value) => {
                        trie.put(&name, value);
                        plain.insert(name.clone(), value);
                    }
                    None => prop_assert_eq!(trie.remove(&name), plain.remove(&name)),
                }
                prop_assert_eq!(trie.get(&name), plain.get(&name));
                prop_assert_eq!(trie.is_empty(), plain.is_empty());
                if versions.len() < 20 {
                    versions.push((trie.clone(), plain.clone()));
                }
            }
            versions.push((trie, plain));
            for (trie, plain) in versions {
                prop_assert_eq!(contents(&trie), plain);
            }
        }
    }

    #[test]
    fn names_of_one_hash_share_the_last_leaf() {
        let mut node = Node::empty();
        let entry = |n: u32| Entry { hash: 7, name: n.to_string().into(), value: n };
        if let Node::Leaf(entries) = Arc::make_mut(&mut node) {
            entries.extend((0..20).map(entry));
        }
        let mut trie = HashTrie { root: Some(node), hasher: RandomState::default() };
        // Splitting can not part them, and must end.
        let Node::Branch(_) = Node::split((0..20).map(entry).collect(), SHIFT_MAX) else {
            panic!("not split");
        };
        trie.put("other", 99);
        assert_eq!(contents(&trie).len(), 21);
    }
}
