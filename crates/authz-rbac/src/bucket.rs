//! Some holders side by side: as much as one look at memory brings.
//!
//! The first line of a bucket has a few bits of the key of each holder and the roles it holds, which
//! is enough to turn most of them down. Which bindings grant these roles is on the lines behind it,
//! and read only for roles that allow what is asked.

use std::hint::black_box;

/// How many holdings an entry has room for. Most holders have no more; others have several entries.
pub(crate) const ENTRY_HOLDINGS_MAX: usize = 3;

/// How many entries a bucket has room for.
pub(crate) const BUCKET_ENTRIES_MAX: usize = 8;

/// Tags in a word.
const WORD_TAGS: usize = 4;
const TAG_BITS: usize = 16;
const TAG_MAX: u64 = 0x7fff;
/// The lowest and the highest bit of every tag in a word.
const LOW_BITS: u64 = 0x0001_0001_0001_0001;
const HIGH_BITS: u64 = LOW_BITS << (TAG_BITS - 1);
/// Set in the last word of tags if a bucket overflows.
const OVERFLOW: u64 = 1 << 63;

/// A bucket.
///
/// INVARIANT: filled from the left.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    /// Some bits of each key; 0 where there is no entry. The highest bit is not one of a tag: it
    /// says whether some entry had to go to another bucket.
    tags: [u64; BUCKET_ENTRIES_MAX / WORD_TAGS],
    roles: [[ShortRole; ENTRY_HOLDINGS_MAX]; BUCKET_ENTRIES_MAX],
    keys: [u64; BUCKET_ENTRIES_MAX],
    bindings: [[BindingRef; ENTRY_HOLDINGS_MAX]; BUCKET_ENTRIES_MAX],
}

/// Some of what a holder has.
///
/// INVARIANT: holdings are filled from the left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) key: u64,
    roles: [ShortRole; ENTRY_HOLDINGS_MAX],
    bindings: [BindingRef; ENTRY_HOLDINGS_MAX],
}

/// A role in two bytes, as far as its number goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortRole(u16);

/// A binding and the first of its subjects that means the holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BindingRef {
    /// The number of the binding; that of the crowd for [`ShortRole::CROWD`].
    pub(crate) binding: u32,
    pub(crate) subject_idx: u32,
}

/// Places in a bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places(u64);

impl Bucket {
    /// A bucket without entries.
    pub(crate) const EMPTY: Self = Self {
        tags: [0; BUCKET_ENTRIES_MAX / WORD_TAGS],
        roles: [[ShortRole::NONE; ENTRY_HOLDINGS_MAX]; BUCKET_ENTRIES_MAX],
        keys: [0; BUCKET_ENTRIES_MAX],
        bindings: [[BindingRef::NONE; ENTRY_HOLDINGS_MAX]; BUCKET_ENTRIES_MAX],
    };

    /// Reads from the first line, so that it is at hand when it is needed.
    #[inline]
    pub(crate) fn touch(&self) {
        black_box(self.tags[0]);
    }

    /// The places of entries that may have this key; all others have another one. Four tags are
    /// compared at once: of the difference of two words, only what is equal has no bit left.
    #[inline]
    pub(crate) fn places(&self, key: u64) -> Places {
        let wanted = tag(key) * LOW_BITS;
        // Tags have fifteen bits, so what is carried from a difference ends up in the sixteenth.
        let equal = self.tags.map(|word| {
            let difference = (word & !HIGH_BITS) ^ wanted;
            !difference.wrapping_add(!HIGH_BITS) & HIGH_BITS
        });
        Places((equal[0] >> (TAG_BITS - 1)) | (equal[1] >> (TAG_BITS - 2)))
    }

    /// Reports whether some entry that belongs here is in another bucket.
    #[inline]
    pub(crate) fn overflows(&self) -> bool {
        self.tags[1] & OVERFLOW != 0
    }

    /// The roles of the entry at a place.
    #[inline]
    pub(crate) fn roles(&self, place: usize) -> [ShortRole; ENTRY_HOLDINGS_MAX] {
        self.roles[place % BUCKET_ENTRIES_MAX]
    }

    /// The key of the entry at a place, and one of its bindings.
    #[inline]
    pub(crate) fn holding(&self, place: usize, idx: usize) -> (u64, BindingRef) {
        let place = place % BUCKET_ENTRIES_MAX;
        (self.keys[place], self.bindings[place][idx % ENTRY_HOLDINGS_MAX])
    }

    /// The entry at a place.
    pub(crate) fn entry(&self, place: usize) -> Entry {
        let place = place % BUCKET_ENTRIES_MAX;
        let (roles, bindings) = (self.roles[place], self.bindings[place]);
        Entry { key: self.keys[place], roles, bindings }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        (0..self.len()).map(|place| self.entry(place))
    }

    pub(crate) fn set(&mut self, place: usize, entry: Entry) {
        let place = place % BUCKET_ENTRIES_MAX;
        self.set_tag(place, tag(entry.key));
        self.keys[place] = entry.key;
        self.roles[place] = entry.roles;
        self.bindings[place] = entry.bindings;
    }

    /// Adds an entry; `false` if there is no room, and then the bucket overflows.
    pub(crate) fn push(&mut self, entry: Entry) -> bool {
        let len = self.len();
        let has_room = len < BUCKET_ENTRIES_MAX;
        match has_room {
            true => self.set(len, entry),
            false => self.tags[1] |= OVERFLOW,
        }
        has_room
    }

    /// Takes out the entry at a place.
    pub(crate) fn remove(&mut self, place: usize) {
        let last = self.len().saturating_sub(1);
        self.set(place, self.entry(last));
        self.set_tag(last, 0);
    }

    fn len(&self) -> usize {
        let n_used =
            |word: &u64| WORD_TAGS - (word & !OVERFLOW).leading_zeros() as usize / TAG_BITS;
        self.tags.iter().map(n_used).sum()
    }

    fn set_tag(&mut self, place: usize, tag: u64) {
        let shift = place % WORD_TAGS * TAG_BITS;
        let word = &mut self.tags[place / WORD_TAGS % 2];
        *word = (*word & !(TAG_MAX << shift)) | (tag << shift);
    }
}

/// The bits of a key that are compared first; not 0.
#[inline]
fn tag(key: u64) -> u64 {
    ((key >> 4) & TAG_MAX).max(1)
}

impl Places {
    /// The first place; any, if there is none.
    #[inline]
    pub(crate) fn first(self) -> usize {
        let bit = self.0.trailing_zeros() as usize;
        bit / TAG_BITS + bit % TAG_BITS * WORD_TAGS
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn has_more(self) -> bool {
        self.after_first().0 != 0
    }

    #[inline]
    fn after_first(self) -> Self {
        Self(self.0 & self.0.wrapping_sub(1))
    }
}

impl Iterator for Places {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let place = (!self.is_empty()).then_some(self.first());
        *self = self.after_first();
        place
    }
}

impl Entry {
    /// An entry with its first holding.
    pub(crate) fn new(key: u64, role: ShortRole, binding: BindingRef) -> Self {
        let mut entry = Self {
            key,
            roles: [ShortRole::NONE; ENTRY_HOLDINGS_MAX],
            bindings: [BindingRef::NONE; ENTRY_HOLDINGS_MAX],
        };
        entry.push(role, binding);
        entry
    }

    pub(crate) fn holdings(self) -> impl Iterator<Item = (ShortRole, BindingRef)> {
        self.roles.into_iter().zip(self.bindings).filter(|(role, _)| *role != ShortRole::NONE)
    }

    /// Adds a holding; `false` if there is no room.
    pub(crate) fn push(&mut self, role: ShortRole, binding: BindingRef) -> bool {
        let free = self.roles.iter().position(|own| *own == ShortRole::NONE);
        if let Some(idx) = free {
            self.roles[idx] = role;
            self.bindings[idx] = binding;
        }
        free.is_some()
    }

    /// The entry without the holdings of this number; `None` if nothing is left.
    pub(crate) fn without(self, binding: u32) -> Option<Self> {
        let mut kept = self.holdings().filter(|(_, own)| own.binding != binding);
        let (role, first) = kept.next()?;
        let mut entry = Self::new(self.key, role, first);
        kept.for_each(|(role, own)| {
            entry.push(role, own);
        });
        Some(entry)
    }
}

impl ShortRole {
    /// There is no holding.
    pub(crate) const NONE: Self = Self(0);
    /// There are many holdings, and they are elsewhere.
    pub(crate) const CROWD: Self = Self(u16::MAX - 1);
    /// The number is too large for two bytes; the binding knows it.
    pub(crate) const OF_BINDING: Self = Self(u16::MAX);

    pub(crate) fn new(role: u32) -> Self {
        match u16::try_from(role) {
            Ok(role) if role < Self::CROWD.0 => Self(role),
            _ => Self::OF_BINDING,
        }
    }

    /// The place in a list of all roles whose numbers have two bytes.
    #[inline]
    pub(crate) fn idx(self) -> usize {
        usize::from(self.0)
    }
}

impl BindingRef {
    const NONE: Self = Self { binding: 0, subject_idx: 0 };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(key: u64) -> Entry {
        let binding = BindingRef { binding: key as u32, subject_idx: 1 };
        Entry::new(key, ShortRole::new(7), binding)
    }

    /// Keys with equal and with nearly equal tags.
    fn key() -> impl Strategy<Value = u64> {
        let tag = prop_oneof![0..4u64, 0x3ffe..0x4002u64, 0x7ffd..=0x8001u64];
        (tag, 0..2u64).prop_map(|(tag, high)| (high << 40) | (tag << 4))
    }

    proptest! {
        #[test]
        fn finds_every_entry_of_a_key_and_none_of_another_tag(
            changes in prop::collection::vec((key(), prop::option::weighted(0.3, 0..8usize)), 0..40),
            asked in key(),
        ) {
            let (mut bucket, mut plain) = (Bucket::EMPTY, Vec::new());
            let mut overflows = false;
            for (key, removed) in changes {
                match removed {
                    Some(place) if place < plain.len() => {
                        plain.swap_remove(place);
                        bucket.remove(place);
                    }
                    Some(_) => {}
                    None => {
                        let has_room = plain.len() < BUCKET_ENTRIES_MAX;
                        prop_assert_eq!(bucket.push(entry(key)), has_room);
                        overflows |= !has_room;
                        prop_assert_eq!(bucket.overflows(), overflows);
                        plain.extend(has_room.then_some(key));
                    }
                }
                let keys: Vec<u64> = bucket.entries().map(|entry| entry.key).collect();
                prop_assert_eq!(&keys, &plain);
            }
            let want: Vec<usize> =
                (0..plain.len()).filter(|place| tag(plain[*place]) == tag(asked)).collect();
            let mut places: Vec<usize> = bucket.places(asked).collect();
            places.sort_unstable();
            prop_assert_eq!(places, want);
        }
    }

    #[test]
    fn an_entry_has_room_for_three() {
        let refs = [5, 6, 7, 8].map(|binding| BindingRef { binding, subject_idx: 0 });
        let mut entry = Entry::new(1, ShortRole::new(9), refs[0]);
        assert!(entry.push(ShortRole::new(2), refs[1]) && entry.push(ShortRole::new(3), refs[2]));
        assert!(!entry.push(ShortRole::new(4), refs[3]));
        let kept: Vec<_> = entry.without(5).unwrap().holdings().collect();
        assert_eq!(kept, [(ShortRole::new(2), refs[1]), (ShortRole::new(3), refs[2])]);
        assert!(Entry::new(1, ShortRole::new(9), refs[0]).without(5).is_none());
    }

    #[test]
    fn what_decides_most_is_one_line() {
        assert_eq!(std::mem::offset_of!(Bucket, keys), 64);
        assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (320, 64));
    }

    #[test]
    fn large_numbers_of_roles_are_left_to_the_binding() {
        assert_eq!((ShortRole::new(7).idx(), ShortRole::new(65_533).idx()), (7, 65_533));
        for role in [65_534, 65_535, 65_536, u32::MAX] {
            assert_eq!(ShortRole::new(role), ShortRole::OF_BINDING);
        }
    }
}
