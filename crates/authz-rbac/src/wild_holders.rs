//! Who may hold a role that speaks of targets without listing them.
//!
//! Such a role has to be thought of whatever is asked for, so its holders are told by the verbs that
//! it grants: those of a role that may only read are not in the way of who asks to write.

use std::sync::Arc;

use crate::compiled::{Verbs, has_verb, verbs_of};
use crate::few::{Crowded, Few};
use crate::question::{OTHER_VERB, VerbIdx};
use crate::sieve::{ShortHolder, Sieve};

const N_VERBS: usize = OTHER_VERB as usize + 1;

/// All verbs that have a number.
const KNOWN_VERBS: Verbs = (1 << N_VERBS) - 1;

/// The most such roles that are known for a verb.
const WILD_ROLES_MAX: usize = 64;

/// Verbs that read, that write, and others. To tell holders by these is almost as good as to tell them
/// by single verbs, and a role that grants all verbs changes three sieves and not seventeen.
const VERB_CLASSES: [Verbs; 3] = [0b111, 0b1111_1000, !0b1111_1111];

/// The roles by verb, and their holders.
#[derive(Debug, Clone, Default)]
pub(crate) struct WildHolders {
    roles: Arc<[Few<u32, WILD_ROLES_MAX>; N_VERBS]>,
    holders: Arc<[Sieve; VERB_CLASSES.len()]>,
}

impl WildHolders {
    /// The roles that have a verb and that some binding refers to.
    ///
    /// # Errors
    /// Fails if there are too many.
    pub(crate) fn roles(&self, verb: VerbIdx) -> Result<&[u32], Crowded> {
        self.roles[verb as usize % N_VERBS].all()
    }

    /// Who holds any of these, and perhaps others; `None` if there are no such roles.
    #[inline]
    pub(crate) fn holders(&self, verb: VerbIdx) -> Option<&Sieve> {
        let class = VERB_CLASSES.iter().position(|class| has_verb(*class, verb))?;
        let is_none = self.roles[verb as usize % N_VERBS].is_empty();
        if is_none { None } else { self.holders.get(class) }
    }

    /// Makes somebody a holder by one more binding, with these verbs.
    pub(crate) fn insert(&mut self, holder: ShortHolder, verbs: Verbs) {
        self.change_holders(classes(verbs), |sieve| sieve.insert(holder));
    }

    /// The reverse of [`insert`](Self::insert).
    pub(crate) fn remove(&mut self, holder: ShortHolder, verbs: Verbs) {
        self.change_holders(classes(verbs), |sieve| sieve.remove(holder));
    }

    /// Gives a role these verbs instead of others: to a role that no binding referred to, or from one
    /// that none does any more, or to one whose rules are others now.
    pub(crate) fn move_role(&mut self, role: u32, old: Verbs, new: Verbs) {
        let changed = verbs_of(old ^ new);
        // Nothing is copied in vain.
        if changed.clone().next().is_none() {
            return;
        }
        let roles = Arc::make_mut(&mut self.roles);
        for verb in changed {
            let roles = &mut roles[verb as usize % N_VERBS];
            match has_verb(new, verb) {
                true => roles.insert(role),
                false => roles.remove(|own| *own == role),
            }
        }
    }

    /// Gives the holders of a role other verbs.
    pub(crate) fn move_holders(&mut self, holders: &Sieve, old: Verbs, new: Verbs) {
        let (old, new) = (classes(old), classes(new));
        let pairs = || old.into_iter().zip(new);
        let lost = pairs().map(|(old, new)| old && !new);
        let gained = pairs().map(|(old, new)| new && !old);
        self.change_holders(lost, |sieve| sieve.remove_all(holders));
        self.change_holders(gained, |sieve| sieve.insert_all(holders));
    }

    fn change_holders(
        &mut self,
        classes: impl IntoIterator<Item = bool>,
        change: impl Fn(&mut Sieve),
    ) {
        for (idx, _) in classes.into_iter().enumerate().filter(|(_, is_meant)| *is_meant) {
            change(&mut Arc::make_mut(&mut self.holders)[idx % VERB_CLASSES.len()]);
        }
    }
}

/// Of which classes some verb is among these.
fn classes(verbs: Verbs) -> [bool; VERB_CLASSES.len()] {
    VERB_CLASSES.map(|class| class & verbs & KNOWN_VERBS != 0)
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

    /// The holders among which those of a verb are.
    fn class(wild: &WildHolders, verb: VerbIdx) -> &Sieve {
        let idx = VERB_CLASSES.iter().position(|class| has_verb(*class, verb)).unwrap();
        &wild.holders[idx]
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
                wild.move_holders(&roles[role], current[role], new);
                current[role] = new;
            }
            for (role, verbs) in current.into_iter().enumerate() {
                for number in (0..10).map(|number| 10 * role as u64 + number) {
                    let has = |verb| class(&wild, verb).lets_pass(holder(number));
                    prop_assert!(verbs_of(verbs).all(has));
                }
            }
            for number in 0..40 {
                wild.remove(holder(number), current[number as usize / 10]);
            }
            for verb in 0..=OTHER_VERB {
                prop_assert!(!class(&wild, verb).is_about(Place::CLUSTER));
                prop_assert!(!class(&empty, verb).lets_pass(holder(0)));
            }
        }
    }

    #[test]
    fn those_who_may_only_read_are_not_among_those_who_write() {
        let mut wild = WildHolders::default();
        (0..500).for_each(|number| wild.insert(holder(number), READ));
        wild.insert(holder(1000), ALL_VERBS);
        let passes = |verb, number| class(&wild, verb).lets_pass(holder(number));
        let n_passed = |verb| (0..500).filter(|number| passes(verb, *number)).count();
        assert_eq!((n_passed(0), n_passed(2)), (500, 500));
        assert!((3..=OTHER_VERB).all(|verb| n_passed(verb) < 5));
        assert!((0..=OTHER_VERB).all(|verb| passes(verb, 1000)));
    }

    #[test]
    fn roles_are_known_by_verb_and_without_roles_there_are_no_holders() {
        let mut wild = WildHolders::default();
        wild.insert(holder(1), READ);
        wild.move_role(7, 0, READ);
        wild.move_role(8, 0, ALL_VERBS);
        assert_eq!((wild.roles(0), wild.roles(3)), (Ok(&[7, 8][..]), Ok(&[8][..])));
        wild.move_role(8, ALL_VERBS, 1 << 4);
        assert_eq!((wild.roles(0), wild.roles(4)), (Ok(&[7][..]), Ok(&[8][..])));
        assert!(wild.holders(0).is_some() && wild.holders(3).is_none());
        (0..100).for_each(|role| wild.move_role(role + 10, 0, 1));
        assert!(wild.roles(0).is_err() && wild.holders(0).is_some());
    }
}
