//! The reference ABAC authorizer: it tries every policy in file order.

use authz::{Attributes, Decision, Target, User};
use authz_abac::Policy;

/// All policies of a file.
#[derive(Debug, Clone, Default)]
pub struct ReferenceAbac {
    policies: Vec<Policy>,
}

impl ReferenceAbac {
    /// Makes the authorizer from policies in file order.
    pub fn new(policies: Vec<Policy>) -> Self {
        Self { policies }
    }

    /// Decides a request by the first policy that grants it.
    pub fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        match self.deciding_line(attributes) {
            Some(_) => Decision::allow(""),
            None => Decision::no_opinion("No policy matched."),
        }
    }

    /// The line of the first policy that matches.
    pub fn deciding_line(&self, attributes: &Attributes<'_>) -> Option<usize> {
        let user = attributes.user?;
        let is_match =
            |policy: &&Policy| matches_subject(policy, user) && grants(policy, attributes);
        self.policies.iter().find(is_match).map(Policy::line_number)
    }

    /// The policies whose subject matches the user.
    pub fn policies_for_user(&self, user: &User) -> impl Iterator<Item = &Policy> {
        self.policies.iter().filter(|policy| matches_subject(policy, user))
    }

    /// The policies that grant the request to their subjects.
    pub fn policies_granting(&self, attributes: &Attributes<'_>) -> impl Iterator<Item = &Policy> {
        self.policies.iter().filter(|policy| grants(policy, attributes))
    }
}

fn matches_subject(policy: &Policy, user: &User) -> bool {
    let spec = policy.spec();
    if spec.user.is_empty() && spec.group.is_empty() {
        return false;
    }
    let has_name = spec.user.is_empty() || spec.user == user.name;
    let has_group = spec.group.is_empty() || user.groups.contains(&spec.group);
    has_name && has_group
}

fn grants(policy: &Policy, attributes: &Attributes<'_>) -> bool {
    let spec = policy.spec();
    if spec.is_readonly && !["get", "list", "watch"].contains(&attributes.verb.as_str()) {
        return false;
    }
    match &attributes.target {
        Target::Resource(requested) => [
            (&spec.namespace, requested.namespace.as_str()),
            (&spec.resource, requested.resource),
            (&spec.api_group, requested.api_group),
        ]
        .iter()
        .all(|(part, value)| *part == "*" || part == value),
        Target::Path(path) => {
            crate::rule::has_path(std::slice::from_ref(&spec.non_resource_path), path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authz::{Resource, Verb, Verdict};
    use authz_abac::PolicySpec;

    #[test]
    fn the_first_line_that_is_for_the_user_and_grants_the_request_decides() {
        let read = PolicySpec { user: "ana".into(), is_readonly: true, ..PolicySpec::default() };
        let dev =
            PolicySpec { group: "dev".into(), resource: "pods".into(), ..PolicySpec::default() };
        let abac = ReferenceAbac::new(vec![Policy::from_v0(2, read), Policy::from_v0(5, dev)]);
        let user = |name: &str, group: &str| User {
            name: name.to_owned(),
            groups: vec![group.to_owned()],
            ..User::default()
        };
        let pods = Target::Resource(Resource { resource: "pods", ..Resource::default() });
        for (user, verb, target, want) in [
            (user("ana", "dev"), "get", pods, Some(2)),
            (user("ana", "dev"), "create", pods, Some(5)),
            (user("ana", "ops"), "create", pods, None),
            (user("bob", "dev"), "get", pods, Some(5)),
            (user("ana", ""), "get", Target::Path("/version"), Some(2)),
            (user("bob", "dev"), "get", Target::Path("/version"), None),
        ] {
            let request = Attributes { user: Some(&user), verb: Verb::new(verb), target };
            assert_eq!(abac.deciding_line(&request), want, "{request:?}");
            assert_eq!(abac.authorize(&request).verdict == Verdict::Allow, want.is_some());
        }
        let nobody = Attributes { user: None, verb: Verb::GET, target: pods };
        assert_eq!(abac.deciding_line(&nobody), None);
    }
}
