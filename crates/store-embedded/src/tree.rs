//! The current versions, ordered by key, as a tree of which old copies stay readable.
//!
//! A copy of the tree is one pointer. A write copies the nodes on the way to its leaf unless nobody
//! else holds them, so the writes of one batch share their copies and readers never wait. Branches
//! count what lies under them, so that the rest of a list is counted without walking it.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use store::Key;

use crate::version::Version;

/// Most versions of a leaf and most children of a branch. Small, because a write copies one node per
/// level; a million keys make four levels.
const WIDTH: usize = 32;
/// A node with fewer parts is joined with a neighbour when both fit in one.
const WIDTH_LOW: usize = WIDTH / 4;

/// An ordered set of versions with one version per key.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    root: Arc<Node>,
    len: usize,
}

#[derive(Debug, Clone)]
enum Node {
    Leaf(Vec<Slot>),
    Branch(Vec<Child>),
}

/// A version of a leaf. To find a key by the hashes beside each other reads one version; to find it by
/// halves reads five, which lie anywhere in memory.
#[derive(Debug, Clone)]
struct Slot {
    hash: u64,
    version: Arc<Version>,
}

/// INVARIANT: every key under a child is at least its `first` and less than the `first` of the next.
#[derive(Debug, Clone)]
struct Child {
    first: Key,
    len: usize,
    node: Arc<Node>,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self { root: Arc::default(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Version>> {
        let hash = hash(key);
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(slots) => {
                    let is_it =
                        |slot: &&Slot| slot.hash == hash && slot.version.key.as_str() == key;
                    return slots.iter().find(is_it).map(|slot| &slot.version);
                }
                Node::Branch(children) => node = &children.get(child_of(children, key))?.node,
            }
        }
    }

    /// Adds a version and returns the one it replaces.
    pub(crate) fn insert(&mut self, version: Arc<Version>) -> Option<Arc<Version>> {
        let (replaced, split) = insert(Arc::make_mut(&mut self.root), version);
        if replaced.is_none() {
            self.len += 1;
        }
        if let Some(right) = split
            && let Some(first) = self.root.first()
        {
            let left = Child {
                first: first.clone(),
                len: self.len - right.len,
                node: std::mem::take(&mut self.root),
            };
            self.root = Arc::new(Node::Branch(vec![left, right]));
        }
        replaced
    }

    /// Removes the version of a key and returns it.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Arc<Version>> {
        // Looking first keeps a miss from copying anything.
        self.get(key)?;
        let removed = remove(Arc::make_mut(&mut self.root), key)?;
        self.len -= 1;
        while let Node::Branch(children) = &*self.root
            && let [only] = children.as_slice()
        {
            self.root = only.node.clone();
        }
        if self.len == 0 {
            *self = Self::new();
        }
        Some(removed)
    }

    /// How many keys are less than this one.
    pub(crate) fn rank(&self, key: &str) -> usize {
        let mut rank = 0;
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(slots) => {
                    return rank + search(slots, key).unwrap_or_else(|at| at);
                }
                Node::Branch(children) => {
                    let at = child_of(children, key);
                    rank += children.iter().take(at).map(|child| child.len).sum::<usize>();
                    let Some(child) = children.get(at) else { return rank };
                    node = &child.node;
                }
            }
        }
    }

    /// The versions whose key is not less than this one, in order.
    pub(crate) fn iter_from(&self, key: &str) -> Iter<'_> {
        let mut branches = Vec::new();
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(slots) => {
                    let at = search(slots, key).unwrap_or_else(|at| at);
                    let leaf = slots.get(at..).unwrap_or_default().iter();
                    return Iter { branches, leaf };
                }
                Node::Branch(children) => {
                    let at = child_of(children, key);
                    let mut rest = children.get(at..).unwrap_or_default().iter();
                    let Some(child) = rest.next() else {
                        return Iter { branches, leaf: [].iter() };
                    };
                    branches.push(rest);
                    node = &child.node;
                }
            }
        }
    }
}

/// Versions in the order of their keys.
#[derive(Debug)]
pub(crate) struct Iter<'a> {
    branches: Vec<std::slice::Iter<'a, Child>>,
    leaf: std::slice::Iter<'a, Slot>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Arc<Version>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(slot) = self.leaf.next() {
                return Some(&slot.version);
            }
            let child = loop {
                match self.branches.last_mut()?.next() {
                    Some(child) => break child,
                    None => self.branches.pop(),
                };
            };
            let mut node = &*child.node;
            while let Node::Branch(children) = node {
                let mut rest = children.iter();
                node = &rest.next()?.node;
                self.branches.push(rest);
            }
            if let Node::Leaf(slots) = node {
                self.leaf = slots.iter();
            }
        }
    }
}

fn search(slots: &[Slot], key: &str) -> Result<usize, usize> {
    slots.binary_search_by(|slot| slot.version.key.as_str().cmp(key))
}

/// Keys with equal hashes cost a comparison each and nothing else, so the seed need not be secret.
fn hash(key: &str) -> u64 {
    FixedState::default().hash_one(key)
}

/// The child under which a key is or would be.
fn child_of(children: &[Child], key: &str) -> usize {
    children.partition_point(|child| child.first.as_str() <= key).saturating_sub(1)
}

/// Inserts under a node; a node that became too wide gives its right part away.
fn insert(node: &mut Node, version: Arc<Version>) -> (Option<Arc<Version>>, Option<Child>) {
    match node {
        Node::Leaf(slots) => match search(slots, &version.key) {
            Ok(at) => {
                let slot = slots.get_mut(at);
                (slot.map(|slot| std::mem::replace(&mut slot.version, version)), None)
            }
            Err(at) => {
                slots.reserve_exact(1);
                slots.insert(at, Slot { hash: hash(&version.key), version });
                (None, split_leaf(slots, at))
            }
        },
        Node::Branch(children) => {
            let at = child_of(children, &version.key);
            let Some(child) = children.get_mut(at) else { return (None, None) };
            if version.key < child.first {
                child.first = version.key.clone();
            }
            let (replaced, split) = insert(Arc::make_mut(&mut child.node), version);
            if replaced.is_none() {
                child.len += 1;
            }
            if let Some(right) = split {
                child.len -= right.len;
                children.reserve_exact(1);
                children.insert(at + 1, right);
            }
            (replaced, split_branch(children))
        }
    }
}

/// Keys often come in rising order, and then the left part is left full rather than half.
fn split_leaf(slots: &mut Vec<Slot>, inserted: usize) -> Option<Child> {
    if slots.len() <= WIDTH {
        return None;
    }
    let at = if inserted + 1 == slots.len() { inserted } else { slots.len() / 2 };
    let right = slots.split_off(at);
    slots.shrink_to_fit();
    let first = right.first()?.version.key.clone();
    Some(Child { first, len: right.len(), node: Arc::new(Node::Leaf(right)) })
}

fn split_branch(children: &mut Vec<Child>) -> Option<Child> {
    if children.len() <= WIDTH {
        return None;
    }
    let right = children.split_off(children.len() / 2);
    children.shrink_to_fit();
    let first = right.first()?.first.clone();
    let len = right.iter().map(|child| child.len).sum();
    Some(Child { first, len, node: Arc::new(Node::Branch(right)) })
}

fn remove(node: &mut Node, key: &str) -> Option<Arc<Version>> {
    match node {
        Node::Leaf(slots) => {
            let at = search(slots, key).ok()?;
            Some(slots.remove(at).version)
        }
        Node::Branch(children) => {
            let at = child_of(children, key);
            let child = children.get_mut(at)?;
            let removed = remove(Arc::make_mut(&mut child.node), key)?;
            child.len -= 1;
            if child.len == 0 {
                children.remove(at);
            } else if child.node.width() < WIDTH_LOW {
                join(children, at);
            }
            Some(removed)
        }
    }
}

/// Joins a narrow child with a neighbour, if they fit in one node.
fn join(children: &mut Vec<Child>, at: usize) {
    let left = if at + 1 < children.len() { at } else { at.saturating_sub(1) };
    let Some([one, other]) = children.get(left..left + 2) else { return };
    if one.node.width() + other.node.width() > WIDTH {
        return;
    }
    let right = children.remove(left + 1);
    let Some(one) = children.get_mut(left) else { return };
    one.len += right.len;
    match (Arc::make_mut(&mut one.node), &*right.node) {
        (Node::Leaf(slots), Node::Leaf(more)) => slots.extend(more.iter().cloned()),
        (Node::Branch(parts), Node::Branch(more)) => parts.extend(more.iter().cloned()),
        // INVARIANT: all leaves are at one depth, so neighbours are of one kind.
        (Node::Leaf(_), Node::Branch(_)) | (Node::Branch(_), Node::Leaf(_)) => {}
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::Leaf(Vec::new())
    }
}

impl Node {
    /// A lower bound of its keys; absent when it has none.
    fn first(&self) -> Option<&Key> {
        match self {
            Self::Leaf(slots) => slots.first().map(|slot| &slot.version.key),
            Self::Branch(children) => children.first().map(|child| &child.first),
        }
    }

    fn width(&self) -> usize {
        match self {
            Self::Leaf(slots) => slots.len(),
            Self::Branch(children) => children.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use proptest::prelude::*;
    use store::Revision;

    use super::*;

    fn version(n: u16, mod_rev: u64) -> Arc<Version> {
        Arc::new(Version {
            key: Key::new(&format!("/{n:05}")).unwrap(),
            value: Bytes::new(),
            mod_rev: Revision::new(mod_rev),
            create_rev: Revision::new(mod_rev),
            expires_at_ms: None,
        })
    }

    /// Checks the shape: counts, order of bounds, equal depth, no node too wide or empty.
    fn check(node: &Node, is_root: bool) -> (usize, usize) {
        assert!(node.width() <= WIDTH);
        match node {
            Node::Leaf(slots) => {
                assert!(is_root || !slots.is_empty());
                (1, slots.len())
            }
            Node::Branch(children) => {
                assert!(!children.is_empty());
                let parts: Vec<(usize, usize)> =
                    children.iter().map(|child| check(&child.node, false)).collect();
                for (child, (depth, len)) in children.iter().zip(&parts) {
                    assert_eq!((child.len, parts[0].0), (*len, *depth));
                }
                assert!(children.windows(2).all(|pair| pair[0].first < pair[1].first));
                (parts[0].0 + 1, parts.iter().map(|(_, len)| len).sum())
            }
        }
    }

    fn agree(tree: &Tree, model: &BTreeMap<String, Arc<Version>>, probe: u16) {
        assert_eq!(check(&tree.root, true).1, tree.len());
        assert_eq!(tree.len(), model.len());
        let from = format!("/{probe:05}");
        assert!(tree.iter_from(&from).eq(model.range(from.clone()..).map(|(_, version)| version)));
        assert_eq!(tree.rank(&from), model.range(..from.clone()).count());
        assert_eq!(tree.get(&from), model.get(&from));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn random_writes_agree_with_a_plain_map(
            steps in proptest::collection::vec((any::<bool>(), 0..400_u16), 1..1500),
            probe in 0..400_u16,
        ) {
            let mut tree = Tree::new();
            let mut model = BTreeMap::new();
            let mut old = None;
            for (at, (is_insert, n)) in steps.iter().enumerate() {
                let version = version(*n, at as u64);
                let key = version.key.to_string();
                if *is_insert {
                    prop_assert_eq!(tree.insert(version.clone()), model.insert(key, version));
                } else {
                    prop_assert_eq!(tree.remove(&key), model.remove(&key));
                }
                if at == steps.len() / 2 {
                    old = Some((tree.clone(), model.clone()));
                }
            }
            agree(&tree, &model, probe);
            let (tree, model) = old.expect("there is a middle");
            agree(&tree, &model, probe);
        }
    }

    #[test]
    fn many_levels_grow_and_shrink() {
        let mut tree = Tree::new();
        for n in 0..40_000 {
            tree.insert(version(n, 1));
        }
        assert_eq!(check(&tree.root, true), (4, 40_000));
        assert_eq!(tree.rank("/12345"), 12_345);
        for n in 0..40_000 {
            assert!(tree.remove(&format!("/{n:05}")).is_some());
        }
        assert_eq!(check(&tree.root, true), (1, 0));
        assert!(tree.remove("/00001").is_none());
    }
}
