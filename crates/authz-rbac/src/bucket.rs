//! Some holders side by side: as much as one look at memory brings.
//!
//! A bucket is in two parts, which are kept apart so that the first parts of all buckets lie close
//! together. The first has a few bits of the key of each holder and the roles it holds, which is
//! enough to turn most of them down. The second has the keys and which bindings grant the roles, and
//! is read only for roles that speak of what is asked.

/// How many holdings an entry has room for. Most holders have no more; others have several entries.
const ENTRY_HOLDINGS_MAX: usize = 3;

/// How many entries a bucket has room for.
const BUCKET_ENTRIES_MAX: usize = 8;

const TAG_BITS: usize = 8;
const TAG_MAX: u64 = 0x7f;
/// The lowest and the highest bit of every tag.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = LOW_BITS << (TAG_BITS - 1);
/// Set among the tags if a bucket overflows.
const OVERFLOW: u64 = 1 << 63;

/// The first part of a bucket: one line of memory.
///
/// INVARIANT: filled from the left.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line {
    /// Seven bits of each key; 0 where there is no entry. The highest bit of the whole is not one
    /// of a tag: it says whether some entry had to go to another bucket.
    tags: u64,
    roles: [[ShortRole; ENTRY_HOLDINGS_MAX]; BUCKET_ENTRIES_MAX],
}

/// The second part of a bucket.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Rest([Holder; BUCKET_ENTRIES_MAX]);

/// What the second part has of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder {
    pub(crate) key: u64,
    /// The numbers of bindings; that of a crowd for [`ShortRole::CROWD`].
    pub(crate) bindings: [u32; ENTRY_HOLDINGS_MAX],
}

/// Some of what a holder has.
///
/// INVARIANT: holdings are filled from the left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    roles: [ShortRole; ENTRY_HOLDINGS_MAX],
    holder: Holder,
}

/// A role in two bytes, as far as its number goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortRole(u16);

/// Places in a bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places(u64);

/// Reading the first part.
impl Line {
    /// A bucket without entries.
    pub(crate) const EMPTY: Self =
        Self { tags: 0, roles: [[ShortRole::NONE; ENTRY_HOLDINGS_MAX]; BUCKET_ENTRIES_MAX] };

    /// Some bits of the line, for who only wants it to be at hand.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.tags
    }

    /// The places of entries that may have this key; all others have another one. All tags are
    /// compared at once: of the difference of two words, only what is equal has no bit left.
    #[inline]
    pub(crate) fn places(&self, key: u64) -> Places {
        let difference = (self.tags & !HIGH_BITS) ^ (tag(key) * LOW_BITS);
        // Tags have seven bits, so what is carried from a difference ends up in the eighth.
        Places(!difference.wrapping_add(!HIGH_BITS) & HIGH_BITS)
    }

    /// The roles of the entry at a place.
    #[inline]
    pub(crate) fn roles(&self, place: usize) -> [ShortRole; ENTRY_HOLDINGS_MAX] {
        self.roles[place % BUCKET_ENTRIES_MAX]
    }

    /// Reports whether some entry that belongs here is in another bucket.
    #[inline]
    pub(crate) fn overflows(&self) -> bool {
        self.tags & OVERFLOW != 0
    }

    fn len(&self) -> usize {
        BUCKET_ENTRIES_MAX - (self.tags & !OVERFLOW).leading_zeros() as usize / TAG_BITS
    }

    fn set_tag(&mut self, place: usize, tag: u64) {
        let shift = place * TAG_BITS % u64::BITS as usize;
        self.tags = (self.tags & !(TAG_MAX << shift)) | (tag << shift);
    }
}

/// Reading the second part.
impl Rest {
    /// The part of a bucket without entries.
    pub(crate) const EMPTY: Self =
        Self([Holder { key: 0, bindings: [0; ENTRY_HOLDINGS_MAX] }; BUCKET_ENTRIES_MAX]);

    /// Some bits of each of its lines, for who only wants them to be at hand. To know which of them is
    /// needed would take waiting for the first part.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.0[0].key ^ self.0[3].key ^ self.0[6].key
    }

    /// What there is of the entry at a place.
    #[inline]
    pub(crate) fn holder(&self, place: usize) -> &Holder {
        &self.0[place % BUCKET_ENTRIES_MAX]
    }
}

/// The entry at a place.
pub(crate) fn entry(line: &Line, rest: &Rest, place: usize) -> Entry {
    Entry { roles: line.roles(place), holder: *rest.holder(place) }
}

/// All entries of a bucket.
pub(crate) fn entries(line: &Line, rest: &Rest) -> impl Iterator<Item = Entry> {
    (0..line.len()).map(|place| entry(line, rest, place))
}

/// Puts an entry at a place.
pub(crate) fn set(line: &mut Line, rest: &mut Rest, place: usize, entry: Entry) {
    let place = place % BUCKET_ENTRIES_MAX;
    line.set_tag(place, tag(entry.holder.key));
    line.roles[place] = entry.roles;
    rest.0[place] = entry.holder;
}

/// Adds an entry to a bucket; `false` if there is no room, and then the bucket overflows.
pub(crate) fn push(line: &mut Line, rest: &mut Rest, entry: Entry) -> bool {
    let len = line.len();
    let has_room = len < BUCKET_ENTRIES_MAX;
    match has_room {
        true => set(line, rest, len, entry),
        false => line.tags |= OVERFLOW,
    }
    has_room
}

/// Takes out the entry at a place.
pub(crate) fn remove(line: &mut Line, rest: &mut Rest, place: usize) {
    let last = line.len().saturating_sub(1);
    let moved = entry(line, rest, last);
    set(line, rest, place, moved);
    line.set_tag(last, 0);
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
        self.0.trailing_zeros() as usize / TAG_BITS
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

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let place = (!self.is_empty()).then_some(self.first());
        *self = self.after_first();
        place
    }
}

impl Entry {
    /// An entry with its first holding.
    pub(crate) fn new(key: u64, role: ShortRole, binding: u32) -> Self {
        let bindings = [0; ENTRY_HOLDINGS_MAX];
        let mut entry =
            Self { roles: [ShortRole::NONE; ENTRY_HOLDINGS_MAX], holder: Holder { key, bindings } };
        entry.push(role, binding);
        entry
    }

    pub(crate) fn key(&self) -> u64 {
        self.holder.key
    }

    pub(crate) fn holdings(self) -> impl Iterator<Item = (ShortRole, u32)> {
        let holdings = self.roles.into_iter().zip(self.holder.bindings);
        holdings.filter(|(role, _)| *role != ShortRole::NONE)
    }

    /// Adds a holding; `false` if there is no room.
    pub(crate) fn push(&mut self, role: ShortRole, binding: u32) -> bool {
        let free = self.roles.iter().position(|own| *own == ShortRole::NONE);
        if let Some(idx) = free {
            self.roles[idx] = role;
            self.holder.bindings[idx] = binding;
        }
        free.is_some()
    }

    /// The entry without the holdings of this number; `None` if nothing is left.
    pub(crate) fn without(self, binding: u32) -> Option<Self> {
        let mut kept = self.holdings().filter(|(_, own)| *own != binding);
        let (role, first) = kept.next()?;
        let mut entry = Self::new(self.key(), role, first);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some_entry(key: u64) -> Entry {
        Entry::new(key, ShortRole::new(7), key as u32)
    }

    /// Keys with equal and with nearly equal tags.
    fn key() -> impl Strategy<Value = u64> {
        let tag = prop_oneof![0..4u64, 0x3e..0x42u64, 0x7d..=0x81u64];
        (tag, 0..2u64).prop_map(|(tag, high)| (high << 40) | (tag << 4))
    }

    proptest! {
        #[test]
        fn finds_every_entry_of_a_key_and_none_of_another_tag(
            changes in prop::collection::vec((key(), prop::option::weighted(0.3, 0..8usize)), 0..40),
            asked in key(),
        ) {
            let (mut line, mut rest) = (Line::EMPTY, Rest::EMPTY);
            let mut plain = Vec::new();
            let mut overflows = false;
            for (key, removed) in changes {
                match removed {
                    Some(place) if place < plain.len() => {
                        plain.swap_remove(place);
                        remove(&mut line, &mut rest, place);
                    }
                    Some(_) => {}
                    None => {
                        let has_room = plain.len() < BUCKET_ENTRIES_MAX;
                        prop_assert_eq!(push(&mut line, &mut rest, some_entry(key)), has_room);
                        plain.extend(has_room.then_some(key));
                        overflows |= !has_room;
                        prop_assert_eq!(line.overflows(), overflows);
                    }
                }
                let keys: Vec<u64> = entries(&line, &rest).map(|entry| entry.key()).collect();
                prop_assert_eq!(&keys, &plain);
            }
            let want: Vec<usize> =
                (0..plain.len()).filter(|place| tag(plain[*place]) == tag(asked)).collect();
            let mut places: Vec<usize> = line.places(asked).collect();
            places.sort_unstable();
            prop_assert_eq!(places, want);
        }
    }

    #[test]
    fn an_entry_has_room_for_three() {
        let refs = [5, 6, 7, 8];
        let mut entry = Entry::new(1, ShortRole::new(9), refs[0]);
        assert!(entry.push(ShortRole::new(2), refs[1]) && entry.push(ShortRole::new(3), refs[2]));
        assert!(!entry.push(ShortRole::new(4), refs[3]));
        let kept: Vec<_> = entry.without(5).unwrap().holdings().collect();
        assert_eq!(kept, [(ShortRole::new(2), refs[1]), (ShortRole::new(3), refs[2])]);
        assert!(Entry::new(1, ShortRole::new(9), refs[0]).without(5).is_none());
    }

    #[test]
    fn parts_are_whole_lines() {
        assert_eq!((size_of::<Line>(), align_of::<Line>()), (64, 64));
        assert_eq!((size_of::<Rest>(), align_of::<Rest>()), (192, 64));
    }

    #[test]
    fn large_numbers_of_roles_are_left_to_the_binding() {
        assert_eq!((ShortRole::new(7).idx(), ShortRole::new(65_533).idx()), (7, 65_533));
        for role in [65_534, 65_535, 65_536, u32::MAX] {
            assert_eq!(ShortRole::new(role), ShortRole::OF_BINDING);
        }
    }
}
