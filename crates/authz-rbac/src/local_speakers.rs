//! The roles of all namespaces by what they speak of.
//!
//! There are many, so to find those of a target takes some looks at memory that is far away, and
//! most often the one role or two of a namespace say nothing of what is asked. A sieve of all
//! targets tells that with one look.

use std::sync::Arc;

use crate::question::VerbIdx;
use crate::sieve::{Place, ShortHolder, Sieve};
use crate::speakers::{Speaker, Speakers, Spoken, TargetName};

/// In how many parts the sieve is: a change copies one of them, and each has room for some thousands.
const PARTS: usize = 16;

/// The roles. Targets are mixed with the hash of the namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalSpeakers {
    speakers: Speakers,
    /// INVARIANT: has every target of which some role speaks.
    targets: Arc<[Sieve; PARTS]>,
}

impl LocalSpeakers {
    /// What is known of the target of this hash, unless nobody speaks of the verb there.
    #[inline]
    pub(crate) fn of(&self, target: u64, verb: VerbIdx) -> Option<&Spoken> {
        match self.targets[part(target)].lets_pass(short(target)) {
            true => self.speakers.of(target, verb),
            false => None,
        }
    }

    pub(crate) fn insert(&mut self, target: u64, name: &Arc<TargetName>, speaker: Speaker) {
        self.speakers.insert(target, name, speaker);
        Arc::make_mut(&mut self.targets)[part(target)].insert(short(target));
    }

    /// Takes out a role that was inserted.
    pub(crate) fn remove(&mut self, target: u64, role: u32) {
        self.speakers.remove(target, role);
        Arc::make_mut(&mut self.targets)[part(target)].remove(short(target));
    }
}

/// INVARIANT: less than [`PARTS`]. Goes by other bits than the sieve does.
#[inline]
fn part(target: u64) -> usize {
    (target % PARTS as u64) as usize
}

/// A target as a sieve keeps it.
fn short(target: u64) -> ShortHolder {
    Place::CLUSTER.holder(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(number: u64) -> u64 {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    fn insert(speakers: &mut LocalSpeakers, number: u64, role: u32) {
        let speaker = Speaker { role, verbs: 1, granted: 1 };
        speakers.insert(target(number), &Arc::new(TargetName::path("/a")), speaker);
    }

    fn found(speakers: &LocalSpeakers, number: u64) -> Vec<u32> {
        let spoken = speakers.of(target(number), 0);
        spoken.map_or(&[][..], |own| own.speakers().unwrap()).iter().map(|own| own.role).collect()
    }

    fn passes(speakers: &LocalSpeakers, number: u64) -> bool {
        speakers.targets[part(target(number))].lets_pass(short(target(number)))
    }

    #[test]
    fn roles_are_found_until_they_are_taken_out_and_clones_keep_them() {
        let mut speakers = LocalSpeakers::default();
        for number in 0..5000 {
            insert(&mut speakers, number, number as u32);
            insert(&mut speakers, number, 7_000);
        }
        let before = speakers.clone();
        for number in 0..5000 {
            speakers.remove(target(number), number as u32);
            assert_eq!(found(&speakers, number), [7_000]);
            assert_eq!(found(&before, number), [number as u32, 7_000]);
        }
        for number in 0..5000 {
            speakers.remove(target(number), 7_000);
            assert!(found(&speakers, number).is_empty());
        }
    }

    #[test]
    fn few_other_targets_pass() {
        let mut speakers = LocalSpeakers::default();
        (0..5000).for_each(|number| insert(&mut speakers, number, 7));
        let n_passed = (10_000..20_000).filter(|number| passes(&speakers, *number)).count();
        assert!(n_passed < 100, "{n_passed}");
    }
}
