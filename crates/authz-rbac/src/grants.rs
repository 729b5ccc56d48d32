//! Which bindings give somebody a role somewhere, found with one look at memory.
//!
//! The table of holders knows this too, but it is laid out for who does not know yet which role is
//! wanted: all that a holder has is read there. Here only what is wanted is.

use std::convert::Infallible;
use std::sync::Arc;

use persistent::Shared;

use crate::few::Crowded;
use crate::sieve::Place;
use crate::trie::{Page, Trie};

/// The most bindings that are known under one key. Of more only their number is kept, and whoever
/// wants to know asks the table of holders.
const BINDINGS_MAX: u32 = 4;

/// How many slots a line has: as many as one look at memory brings.
const LINE_SLOTS: usize = 8;

/// How many slots of a line are used on the average when lines are new and when more are made. A few
/// in a hundred are full then.
const LINE_USED_NEW: usize = 3;
const LINE_USED_OLD: usize = 5;

/// The most slots of a page that can still be split.
const PAGE_SLOTS_MAX: usize = 1024;

/// Where a line has room: behind what is in it, and where a line that was full has some again. Such a
/// line stays full for who searches, since what is behind it may belong to it.
const VACANT: u32 = 0;
const GONE: u32 = u32::MAX;

/// Set in what is not the number of a binding but tells how many there are.
const CROWD: u32 = 1 << 31;

/// The bindings, of which old versions stay readable.
///
/// INVARIANT: whoever changes it adds a binding to a key only once, and takes out only what it added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grants {
    trie: Trie<Lines, 32>,
}

/// A holder, a place and a role in four bytes. Others may have the same, so what is found has to be
/// compared with what was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GrantKey(u32);

/// Where the bindings of a key are, if there are any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot<'g> {
    lines: &'g [Line],
    line_idx: usize,
    key: GrantKey,
}

/// A page: a hash table. A slot is in the line that its key says, or in the next that has room.
///
/// INVARIANT: there is always room in some line, unless there are none.
#[derive(Debug, Clone, Default)]
struct Lines {
    lines: Arc<[Line]>,
    n_used: usize,
}

/// INVARIANT: nothing is behind what is vacant.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line {
    /// [`VACANT`] or [`GONE`] where there is nothing.
    keys: [u32; LINE_SLOTS],
    /// The numbers of bindings; with [`CROWD`], how many there are.
    granting: [u32; LINE_SLOTS],
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    key: GrantKey,
    granting: u32,
}

impl GrantKey {
    #[inline]
    pub(crate) fn new(holder: u64, place: Place, role: u32) -> Self {
        const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
        const SECOND: u64 = 0xd6e8_feb8_6659_fd93;
        let role = u64::from(role).wrapping_mul(SECOND) ^ FIRST;
        let product = u128::from(place.mixed(holder) ^ SECOND) * u128::from(role);
        let mixed = (product >> 64) as u64 ^ product as u64;
        // INVARIANT: neither of what marks room.
        Self(((mixed >> 32) as u32).clamp(VACANT + 1, GONE - 1))
    }

    /// The highest bits lead to a page.
    #[inline]
    fn hash(self) -> u64 {
        u64::from(self.0) << 32
    }

    /// INVARIANT: less than `n_lines`, unless that is 0; then 0. Goes by all bits, since those of a
    /// page have the highest in common.
    #[inline]
    fn line_idx(self, n_lines: usize) -> usize {
        ((u64::from(self.0.wrapping_mul(0x9e37_79b1)) * n_lines as u64) >> 32) as usize
    }
}

impl Grants {
    /// Where to look for a key.
    #[inline]
    pub(crate) fn spot(&self, key: GrantKey) -> Spot<'_> {
        self.trie.page(key.hash()).spot(key)
    }

    /// Adds a binding.
    pub(crate) fn insert(&mut self, key: GrantKey, number: u32) {
        let page = self.trie.page_mut(key.hash());
        let known = page.known(key);
        let n_known: u32 = known.iter().map(|granting| count(*granting)).sum();
        let is_crowd = known.iter().chain([&number]).any(|granting| granting & CROWD != 0);
        if !is_crowd && n_known < BINDINGS_MAX {
            page.push(Slot { key, granting: number });
            return;
        }
        for granting in known {
            page.remove(Slot { key, granting });
        }
        page.push(Slot { key, granting: (n_known + 1) | CROWD });
    }

    /// Takes out a binding that was added. A crowd stays one until nobody is left.
    pub(crate) fn remove(&mut self, key: GrantKey, number: u32) {
        self.trie.take(key.hash(), |page| match page.known(key).first() {
            Some(granting) if granting & CROWD != 0 => {
                page.remove(Slot { key, granting: *granting });
                let n_left = count(*granting) - 1;
                if n_left > 0 {
                    page.push(Slot { key, granting: n_left | CROWD });
                }
            }
            _ => page.remove(Slot { key, granting: number }),
        });
    }
}

/// How many bindings something stands for.
fn count(granting: u32) -> u32 {
    match granting & CROWD {
        0 => 1,
        _ => granting & !CROWD,
    }
}

impl Spot<'_> {
    /// Some bits of it, for who only wants it to be at hand.
    #[inline]
    pub(crate) fn touch(&self) -> u32 {
        self.lines.get(self.line_idx).map_or(0, |line| line.keys[0])
    }

    /// Visits the numbers of bindings until a visit fails.
    ///
    /// # Errors
    /// Fails if a visit does, or if there are too many bindings.
    #[inline]
    pub(crate) fn numbers(
        self,
        mut visit: impl FnMut(u32) -> Result<(), Crowded>,
    ) -> Result<(), Crowded> {
        self.visit(|granting| match granting & CROWD {
            0 => visit(granting),
            _ => Err(Crowded),
        })
    }

    /// Visits what there is until a visit fails.
    #[inline]
    fn visit<E>(self, mut visit: impl FnMut(u32) -> Result<(), E>) -> Result<(), E> {
        let mut line_idx = self.line_idx;
        while let Some(line) = self.lines.get(line_idx) {
            // All keys are compared before one of them counts, which needs no branch for each.
            let mut found = line.matching(self.key);
            while found != 0 {
                visit(line.granting[found.trailing_zeros() as usize % LINE_SLOTS])?;
                found &= found - 1;
            }
            if !line.is_full() {
                break;
            }
            line_idx = (line_idx + 1) % self.lines.len();
        }
        Ok(())
    }
}

impl Line {
    const EMPTY: Self = Self { keys: [VACANT; LINE_SLOTS], granting: [0; LINE_SLOTS] };

    #[inline]
    fn matching(&self, key: GrantKey) -> u32 {
        let keys = self.keys.iter().enumerate();
        keys.fold(0, |found, (place, own)| found | u32::from(*own == key.0) << place)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.keys[LINE_SLOTS - 1] != VACANT
    }

    fn place(&self, slot: Slot) -> Option<usize> {
        let mut own = self.keys.iter().zip(self.granting);
        own.position(|(key, granting)| *key == slot.key.0 && granting == slot.granting)
    }

    /// Takes out what is at a place.
    fn remove(&mut self, place: usize) {
        if self.is_full() {
            self.keys[place] = GONE;
            return;
        }
        let n_used = self.keys.iter().take_while(|key| **key != VACANT).count();
        let last = n_used.saturating_sub(1);
        self.keys.swap(place, last);
        self.granting.swap(place, last);
        self.keys[last] = VACANT;
    }

    fn has_room(key: &u32) -> bool {
        *key == VACANT || *key == GONE
    }

    fn slots(&self) -> impl Iterator<Item = Slot> {
        let all = self.keys.into_iter().zip(self.granting);
        let used = all.filter(|(key, _)| !Self::has_room(key));
        used.map(|(key, granting)| Slot { key: GrantKey(key), granting })
    }
}

impl Lines {
    fn of(slots: &[Slot]) -> Self {
        let n_lines = slots.len().div_ceil(LINE_USED_NEW);
        let mut lines: Arc<[Line]> = std::iter::repeat_n(Line::EMPTY, n_lines).collect();
        let own = Arc::make_mut(&mut lines);
        slots.iter().for_each(|slot| fill(own, *slot));
        Self { lines, n_used: slots.len() }
    }

    fn slots(&self) -> impl Iterator<Item = Slot> {
        self.lines.iter().flat_map(Line::slots)
    }

    #[inline]
    fn spot(&self, key: GrantKey) -> Spot<'_> {
        Spot { lines: &self.lines, line_idx: key.line_idx(self.lines.len()), key }
    }

    /// What there is of a key. INVARIANT: one crowd, or none and at most [`BINDINGS_MAX`] bindings.
    fn known(&self, key: GrantKey) -> Vec<u32> {
        let mut known = Vec::new();
        let _: Result<(), Infallible> = self.spot(key).visit(|granting| {
            known.push(granting);
            Ok(())
        });
        known
    }

    fn push(&mut self, slot: Slot) {
        if self.n_used < self.lines.len() * LINE_USED_OLD {
            fill(Arc::make_mut(&mut self.lines), slot);
            self.n_used += 1;
        } else {
            *self = Self::of(&self.slots().chain([slot]).collect::<Vec<_>>());
        }
    }

    /// Takes out a slot, if it is there.
    fn remove(&mut self, slot: Slot) {
        let home = slot.key.line_idx(self.lines.len());
        let n_lines = self.lines.len();
        let lines = (0..n_lines).map(|step| (home + step) % n_lines);
        let found = lines.filter_map(|idx| Some((idx, self.lines[idx].place(slot)?))).next();
        let Some((idx, place)) = found else { return };
        let line = &mut Arc::make_mut(&mut self.lines)[idx];
        line.remove(place);
        self.n_used -= 1;
    }
}

/// Puts a slot into the first line with room.
fn fill(lines: &mut [Line], slot: Slot) {
    let home = slot.key.line_idx(lines.len());
    let (before, after) = lines.split_at_mut(home);
    for line in after.iter_mut().chain(before) {
        if let Some(place) = line.keys.iter().position(Line::has_room) {
            line.keys[place] = slot.key.0;
            line.granting[place] = slot.granting;
            return;
        }
    }
}

impl Shared for Lines {
    fn n_owners(&self) -> usize {
        self.lines.n_owners()
    }
}

impl Page for Lines {
    fn is_empty(&self) -> bool {
        self.n_used == 0
    }

    fn is_full(&self) -> bool {
        self.n_used >= PAGE_SLOTS_MAX
    }

    fn split<const N: usize>(&self, child: impl Fn(u64) -> usize) -> [Self; N] {
        let mut parts: [Vec<Slot>; N] = std::array::from_fn(|_| Vec::new());
        for slot in self.slots() {
            parts[child(slot.key.hash())].push(slot);
        }
        parts.map(|part| Self::of(&part))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    type Plain = BTreeMap<u32, BTreeSet<u32>>;

    /// Few keys, some of which differ in one bit, so that lines fill and pages are split.
    fn key() -> impl Strategy<Value = u32> {
        prop_oneof![
            3 => (1..3000u32).prop_map(|n| n.wrapping_mul(0x9e37_79b1).max(1)),
            1 => 1..40u32,
        ]
    }

    fn found(grants: &Grants, key: u32) -> Result<BTreeSet<u32>, Crowded> {
        let mut numbers = BTreeSet::new();
        grants.spot(GrantKey(key)).numbers(|number| {
            assert!(numbers.insert(number));
            Ok(())
        })?;
        Ok(numbers)
    }

    fn check(grants: &Grants, plain: &Plain) -> Result<(), TestCaseError> {
        for (key, want) in plain {
            match found(grants, *key) {
                Ok(numbers) => prop_assert_eq!(&numbers, want),
                // A crowd stays one until nobody is left.
                Err(Crowded) => prop_assert!(!want.is_empty()),
            }
        }
        let mut n_used = 0;
        grants.trie.for_each(&mut |page| {
            n_used += page.n_used;
            assert_eq!(page.slots().count(), page.n_used);
        });
        prop_assert_eq!(n_used == 0, plain.values().all(BTreeSet::is_empty));
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn agrees_with_a_plain_map_and_keeps_old_versions(
            changes in prop::collection::vec((key(), 0..7u32), 0..6000),
        ) {
            let (mut grants, mut plain) = (Grants::default(), Plain::new());
            let mut versions = Vec::new();
            for (step, (key, number)) in changes.into_iter().enumerate() {
                let own = plain.entry(key).or_default();
                match own.remove(&number) {
                    true => grants.remove(GrantKey(key), number),
                    false => {
                        own.insert(number);
                        grants.insert(GrantKey(key), number);
                    }
                }
                prop_assert!(own.len() <= BINDINGS_MAX as usize || found(&grants, key).is_err());
                if step % 1500 == 0 {
                    versions.push((grants.clone(), plain.clone()));
                }
            }
            versions.push((grants.clone(), plain.clone()));
            for (grants, plain) in &versions {
                check(grants, plain)?;
            }
            for (key, numbers) in plain {
                numbers.into_iter().for_each(|number| grants.remove(GrantKey(key), number));
            }
            prop_assert!(grants.trie.is_empty());
        }
    }

    #[test]
    fn what_went_to_the_next_line_is_found_when_the_first_has_room_again() {
        let mut page = Lines::of(&[Slot { key: GrantKey(1), granting: 0 }; 20]);
        let key = GrantKey(2);
        let home = key.line_idx(page.lines.len());
        for number in 0..12 {
            page.push(Slot { key, granting: 100 + number });
        }
        let n_before = page.known(key).len();
        assert!(page.lines[home].is_full());
        let first = Slot { key, granting: page.known(key)[0] };
        page.remove(first);
        assert_eq!((n_before, page.known(key).len()), (12, 11));
        page.push(first);
        assert_eq!(page.known(key).len(), 12);
        assert_eq!((size_of::<Line>(), page.n_used), (64, 32));
    }

    #[test]
    fn keys_tell_holders_places_and_roles_apart() {
        let mut keys = BTreeSet::new();
        for holder in 0..20_u64 {
            let holder = holder.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            for place in [Place::CLUSTER, Place::namespace(77 << 40), Place::namespace(78 << 40)] {
                keys.extend((0..20).map(|role| GrantKey::new(holder, place, role).0));
            }
        }
        assert_eq!(keys.len(), 20 * 3 * 20);
    }
}
