//! All policies of a file, indexed.

use authz::User;

use crate::index::Index;
use crate::policy::Policy;

/// The largest number of policies in one snapshot. A file of this many lines is far larger than what
/// people write, and the index counts policies in 32 bits.
pub const POLICIES_MAX: usize = 1_000_000;

/// All policies of a file, indexed. A changed file becomes a new snapshot.
///
/// INVARIANT: at most [`POLICIES_MAX`] policies, in file order.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    policies: Box<[Policy]>,
    pub(crate) index: Index,
}

/// The file has more than [`POLICIES_MAX`] policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{n_policies} policies are more than {POLICIES_MAX}")]
pub struct TooManyPolicies {
    /// The number of policies in the file.
    pub n_policies: usize,
}

impl Snapshot {
    /// Indexes policies that are given in file order.
    ///
    /// # Errors
    /// Fails if there are more than [`POLICIES_MAX`] policies.
    pub fn new(policies: Vec<Policy>) -> Result<Self, TooManyPolicies> {
        if policies.len() > POLICIES_MAX {
            return Err(TooManyPolicies { n_policies: policies.len() });
        }
        let index = Index::new(&policies);
        Ok(Self { policies: policies.into(), index })
    }

    /// The policies in file order.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// The policies whose subject the user is, in file order.
    pub(crate) fn policies_of_user(&self, user: &User) -> impl Iterator<Item = &Policy> {
        let candidates = self.index.policies_of_user(user).into_iter();
        candidates
            .filter_map(|idx| self.policies.get(idx as usize))
            .filter(move |policy| policy.matches_subject(user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicySpec;

    #[test]
    fn the_number_of_policies_is_limited() {
        let policies = vec![Policy::from_v1beta1(1, PolicySpec::default()); POLICIES_MAX];
        let mut more_policies = policies.clone();
        assert_eq!(Snapshot::new(policies).unwrap().policies().len(), POLICIES_MAX);
        more_policies.push(Policy::from_v1beta1(2, PolicySpec::default()));
        let error = Snapshot::new(more_policies).unwrap_err();
        assert_eq!(error.to_string(), "1000001 policies are more than 1000000");
    }
}
