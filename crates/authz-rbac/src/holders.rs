//! Who holds which bindings: a table from holders to roles, of which old versions stay readable.
//!
//! Who asks as few is decided by looking all of them up here and turning down the roles that they
//! hold, so the table is laid out for that: a holder is a number, the hash of its name, and one look
//! at memory finds the numbers of its roles.
//!
//! Two names may have one hash, so what is found here is what the asker *may* hold. Who finds a
//! grant makes sure with the names.

use std::cmp::Ordering;
use std::sync::Arc;

use persistent::Shared;

use crate::bucket::{self, Entry, Line, Rest, ShortRole};
use crate::filter::{FILTER_KEYS_MAX, Filter};
use crate::mask::Glance;
use crate::sequence::Sequence;
use crate::slab::Slab;
use crate::trie::{Page, Trie};

/// The most bindings of one holder that are in the table. More are a crowd: a list apart, in the
/// order of roles.
const HOLDINGS_INLINE_MAX: usize = 12;

/// How many entries a bucket has on the average when it is new and when more buckets are made. A few
/// in a hundred overflow then.
const BUCKET_ENTRIES_NEW: usize = 3;
const BUCKET_ENTRIES_OLD: usize = 5;

/// The most entries of a page that can still be split.
const PAGE_ENTRIES_MAX: usize = 512;

/// A binding that a holder is a subject of, and its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) role: u32,
    pub(crate) binding: u32,
}

/// The table. Keys are hashes and not 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holders {
    trie: Trie<Buckets, 32>,
    crowds: Slab<Sequence<Held>>,
    n_entries: usize,
    /// INVARIANT: has every key if there are at most [`FILTER_KEYS_MAX`] entries.
    filter: Filter,
}

/// A page: a hash table. An entry is in the bucket that its key says, or in the next that has room.
///
/// INVARIANT: there is always room in some bucket.
#[derive(Debug, Clone, Default)]
struct Buckets {
    parts: Option<Parts>,
    n_entries: usize,
}

/// The two parts of the buckets, as many of one as of the other.
#[derive(Debug, Clone)]
struct Parts {
    lines: Arc<[Line]>,
    rests: Arc<[Rest]>,
}

/// What the table has of a holder.
enum Holding {
    Few(Vec<u32>),
    Crowd(u32),
}

/// The first part of a bucket without entries.
pub(crate) static NO_ENTRIES: Line = Line::EMPTY;

/// Reading.
impl Holders {
    /// A filter of all keys, if the table is small enough to have one.
    pub(crate) fn filter(&self) -> Option<&Filter> {
        (self.n_entries <= FILTER_KEYS_MAX).then_some(&self.filter)
    }

    /// The first part of the bucket where the entries of a holder are, unless it overflows.
    #[inline]
    pub(crate) fn line(&self, key: u64) -> &Line {
        let (lines, _) = self.trie.page(key).parts();
        lines.get(bucket_idx(key, lines.len())).unwrap_or(&NO_ENTRIES)
    }

    /// Some bits of both parts of that bucket, for who only wants them to be at hand.
    #[inline]
    pub(crate) fn touch(&self, key: u64) -> u64 {
        let (lines, rests) = self.trie.page(key).parts();
        let idx = bucket_idx(key, lines.len());
        lines.get(idx).map_or(0, Line::touch) ^ rests.get(idx).map_or(0, Rest::touch)
    }

    /// Visits what a holder may have of roles that speak of what is asked: each role, and the number
    /// of the binding or crowd.
    #[inline]
    pub(crate) fn visit_speaking(
        &self,
        key: u64,
        glance: Glance<'_>,
        mut visit: impl FnMut(ShortRole, u32),
    ) {
        for (line, rest) in self.buckets(key) {
            for place in line.places(key) {
                let holder = rest.holder(place);
                if holder.key != key {
                    continue;
                }
                for (role, number) in line.roles(place).into_iter().zip(holder.bindings) {
                    if glance.meets(role.idx()) {
                        visit(role, number);
                    }
                }
            }
        }
    }

    /// Every bucket where the entries of a holder may be.
    fn buckets(&self, key: u64) -> impl Iterator<Item = (&Line, &Rest)> {
        self.trie.page(key).buckets(key).map(|(_, line, rest)| (line, rest))
    }

    /// What a crowd holds, in the order of roles and, for each role, of bindings.
    pub(crate) fn crowd(&self, number: u32) -> Option<&Sequence<Held>> {
        self.crowds.get(number)
    }

    /// The bindings that a holder may have.
    pub(crate) fn bindings(&self, key: u64) -> Vec<u32> {
        match self.find(key) {
            Holding::Few(bindings) => bindings,
            Holding::Crowd(number) => {
                let crowd = self.crowd(number).into_iter().flat_map(Sequence::iter);
                crowd.map(|held| held.binding).collect()
            }
        }
    }

    fn find(&self, key: u64) -> Holding {
        let mut few = Vec::new();
        for (line, rest) in self.buckets(key) {
            let entries = line.places(key).map(|place| bucket::entry(line, rest, place));
            for (role, binding) in entries.filter(|own| own.key() == key).flat_map(Entry::holdings)
            {
                if role == ShortRole::CROWD {
                    return Holding::Crowd(binding);
                }
                few.push(binding);
            }
        }
        Holding::Few(few)
    }
}

/// Changes. `order` is that of bindings.
impl Holders {
    /// Adds a binding, unless the holder has it already. `role_of` tells the role of any binding.
    pub(crate) fn insert(
        &mut self,
        key: u64,
        held: Held,
        role_of: &dyn Fn(u32) -> u32,
        order: &dyn Fn(u32, u32) -> Ordering,
    ) {
        match self.find(key) {
            Holding::Crowd(number) => self.join_crowd(number, held, order),
            Holding::Few(few) if few.contains(&held.binding) => {}
            Holding::Few(few) if few.len() < HOLDINGS_INLINE_MAX => {
                self.insert_holding(key, ShortRole::new(held.role), held.binding);
            }
            Holding::Few(few) => {
                let Some(number) = self.crowds.insert(Sequence::default()) else { return };
                for binding in few {
                    let role = role_of(binding);
                    self.join_crowd(number, Held { role, binding }, order);
                    self.remove_holding(key, binding);
                }
                self.join_crowd(number, held, order);
                self.insert_holding(key, ShortRole::CROWD, number);
            }
        }
    }

    /// Takes a binding from a holder who may have it.
    pub(crate) fn remove(&mut self, key: u64, held: Held, order: &dyn Fn(u32, u32) -> Ordering) {
        match self.find(key) {
            Holding::Crowd(number) => {
                let Some(crowd) = self.crowds.get_mut(number) else { return };
                crowd.remove(by_role(held, order));
                if crowd.is_empty() {
                    self.crowds.remove(number);
                    self.remove_holding(key, number);
                }
            }
            Holding::Few(few) => {
                if few.contains(&held.binding) {
                    self.remove_holding(key, held.binding);
                }
            }
        }
    }

    fn join_crowd(&mut self, number: u32, held: Held, order: &dyn Fn(u32, u32) -> Ordering) {
        let Some(crowd) = self.crowds.get_mut(number) else { return };
        if crowd.get(by_role(held, order)).is_none() {
            crowd.put(held, by_role(held, order));
        }
    }

    fn insert_holding(&mut self, key: u64, role: ShortRole, binding: u32) {
        self.n_entries += self.trie.page_mut(key).insert(key, role, binding);
        self.filter.add(key);
    }

    fn remove_holding(&mut self, key: u64, binding: u32) {
        let n_removed = self.trie.take(key, |page| page.remove(key, binding));
        self.n_entries -= n_removed;
        // A filter forgets nothing, so it is made anew.
        if n_removed > 0 && self.n_entries <= FILTER_KEYS_MAX {
            let filter = &mut self.filter;
            *filter = Filter::default();
            self.trie.for_each(&mut |page| {
                page.entries().for_each(|entry| filter.add(entry.key()));
            });
        }
    }
}

fn by_role(held: Held, order: &dyn Fn(u32, u32) -> Ordering) -> impl Fn(Held) -> Ordering {
    let by_binding = move |own: Held| order(own.binding, held.binding);
    move |own| own.role.cmp(&held.role).then_with(|| by_binding(own))
}

impl Buckets {
    /// A page of these entries that has room for more.
    fn of(entries: &[Entry]) -> Self {
        let n_buckets = entries.len().div_ceil(BUCKET_ENTRIES_NEW);
        if n_buckets == 0 {
            return Self::default();
        }
        let mut lines: Arc<[Line]> = std::iter::repeat_n(Line::EMPTY, n_buckets).collect();
        let mut rests: Arc<[Rest]> = std::iter::repeat_n(Rest::EMPTY, n_buckets).collect();
        let (own_lines, own_rests) = (Arc::make_mut(&mut lines), Arc::make_mut(&mut rests));
        entries.iter().for_each(|entry| fill(own_lines, own_rests, *entry));
        Self { parts: Some(Parts { lines, rests }), n_entries: entries.len() }
    }

    #[inline]
    fn parts(&self) -> (&[Line], &[Rest]) {
        match &self.parts {
            Some(Parts { lines, rests }) => (lines, rests),
            None => (&[], &[]),
        }
    }

    fn entries(&self) -> impl Iterator<Item = Entry> {
        let (lines, rests) = self.parts();
        lines.iter().zip(rests).flat_map(|(line, rest)| bucket::entries(line, rest))
    }

    /// Every bucket where the entries of a key may be, with its number.
    #[inline]
    fn buckets(&self, key: u64) -> impl Iterator<Item = (usize, &Line, &Rest)> {
        let (lines, rests) = self.parts();
        let mut next = Some(bucket_idx(key, lines.len()));
        // A bucket that overflows is followed by another, and some bucket does not.
        std::iter::from_fn(move || {
            let idx = next?;
            let (line, rest) = (lines.get(idx)?, rests.get(idx)?);
            next = line.overflows().then_some((idx + 1) % lines.len());
            Some((idx, line, rest))
        })
    }

    /// The entries of a key: bucket and place of each.
    fn find(&self, key: u64) -> Vec<(usize, usize, Entry)> {
        let places = self.buckets(key).flat_map(|(idx, line, rest)| {
            let places = line.places(key);
            places.map(move |place| (idx, place, bucket::entry(line, rest, place)))
        });
        places.filter(|(_, _, entry)| entry.key() == key).collect()
    }

    /// Adds a holding and returns how many entries that took, which is none or one.
    fn insert(&mut self, key: u64, role: ShortRole, binding: u32) -> usize {
        for (idx, place, mut entry) in self.find(key) {
            if entry.push(role, binding) {
                self.edit(|lines, rests| {
                    bucket::set(&mut lines[idx], &mut rests[idx], place, entry);
                });
                return 0;
            }
        }
        let entry = Entry::new(key, role, binding);
        if self.n_entries < BUCKET_ENTRIES_OLD * self.parts().0.len() {
            self.edit(|lines, rests| fill(lines, rests, entry));
            self.n_entries += 1;
        } else {
            *self = Self::of(&self.entries().chain([entry]).collect::<Vec<_>>());
        }
        1
    }

    /// Takes out a holding and returns how many entries were given up, which is none or one.
    fn remove(&mut self, key: u64, binding: u32) -> usize {
        let has = |entry: Entry| entry.holdings().any(|(_, own)| own == binding);
        let mut found = self.find(key).into_iter().filter(|(_, _, entry)| has(*entry));
        let Some((idx, place, entry)) = found.next() else { return 0 };
        if let Some(entry) = entry.without(binding) {
            self.edit(|lines, rests| {
                bucket::set(&mut lines[idx], &mut rests[idx], place, entry);
            });
            return 0;
        }
        self.edit(|lines, rests| bucket::remove(&mut lines[idx], &mut rests[idx], place));
        self.n_entries -= 1;
        if self.parts().0[idx].overflows() {
            // Entries behind it may belong here, so all are placed anew.
            *self = Self::of(&self.entries().collect::<Vec<_>>());
        }
        1
    }

    fn edit(&mut self, edit: impl FnOnce(&mut [Line], &mut [Rest])) {
        if let Some(Parts { lines, rests }) = &mut self.parts {
            edit(Arc::make_mut(lines), Arc::make_mut(rests));
        }
    }
}

/// Puts an entry into the first bucket with room.
fn fill(lines: &mut [Line], rests: &mut [Rest], entry: Entry) {
    let home = bucket_idx(entry.key(), lines.len());
    let (lines_before, lines_after) = lines.split_at_mut(home);
    let (rests_before, rests_after) = rests.split_at_mut(home);
    let after = lines_after.iter_mut().zip(rests_after);
    let before = lines_before.iter_mut().zip(rests_before);
    after.chain(before).any(|(line, rest)| bucket::push(line, rest, entry));
}

/// INVARIANT: less than `n_buckets`, unless that is 0; then 0. Goes by the lowest 32 bits of the
/// key, above all by the highest of these.
#[inline]
fn bucket_idx(key: u64, n_buckets: usize) -> usize {
    ((u64::from(key as u32) * n_buckets as u64) >> 32) as usize
}

impl Shared for Buckets {
    fn n_owners(&self) -> usize {
        self.parts.as_ref().map_or(0, |own| own.lines.n_owners() + own.rests.n_owners())
    }
}

impl Page for Buckets {
    fn is_empty(&self) -> bool {
        self.n_entries == 0
    }

    fn is_full(&self) -> bool {
        self.n_entries >= PAGE_ENTRIES_MAX
    }

    fn split<const N: usize>(&self, child: impl Fn(u64) -> usize) -> [Self; N] {
        let mut parts: [Vec<Entry>; N] = std::array::from_fn(|_| Vec::new());
        for entry in self.entries() {
            parts[child(entry.key())].push(entry);
        }
        parts.map(|part| Self::of(&part))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Few keys, some of which differ in one bit, so that buckets overflow and pages are split.
    fn key() -> impl Strategy<Value = u64> {
        let spread = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        prop_oneof![
            4 => (0..800u64).prop_map(spread),
            1 => (1..60u64).prop_map(|n| n << 40),
            1 => 1..60u64,
        ]
    }

    /// Some roles need more than two bytes.
    fn role_of(binding: u32) -> u32 {
        2 + binding % 5 * 40_000
    }

    fn held(number: u32) -> Held {
        Held { role: role_of(number), binding: number }
    }

    fn reverse(a: u32, b: u32) -> Ordering {
        b.cmp(&a)
    }

    type Plain = BTreeMap<u64, BTreeSet<u32>>;

    fn check(holders: &Holders, plain: &Plain) -> Result<(), TestCaseError> {
        for (key, want) in plain {
            let bindings = holders.bindings(*key);
            prop_assert_eq!(bindings.len(), want.len());
            prop_assert_eq!(&bindings.into_iter().collect::<BTreeSet<_>>(), want);
            let is_reported = holders.filter().is_none_or(|filter| filter.may_have(*key));
            prop_assert!(is_reported || want.is_empty());
        }
        let mut n_entries = 0;
        holders.trie.for_each(&mut |page| n_entries += page.entries().count());
        prop_assert_eq!(holders.n_entries, n_entries);
        prop_assert_eq!(holders.trie.is_empty(), plain.values().all(BTreeSet::is_empty));
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn agrees_with_a_plain_map_and_keeps_old_versions(
            changes in prop::collection::vec((key(), 0..20u32, prop::bool::weighted(0.75)), 0..2000),
        ) {
            let (mut holders, mut plain) = (Holders::default(), Plain::new());
            let mut versions = Vec::new();
            for (step, (key, binding, is_added)) in changes.into_iter().enumerate() {
                let own = plain.entry(key).or_default();
                if is_added {
                    holders.insert(key, held(binding), &role_of, &reverse);
                    own.insert(binding);
                } else {
                    holders.remove(key, held(binding), &reverse);
                    own.remove(&binding);
                }
                if step % 400 == 0 {
                    versions.push((holders.clone(), plain.clone()));
                }
            }
            versions.push((holders, plain));
            for (holders, plain) in &versions {
                check(holders, plain)?;
            }
        }
    }

    #[test]
    fn a_crowd_is_in_the_order_of_roles_and_bindings() {
        let mut holders = Holders::default();
        (0..40).for_each(|number| holders.insert(7, held(number), &role_of, &reverse));
        let Holding::Crowd(number) = holders.find(7) else { panic!("no crowd") };
        let crowd: Vec<Held> = holders.crowd(number).unwrap().iter().collect();
        assert_eq!((crowd.len(), holders.n_entries), (40, 1));
        let key = |own: &Held| (own.role, u32::MAX - own.binding);
        assert!(crowd.is_sorted_by_key(key));
        assert!(crowd.iter().all(|own| *own == held(own.binding)));
        crowd.into_iter().for_each(|held| holders.remove(7, held, &reverse));
        assert!(holders.n_entries == 0 && holders.trie.is_empty());
        assert!(holders.crowd(number).is_none());
    }

    #[test]
    fn keys_of_one_bucket_overflow_into_the_next() {
        let mut holders = Holders::default();
        let keys: Vec<u64> = (1..200).map(|n| n << 40).collect();
        for key in &keys {
            holders.insert(*key, held((*key >> 40) as u32), &role_of, &reverse);
        }
        assert!(holders.line(keys[0]).overflows() && holders.buckets(keys[0]).count() > 3);
        for key in &keys {
            assert_eq!(holders.bindings(*key), [(*key >> 40) as u32]);
        }
        for key in &keys {
            holders.remove(*key, held((*key >> 40) as u32), &reverse);
            assert!(holders.bindings(*key).is_empty());
        }
        assert!(holders.trie.is_empty());
    }
}
