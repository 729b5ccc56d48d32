//! ABAC as a reader of the rules would write it: every policy, one after the other.
//!
//! It shares nothing with the index but the parts of a policy, and is slow on purpose.

use authz::{Attributes, Target, User};
use authz_abac::Policy;

/// The line of the first policy that matches.
pub(crate) fn deciding_line(policies: &[Policy], attributes: &Attributes<'_>) -> Option<usize> {
    let user = attributes.user?;
    policies
        .iter()
        .find(|policy| matches_subject(policy, user) && grants(policy, attributes))
        .map(Policy::line)
}

/// Whether the policy is for the user.
pub(crate) fn matches_subject(policy: &Policy, user: &User) -> bool {
    let spec = policy.spec();
    if spec.user.is_empty() && spec.group.is_empty() {
        return false;
    }
    let has_name = spec.user.is_empty() || spec.user == user.name;
    let has_group = spec.group.is_empty() || user.groups.contains(&spec.group);
    has_name && has_group
}

/// Whether the policy grants the request to whom it is for.
pub(crate) fn grants(policy: &Policy, attributes: &Attributes<'_>) -> bool {
    let spec = policy.spec();
    if spec.is_readonly && !["get", "list", "watch"].contains(&attributes.verb) {
        return false;
    }
    match &attributes.target {
        Target::Resource(wanted) => [
            (&spec.namespace, wanted.namespace),
            (&spec.resource, wanted.resource),
            (&spec.api_group, wanted.api_group),
        ]
        .iter()
        .all(|(part, value)| *part == "*" || part == value),
        Target::Path(path) => {
            let part = spec.non_resource_path.as_str();
            let mut stem = part;
            while let Some(shorter) = stem.strip_suffix('*') {
                stem = shorter;
            }
            part == *path || (stem.len() < part.len() && path.starts_with(stem))
        }
    }
}
