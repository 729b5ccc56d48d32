//! As whom a user asks, in the terms of the index.

use authz::User;

use crate::hashes::{Hashes, any_member};
use crate::sieve::{Sieve, passes};

/// The most that are compared together: as many as a word has bits.
const BATCH_MAX: usize = u64::BITS as usize;

/// How many are compared at once, which takes the processor a few instructions.
const LANES: usize = 16;

/// As whom a user asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The user.
    User,
    /// The user as a member of any of the groups.
    Member,
    /// The group at this place in the list of groups.
    Group(usize),
}

/// The sieves that askers are tried with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sieves<'s> {
    /// For the user and the groups.
    pub(crate) holders: &'s Sieve,
    /// For the user as a member.
    pub(crate) members: &'s Sieve,
}

/// Some of those as whom a user asks: the user, the user as a member, and the groups, numbered in
/// this order.
///
/// Each is hashed once. All are then compared with one thing before the next thing is looked at,
/// without branches that could be guessed wrong.
#[derive(Debug)]
pub(crate) struct Askers {
    /// The number of the first.
    start: usize,
    n_askers: usize,
    /// Of each asker; zero, which no print is, beyond the last.
    prints: [[u32; LANES]; BATCH_MAX / LANES],
    /// The word of each asker; zero beyond the last.
    words: [[u32; LANES]; BATCH_MAX / LANES],
}

/// The numbers that are not those of groups.
const USER: usize = 0;
const MEMBER: usize = 1;
/// The number of the first group.
const GROUPS: usize = 2;

impl Askers {
    /// None yet.
    pub(crate) const NONE: Self = Self {
        start: 0,
        n_askers: 0,
        prints: [[0; LANES]; BATCH_MAX / LANES],
        words: [[0; LANES]; BATCH_MAX / LANES],
    };

    /// Goes on to the askers after these, as many as there is room for; `false` if there are none.
    pub(crate) fn load_next(&mut self, hashes: &Hashes, sieves: Sieves<'_>, user: &User) -> bool {
        self.start += self.n_askers;
        let n_left = (GROUPS + user.groups.len()).saturating_sub(self.start);
        self.n_askers = n_left.min(BATCH_MAX);
        if n_left == 0 {
            return false;
        }
        let places = self.prints.as_flattened_mut().iter_mut();
        let mut places = places.zip(self.words.as_flattened_mut());
        if self.start == USER {
            let name = hashes.user(&user.name);
            let named = [(name, sieves.holders), (any_member(name), sieves.members)];
            for ((key, sieve), (print, word)) in named.into_iter().zip(places.by_ref()) {
                (*print, *word) = (print_of(key), sieve.word(key));
            }
        }
        let groups = user.groups.get(self.start.saturating_sub(GROUPS)..).unwrap_or_default();
        for (group, (print, word)) in groups.iter().zip(places.by_ref()) {
            let key = hashes.group(group);
            (*print, *word) = (print_of(key), sieves.holders.word(key));
        }
        // Nobody was loaded before the first, so only later ones leave something behind.
        if self.start != USER {
            places.for_each(|(print, word)| (*print, *word) = (0, 0));
        }
        true
    }

    /// An asker of this print.
    #[inline]
    pub(crate) fn find(&self, print: u32) -> Option<Asker> {
        let lanes = self.prints.iter().take(self.n_askers.div_ceil(LANES));
        for (lanes, start) in lanes.zip((0..).step_by(LANES)) {
            if lanes.iter().fold(false, |any, own| any | (*own == print)) {
                let at = lanes.iter().position(|own| *own == print);
                return at.map(|at| self.asker(start + at));
            }
        }
        None
    }

    /// All askers whose word passes with this mask: a bit for each.
    #[inline]
    pub(crate) fn passing(&self, mask: u32) -> u64 {
        let mut passing = 0;
        let lanes = self.words.iter().take(self.n_askers.div_ceil(LANES));
        for (lanes, start) in lanes.zip((0..).step_by(LANES)) {
            if lanes.iter().fold(false, |any, own| any | passes(*own, mask)) {
                for (own, at) in lanes.iter().zip(start..self.n_askers) {
                    passing |= u64::from(passes(*own, mask)) << at;
                }
            }
        }
        passing
    }

    /// The asker of a bit.
    pub(crate) fn asker(&self, at: usize) -> Asker {
        match self.start + at {
            USER => Asker::User,
            MEMBER => Asker::Member,
            number => Asker::Group(number - GROUPS),
        }
    }
}

/// What holders are told from each other by where they are few; never zero.
#[inline]
pub(crate) fn print_of(key: u64) -> u32 {
    key as u32 | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sieve::mask;

    fn user(n_groups: usize) -> User {
        let groups = (0..n_groups).map(|number| format!("group-{number}")).collect();
        User { name: "ana".into(), groups, ..User::default() }
    }

    /// Batches end after 64 askers, and lanes after 16.
    #[test]
    fn every_asker_is_found_and_nobody_else() {
        let hashes = Hashes::default();
        let empty = Sieve::default();
        let sieves = Sieves { holders: &empty, members: &empty };
        for n_groups in [0, 1, 13, 14, 15, 61, 62, 63, 126, 127, 200] {
            let user = user(n_groups);
            let name = hashes.user(&user.name);
            let mut keys = vec![(name, Asker::User), (any_member(name), Asker::Member)];
            let groups = user.groups.iter().enumerate();
            keys.extend(groups.map(|(idx, group)| (hashes.group(group), Asker::Group(idx))));
            let mut found = Vec::new();
            let mut askers = Askers::NONE;
            while askers.load_next(&hashes, sieves, &user) {
                found.extend(keys.iter().filter_map(|(key, _)| askers.find(print_of(*key))));
                assert_eq!(askers.find(print_of(hashes.user("bob"))), None);
                assert_eq!(askers.find(print_of(hashes.group("group"))), None);
                assert_eq!(askers.passing(0).count_ones() as usize, askers.n_askers);
            }
            let want: Vec<Asker> = keys.into_iter().map(|(_, asker)| asker).collect();
            assert_eq!(found, want, "{n_groups}");
        }
    }

    #[test]
    fn those_who_hold_a_target_pass() {
        let hashes = Hashes::default();
        let user = user(100);
        let (name, target) = (hashes.user("ana"), hashes.path("/healthz"));
        let holders =
            Sieve::new(&[(hashes.group("group-7"), target), (hashes.group("group-90"), target)]);
        let members = Sieve::new(&[(any_member(name), target)]);
        let sieves = Sieves { holders: &holders, members: &members };
        let mut askers = Askers::NONE;
        for want in [&[Asker::Member, Asker::Group(7)][..], &[Asker::Group(90)]] {
            assert!(askers.load_next(&hashes, sieves, &user));
            let passing = askers.passing(mask(target));
            let passing = (0..BATCH_MAX).filter(|at| passing >> at & 1 == 1);
            let passing: Vec<Asker> = passing.map(|at| askers.asker(at)).collect();
            assert!(want.iter().all(|asker| passing.contains(asker)), "{passing:?}");
            // The words of so few holders are almost all empty.
            assert!(passing.len() < 20, "{passing:?}");
        }
        assert!(!askers.load_next(&hashes, sieves, &user));
    }
}
