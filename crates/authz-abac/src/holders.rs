//! Who holds a policy for a target, if few do.

use std::hint::black_box;

use crate::askers::print_of;
use crate::proofs::Place;

/// The most entries of a target that name holders. With more, holders are sieved and looked up.
pub(crate) const FEW_MAX: usize = 4;

/// As many entries as there is room for in a line of the cache.
const ENTRIES_PER_LINE: usize = 5;

/// Entries for two lines, on average. Of lines that are half full one in twenty overflows.
const ENTRIES_PER_TWO_LINES: usize = 5;

/// Entries by targets.
///
/// Most targets are held by few. An entry then has the print of a holder and the place of the
/// policy, so that no other table is read to find it. If others hold the target too, an entry says
/// so.
///
/// INVARIANT: an entry is in the first line, from that of its target on and round the end, that had
/// room for it, and all lines before that one overflow. At least one line does not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holders {
    lines: Box<[Line]>,
}

/// As many entries as are read at once.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct Line {
    /// From the hashes of targets; [`VACANT`] if there is no entry.
    tags: [u32; ENTRIES_PER_LINE],
    /// The prints of holders, or [`OTHERS`].
    prints: [u32; ENTRIES_PER_LINE],
    /// The places of policies; of [`OTHERS`], masks.
    policies: [u32; ENTRIES_PER_LINE],
    overflows: bool,
}

const VACANT: u32 = 0;
/// No print is zero.
const OTHERS: u32 = 0;
/// The bit of a tag that is set if the policy is read-only.
const READONLY: u32 = 1;
/// The bit of a tag that is always set.
const OCCUPIED: u32 = 2;

/// An entry that is to be added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The hash of the target.
    pub(crate) target: u64,
    pub(crate) is_readonly: bool,
    pub(crate) held: Held,
}

/// What an entry says of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// Somebody of this print holds this policy.
    By { print: u32, policy: Place },
    /// Others hold it, whose words pass with this mask.
    ByOthers { mask: u32 },
}

impl Held {
    pub(crate) fn by(holder: u64, policy: Place) -> Self {
        Self::By { print: print_of(holder), policy }
    }
}

impl Holders {
    pub(crate) fn new(entries: &[Entry]) -> Self {
        let n_lines = entries.len() * 2 / ENTRIES_PER_TWO_LINES + 1;
        let mut lines = vec![Line::default(); n_lines];
        for entry in entries {
            let (before, from) = lines.split_at_mut(home(n_lines, entry.target));
            for line in from.iter_mut().chain(before) {
                if line.add(entry) {
                    break;
                }
            }
        }
        Self { lines: lines.into() }
    }

    /// Reads of the lines of all targets, so that they are fetched together.
    #[inline]
    pub(crate) fn touch(&self, targets: &[u64]) {
        let line = |target: &u64| self.lines.get(home(self.lines.len(), *target));
        let print = |target: &u64| line(target).map_or(0, |line| line.prints[0]);
        black_box(targets.iter().fold(0, |all, target| all ^ print(target)));
    }

    /// The lines in which the entries of a target are: almost always one.
    #[inline]
    pub(crate) fn lines(&self, target: u64) -> impl Iterator<Item = &Line> {
        let n_lines = self.lines.len();
        let mut next = Some(home(n_lines, target));
        std::iter::from_fn(move || {
            let at = next?;
            let line = self.lines.get(at)?;
            next = line.overflows.then_some(if at + 1 == n_lines { 0 } else { at + 1 });
            Some(line)
        })
    }
}

impl Line {
    /// Adds an entry if there is room.
    fn add(&mut self, entry: &Entry) -> bool {
        let Some(at) = self.tags.iter().position(|tag| *tag == VACANT) else {
            self.overflows = true;
            return false;
        };
        self.tags[at] = tag(entry.target) | if entry.is_readonly { READONLY } else { 0 };
        (self.prints[at], self.policies[at]) = match entry.held {
            Held::By { print, policy } => (print, policy),
            Held::ByOthers { mask } => (OTHERS, mask),
        };
        true
    }

    /// The entries of a target, less those of read-only policies unless the request is: a bit for
    /// each. Hardly ever is one of them of another target with the same tag.
    #[inline]
    pub(crate) fn entries(&self, target: u64, is_read_only: bool) -> u64 {
        let (tag, ignored) = (tag(target), if is_read_only { READONLY } else { 0 });
        let tags = self.tags.iter().zip(0..);
        tags.fold(0, |found, (own, at)| found | u64::from(own & !ignored == tag) << at)
    }

    /// What the entry of a bit says.
    #[inline]
    pub(crate) fn held(&self, at: usize) -> Held {
        let at = at % ENTRIES_PER_LINE;
        match (self.prints[at], self.policies[at]) {
            (OTHERS, mask) => Held::ByOthers { mask },
            (print, policy) => Held::By { print, policy },
        }
    }
}

/// What entries know their targets by, from the lower half of the hash.
#[inline]
fn tag(target: u64) -> u32 {
    target as u32 & !READONLY | OCCUPIED
}

/// The line where the search for a target begins, from the upper half of the hash.
#[inline]
fn home(n_lines: usize, target: u64) -> usize {
    // The upper half of the product is less than the number of lines.
    (((target >> 32) * n_lines as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hashes that crowd in few lines, also at the end of the table, and differ in their tags.
    fn target() -> impl Strategy<Value = u64> {
        let half = prop_oneof![0..3_u64, Just(u64::from(u32::MAX)), 0..=u64::from(u32::MAX)];
        (half, 0..4_u64).prop_map(|(upper, lower)| upper << 32 | lower << 2)
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let by = (any::<u64>(), any::<u32>()).prop_map(|(holder, policy)| Held::by(holder, policy));
        let others = any::<u32>().prop_map(|mask| Held::ByOthers { mask });
        (target(), any::<bool>(), prop_oneof![by, others])
            .prop_map(|(target, is_readonly, held)| Entry { target, is_readonly, held })
    }

    fn found(holders: &Holders, target: u64, is_read_only: bool) -> Vec<Held> {
        let lines = holders.lines(target);
        let of_line = |line: &Line| {
            let entries = line.entries(target, is_read_only);
            (0..64).filter(|at| entries >> at & 1 == 1).map(|at| line.held(at)).collect::<Vec<_>>()
        };
        lines.flat_map(of_line).collect()
    }

    proptest! {
        #[test]
        fn the_entries_of_a_target_are_found(
            entries in prop::collection::vec(entry(), 0..60),
            stranger in target(),
        ) {
            let holders = Holders::new(&entries);
            for target in entries.iter().map(|entry| entry.target).chain([stranger]) {
                let own = || entries.iter().filter(|entry| entry.target == target);
                let reading = found(&holders, target, true);
                let writing = found(&holders, target, false);
                for entry in own() {
                    prop_assert!(reading.contains(&entry.held));
                    prop_assert!(entry.is_readonly || writing.contains(&entry.held));
                }
                // Another target of the same tag may be in the same lines.
                let same = |entry: &&Entry| tag(entry.target) == tag(target);
                prop_assert!(reading.len() <= entries.iter().filter(same).count());
                let writable = entries.iter().filter(same).filter(|entry| !entry.is_readonly);
                prop_assert!(writing.len() <= writable.count());
            }
        }
    }

    #[test]
    fn without_entries_nothing_is_found() {
        for holders in [Holders::default(), Holders::new(&[])] {
            assert_eq!(found(&holders, 0, true), []);
            assert_eq!(found(&holders, u64::MAX, true), []);
            holders.touch(&[0, u64::MAX]);
        }
    }

    #[test]
    fn a_line_is_one_of_the_cache() {
        assert_eq!(size_of::<Line>(), 64);
    }
}
