//! The way from a request to the policy that is proposed for it.
//!
//! Speed comes from asking memory for many things before waiting for one: the lines of all targets
//! are touched, then all askers are hashed and their words of a sieve read, and only then is what
//! came in compared.

use std::ops::ControlFlow;

use authz::{Attributes, Target, User};

use super::{Index, Proposal};
use crate::askers::{Asker, Askers, Sieves};
use crate::hashes::{any_member, holding, member};
use crate::holders::Held;
use crate::proofs::Place;
use crate::sieve::NO_MASK;

/// Which of several policies is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The first in file order.
    First,
    /// Whichever is found first.
    Any,
}

impl Index {
    /// A policy that may grant the request to the user: by name, by a group, or by name within a
    /// group.
    ///
    /// INVARIANT: if a policy grants it, one is proposed, and if the first is wanted, that policy or
    /// an earlier one. So there is none if none is proposed, and if the first that is proposed grants
    /// it, that is the first of all.
    pub(crate) fn proposal(
        &self,
        user: &User,
        attributes: &Attributes<'_>,
        wanted: Wanted,
    ) -> Option<Proposal> {
        let is_read_only = attributes.is_read_only();
        let mut search = Search { index: self, user, is_read_only, wanted, best: None };
        match search.run(&attributes.target) {
            ControlFlow::Continue(()) | ControlFlow::Break(()) => search.best,
        }
    }
}

/// A search, which is broken off when what is wanted is found.
struct Search<'a> {
    index: &'a Index,
    user: &'a User,
    is_read_only: bool,
    wanted: Wanted,
    /// The first policy in file order of those that were found.
    best: Option<Proposal>,
}

impl Search<'_> {
    /// 1. The targets that cover the request are made out, at most eight at a time.
    /// 2. Those as whom the user asks are hashed, and their words of the sieves read.
    /// 3. Of each target it is read who holds it. If these are few, they are compared with those who
    ///    ask; and if there are others, those who ask and pass the sieves are looked up.
    fn run(&mut self, target: &Target<'_>) -> ControlFlow<()> {
        let index = self.index;
        let holders = match target {
            Target::Resource(_) => &index.resource_holders,
            Target::Path(_) => &index.path_holders,
        };
        let sieves = Sieves { holders, members: &index.members };
        let mut covering = index.targets.covering(&index.hashes, target);
        loop {
            index.holders.touch(covering.hashes());
            let mut askers = Askers::NONE;
            while askers.load_next(&index.hashes, sieves, self.user) {
                covering
                    .hashes()
                    .iter()
                    .try_for_each(|target| self.try_target(*target, &askers))?;
            }
            if !covering.advance() {
                return ControlFlow::Continue(());
            }
        }
    }

    #[inline]
    fn try_target(&mut self, target: u64, askers: &Askers) -> ControlFlow<()> {
        for line in self.index.holders.lines(target) {
            for at in places(line.entries(target, self.is_read_only)) {
                match line.held(at) {
                    Held::By { print, policy } => {
                        if let Some(asker) = askers.find(print) {
                            self.propose(policy, asker)?;
                        }
                    }
                    Held::ByOthers { mask } => {
                        for at in places(askers.passing(mask)) {
                            self.look_up(target, mask, askers.asker(at))?;
                        }
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Looks up what an asker holds of a target that others than few hold.
    fn look_up(&mut self, target: u64, mask: u32, asker: Asker) -> ControlFlow<()> {
        let Self { index: Index { hashes, .. }, user, .. } = *self;
        match asker {
            Asker::User => self.look_up_subject(hashes.user(&user.name), target, mask, asker),
            Asker::Group(idx) => match user.groups.get(idx) {
                Some(group) => self.look_up_subject(hashes.group(group), target, mask, asker),
                None => ControlFlow::Continue(()),
            },
            // Before all groups are looked up, it is made sure that it is as a member of some.
            Asker::Member => {
                let name = hashes.user(&user.name);
                if self.index.grants.get(holding(any_member(name), target)).is_none() {
                    return ControlFlow::Continue(());
                }
                user.groups.iter().try_for_each(|group| {
                    let subject = member(name, hashes.group(group));
                    self.look_up_subject(subject, target, mask, asker)
                })
            }
        }
    }

    fn look_up_subject(
        &mut self,
        subject: u64,
        target: u64,
        mask: u32,
        asker: Asker,
    ) -> ControlFlow<()> {
        let pair = holding(subject, target);
        if (mask == NO_MASK || self.index.pairs.pass(pair, pair))
            && let Some(grant) = self.index.grants.get(pair)
            && let Some(policy) = grant.of(self.is_read_only)
        {
            return self.propose(policy, asker);
        }
        ControlFlow::Continue(())
    }

    fn propose(&mut self, policy: Place, asker: Asker) -> ControlFlow<()> {
        if self.best.is_none_or(|best| policy < best.policy) {
            self.best = Some(Proposal { policy, asker });
        }
        match self.wanted {
            Wanted::First => ControlFlow::Continue(()),
            Wanted::Any => ControlFlow::Break(()),
        }
    }
}

/// The places of the bits that are set.
fn places(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (bits != 0).then(|| bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        place
    })
}

#[cfg(test)]
mod tests {
    use authz::Resource;
    use proptest::prelude::*;

    use super::*;
    use crate::hashes::Hashes;
    use crate::policy::{Policy, Spec};
    use crate::proofs::Proof;

    /// Each begins with all before it, and there are more than are made out together.
    fn prefix(depth: usize) -> String {
        "/a".repeat(depth) + "*"
    }

    fn policy() -> impl Strategy<Value = Policy> {
        let user = prop_oneof![Just(String::new()), (0..3_u8).prop_map(|n| format!("u{n}"))];
        let group = prop_oneof![Just(String::new()), (0..150_u8).prop_map(|n| format!("g{n}"))];
        let part = || prop::sample::select(&["", "*", "x", "y"][..]).prop_map(str::to_owned);
        let path =
            prop_oneof![Just(String::new()), Just("/a".into()), (0..14_usize).prop_map(prefix)];
        (user, group, any::<bool>(), part(), part(), part(), path).prop_map(
            |(user, group, is_readonly, api_group, resource, namespace, non_resource_path)| {
                let spec = Spec {
                    user,
                    group,
                    is_readonly,
                    api_group,
                    resource,
                    namespace,
                    non_resource_path,
                };
                Policy::v1beta1(1, spec)
            },
        )
    }

    fn targets() -> Vec<Target<'static>> {
        let resource = |namespace, resource| {
            Target::Resource(Resource { namespace, resource, ..Resource::default() })
        };
        let paths = ["", "/a", "/a/a/a", "/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a"].map(Target::Path);
        [resource("", ""), resource("x", "y"), resource("y", "z")]
            .into_iter()
            .chain(paths)
            .collect()
    }

    proptest! {
        /// Were something else proposed than what grants a request, decisions would still be right,
        /// but made by trying all policies.
        #[test]
        fn what_is_proposed_grants_the_request(
            policies in prop::collection::vec(policy(), 0..400),
            name in prop::sample::select(&["u0", "u1", "u9"][..]),
            groups in prop::collection::vec(0..160_u8, 0..140),
            verb in prop::sample::select(&["get", "create"][..]),
        ) {
            let index = Index::new(Hashes::default(), &policies);
            let groups = groups.iter().map(|group| format!("g{group}")).collect();
            let user = User { name: name.into(), groups, ..User::default() };
            for target in targets() {
                let attributes = Attributes { user: Some(&user), verb, target };
                let is_granting = |idx: u32| policies[idx as usize].matches(&user, &attributes);
                let granting: Vec<u32> =
                    (0..).take(policies.len()).filter(|idx| is_granting(*idx)).collect();
                let prove = |wanted| {
                    let Proposal { policy, asker } = index.proposal(&user, &attributes, wanted)?;
                    Some(index.proofs().check(policy, &user, asker, &attributes))
                };
                let first = granting.first().map(|idx| Proof::Grants(*idx));
                prop_assert_eq!(prove(Wanted::First), first);
                match prove(Wanted::Any) {
                    Some(Proof::Grants(idx)) => prop_assert!(granting.contains(&idx)),
                    other => prop_assert_eq!(other, first),
                }
            }
        }
    }
}
