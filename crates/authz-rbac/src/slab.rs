//! A list of values with small numbers of which old versions stay readable.
//!
//! Four bytes that stand for an object fit where a pointer does not, and copying them touches no
//! counter of references. A value keeps its number until it is removed; then the number is used
//! again, so that the list is never longer than it was at its fullest.

use std::sync::Arc;

use persistent::{Shared, own, read_owners};

const BITS: u32 = 6;
const FANOUT: usize = 1 << BITS;

/// A change copies a leaf, which costs a look at memory for each value that counts references.
const LEAF_BITS: u32 = 5;
const LEAF_LEN: usize = 1 << LEAF_BITS;

/// The list.
#[derive(Debug, Clone)]
pub(crate) struct Slab<T> {
    root: Option<Node<T>>,
    /// How many branches lead to a leaf.
    height: u32,
    /// How many numbers were ever given out. Memory ends long before they do.
    n_numbers: u32,
    /// The number that is used again next.
    vacant: Option<u32>,
}

#[derive(Debug)]
enum Node<T> {
    Leaf(Arc<Leaf<T>>),
    Branch(Arc<[Option<Node<T>>; FANOUT]>),
}

/// Values side by side.
#[derive(Debug)]
pub(crate) struct Leaf<T>([Slot<T>; LEAF_LEN]);

#[derive(Debug, Clone)]
enum Slot<T> {
    Used(T),
    /// Used again before the given one.
    Vacant(Option<u32>),
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(slots) => Self::Leaf(Arc::clone(slots)),
            Self::Branch(children) => Self::Branch(Arc::clone(children)),
        }
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { root: None, height: 0, n_numbers: 0, vacant: None }
    }
}

impl<T> Slab<T> {
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.leaf(number)?.get(number as usize)
    }

    /// The leaf of a number.
    #[inline]
    pub(crate) fn leaf(&self, number: u32) -> Option<&Arc<Leaf<T>>> {
        if number >= self.n_numbers {
            return None;
        }
        let (mut node, mut height) = (self.root.as_ref()?, self.height);
        loop {
            match node {
                Node::Leaf(leaf) => return Some(leaf),
                Node::Branch(children) => {
                    node = children[child_idx(number, height)].as_ref()?;
                    height = height.saturating_sub(1);
                }
            }
        }
    }
}

impl<T> Leaf<T> {
    /// How many values there may be.
    pub(crate) const LEN: usize = LEAF_LEN;

    /// The value at a place, or the one of a number whose leaf this is.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        match &self.0[place % LEAF_LEN] {
            Slot::Used(value) => Some(value),
            Slot::Vacant(_) => None,
        }
    }
}

impl<T: Clone + Shared> Slab<T> {
    /// Adds a value and returns its number; `None` if there are no more numbers.
    pub(crate) fn insert(&mut self, value: T) -> Option<u32> {
        if let Some(number) = self.vacant {
            let slot = self.slot_mut(number)?;
            if let Slot::Vacant(next) = *slot {
                *slot = Slot::Used(value);
                self.vacant = next;
                return Some(number);
            }
        }
        let number = self.n_numbers;
        self.n_numbers = number.checked_add(1)?;
        *self.slot_mut(number)? = Slot::Used(value);
        Some(number)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match self.slot_mut(number)? {
            Slot::Used(value) => Some(value),
            Slot::Vacant(_) => None,
        }
    }

    /// Takes a value out; `None` if it is not there, and then nothing is copied.
    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        self.get(number)?;
        let vacant = Slot::Vacant(self.vacant);
        let removed = std::mem::replace(self.slot_mut(number)?, vacant);
        self.vacant = Some(number);
        match removed {
            Slot::Used(value) => Some(value),
            Slot::Vacant(_) => None,
        }
    }

    /// The slot of a number that was given out; `None` for any other.
    fn slot_mut(&mut self, number: u32) -> Option<&mut Slot<T>> {
        if number >= self.n_numbers {
            return None;
        }
        while number.checked_shr(end_bit(self.height)).unwrap_or(0) > 0 {
            let mut children = [const { None }; FANOUT];
            children[0] = self.root.take();
            self.root = Some(Node::Branch(Arc::new(children)));
            self.height += 1;
        }
        let mut height = self.height;
        let mut node = self.root.get_or_insert_with(|| Node::empty(height));
        loop {
            match node {
                Node::Leaf(leaf) => {
                    return Some(&mut Arc::make_mut(leaf).0[number as usize % LEAF_LEN]);
                }
                Node::Branch(children) => {
                    let child = &mut own(children)[child_idx(number, height)];
                    height = height.saturating_sub(1);
                    node = child.get_or_insert_with(|| Node::empty(height));
                }
            }
        }
    }
}

impl<T: Clone + Shared> Clone for Leaf<T> {
    fn clone(&self) -> Self {
        read_owners(&self.0);
        Self(self.0.clone())
    }
}

impl<T: Shared> Shared for Slot<T> {
    fn n_owners(&self) -> usize {
        match self {
            Self::Used(value) => value.n_owners(),
            Self::Vacant(_) => 0,
        }
    }
}

impl<T> Shared for Node<T> {
    fn n_owners(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.n_owners(),
            Self::Branch(children) => children.n_owners(),
        }
    }
}

impl<T> Node<T> {
    fn empty(height: u32) -> Self {
        match height {
            0 => Self::Leaf(Arc::new(Leaf([const { Slot::Vacant(None) }; LEAF_LEN]))),
            _ => Self::Branch(Arc::new([const { None }; FANOUT])),
        }
    }
}

/// How many bits of a number lead through a node at `height`, which has `height` branches below it.
fn end_bit(height: u32) -> u32 {
    LEAF_BITS + height * BITS
}

/// INVARIANT: less than [`FANOUT`]. For a branch, so `height` is not 0.
#[inline]
fn child_idx(number: u32, height: u32) -> usize {
    (number >> (end_bit(height) - BITS)) as usize % FANOUT
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Change {
        Insert(u64),
        Set(u32, u64),
        Remove(u32),
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            4 => any::<u64>().prop_map(Change::Insert),
            1 => (0..200u32, any::<u64>()).prop_map(|(number, value)| Change::Set(number, value)),
            2 => (0..200u32).prop_map(Change::Remove),
        ]
    }

    fn contents(slab: &Slab<u64>, end: usize) -> Vec<Option<u64>> {
        (0..end as u32).map(|number| slab.get(number).copied()).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_list_and_keeps_old_versions(
            changes in prop::collection::vec(change(), 0..500),
        ) {
            let (mut slab, mut plain) = (Slab::default(), Vec::new());
            let mut versions = Vec::new();
            for (step, change) in changes.into_iter().enumerate() {
                match change {
                    Change::Insert(value) => {
                        let number = slab.insert(value).unwrap() as usize;
                        // Numbers are used again before new ones are given out.
                        let is_new = number == plain.len();
                        prop_assert_eq!(is_new, plain.iter().all(Option::is_some));
                        if is_new {
                            plain.push(None);
                        }
                        prop_assert_eq!(plain[number], None);
                        plain[number] = Some(value);
                    }
                    Change::Set(number, value) => {
                        let slot = slab.get_mut(number);
                        let own = plain.get_mut(number as usize).and_then(Option::as_mut);
                        prop_assert_eq!(slot.is_some(), own.is_some());
                        slot.into_iter().chain(own).for_each(|slot| *slot = value);
                    }
                    Change::Remove(number) => {
                        let own = plain.get_mut(number as usize).and_then(Option::take);
                        prop_assert_eq!(slab.remove(number), own);
                    }
                }
                if step % 50 == 0 {
                    versions.push((slab.clone(), plain.clone()));
                }
            }
            versions.push((slab, plain));
            for (slab, plain) in versions {
                prop_assert_eq!(slab.n_numbers as usize, plain.len());
                prop_assert_eq!(contents(&slab, plain.len()), plain);
            }
        }
    }

    #[test]
    fn branches_are_added_as_the_list_grows() {
        let mut slab = Slab::default();
        let n = (FANOUT * FANOUT + 2) as u32;
        (0..n).for_each(|number| assert_eq!(slab.insert(number), Some(number)));
        assert!((0..n).all(|number| slab.get(number) == Some(&number)));
        assert_eq!((slab.height, slab.get(n)), (2, None));
    }
}
