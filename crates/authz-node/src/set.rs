//! A set of numbers that is cheap to clone and to change after cloning.
//!
//! A clone shares everything with its origin. A change copies the few arrays on the way to one
//! number if somebody else still reads them. This is what lets a snapshot of a large graph be
//! replaced for every pod that comes or goes.
//!
//! The graph needs such sets in all sizes: the objects that lead to a vertex are one or none for
//! most vertices, and the vertices by the hashes of their names are hundreds of thousands. So a set
//! is a number, then a table, then a tree of tables.

use std::sync::Arc;

use persistent::{Shared, own};

/// Bits of a number that one level of the tree looks at. More make searches shorter and copies
/// longer.
const DIGIT_BITS: u32 = 5;
const N_DIGITS: usize = 1 << DIGIT_BITS;
/// Levels that look at the upper half of a number only.
const LEVELS_OF_UPPER_HALF: u32 = u32::BITS / DIGIT_BITS;

/// Slots of the largest table. It is large, because a table is copied in about the time that it
/// takes to read one place in memory that is not cached, and searching a tree reads more places.
const SLOTS_MAX: usize = 1024;
const SLOTS_MIN: usize = 4;

/// What is in a slot without a number. INVARIANT: no number is this one, since it is neither that of
/// a vertex nor of two.
const VACANT: u64 = u64::MAX;

/// A set of numbers, each of two halves, to be found by the upper one.
///
/// Upper halves should differ in their first bits, as hashes do, or the tree grows deep: see
/// [`spread`].
#[derive(Debug, Clone, Default)]
pub(crate) enum Set {
    #[default]
    Empty,
    One(u64),
    /// INVARIANT: at least two numbers, and at most three quarters of the slots are used. A number
    /// is in the first slot, from that of its upper half on and round the end, that was vacant.
    Few {
        n_numbers: u32,
        slots: Arc<[u64]>,
    },
    /// By the digit of this level. INVARIANT: more numbers than [`FEW_AGAIN`].
    Many(Arc<[Set; N_DIGITS]>),
}

/// Numbers at which a tree becomes a table again: less than a table can hold, or a number that comes
/// and goes could split and join again and again.
const FEW_AGAIN: usize = SLOTS_MAX / 4;

/// A number from its halves.
pub(crate) fn join(upper: u32, lower: u32) -> u64 {
    u64::from(upper) << 32 | u64::from(lower)
}

/// The halves of a number.
pub(crate) fn split(number: u64) -> (u32, u32) {
    ((number >> 32) as u32, number as u32)
}

/// Makes numbers that were counted differ in their first bits. One to one.
pub(crate) fn spread(count: u32) -> u32 {
    count.wrapping_mul(0x9e37_79b1)
}

/// The reverse of [`spread`]: the factors are inverse to each other.
pub(crate) fn gather(number: u32) -> u32 {
    number.wrapping_mul(0x0e8b_2f51)
}

impl Shared for Set {
    fn n_owners(&self) -> usize {
        match self {
            Self::Empty | Self::One(_) => 0,
            Self::Few { slots, .. } => slots.n_owners(),
            Self::Many(children) => children.n_owners(),
        }
    }
}

/// Queries.
impl Set {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// Reports whether there is a number with this upper half.
    pub(crate) fn has(&self, upper: u32) -> bool {
        self.find(upper, |_| true).is_some()
    }

    /// The lower half of some number with this upper half that is wanted.
    pub(crate) fn find(&self, upper: u32, mut is_wanted: impl FnMut(u32) -> bool) -> Option<u32> {
        let first = join(upper, 0);
        let mut wanted = |number: u64| {
            let (own, lower) = split(number);
            (own == upper && is_wanted(lower)).then_some(lower)
        };
        let mut set = self;
        for level in 0..LEVELS_OF_UPPER_HALF {
            match set {
                Self::Many(children) => set = &children[digit(first, level)],
                Self::Few { slots, .. } => return probe(slots, level, first, wanted),
                Self::One(number) => return wanted(*number),
                Self::Empty => return None,
            }
        }
        // Here are only numbers of this upper half, and maybe of its next neighbours.
        set.find_map(&mut wanted)
    }

    /// All numbers, in no particular order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let mut numbers = Vec::new();
        let _: Option<()> = self.find_map(&mut |number| {
            numbers.push(number);
            None
        });
        numbers
    }

    /// Visits all numbers until `visit` answers something.
    fn find_map<T>(&self, visit: &mut dyn FnMut(u64) -> Option<T>) -> Option<T> {
        match self {
            Self::Empty => None,
            Self::One(number) => visit(*number),
            Self::Few { slots, .. } => used(slots).find_map(visit),
            Self::Many(children) => children.iter().find_map(|child| child.find_map(visit)),
        }
    }

    fn contains(&self, number: u64) -> bool {
        let mut set = self;
        let mut level = 0;
        while let Self::Many(children) = set {
            set = &children[digit(number, level)];
            level += 1;
        }
        match set {
            Self::Few { slots, .. } => {
                probe(slots, level, number, |own| (own == number).then_some(())).is_some()
            }
            Self::One(own) => *own == number,
            Self::Empty | Self::Many(_) => false,
        }
    }
}

/// Changes.
impl Set {
    /// Adds a number, and reports whether it is new.
    pub(crate) fn insert(&mut self, number: u64) -> bool {
        // Looked for first, so that nothing is copied in vain.
        let is_new = !self.contains(number);
        if is_new {
            self.insert_new(0, number);
        }
        is_new
    }

    /// Removes a number, and reports whether it was there.
    pub(crate) fn remove(&mut self, number: u64) -> bool {
        let was_there = self.contains(number);
        if was_there {
            self.remove_old(0, number);
        }
        was_there
    }

    fn insert_new(&mut self, level: u32, number: u64) {
        match self {
            Self::Empty => *self = Self::One(number),
            Self::One(own) => *self = Self::table(level, SLOTS_MIN, [*own, number].into_iter()),
            Self::Few { n_numbers, slots } if has_room(*n_numbers as usize, slots.len()) => {
                *n_numbers += 1;
                place(Arc::make_mut(slots), level, number);
            }
            Self::Few { slots, .. } if slots.len() < SLOTS_MAX => {
                *self = Self::table(level, more(slots.len()), used(slots).chain([number]));
            }
            Self::Few { slots, .. } => {
                let mut children = [const { Self::Empty }; N_DIGITS];
                for own in used(slots).chain([number]) {
                    children[digit(own, level)].insert_new(level + 1, own);
                }
                *self = Self::Many(Arc::new(children));
            }
            Self::Many(children) => {
                own(children)[digit(number, level)].insert_new(level + 1, number);
            }
        }
    }

    /// Removes a number that is there.
    fn remove_old(&mut self, level: u32, number: u64) {
        match self {
            Self::Empty | Self::One(_) => *self = Self::Empty,
            Self::Few { n_numbers: ..=2, slots } => {
                let other = used(slots).find(|own| *own != number);
                *self = other.map_or(Self::Empty, Self::One);
            }
            Self::Few { n_numbers, slots } if (*n_numbers as usize) <= slots.len() / 3 => {
                let rest: Vec<u64> = used(slots).filter(|own| *own != number).collect();
                *self = Self::table(level, less(slots.len()), rest.into_iter());
            }
            Self::Few { n_numbers, slots } => {
                *n_numbers -= 1;
                take_out(Arc::make_mut(slots), level, number);
            }
            Self::Many(children) => {
                let own = own(children);
                own[digit(number, level)].remove_old(level + 1, number);
                if own.iter().map(Self::few_or_more).sum::<usize>() <= FEW_AGAIN {
                    *self = Self::table(level, SLOTS_MAX / 2, self.numbers().into_iter());
                }
            }
        }
    }

    /// A table of at least two numbers, for which there must be room.
    fn table(level: u32, n_slots: usize, numbers: impl Iterator<Item = u64>) -> Self {
        let mut slots: Arc<[u64]> = std::iter::repeat_n(VACANT, n_slots).collect();
        let own = Arc::make_mut(&mut slots);
        let n_numbers = numbers.map(|number| place(own, level, number)).zip(1..).last();
        Self::Few { n_numbers: n_numbers.map_or(0, |(_, n_numbers)| n_numbers), slots }
    }

    /// How many numbers there are, or that they are more than few.
    fn few_or_more(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Few { n_numbers, .. } => *n_numbers as usize,
            Self::Many(_) => FEW_AGAIN + 1,
        }
    }
}

/// Whether one number more would leave a quarter of the slots vacant.
fn has_room(n_numbers: usize, n_slots: usize) -> bool {
    n_numbers < n_slots / 4 * 3
}

/// Slots of the next larger table: half as many more, as whole fours.
fn more(n_slots: usize) -> usize {
    (n_slots / 2 * 3).next_multiple_of(4).min(SLOTS_MAX)
}

/// Slots of the next smaller table.
fn less(n_slots: usize) -> usize {
    (n_slots / 3 * 2).next_multiple_of(4).max(SLOTS_MIN)
}

fn place(slots: &mut [u64], level: u32, number: u64) {
    let (before, from) = slots.split_at_mut(home(slots.len(), level, number));
    if let Some(slot) = from.iter_mut().chain(before).find(|slot| **slot == VACANT) {
        *slot = number;
    }
}

/// Makes the slot of a number vacant. Numbers that come after it, up to the next vacant slot, move
/// back unless they would come before the slot where they begin, so that they are still found.
fn take_out(slots: &mut [u64], level: u32, number: u64) {
    let n_slots = slots.len();
    let from = home(n_slots, level, number);
    // How far it is from the slot where the search began, going round the end.
    let distance = |to: usize| (to + n_slots - from) % n_slots;
    let mut hole = None;
    for at in (from..n_slots).chain(0..from) {
        let own = slots[at];
        match hole {
            _ if own == VACANT => break,
            None if own == number => hole = Some(at),
            Some(vacant) => {
                let begins = distance(home(n_slots, level, own));
                let is_late = begins <= distance(vacant) || begins > distance(at);
                if is_late {
                    slots[vacant] = own;
                    hole = Some(at);
                }
            }
            None => {}
        }
    }
    if let Some(vacant) = hole {
        slots[vacant] = VACANT;
    }
}

/// Visits the numbers that begin at the same slot as this one, and others, until `visit` answers
/// something.
fn probe<T>(
    slots: &[u64],
    level: u32,
    number: u64,
    mut visit: impl FnMut(u64) -> Option<T>,
) -> Option<T> {
    let mut at = home(slots.len(), level, number);
    // INVARIANT on Set: some slot is vacant.
    loop {
        let own = *slots.get(at)?;
        if own == VACANT {
            return None;
        }
        let answer = visit(own);
        if answer.is_some() {
            return answer;
        }
        at += 1;
        if at == slots.len() {
            at = 0;
        }
    }
}

fn used(slots: &[u64]) -> impl Iterator<Item = u64> {
    slots.iter().copied().filter(|number| *number != VACANT)
}

/// The slot where the search for a number begins. All numbers with the same upper half begin at the
/// same slot, unless there are so many that the tree has used up that half.
fn home(n_slots: usize, level: u32, number: u64) -> usize {
    let (upper, lower) = split(number);
    let half = if level < LEVELS_OF_UPPER_HALF { upper << (DIGIT_BITS * level) } else { lower };
    // The upper half of the product is less than the number of slots.
    ((u64::from(half) * n_slots as u64) >> 32) as usize
}

fn digit(number: u64, level: u32) -> usize {
    // What is shifted out was looked at before.
    ((number << (DIGIT_BITS * level)) >> (u64::BITS - DIGIT_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Many numbers in a row: with different upper halves, with the same, or with neighbouring ones.
    #[derive(Debug, Clone)]
    struct Run {
        kind: u8,
        start: u32,
        n_numbers: u32,
        is_added: bool,
    }

    impl Run {
        fn numbers(&self) -> impl Iterator<Item = u64> {
            let number = |count| match self.kind {
                0 => join(spread(count), 0),
                1 => join(7, spread(count)),
                2 => join(count % 5, spread(count)),
                _ => join(u32::MAX - count / 3, count),
            };
            (self.start..self.start + self.n_numbers).map(number)
        }
    }

    fn run() -> impl Strategy<Value = Run> {
        let length = prop_oneof![0..9_u32, 0..900_u32];
        (0..4_u8, 0..1200_u32, length, prop::bool::weighted(0.7))
            .prop_map(|(kind, start, n_numbers, is_added)| Run { kind, start, n_numbers, is_added })
    }

    /// Whether what is written about the variants holds, at every level.
    fn is_sound(set: &Set) -> bool {
        match set {
            Set::Empty | Set::One(_) => true,
            Set::Few { n_numbers, slots } => {
                let n_numbers = *n_numbers as usize;
                n_numbers >= 2
                    && used(slots).count() == n_numbers
                    && n_numbers <= slots.len() / 4 * 3
                    && (SLOTS_MIN..=SLOTS_MAX).contains(&slots.len())
            }
            Set::Many(children) => {
                children.iter().all(is_sound)
                    && children.iter().map(Set::few_or_more).sum::<usize>() > FEW_AGAIN
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn it_agrees_with_a_sorted_set_and_leaves_clones_alone(
            runs in prop::collection::vec(run(), 1..12),
            cut in 0..12_usize,
        ) {
            let (mut set, mut model) = (Set::default(), BTreeSet::new());
            let mut earlier = None;
            for (idx, run) in runs.iter().enumerate() {
                if idx == cut {
                    earlier = Some((set.clone(), model.clone()));
                }
                for number in run.numbers() {
                    if run.is_added {
                        prop_assert_eq!(set.insert(number), model.insert(number));
                    } else {
                        prop_assert_eq!(set.remove(number), model.remove(&number));
                    }
                }
            }
            for (set, model) in earlier.into_iter().chain([(set, model)]) {
                prop_assert!(is_sound(&set));
                let mut numbers = set.numbers();
                numbers.sort_unstable();
                prop_assert_eq!(numbers, model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(set.is_empty(), model.is_empty());
                for number in runs.iter().flat_map(Run::numbers).step_by(5) {
                    let (upper, _) = split(number);
                    let own = model.range(join(upper, 0)..=join(upper, u32::MAX)).copied();
                    let own: Vec<u64> = own.collect();
                    prop_assert_eq!(set.has(upper), !own.is_empty());
                    prop_assert_eq!(set.contains(number), own.contains(&number));
                    let found = set.find(upper, |lower| lower % 3 == 1);
                    prop_assert!(found.is_none_or(|lower| own.contains(&join(upper, lower))));
                    prop_assert_eq!(found.is_some(), own.iter().any(|own| split(*own).1 % 3 == 1));
                }
            }
        }

        #[test]
        fn what_is_spread_is_gathered(number in any::<u32>()) {
            prop_assert_eq!(gather(spread(number)), number);
        }
    }

    #[test]
    fn a_table_becomes_a_tree_past_the_limit_and_back() {
        let few_max = SLOTS_MAX / 4 * 3;
        let number = |count: usize| join(spread(count as u32), 0);
        let mut set = Set::default();
        (0..few_max).for_each(|count| assert!(set.insert(number(count))));
        assert!(matches!(set, Set::Few { .. }));
        set.insert(number(few_max));
        assert!(matches!(set, Set::Many(_)));
        for count in FEW_AGAIN + 1..=few_max {
            set.remove(number(count));
        }
        assert!(matches!(set, Set::Many(_)));
        set.remove(number(FEW_AGAIN));
        assert!(matches!(set, Set::Few { .. }));
        assert!((0..FEW_AGAIN).all(|count| set.has(spread(count as u32))));
        (0..FEW_AGAIN).for_each(|count| assert!(set.remove(number(count))));
        assert!(set.is_empty());
    }

    #[test]
    fn a_table_shrinks_with_its_numbers() {
        let mut set = Set::default();
        (0..500).for_each(|count| assert!(set.insert(join(spread(count), 0))));
        (2..500).for_each(|count| assert!(set.remove(join(spread(count), 0))));
        assert!(matches!(set, Set::Few { n_numbers: 2, slots } if slots.len() <= 8));
    }
}
