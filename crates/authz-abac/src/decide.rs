//! The decision, and the snapshot it is made from.

use authz::{Attributes, Decision, Event, Reason, Recorder, User};

use crate::hashes::Hashes;
use crate::index::{Index, PolicyIdx, Proposal, Wanted};
use crate::near_miss;
use crate::policy::Policy;
use crate::proofs::Proof;

/// The reason beside having no opinion.
pub const NO_POLICY_MATCHED: &str = "No policy matched.";

/// The most policies that are held. A file of this many lines is far past what people write, and
/// the index counts them, their parts and their prefixes in 32 bits.
pub const POLICIES_MAX: usize = 1_000_000;

/// All policies of a file, indexed. A changed file becomes a new value.
///
/// INVARIANT: at most [`POLICIES_MAX`] policies, in file order.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    policies: Box<[Policy]>,
    index: Index,
}

/// There are more than [`POLICIES_MAX`] policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{n_policies} policies are more than {POLICIES_MAX}")]
pub struct TooManyPolicies {
    /// How many there are.
    pub n_policies: usize,
}

impl Policies {
    /// Indexes policies that are given in file order.
    ///
    /// # Errors
    /// Fails if there are too many.
    pub fn new(policies: Vec<Policy>) -> Result<Self, TooManyPolicies> {
        if policies.len() > POLICIES_MAX {
            return Err(TooManyPolicies { n_policies: policies.len() });
        }
        let index = Index::new(Hashes::default(), &policies);
        Ok(Self { policies: policies.into(), index })
    }

    /// The policies in file order.
    pub fn as_slice(&self) -> &[Policy] {
        &self.policies
    }

    /// Answers whether some policy grants the request.
    ///
    /// 1. A policy matches if its user and its group, as far as they are set, are those of the
    ///    request, at least one being set;
    /// 2. and if the verb only reads or the policy is not read-only;
    /// 3. and if its namespace, resource and API group each are `*` or the request's; for a request
    ///    that is not for a resource, if its path covers the request's.
    /// 4. If any policy matches, the request is allowed; the first one is noted. Otherwise there is
    ///    no opinion, and near misses are noted. A request without a user matches nothing.
    ///
    /// Never denies and never fails. Allocates nothing unless the recorder is on.
    pub fn authorize(&self, attributes: &Attributes<'_>, mut recorder: Recorder<'_>) -> Decision {
        // Nobody else is told which policy it was.
        let wanted = if recorder.is_on() { Wanted::First } else { Wanted::Any };
        if let Some(policy) = self.matching(attributes, wanted) {
            recorder.note(|| event(policy).with("matches", true));
            return Decision::allow(Reason::AbacPolicy { line: policy.line() });
        }
        if recorder.is_on() {
            for miss in near_miss::find(self, attributes) {
                recorder.note(|| {
                    event(miss.policy).with("matches", false).with("lacks", miss.lack.name())
                });
            }
        }
        Decision::no_opinion(NO_POLICY_MATCHED)
    }

    /// A policy that matches: the first one, or whichever is found first.
    ///
    /// What the index proposes is compared with the request. Should it not match, then two hashes
    /// are equal, which is hardly ever seen, and the policies are tried one by one.
    fn matching(&self, attributes: &Attributes<'_>, wanted: Wanted) -> Option<&Policy> {
        let user = attributes.user?;
        let Proposal { policy, asker } = self.index.proposal(user, attributes, wanted)?;
        let matches = |policy: &&Policy| policy.matches(user, attributes);
        let found = match self.index.proofs().check(policy, user, asker, attributes) {
            Proof::Grants(idx) => self.policy(idx),
            Proof::Unknown(idx) => self.policy(idx).filter(matches),
            Proof::Differs => None,
        };
        found.or_else(|| self.policies.iter().find(matches))
    }

    /// All policies whose subject the user is, in file order.
    pub(crate) fn of_user(&self, user: &User) -> impl Iterator<Item = &Policy> {
        let policies = self.index.policies_of(user).into_iter();
        policies
            .filter_map(|idx| self.policy(idx))
            .filter(move |policy| policy.matches_subject(user))
    }

    fn policy(&self, idx: PolicyIdx) -> Option<&Policy> {
        self.policies.get(usize::try_from(idx).ok()?)
    }
}

/// A policy as an explanation shows it: its line, and its parts unless they are empty.
fn event(policy: &Policy) -> Event {
    let spec = policy.spec();
    let mut event = Event::new("rule").with("line", policy.line());
    for (name, part) in [
        ("user", &spec.user),
        ("group", &spec.group),
        ("namespace", &spec.namespace),
        ("resource", &spec.resource),
        ("apiGroup", &spec.api_group),
        ("nonResourcePath", &spec.non_resource_path),
    ] {
        if !part.is_empty() {
            event = event.with(name, part.as_str());
        }
    }
    event.with("readonly", spec.is_readonly)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Spec;

    #[test]
    fn there_may_be_as_many_policies_as_the_limit_and_no_more() {
        let policies = vec![Policy::v1beta1(1, Spec::default()); POLICIES_MAX];
        let mut more = policies.clone();
        assert_eq!(Policies::new(policies).unwrap().as_slice().len(), POLICIES_MAX);
        more.push(Policy::v1beta1(2, Spec::default()));
        let error = Policies::new(more).unwrap_err();
        assert_eq!(error.to_string(), "1000001 policies are more than 1000000");
    }
}
