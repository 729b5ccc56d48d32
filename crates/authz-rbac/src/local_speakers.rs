//! The roles of all namespaces by what they speak of.
//!
//! There are many, so to find those of a target takes some looks at memory that is far away, and
//! most often the one role or two of a namespace say nothing of what is asked. A sieve of all
//! targets tells that with one look.

use std::sync::Arc;

use crate::compiled::Verbs;
use crate::multimap::Crowded;
use crate::roles::Speakers;
use crate::sieve::{Place, ShortHolder, Sieve};

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
    /// Visits the roles that speak of a target, and with which verbs, until a visit fails.
    #[inline]
    pub(crate) fn visit(
        &self,
        target: u64,
        visit: impl FnMut((Verbs, u32)) -> Result<(), Crowded>,
    ) -> Result<(), Crowded> {
        match self.targets[part(target)].lets_pass(short(target)) {
            true => self.speakers.visit(target, visit),
            false => Ok(()),
        }
    }

    pub(crate) fn insert(&mut self, target: u64, speaker: (Verbs, u32)) {
        self.speakers.insert(target, speaker);
        Arc::make_mut(&mut self.targets)[part(target)].insert(short(target));
    }

    /// Takes out a role that was inserted.
    pub(crate) fn remove(&mut self, target: u64, is_meant: impl Fn((Verbs, u32)) -> bool) {
        self.speakers.remove(target, is_meant);
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

    fn found(speakers: &LocalSpeakers, number: u64) -> Vec<(Verbs, u32)> {
        let mut found = Vec::new();
        let visited = speakers.visit(target(number), |speaker| {
            found.push(speaker);
            Ok(())
        });
        assert!(visited.is_ok());
        found
    }

    fn passes(speakers: &LocalSpeakers, number: u64) -> bool {
        speakers.targets[part(target(number))].lets_pass(short(target(number)))
    }

    #[test]
    fn roles_are_found_until_they_are_taken_out_and_clones_keep_them() {
        let mut speakers = LocalSpeakers::default();
        for number in 0..5000 {
            speakers.insert(target(number), (1, number as u32));
            speakers.insert(target(number), (2, 7_000));
        }
        let before = speakers.clone();
        for number in 0..5000 {
            speakers.remove(target(number), |(_, role)| role == number as u32);
            assert_eq!(found(&speakers, number), [(2, 7_000)]);
            assert_eq!(found(&before, number), [(1, number as u32), (2, 7_000)]);
        }
        for number in 0..5000 {
            speakers.remove(target(number), |(_, role)| role == 7_000);
            assert!(found(&speakers, number).is_empty());
        }
    }

    #[test]
    fn few_other_targets_pass() {
        let mut speakers = LocalSpeakers::default();
        (0..5000).for_each(|number| speakers.insert(target(number), (1, 7)));
        let n_passed = (10_000..20_000).filter(|number| passes(&speakers, *number)).count();
        assert!(n_passed < 100, "{n_passed}");
    }
}
