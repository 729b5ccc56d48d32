//! Values found by their hashes, cheap to clone and to change after cloning.
//!
//! The slot of a value follows from its hash, and the value lies right there. So whoever looks for
//! one waits for memory once. A [`Set`](crate::set::Set) of places, to be looked up in a
//! [`Slab`](crate::slab::Slab), would have to be waited for first.
//!
//! As with these, a clone shares everything with its origin until one of them is
//! changed, and then all but one way down the tree.

use std::sync::Arc;

use persistent::{Shared, own, read_owners};

/// What can be kept in a table.
pub(crate) trait Hashed: Shared + Clone {
    /// Never changes. Should differ in its first bits from those of other values.
    fn hash(&self) -> u32;

    /// What is in a slot without a value.
    fn vacant() -> Self;

    /// Reports whether this is what is in a slot without a value.
    fn is_vacant(&self) -> bool;
}

/// Values in a list or, if they are many, in a tree of lists.
///
/// Lists are as long as can still be copied for every change, so that the tree is small and stays in
/// the cache.
#[derive(Debug, Clone)]
pub(crate) enum Table<T> {
    /// INVARIANT: as many values as it says, and at least a quarter of the slots are vacant, unless
    /// there are none. A value is in the first slot, from that of its hash on and round the end,
    /// that was vacant.
    Few { n_values: u32, slots: Slots<T> },
    /// By the digit of this level. INVARIANT: more values than [`FEW_AGAIN`].
    Many(Arc<[Self; FAN]>),
}

type Slots<T> = Arc<[T]>;

/// Branches on each level of the tree; a power of two.
const FAN: usize = 64;
const DIGIT_BITS: u32 = FAN.trailing_zeros();
/// Levels that look at a part of the hash each. Below them, lists are as long as need be.
const N_LEVELS: u32 = (u32::BITS - 1) / DIGIT_BITS;

/// Slots of the longest list, unless the hash is used up. 5,000 values make 64 lists of about 120.
const SLOTS_MAX: usize = 256;
const SLOTS_MIN: usize = 4;

/// Values at which a tree becomes a list again: fewer than a list can hold, or a value that comes and
/// goes could split and join again and again.
const FEW_AGAIN: usize = SLOTS_MAX / 4;

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self::Few { n_values: 0, slots: Arc::default() }
    }
}

impl<T> Shared for Table<T> {
    fn n_owners(&self) -> usize {
        match self {
            Self::Few { slots, .. } => slots.n_owners(),
            Self::Many(children) => children.n_owners(),
        }
    }
}

/// Queries.
impl<T: Hashed> Table<T> {
    /// Some value with this hash that is wanted.
    pub(crate) fn find(&self, hash: u32, is_wanted: impl FnMut(&T) -> bool) -> Option<&T> {
        let (mut table, mut level) = (self, 0);
        loop {
            match table {
                Self::Few { slots, .. } => {
                    return found(slots, level, hash, is_wanted).map(|(_, own)| own);
                }
                Self::Many(children) => table = &children[digit(hash, level)],
            }
            level += 1;
        }
    }
}

/// Changes.
impl<T: Hashed> Table<T> {
    /// Some value with this hash that is wanted, to be changed. Copies what others share on the way
    /// to it.
    pub(crate) fn find_mut(
        &mut self,
        hash: u32,
        mut is_wanted: impl FnMut(&T) -> bool,
    ) -> Option<&mut T> {
        // Looked for first, so that nothing is copied in vain.
        self.find(hash, &mut is_wanted)?;
        let (mut table, mut level) = (self, 0);
        loop {
            match table {
                Self::Few { slots, .. } => {
                    let (at, _) = found(slots, level, hash, is_wanted)?;
                    return own_slots(slots).get_mut(at);
                }
                Self::Many(children) => table = &mut own(children)[digit(hash, level)],
            }
            level += 1;
        }
    }

    /// Adds a value.
    pub(crate) fn insert(&mut self, value: T) {
        self.insert_at(0, value);
    }

    /// Removes all values with this hash that are unwanted.
    pub(crate) fn remove(&mut self, hash: u32, mut is_unwanted: impl FnMut(&T) -> bool) {
        // Looked for first, so that nothing is copied in vain.
        if self.find(hash, &mut is_unwanted).is_some() {
            self.remove_at(0, hash, &mut is_unwanted);
        }
    }

    fn insert_at(&mut self, level: u32, value: T) {
        match self {
            Self::Few { n_values, slots } if has_room(*n_values as usize, slots.len()) => {
                *n_values += 1;
                match Arc::get_mut(slots) {
                    Some(slots) => place(slots, level, value),
                    None => {
                        read_owners(slots);
                        *slots = Self::list(level, slots.len(), used(slots).chain([value]));
                    }
                }
            }
            Self::Few { n_values, slots } if slots.len() < SLOTS_MAX || level == N_LEVELS => {
                *n_values += 1;
                let more = more(slots.len());
                let n_slots = if level == N_LEVELS { more } else { more.min(SLOTS_MAX) };
                *slots = Self::list(level, n_slots, used(slots).chain([value]));
            }
            Self::Few { slots, .. } => {
                let mut children = std::array::from_fn(|_| Self::default());
                for own in used(slots).chain([value]) {
                    children[digit(own.hash(), level)].insert_at(level + 1, own);
                }
                *self = Self::Many(Arc::new(children));
            }
            Self::Many(children) => {
                let digit = digit(value.hash(), level);
                own(children)[digit].insert_at(level + 1, value);
            }
        }
    }

    fn remove_at(&mut self, level: u32, hash: u32, is_unwanted: &mut dyn FnMut(&T) -> bool) {
        match self {
            Self::Few { slots, .. } => {
                let is_left = |own: &T| own.hash() != hash || !is_unwanted(own);
                let rest: Vec<T> = used(slots).filter(is_left).collect();
                *self = Self::few(level, slots.len(), rest);
            }
            Self::Many(children) => {
                let own = own(children);
                own[digit(hash, level)].remove_at(level + 1, hash, is_unwanted);
                if own.iter().map(Self::few_or_more).sum::<usize>() <= FEW_AGAIN {
                    let mut values = Vec::new();
                    self.values(&mut values);
                    *self = Self::few(level, SLOTS_MAX, values);
                }
            }
        }
    }

    /// A list of as many slots as there were, or of fewer if these are enough.
    fn few(level: u32, n_slots: usize, values: Vec<T>) -> Self {
        let n_values = values.len();
        let is_enough = n_values < n_slots / 3;
        let n_slots = if is_enough { (n_values * 2).next_multiple_of(4) } else { n_slots };
        Self::Few {
            n_values: n_values as u32,
            slots: Self::list(level, n_slots, values.into_iter()),
        }
    }

    fn list(level: u32, n_slots: usize, values: impl Iterator<Item = T>) -> Slots<T> {
        let mut slots: Slots<T> = std::iter::repeat_with(T::vacant).take(n_slots).collect();
        if let Some(slots) = Arc::get_mut(&mut slots) {
            values.for_each(|own| place(slots, level, own));
        }
        slots
    }

    fn values(&self, values: &mut Vec<T>) {
        match self {
            Self::Few { slots, .. } => values.extend(used(slots)),
            Self::Many(children) => children.iter().for_each(|child| child.values(values)),
        }
    }

    /// How many values there are, or that they are more than few.
    fn few_or_more(&self) -> usize {
        match self {
            Self::Few { n_values, .. } => *n_values as usize,
            Self::Many(_) => FEW_AGAIN + 1,
        }
    }
}

/// Some value with this hash that is wanted, and its slot.
fn found<T: Hashed>(
    slots: &[T],
    level: u32,
    hash: u32,
    mut is_wanted: impl FnMut(&T) -> bool,
) -> Option<(usize, &T)> {
    let mut at = home(slots.len(), level, hash);
    // INVARIANT on Table: some slot is vacant, or there is none.
    loop {
        let own = slots.get(at)?;
        if own.is_vacant() {
            return None;
        }
        if own.hash() == hash && is_wanted(own) {
            return Some((at, own));
        }
        at += 1;
        if at == slots.len() {
            at = 0;
        }
    }
}

/// The values of a list, to be changed. Copies them if others share them.
fn own_slots<T: Hashed>(slots: &mut Slots<T>) -> &mut [T] {
    if Arc::strong_count(slots) > 1 {
        read_owners(slots);
    }
    Arc::make_mut(slots)
}

/// Whether one value more would leave a quarter of the slots vacant.
fn has_room(n_values: usize, n_slots: usize) -> bool {
    n_values < n_slots / 4 * 3
}

/// Slots of the next larger list: half as many more, as whole fours.
fn more(n_slots: usize) -> usize {
    (n_slots / 2 * 3).next_multiple_of(4).max(SLOTS_MIN)
}

fn place<T: Hashed>(slots: &mut [T], level: u32, value: T) {
    let at = home(slots.len(), level, value.hash());
    let (before, from) = slots.split_at_mut(at);
    if let Some(slot) = from.iter_mut().chain(before).find(|slot| slot.is_vacant()) {
        *slot = value;
    }
}

fn used<T: Hashed>(slots: &[T]) -> impl Iterator<Item = T> {
    slots.iter().filter(|own| !own.is_vacant()).cloned()
}

/// The slot where the search for a hash begins.
fn home(n_slots: usize, level: u32, hash: u32) -> usize {
    let rest = hash << (DIGIT_BITS * level);
    // The upper half of the product is less than the number of slots.
    ((u64::from(rest) * n_slots as u64) >> 32) as usize
}

fn digit(hash: u32, level: u32) -> usize {
    // What is shifted out was looked at before.
    ((hash << (DIGIT_BITS * level)) >> (u32::BITS - DIGIT_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::set::spread;

    /// A hash and what tells values apart that share it.
    #[derive(Debug, Clone, PartialEq)]
    struct Value(u32, u32);

    const VACANT: Value = Value(0, u32::MAX);

    impl Shared for Value {
        fn n_owners(&self) -> usize {
            0
        }
    }

    impl Hashed for Value {
        fn hash(&self) -> u32 {
            self.0
        }

        fn vacant() -> Self {
            VACANT
        }

        fn is_vacant(&self) -> bool {
            *self == VACANT
        }
    }

    /// Whether what is written about the variants holds, at every level.
    fn is_sound(table: &Table<Value>) -> bool {
        match table {
            Table::Few { n_values, slots } => {
                let n_values = *n_values as usize;
                used(slots).count() == n_values
                    && n_values <= slots.len() / 4 * 3
                    && slots.len() <= SLOTS_MAX
            }
            Table::Many(children) => {
                children.iter().all(is_sound)
                    && children.iter().map(Table::few_or_more).sum::<usize>() > FEW_AGAIN
            }
        }
    }

    fn filled(n_values: u32) -> Table<Value> {
        let mut table = Table::default();
        (0..n_values).for_each(|count| table.insert(Value(spread(count), count)));
        table
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn it_agrees_with_a_map_and_leaves_clones_alone(
            n_first in prop_oneof![0..20_u32, 0..2000_u32],
            changes in prop::collection::vec((0..2100_u32, 0..4_u8), 0..300),
            cut in 0..300_usize,
        ) {
            let mut table = filled(n_first);
            let mut model: BTreeMap<u32, u32> = (0..n_first).map(|n| (spread(n), n)).collect();
            let mut earlier = None;
            for (idx, (count, change)) in changes.into_iter().enumerate() {
                if idx == cut {
                    earlier = Some((table.clone(), model.clone()));
                }
                let hash = spread(count);
                match change {
                    0 | 1 if !model.contains_key(&hash) => {
                        table.insert(Value(hash, count));
                        model.insert(hash, count);
                    }
                    0 | 1 => {
                        table.find_mut(hash, |_| true).into_iter().for_each(|own| own.1 += 1);
                        model.entry(hash).and_modify(|own| *own += 1);
                    }
                    _ => {
                        table.remove(hash, |_| true);
                        model.remove(&hash);
                    }
                }
            }
            for (table, model) in earlier.into_iter().chain([(table, model)]) {
                prop_assert!(is_sound(&table));
                let mut values = Vec::new();
                table.values(&mut values);
                prop_assert_eq!(values.len(), model.len());
                for hash in (0..2100).map(spread) {
                    let found = table.find(hash, |_| true).map(|own| own.1);
                    prop_assert_eq!(found, model.get(&hash).copied());
                }
            }
        }
    }

    #[test]
    fn a_list_becomes_a_tree_past_the_limit_and_back() {
        let few_max = (SLOTS_MAX / 4 * 3) as u32;
        let mut table = filled(few_max);
        assert!(matches!(table, Table::Few { .. }));
        table.insert(Value(spread(few_max), few_max));
        assert!(matches!(table, Table::Many(_)));
        for count in FEW_AGAIN as u32 + 1..=few_max {
            table.remove(spread(count), |_| true);
        }
        assert!(matches!(table, Table::Many(_)));
        table.remove(spread(FEW_AGAIN as u32), |_| true);
        assert!(matches!(table, Table::Few { .. }) && is_sound(&table));
        assert!((0..FEW_AGAIN as u32).all(|count| table.find(spread(count), |_| true).is_some()));
    }

    /// The tree ends where the hash does, and the list there is as long as need be.
    #[test]
    fn values_that_share_a_hash_are_told_apart() {
        let n_values = 2 * SLOTS_MAX as u32;
        let mut table = Table::default();
        (0..n_values).for_each(|count| table.insert(Value(7, count)));
        for count in 0..n_values {
            assert_eq!(table.find(7, |own| own.1 == count), Some(&Value(7, count)));
        }
        assert_eq!(table.find(7, |own| own.1 == n_values), None);
        table.remove(7, |own| own.1 != 3);
        let mut values = Vec::new();
        table.values(&mut values);
        assert_eq!(values, [Value(7, 3)]);
    }
}
