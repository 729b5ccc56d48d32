//! A table that is made once and finds a value by a hash in one place of memory.

/// Slots for two entries. With more, what is not there is found to be so sooner.
const SLOTS_PER_TWO: usize = 3;

/// Values by hashes.
///
/// A hash map reads a place for where a value is and another for the value, and it hashes what is a
/// hash already. Policies are so many that what is read is not cached, so each place counts.
///
/// INVARIANT: at least one slot is vacant, if there are any. A value is in the first slot, from that
/// of its hash on and round the end, that was vacant when it was added.
#[derive(Debug, Clone)]
pub(crate) struct Table<V> {
    slots: Box<[Slot<V>]>,
}

#[derive(Debug, Clone, Copy)]
struct Slot<V> {
    /// [`VACANT`] if there is no value.
    hash: u64,
    value: V,
}

const VACANT: u64 = 0;

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self { slots: Box::default() }
    }
}

impl<V: Copy> Table<V> {
    /// A table of values. Of those that have the same hash the first stays. The hash of what is
    /// vacant and its neighbour count as one.
    pub(crate) fn new(values: impl ExactSizeIterator<Item = (u64, V)>) -> Self {
        let n_slots = values.len() * SLOTS_PER_TWO / 2 + 1;
        let mut values = values.peekable();
        let Some((_, value)) = values.peek().copied() else { return Self::default() };
        let mut slots = vec![Slot { hash: VACANT, value }; n_slots];
        for (hash, value) in values {
            let hash = usable(hash);
            let (before, from) = slots.split_at_mut(home(n_slots, hash));
            let mut slots = from.iter_mut().chain(before);
            let free = slots.find(|slot| slot.hash == VACANT || slot.hash == hash);
            if let Some(slot) = free.filter(|slot| slot.hash == VACANT) {
                *slot = Slot { hash, value };
            }
        }
        Self { slots: slots.into() }
    }

    pub(crate) fn get(&self, hash: u64) -> Option<&V> {
        let hash = usable(hash);
        let mut at = home(self.slots.len(), hash);
        loop {
            let slot = self.slots.get(at)?;
            if slot.hash == hash {
                return Some(&slot.value);
            }
            if slot.hash == VACANT {
                return None;
            }
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
    }
}

/// Any hash but that of what is vacant.
fn usable(hash: u64) -> u64 {
    hash.max(VACANT + 1)
}

/// The slot where the search for a hash begins.
fn home(n_slots: usize, hash: u64) -> usize {
    // The upper half of the product is less than the number of slots.
    (((hash >> 32) * n_slots as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Hashes that crowd at few slots, also at the end of the table.
    fn hash() -> impl Strategy<Value = u64> {
        let half = prop_oneof![0..3_u64, Just(u64::from(u32::MAX)), 0..=u64::from(u32::MAX)];
        (half, 0..4_u64).prop_map(|(upper, lower)| upper << 32 | lower)
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_map(
            values in prop::collection::btree_map(hash(), any::<u16>(), 0..60),
            others in prop::collection::vec(hash(), 0..9),
        ) {
            // What is vacant and its neighbour count as one.
            let mut model: BTreeMap<u64, u16> = BTreeMap::new();
            for (hash, value) in &values {
                model.entry((*hash).max(1)).or_insert(*value);
            }
            let table = Table::new(values.clone().into_iter());
            for hash in values.into_keys().chain(others).chain([0, u64::MAX]) {
                prop_assert_eq!(table.get(hash), model.get(&hash.max(1)), "{}", hash);
            }
        }
    }

    #[test]
    fn an_empty_table_has_nothing() {
        assert_eq!(Table::<u8>::default().get(0), None);
        assert_eq!(Table::<u8>::new(std::iter::empty()).get(u64::MAX), None);
    }
}
