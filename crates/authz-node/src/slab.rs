//! Values that keep their places, cheap to clone and to change after cloning.
//!
//! The place of a value is a small number: what refers to a value takes four bytes, and following a
//! reference takes no search. Like a [`Set`](crate::set::Set), a clone shares everything with its
//! origin until one of them is changed, and then all but one way down the tree.

use std::sync::Arc;

/// The place of a value.
pub(crate) type Id = u32;

/// Bits of a place that a leaf looks at, and a branch. More make lookups shorter and copies longer.
const LEAF_BITS: u32 = 4;
const BRANCH_BITS: u32 = 5;

/// The most places: as many as there are in a tree of a leaf and four branches. A cluster of 5,000
/// nodes and 150,000 pods has less than half a million vertices.
pub(crate) const PLACES_MAX: Id = 1 << (LEAF_BITS + 4 * BRANCH_BITS);

/// Values by place. The places of values that were removed are used again, the last one first.
#[derive(Debug, Clone)]
pub(crate) struct Slab<T> {
    root: Branch<Branch<Branch<Branch<Leaf<T>>>>>,
    /// Places that are or were in use. INVARIANT: at most [`PLACES_MAX`].
    n_places: Id,
    /// The place that became vacant last.
    vacant: Option<Id>,
    n_values: usize,
}

/// The levels are different types, so that a pointer to the next one is all that a level holds.
#[derive(Debug, Clone)]
struct Branch<C>([Option<Arc<C>>; 1 << BRANCH_BITS]);

#[derive(Debug, Clone)]
struct Leaf<T>([Slot<T>; 1 << LEAF_BITS]);

/// Slots begin where a processor begins to read, and which of the two it is comes first, so that
/// reading the first parts of a value reads 64 bytes.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
enum Slot<T> {
    Used(T),
    /// With the place that became vacant before this one.
    Vacant(Option<Id>),
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { root: Branch::default(), n_places: 0, vacant: None, n_values: 0 }
    }
}

impl<C> Default for Branch<C> {
    fn default() -> Self {
        Self([const { None }; 1 << BRANCH_BITS])
    }
}

impl<T> Default for Leaf<T> {
    fn default() -> Self {
        Self([const { Slot::Vacant(None) }; 1 << LEAF_BITS])
    }
}

impl<T: Clone> Slab<T> {
    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.n_values
    }

    pub(crate) fn get(&self, id: Id) -> Option<&T> {
        let leaf = self.root.get(id, 3)?.get(id, 2)?.get(id, 1)?.get(id, 0)?;
        match &leaf.0[leaf_digit(id)] {
            Slot::Used(value) if id < PLACES_MAX => Some(value),
            Slot::Used(_) | Slot::Vacant(_) => None,
        }
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
        let leaf = self.root.get_mut(id, 3).get_mut(id, 2).get_mut(id, 1).get_mut(id, 0);
        &mut leaf.0[leaf_digit(id)]
    }
}

impl<C> Branch<C> {
    fn get(&self, id: Id, level: u32) -> Option<&C> {
        self.0[branch_digit(id, level)].as_deref()
    }
}

impl<C: Clone + Default> Branch<C> {
    fn get_mut(&mut self, id: Id, level: u32) -> &mut C {
        Arc::make_mut(self.0[branch_digit(id, level)].get_or_insert_default())
    }
}

fn leaf_digit(id: Id) -> usize {
    id as usize % (1 << LEAF_BITS)
}

fn branch_digit(id: Id, level: u32) -> usize {
    (id >> (LEAF_BITS + BRANCH_BITS * level)) as usize % (1 << BRANCH_BITS)
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
            let (mut slab, mut model) = (Slab::default(), BTreeMap::new());
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
    fn places_are_used_again_so_the_slab_does_not_grow() {
        let mut slab = Slab::default();
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
        let mut slab = Slab { n_places: PLACES_MAX - 1, ..Slab::default() };
        assert_eq!(slab.insert("last"), Some(PLACES_MAX - 1));
        assert_eq!(slab.insert("one more"), None);
        assert_eq!(slab.get(PLACES_MAX - 1), Some(&"last"));
        slab.remove(PLACES_MAX - 1);
        assert_eq!(slab.insert("again"), Some(PLACES_MAX - 1));
    }
}
