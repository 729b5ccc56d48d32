//! Values that keep their places, cheap to clone and to change after cloning.
//!
//! The place of a value is a small number: what refers to a value takes four bytes, and following a
//! reference takes no search. Like a [`Set`](crate::set::Set), a clone shares everything with its
//! origin until one of them is changed, and then all but one way down the tree.

use std::sync::Arc;

use persistent::{Shared, read_owners};

/// The place of a value.
pub(crate) type Id = u32;

/// The most places. A cluster of 5,000 nodes and 150,000 pods has less than half a million vertices.
pub(crate) const PLACES_MAX: Id = 1 << 24;

/// Values by place: `N` in a leaf, and as many branches as `FAN` on each of two levels above, which
/// are powers of two. The places of values that were removed are used again, the last one first. So
/// slabs in which values are added and removed alike give them the same places.
///
/// Many values in a leaf are found sooner, for the pointers to few leaves stay in the cache; few are
/// copied sooner. Few branches are copied sooner too, and make the list at the root longer.
#[derive(Debug, Clone)]
pub(crate) struct Slab<T, const N: usize, const FAN: usize> {
    /// A clone copies this list, of which 422,000 values need 52 with leaves of 8 and 32 branches.
    root: Vec<Arc<Branch<Branch<Leaf<T, N>, FAN>, FAN>>>,
    /// Places that are or were in use. INVARIANT: at most [`PLACES_MAX`].
    n_places: Id,
    /// The place that became vacant last.
    vacant: Option<Id>,
    n_values: usize,
}

/// The levels are different types, so that a pointer to the next one is all that a level holds.
#[derive(Debug)]
struct Branch<C, const FAN: usize>([Option<Arc<C>>; FAN]);

/// Values of neighbouring places.
#[derive(Debug)]
pub(crate) struct Leaf<T, const N: usize>([Slot<T>; N]);

#[derive(Debug, Clone)]
enum Slot<T> {
    Used(T),
    /// With the place that became vacant before this one.
    Vacant(Option<Id>),
}

impl<T, const N: usize, const FAN: usize> Default for Slab<T, N, FAN> {
    fn default() -> Self {
        Self { root: Vec::new(), n_places: 0, vacant: None, n_values: 0 }
    }
}

impl<C, const FAN: usize> Default for Branch<C, FAN> {
    fn default() -> Self {
        Self([const { None }; FAN])
    }
}

impl<T, const N: usize> Default for Leaf<T, N> {
    fn default() -> Self {
        Self([const { Slot::Vacant(None) }; N])
    }
}

impl<C, const FAN: usize> Clone for Branch<C, FAN> {
    fn clone(&self) -> Self {
        read_owners(&self.0);
        Self(self.0.clone())
    }
}

impl<T: Shared + Clone, const N: usize> Clone for Leaf<T, N> {
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

impl<T: Shared + Clone, const N: usize, const FAN: usize> Slab<T, N, FAN> {
    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.n_values
    }

    pub(crate) fn get(&self, id: Id) -> Option<&T> {
        let (leaf, at) = self.leaf(id)?;
        leaf.get(at)
    }

    /// The leaf of a place, and which of its values it is.
    pub(crate) fn leaf(&self, id: Id) -> Option<(&Arc<Leaf<T, N>>, usize)> {
        let leaves =
            self.root.get(root_digit::<N, FAN>(id))?.0[branch_digit::<N, FAN>(id, 1)].as_ref()?;
        let leaf = leaves.0[branch_digit::<N, FAN>(id, 0)].as_ref()?;
        Some((leaf, leaf_digit::<N>(id)))
    }

    /// The value of a place, to be changed. Copies what others share on the way to it.
    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        // Looked for first, so that nothing is copied or made in vain.
        self.get(id)?;
        match self.slot(id) {
            Slot::Used(value) => Some(value),
            Slot::Vacant(_) => None,
        }
    }

    /// Adds a value, unless there are too many.
    pub(crate) fn insert(&mut self, value: T) -> Option<Id> {
        let id = match self.vacant {
            Some(vacant) => vacant,
            None if self.n_places < PLACES_MAX => {
                self.n_places += 1;
                self.n_places - 1
            }
            None => return None,
        };
        if let Slot::Vacant(before) = std::mem::replace(self.slot(id), Slot::Used(value)) {
            self.vacant = before;
        }
        self.n_values += 1;
        Some(id)
    }

    /// Removes the value of a place, if there is one.
    pub(crate) fn remove(&mut self, id: Id) {
        if self.get(id).is_some() {
            *self.slot(id) = Slot::Vacant(self.vacant);
            self.vacant = Some(id);
            self.n_values -= 1;
        }
    }

    /// What is at a place, which is made if need be.
    fn slot(&mut self, id: Id) -> &mut Slot<T> {
        let at = root_digit::<N, FAN>(id);
        if self.root.len() <= at {
            self.root.resize_with(at + 1, Arc::default);
        }
        let leaves = Arc::make_mut(&mut self.root[at]).child(branch_digit::<N, FAN>(id, 1));
        let leaf = leaves.child(branch_digit::<N, FAN>(id, 0));
        &mut leaf.0[leaf_digit::<N>(id)]
    }
}

impl<T, const N: usize> Leaf<T, N> {
    /// One of the values.
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        match self.0.get(at)? {
            Slot::Used(value) => Some(value),
            Slot::Vacant(_) => None,
        }
    }
}

impl<C: Clone + Default, const FAN: usize> Branch<C, FAN> {
    /// A child, which is made if need be, to be changed.
    fn child(&mut self, at: usize) -> &mut C {
        Arc::make_mut(self.0[at].get_or_insert_default())
    }
}

fn leaf_digit<const N: usize>(id: Id) -> usize {
    id as usize % N
}

fn branch_digit<const N: usize, const FAN: usize>(id: Id, level: u32) -> usize {
    (id >> (N.trailing_zeros() + FAN.trailing_zeros() * level)) as usize % FAN
}

fn root_digit<const N: usize, const FAN: usize>(id: Id) -> usize {
    (id >> (N.trailing_zeros() + 2 * FAN.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_map_and_leaves_clones_alone(
            n_first in 0..2600_u32,
            changes in prop::collection::vec((0..2700_u32, 0..3_u8), 0..80),
            cut in 0..80_usize,
        ) {
            let (mut slab, mut model) = (Slab::<_, 16, 64>::default(), BTreeMap::new());
            for value in 0..n_first {
                let id = slab.insert(value).unwrap();
                prop_assert_eq!(model.insert(id, value), None);
            }
            let mut earlier = None;
            for (idx, (id, change)) in changes.into_iter().enumerate() {
                if idx == cut {
                    earlier = Some((slab.clone(), model.clone()));
                }
                match change {
                    0 => {
                        let new = slab.insert(id).unwrap();
                        prop_assert_eq!(model.insert(new, id), None, "place {} is in use", new);
                    }
                    1 => {
                        slab.remove(id);
                        model.remove(&id);
                    }
                    _ => {
                        slab.get_mut(id).into_iter().for_each(|value| *value += 1);
                        model.entry(id).and_modify(|value| *value += 1);
                    }
                }
            }
            for (slab, model) in earlier.into_iter().chain([(slab, model)]) {
                prop_assert_eq!(slab.len(), model.len());
                for id in (0..slab.n_places + 70).chain([PLACES_MAX, Id::MAX]) {
                    prop_assert_eq!(slab.get(id), model.get(&id), "{}", id);
                }
            }
        }
    }

    #[test]
    fn slabs_that_change_alike_give_the_same_places() {
        let (mut few, mut many) = (Slab::<_, 16, 64>::default(), Slab::<_, 64, 32>::default());
        for number in 0..5000_u32 {
            assert_eq!(few.insert(number), many.insert(number + 1));
            if number % 3 == 0 {
                few.remove(number / 2);
                many.remove(number / 2);
            }
        }
        assert_eq!(few.len(), many.len());
    }

    #[test]
    fn places_are_used_again_so_the_slab_does_not_grow() {
        let mut slab = Slab::<_, 16, 64>::default();
        let ids: Vec<Id> = (0..100).filter_map(|value| slab.insert(value)).collect();
        for _ in 0..10 {
            ids.iter().for_each(|id| slab.remove(*id));
            assert_eq!(slab.len(), 0);
            ids.iter().for_each(|value| assert!(slab.insert(*value).is_some()));
        }
        assert_eq!(slab.n_places, 100);
    }

    #[test]
    fn there_are_as_many_places_as_the_limit_and_no_more() {
        let mut slab = Slab { n_places: PLACES_MAX - 1, ..Slab::<_, 16, 64>::default() };
        assert_eq!(slab.insert(1_u32), Some(PLACES_MAX - 1));
        assert_eq!(slab.insert(2), None);
        assert_eq!(slab.get(PLACES_MAX - 1), Some(&1));
        slab.remove(PLACES_MAX - 1);
        assert_eq!(slab.insert(3), Some(PLACES_MAX - 1));
    }
}
