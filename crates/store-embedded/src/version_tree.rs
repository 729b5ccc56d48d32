//! The current versions ordered by key: a copy-on-write B-tree.
//!
//! Cloning the tree copies one pointer. A write copies the shared nodes on the path to its leaf; the writes
//! of one batch share these copies, and readers never block. Branches hold the number of keys below them,
//! so that the remaining items of a list are counted without walking them.

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use store::Key;

use crate::version::Version;

/// Maximum versions of a leaf and children of a branch. Small, because a write copies one node per level; a
/// million keys make four levels.
const WIDTH: usize = 32;
/// A node with fewer entries is merged with a neighbour if both fit into one.
const WIDTH_MIN: usize = WIDTH / 4;

/// An ordered set of versions with one version per key.
#[derive(Debug, Clone)]
pub(crate) struct VersionTree {
    root: Arc<Node>,
    len: usize,
}

#[derive(Debug, Clone)]
enum Node {
    Leaf(Vec<LeafEntry>),
    Branch(TreeBranch),
}

/// A version of a leaf with the hash of its key. Comparing the adjacent hashes reads one version; a binary
/// search would read five, scattered in memory.
#[derive(Debug, Clone)]
struct LeafEntry {
    hash: u64,
    version: Arc<Version>,
}

/// An inner node. Keys share long prefixes, so a lookup compares the eight bytes after the common prefix, which
/// are adjacent in memory, and reads the keys only if those are equal.
///
/// INVARIANT: has at least one child; `common_prefix_len` and each `key_head_number` are as [`TreeBranch::new`] makes them, or
/// were so with more children.
#[derive(Debug, Clone)]
struct TreeBranch {
    common_prefix_len: usize,
    children: Vec<TreeChild>,
}

/// A child of a branch.
///
/// INVARIANT: every key under a child is at least its `first_key` and less than the `first_key` of the next child.
#[derive(Debug, Clone)]
struct TreeChild {
    key_head_number: u64,
    first_key: Key,
    len: usize,
    node: Arc<Node>,
}

impl TreeBranch {
    fn new(children: Vec<TreeChild>) -> Self {
        let mut branch = Self { common_prefix_len: 0, children };
        branch.recompute_key_heads();
        branch
    }

    /// Restores the invariant after a child was added or has a new `first_key`.
    fn recompute_key_heads(&mut self) {
        let (Some(first), Some(last)) = (self.children.first(), self.children.last()) else {
            return;
        };
        let pairs = first.first_key.bytes().zip(last.first_key.bytes());
        self.common_prefix_len = pairs.take_while(|(one, other)| one == other).count();
        for child in &mut self.children {
            child.key_head_number = key_head_number(&child.first_key, self.common_prefix_len);
        }
    }

    /// The index of the child that holds or would hold a key.
    fn child_index(&self, key: &str) -> usize {
        let Some(first) = self.children.first() else { return 0 };
        let common = first.first_key.as_bytes().get(..self.common_prefix_len).unwrap_or_default();
        let begin = key.as_bytes().get(..self.common_prefix_len).unwrap_or(key.as_bytes());
        match begin.cmp(common) {
            Ordering::Less => 0,
            Ordering::Greater => self.children.len() - 1,
            Ordering::Equal => {
                let head = key_head_number(key, self.common_prefix_len);
                let is_before = |child: &TreeChild| {
                    child.key_head_number < head
                        || (child.key_head_number == head && child.first_key.as_str() <= key)
                };
                self.children.partition_point(is_before).saturating_sub(1)
            }
        }
    }
}

/// Eight bytes of a key as a number with the same order. Keys have no NUL, so missing bytes compare as
/// less than any byte.
fn key_head_number(key: &str, skip: usize) -> u64 {
    let rest = key.as_bytes().get(skip..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(rest).for_each(|(byte, of_key)| *byte = *of_key);
    u64::from_be_bytes(bytes)
}

impl VersionTree {
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
                Node::Leaf(entries) => {
                    let is_it = |entry: &&LeafEntry| {
                        entry.hash == hash && entry.version.key.as_str() == key
                    };
                    return entries.iter().find(is_it).map(|entry| &entry.version);
                }
                Node::Branch(branch) => node = &branch.children.get(branch.child_index(key))?.node,
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
            && let Some(first) = self.root.first_key()
        {
            let left = TreeChild {
                key_head_number: 0,
                first_key: first.clone(),
                len: self.len - right.len,
                node: std::mem::take(&mut self.root),
            };
            self.root = Arc::new(Node::Branch(TreeBranch::new(vec![left, right])));
        }
        replaced
    }

    /// Removes the version of a key and returns it.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Arc<Version>> {
        // A lookup first avoids copying nodes for a missing key.
        self.get(key)?;
        let removed = remove(Arc::make_mut(&mut self.root), key)?;
        self.len -= 1;
        while let Node::Branch(branch) = &*self.root
            && let [only] = branch.children.as_slice()
        {
            self.root = only.node.clone();
        }
        if self.len == 0 {
            *self = Self::new();
        }
        Some(removed)
    }

    /// Counts the keys that are less than this one.
    pub(crate) fn count_keys_before(&self, key: &str) -> usize {
        let mut n_before = 0;
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    return n_before + search_leaf(entries, key).unwrap_or_else(|at| at);
                }
                Node::Branch(branch) => {
                    let at = branch.child_index(key);
                    let children = &branch.children;
                    n_before += children.iter().take(at).map(|child| child.len).sum::<usize>();
                    let Some(child) = children.get(at) else { return n_before };
                    node = &child.node;
                }
            }
        }
    }

    /// The versions whose key is not less than this one, in order.
    pub(crate) fn iter_from(&self, key: &str) -> VersionIter<'_> {
        let mut branches = Vec::new();
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = search_leaf(entries, key).unwrap_or_else(|at| at);
                    let leaf = entries.get(at..).unwrap_or_default().iter();
                    return VersionIter { branch_iters: branches, leaf_iter: leaf };
                }
                Node::Branch(branch) => {
                    let at = branch.child_index(key);
                    let mut rest = branch.children.get(at..).unwrap_or_default().iter();
                    let Some(child) = rest.next() else {
                        return VersionIter { branch_iters: branches, leaf_iter: [].iter() };
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
pub(crate) struct VersionIter<'a> {
    branch_iters: Vec<std::slice::Iter<'a, TreeChild>>,
    leaf_iter: std::slice::Iter<'a, LeafEntry>,
}

impl<'a> Iterator for VersionIter<'a> {
    type Item = &'a Arc<Version>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.leaf_iter.next() {
                return Some(&entry.version);
            }
            let child = loop {
                match self.branch_iters.last_mut()?.next() {
                    Some(child) => break child,
                    None => self.branch_iters.pop(),
                };
            };
            let mut node = &*child.node;
            while let Node::Branch(branch) = node {
                let mut rest = branch.children.iter();
                node = &rest.next()?.node;
                self.branch_iters.push(rest);
            }
            if let Node::Leaf(entries) = node {
                self.leaf_iter = entries.iter();
            }
        }
    }
}

fn search_leaf(entries: &[LeafEntry], key: &str) -> Result<usize, usize> {
    entries.binary_search_by(|entry| entry.version.key.as_str().cmp(key))
}

/// A hash collision costs one comparison, so the seed need not be secret.
fn hash(key: &str) -> u64 {
    FixedState::default().hash_one(key)
}

/// Inserts below a node. Returns the replaced version, and the right half of a node that was split.
fn insert(node: &mut Node, version: Arc<Version>) -> (Option<Arc<Version>>, Option<TreeChild>) {
    match node {
        Node::Leaf(entries) => match search_leaf(entries, &version.key) {
            Ok(at) => {
                let entry = entries.get_mut(at);
                (entry.map(|entry| std::mem::replace(&mut entry.version, version)), None)
            }
            Err(at) => {
                entries.reserve_exact(1);
                entries.insert(at, LeafEntry { hash: hash(&version.key), version });
                (None, split_leaf(entries, at))
            }
        },
        Node::Branch(branch) => {
            let at = branch.child_index(&version.key);
            let Some(child) = branch.children.get_mut(at) else { return (None, None) };
            let is_lower = version.key < child.first_key;
            if is_lower {
                child.first_key = version.key.clone();
            }
            let (replaced, split) = insert(Arc::make_mut(&mut child.node), version);
            if replaced.is_none() {
                child.len += 1;
            }
            let is_split = split.is_some();
            if let Some(right) = split {
                child.len -= right.len;
                branch.children.reserve_exact(1);
                branch.children.insert(at + 1, right);
            }
            if is_lower || is_split {
                branch.recompute_key_heads();
            }
            (replaced, split_branch(branch))
        }
    }
}

/// Splits a leaf. Keys often arrive in ascending order; then the left part stays full.
fn split_leaf(entries: &mut Vec<LeafEntry>, inserted: usize) -> Option<TreeChild> {
    if entries.len() <= WIDTH {
        return None;
    }
    let at = if inserted + 1 == entries.len() { inserted } else { entries.len() / 2 };
    let right = entries.split_off(at);
    entries.shrink_to_fit();
    let first_key = right.first()?.version.key.clone();
    Some(TreeChild {
        key_head_number: 0,
        first_key,
        len: right.len(),
        node: Arc::new(Node::Leaf(right)),
    })
}

fn split_branch(branch: &mut TreeBranch) -> Option<TreeChild> {
    let n_children = branch.children.len();
    if n_children <= WIDTH {
        return None;
    }
    let right = branch.children.split_off(n_children / 2);
    branch.children.shrink_to_fit();
    branch.recompute_key_heads();
    let first_key = right.first()?.first_key.clone();
    let len = right.iter().map(|child| child.len).sum();
    Some(TreeChild {
        key_head_number: 0,
        first_key,
        len,
        node: Arc::new(Node::Branch(TreeBranch::new(right))),
    })
}

fn remove(node: &mut Node, key: &str) -> Option<Arc<Version>> {
    match node {
        Node::Leaf(entries) => {
            let at = search_leaf(entries, key).ok()?;
            Some(entries.remove(at).version)
        }
        Node::Branch(branch) => {
            let at = branch.child_index(key);
            let children = &mut branch.children;
            let child = children.get_mut(at)?;
            let removed = remove(Arc::make_mut(&mut child.node), key)?;
            child.len -= 1;
            if child.len == 0 {
                children.remove(at);
            } else if child.node.n_entries() < WIDTH_MIN {
                merge_narrow_child(children, at);
            }
            Some(removed)
        }
    }
}

/// Merges a narrow child with a neighbour if both fit into one node.
fn merge_narrow_child(children: &mut Vec<TreeChild>, at: usize) {
    let left = if at + 1 < children.len() { at } else { at.saturating_sub(1) };
    let Some([one, other]) = children.get(left..left + 2) else { return };
    if one.node.n_entries() + other.node.n_entries() > WIDTH {
        return;
    }
    let right = children.remove(left + 1);
    let Some(one) = children.get_mut(left) else { return };
    one.len += right.len;
    match (Arc::make_mut(&mut one.node), &*right.node) {
        (Node::Leaf(entries), Node::Leaf(more)) => entries.extend(more.iter().cloned()),
        (Node::Branch(parts), Node::Branch(more)) => {
            parts.children.extend(more.children.iter().cloned());
            parts.recompute_key_heads();
        }
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
    /// A lower bound of the keys of the node; `None` if it has none.
    fn first_key(&self) -> Option<&Key> {
        match self {
            Self::Leaf(entries) => entries.first().map(|entry| &entry.version.key),
            Self::Branch(branch) => branch.children.first().map(|child| &child.first_key),
        }
    }

    fn n_entries(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Branch(branch) => branch.children.len(),
        }
    }
}

#[cfg(test)]
mod tests;
