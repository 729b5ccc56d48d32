//! Pages of entries, found by the hash of what is looked for, of which old versions stay readable.
//!
//! A clone is one pointer. A change copies the path from the root to one page, so it costs the same
//! in a table of a hundred entries and in one of a hundred thousand, and readers of the old version
//! notice nothing. What nobody else holds is changed in place, which makes loading quick. How a page
//! stores its entries is its own matter: the trie only splits those that are full.

use std::sync::Arc;

use persistent::{Shared, own};

/// The most bits of a hash that lead to a page: the highest ones, so that pages have the lowest 32 to
/// themselves. Where there are no more, pages are no longer split.
const BITS_MAX: u32 = 32;

/// Some entries, held by a pointer or two: a clone is cheap.
pub(crate) trait Page: Clone + Default + Shared {
    fn is_empty(&self) -> bool;

    /// Reports whether a page of its own would be better for every few of the entries.
    fn is_full(&self) -> bool;

    /// The entries in pages of their own, each in that which `child` says for its hash.
    fn split<const N: usize>(&self, child: impl Fn(u64) -> usize) -> [Self; N];
}

/// The pages. A full one is split into `N`, which is a power of two: with more, searches are shorter and
/// pages smaller; with less, fewer of them are empty.
///
/// INVARIANT: below a branch some page is not empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trie<P, const N: usize> {
    root: Node<P, N>,
}

#[derive(Debug, Clone)]
enum Node<P, const N: usize> {
    Page(P),
    Branch(Arc<[Node<P, N>; N]>),
}

impl<P: Default, const N: usize> Default for Node<P, N> {
    fn default() -> Self {
        Self::Page(P::default())
    }
}

impl<P: Page, const N: usize> Trie<P, N> {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.root, Node::Page(page) if page.is_empty())
    }

    /// The page on which entries of this hash are.
    #[inline]
    pub(crate) fn page(&self, hash: u64) -> &P {
        let (mut node, mut depth) = (&self.root, 0);
        loop {
            match node {
                Node::Page(page) => return page,
                Node::Branch(children) => node = &children[child_idx::<N>(hash, depth)],
            }
            depth += 1;
        }
    }

    /// The same to add or change an entry. There is room on it for one more.
    pub(crate) fn page_mut(&mut self, hash: u64) -> &mut P {
        let (mut node, mut depth) = (&mut self.root, 0);
        loop {
            if let Node::Page(page) = node
                && page.is_full()
                && (depth + 1) * N.ilog2() <= BITS_MAX
            {
                let children: [P; N] = page.split(|hash| child_idx::<N>(hash, depth));
                *node = Node::Branch(Arc::new(children.map(Node::Page)));
            }
            match node {
                Node::Page(page) => return page,
                Node::Branch(children) => {
                    node = &mut own(children)[child_idx::<N>(hash, depth)];
                }
            }
            depth += 1;
        }
    }

    /// Changes the page of this hash by taking something out.
    pub(crate) fn take<R>(&mut self, hash: u64, take: impl FnOnce(&mut P) -> R) -> R {
        self.root.take(hash, 0, take)
    }

    /// Visits every page, in no particular order.
    pub(crate) fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a P)) {
        self.root.for_each(visit);
    }
}

impl<P: Page, const N: usize> Node<P, N> {
    fn take<R>(&mut self, hash: u64, depth: u32, take: impl FnOnce(&mut P) -> R) -> R {
        match self {
            Self::Page(page) => take(page),
            Self::Branch(children) => {
                let children = own(children);
                let taken = children[child_idx::<N>(hash, depth)].take(hash, depth + 1, take);
                let is_empty = |node: &Self| matches!(node, Self::Page(page) if page.is_empty());
                if children.iter().all(is_empty) {
                    *self = Self::default();
                }
                taken
            }
        }
    }

    fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a P)) {
        match self {
            Self::Page(page) => visit(page),
            Self::Branch(children) => children.iter().for_each(|child| child.for_each(visit)),
        }
    }
}

impl<P: Shared, const N: usize> Shared for Node<P, N> {
    fn n_owners(&self) -> usize {
        match self {
            Self::Page(page) => page.n_owners(),
            Self::Branch(children) => children.n_owners(),
        }
    }
}

/// INVARIANT: less than `N`.
#[inline]
fn child_idx<const N: usize>(hash: u64, depth: u32) -> usize {
    hash.rotate_left((depth + 1) * N.ilog2()) as usize % N
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    impl Page for Arc<Vec<u64>> {
        fn is_empty(&self) -> bool {
            self.as_slice().is_empty()
        }

        fn is_full(&self) -> bool {
            self.len() >= 3
        }

        fn split<const N: usize>(&self, child: impl Fn(u64) -> usize) -> [Self; N] {
            let mut parts: [Self; N] = std::array::from_fn(|_| Self::default());
            for hash in self.iter() {
                Arc::make_mut(&mut parts[child(*hash)]).push(*hash);
            }
            parts
        }
    }

    fn contents(trie: &Trie<Arc<Vec<u64>>, 16>) -> BTreeSet<u64> {
        let mut all = BTreeSet::new();
        trie.for_each(&mut |page| page.iter().for_each(|hash| assert!(all.insert(*hash))));
        all
    }

    /// Few leading bits, so that pages fill and are split to the last.
    fn hash() -> impl Strategy<Value = u64> {
        (0..4u64, 0..40u64).prop_map(|(high, low)| (high << 36) | low)
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_set_and_keeps_old_versions(
            changes in prop::collection::vec((hash(), any::<bool>()), 0..300),
        ) {
            let (mut trie, mut plain) = (Trie::default(), BTreeSet::new());
            let mut versions = Vec::new();
            for (hash, is_added) in changes {
                if is_added && plain.insert(hash) {
                    Arc::make_mut(trie.page_mut(hash)).push(hash);
                } else if !is_added {
                    trie.take(hash, |page| Arc::make_mut(page).retain(|own| *own != hash));
                    plain.remove(&hash);
                }
                prop_assert_eq!(trie.page(hash).contains(&hash), plain.contains(&hash));
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
}
