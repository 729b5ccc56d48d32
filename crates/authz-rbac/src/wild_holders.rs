//! Who may hold a role that speaks of targets without listing them.
//!
//! Such a role has to be thought of whatever is asked for, so its holders are told by the verbs that
//! it grants: those of a role that may only read are not in the way of who asks to write.

use std::sync::Arc;

use crate::compiled::{Verbs, verbs_of};
use crate::question::{OTHER_VERB, VerbIdx};
use crate::sieve::{ShortHolder, Sieve};

const N_VERBS: usize = OTHER_VERB as usize + 1;

/// The holders, once for every verb that they have.
#[derive(Debug, Clone, Default)]
pub(crate) struct WildHolders(Arc<[Sieve; N_VERBS]>);

impl WildHolders {
    /// Those who have a verb.
    pub(crate) fn of(&self, verb: VerbIdx) -> &Sieve {
        &self.0[verb as usize % N_VERBS]
    }

    /// Makes somebody a holder by one more binding, with these verbs.
    pub(crate) fn insert(&mut self, holder: ShortHolder, verbs: Verbs) {
        self.change(verbs, |sieve| sieve.insert(holder));
    }

    /// The reverse of [`insert`](Self::insert).
    pub(crate) fn remove(&mut self, holder: ShortHolder, verbs: Verbs) {
        self.change(verbs, |sieve| sieve.remove(holder));
    }

    /// Gives the holders of a role other verbs.
    pub(crate) fn move_all(&mut self, holders: &Sieve, old: Verbs, new: Verbs) {
        self.change(old & !new, |sieve| sieve.remove_all(holders));
        self.change(new & !old, |sieve| sieve.insert_all(holders));
    }

    fn change(&mut self, verbs: Verbs, change: impl Fn(&mut Sieve)) {
        let mut verbs = verbs_of(verbs).peekable();
        // Nothing is copied in vain.
        if verbs.peek().is_some() {
            let sieves = Arc::make_mut(&mut self.0);
            verbs.for_each(|verb| change(&mut sieves[verb as usize % N_VERBS]));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compiled::ALL_VERBS;
    use crate::sieve::Place;

    const READ: Verbs = 0b111;
    const WRITE: Verbs = 0b111_1000 | 1 << OTHER_VERB;

    fn holder(number: u64) -> ShortHolder {
        Place::CLUSTER.holder((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn holders(numbers: std::ops::Range<u64>) -> Sieve {
        let mut sieve = Sieve::default();
        numbers.for_each(|number| sieve.insert(holder(number)));
        sieve
    }

    fn verbs() -> impl Strategy<Value = Verbs> {
        prop_oneof![Just(0), Just(READ), Just(WRITE), Just(READ | WRITE), Just(ALL_VERBS)]
    }

    proptest! {
        #[test]
        fn holders_have_the_verbs_of_their_role_and_clones_are_left_alone(
            changes in prop::collection::vec((0..4_usize, verbs()), 0..12),
        ) {
            // Four roles with ten holders each, of whom nobody holds two.
            let roles: Vec<Sieve> = (0..4).map(|role| holders(10 * role..10 * role + 10)).collect();
            let (mut wild, mut current) = (WildHolders::default(), [0; 4]);
            let empty = wild.clone();
            for (role, new) in changes {
                wild.move_all(&roles[role], current[role], new);
                current[role] = new;
            }
            for (role, verbs) in current.into_iter().enumerate() {
                for number in (0..10).map(|number| 10 * role as u64 + number) {
                    let has = |verb| wild.of(verb).lets_pass(holder(number));
                    prop_assert!(verbs_of(verbs).all(has));
                }
            }
            for number in 0..40 {
                wild.remove(holder(number), current[number as usize / 10]);
            }
            for verb in 0..=OTHER_VERB {
                prop_assert!(!wild.of(verb).is_about(Place::CLUSTER));
                prop_assert!(!empty.of(verb).lets_pass(holder(0)));
            }
        }
    }

    #[test]
    fn those_who_may_only_read_are_not_among_those_who_write() {
        let mut wild = WildHolders::default();
        (0..500).for_each(|number| wild.insert(holder(number), READ));
        wild.insert(holder(1000), ALL_VERBS);
        let n_passed = |verb| (0..500).filter(|own| wild.of(verb).lets_pass(holder(*own))).count();
        assert_eq!((n_passed(0), n_passed(2)), (500, 500));
        assert!((3..=OTHER_VERB).all(|verb| n_passed(verb) < 5));
        assert!((0..=OTHER_VERB).all(|verb| wild.of(verb).lets_pass(holder(1000))));
    }
}
