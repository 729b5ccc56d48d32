//! One line of a policy file, and whether it matches a request.

use authz::{Attributes, Target, User};

/// The group of all users who are not anonymous.
const AUTHENTICATED_GROUP: &str = "system:authenticated";

/// The wildcard: a part with this value covers every value.
pub(crate) const WILDCARD: &str = "*";

/// The parts of a policy. The meaning of an empty part depends on the version of the line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PolicySpec {
    /// The name of the user.
    pub user: String,
    /// A group in which the user must be.
    pub group: String,
    /// The policy grants only `get`, `list` and `watch`.
    pub is_readonly: bool,
    /// The API group of the resource.
    pub api_group: String,
    /// The resource. The policy covers all its subresources and names.
    pub resource: String,
    /// The namespace; `*` includes requests without one.
    pub namespace: String,
    /// The path of requests that are not for a resource. With `*` at its end it is a prefix.
    pub non_resource_path: String,
}

/// One line of a policy file, converted to the form that is compared with requests.
///
/// INVARIANT: neither the user nor the group is `*`; the conversion replaces them with the group
/// `system:authenticated`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    line_number: usize,
    spec: PolicySpec,
}

/// The subject of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Subject<'a> {
    /// Neither a user nor a group: the policy grants nothing.
    Nobody,
    User(&'a str),
    Group(&'a str),
    /// A user, but only as a member of the group.
    Member {
        user: &'a str,
        group: &'a str,
    },
}

impl Policy {
    /// Converts a line of version `v1beta1`. A part that is not set covers only the empty value.
    pub fn from_v1beta1(line: usize, spec: PolicySpec) -> Self {
        Self { line_number: line, spec: replace_wildcard_subject(spec) }
    }

    /// Converts a line of version `v0`, or of no version. A part that is not set covers every value.
    ///
    /// The version has neither API groups nor paths, so both are ignored. The line grants all paths if it
    /// sets neither a namespace nor a resource, and otherwise none.
    pub fn from_v0(line: usize, spec: PolicySpec) -> Self {
        let has_resource = !spec.namespace.is_empty() || !spec.resource.is_empty();
        let or_wildcard = |text: String| if text.is_empty() { WILDCARD.to_owned() } else { text };
        let has_no_subject = spec.user.is_empty() && spec.group.is_empty();
        let spec = PolicySpec {
            group: if has_no_subject { AUTHENTICATED_GROUP.to_owned() } else { spec.group },
            user: spec.user,
            is_readonly: spec.is_readonly,
            api_group: WILDCARD.to_owned(),
            resource: or_wildcard(spec.resource),
            namespace: or_wildcard(spec.namespace),
            non_resource_path: if has_resource { String::new() } else { WILDCARD.to_owned() },
        };
        Self { line_number: line, spec: replace_wildcard_subject(spec) }
    }

    /// Converts a line of version `v0`, or of no version, by the rules of the first design proposal: an attribute
    /// that a request lacks matches every value in a line. So a line for one namespace also grants requests without
    /// a namespace, and every line grants all paths, because a request for a path has neither a namespace nor a
    /// resource.
    ///
    /// The line becomes two policies if it has a namespace: one for the namespace, and one for none.
    pub fn from_v0_matching_absent_attributes(line: usize, spec: PolicySpec) -> Vec<Self> {
        let Self { line_number: line, spec } = Self::from_v0(line, spec);
        let spec = PolicySpec { non_resource_path: WILDCARD.to_owned(), ..spec };
        let without_namespace = (spec.namespace != WILDCARD).then(|| Self {
            line_number: line,
            spec: PolicySpec { namespace: String::new(), ..spec.clone() },
        });
        [Self { line_number: line, spec }].into_iter().chain(without_namespace).collect()
    }

    /// The number of the line in the file, from 1.
    pub fn line_number(&self) -> usize {
        self.line_number
    }

    /// The converted parts. An empty part covers only the empty value, and `*` covers every value.
    pub fn spec(&self) -> &PolicySpec {
        &self.spec
    }

    pub(crate) fn subject(&self) -> Subject<'_> {
        match (self.spec.user.as_str(), self.spec.group.as_str()) {
            ("", "") => Subject::Nobody,
            (user, "") => Subject::User(user),
            ("", group) => Subject::Group(group),
            (user, group) => Subject::Member { user, group },
        }
    }

    /// Reports whether the policy grants the request to the user.
    pub(crate) fn matches_request(&self, user: &User, attributes: &Attributes<'_>) -> bool {
        self.matches_subject(user)
            && self.matches_verb(attributes)
            && self.matches_target(&attributes.target)
    }

    pub(crate) fn matches_subject(&self, user: &User) -> bool {
        match self.subject() {
            Subject::Nobody => false,
            Subject::User(name) => name == user.name,
            Subject::Group(group) => user.is_in_group(group),
            Subject::Member { user: name, group } => name == user.name && user.is_in_group(group),
        }
    }

    pub(crate) fn matches_verb(&self, attributes: &Attributes<'_>) -> bool {
        !self.spec.is_readonly || attributes.is_read_only()
    }

    pub(crate) fn matches_target(&self, target: &Target<'_>) -> bool {
        match target {
            Target::Resource(resource) => {
                covers_value(&self.spec.namespace, resource.namespace.as_str())
                    && covers_value(&self.spec.resource, resource.resource)
                    && covers_value(&self.spec.api_group, resource.api_group)
            }
            Target::Path(path) => covers_path(&self.spec.non_resource_path, path),
        }
    }

    /// The verbs that the policy grants, in the form in which [`Rules`](authz::Rules) list them.
    pub(crate) fn verbs(&self) -> Vec<String> {
        let verbs: &[&str] =
            if self.spec.is_readonly { &["get", "list", "watch"] } else { &[WILDCARD] };
        verbs.iter().map(|verb| (*verb).to_owned()).collect()
    }
}

/// If the user or the group of a policy is `*`, replaces both with the group `system:authenticated`.
fn replace_wildcard_subject(spec: PolicySpec) -> PolicySpec {
    if spec.user == WILDCARD || spec.group == WILDCARD {
        PolicySpec { user: String::new(), group: AUTHENTICATED_GROUP.to_owned(), ..spec }
    } else {
        spec
    }
}

/// Reports whether a part of a policy is `*` or equal to the value.
pub(crate) fn covers_value(part: &str, value: &str) -> bool {
    part == WILDCARD || part == value
}

/// Reports whether the path of a policy covers the path of a request.
pub(crate) fn covers_path(part: &str, path: &str) -> bool {
    match prefix_of_wildcard_path(part) {
        Some(prefix) => path.starts_with(prefix),
        None => part == path,
    }
}

/// The prefix that a path of a policy stands for, if it ends in `*`. All trailing `*` are removed.
pub(crate) fn prefix_of_wildcard_path(part: &str) -> Option<&str> {
    part.ends_with('*').then(|| part.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use authz::{Namespace, Resource, Verb};

    use super::*;

    fn spec(parts: [&str; 6]) -> PolicySpec {
        let [user, group, api_group, resource, namespace, non_resource_path] =
            parts.map(str::to_owned);
        PolicySpec {
            user,
            group,
            is_readonly: false,
            api_group,
            resource,
            namespace,
            non_resource_path,
        }
    }

    /// If a policy has `*` as its user or group, the conversion drops the other part.
    #[test]
    fn conversion_sets_unset_parts() {
        let all = "system:authenticated";
        for (given, want) in [
            (["", "", "", "", "", ""], ["", all, "*", "*", "*", "*"]),
            (["bob", "", "", "", "", ""], ["bob", "", "*", "*", "*", "*"]),
            (["", "", "", "", "myns", ""], ["", all, "*", "*", "myns", ""]),
            (["", "", "", "r", "", ""], ["", all, "*", "r", "*", ""]),
            (["", "g", "ignored", "r", "", "/ignored"], ["", "g", "*", "r", "*", ""]),
            (["*", "g", "", "", "", ""], ["", all, "*", "*", "*", "*"]),
            (["bob", "*", "", "", "", ""], ["", all, "*", "*", "*", "*"]),
        ] {
            assert_eq!(*Policy::from_v0(1, spec(given)).spec(), spec(want), "{given:?}");
        }
        for (given, want) in [
            (["", "", "", "", "", ""], ["", "", "", "", "", ""]),
            (["*", "", "", "", "", ""], ["", all, "", "", "", ""]),
            (["*", "g", "a", "r", "n", "/p"], ["", all, "a", "r", "n", "/p"]),
            (["bob", "*", "", "", "", ""], ["", all, "", "", "", ""]),
            (["bob", "g", "", "", "", ""], ["bob", "g", "", "", "", ""]),
        ] {
            assert_eq!(*Policy::from_v1beta1(1, spec(given)).spec(), spec(want), "{given:?}");
        }
    }

    /// The examples of the first proposal, and requests without a namespace or a resource.
    #[test]
    fn unset_attributes_match_if_the_operator_wants_that() {
        let line = |namespace: &str, resource: &str| PolicySpec {
            user: "bob".to_owned(),
            namespace: namespace.to_owned(),
            resource: resource.to_owned(),
            ..PolicySpec::default()
        };
        let bob = User { name: "bob".to_owned(), ..User::default() };
        let pods = |namespace| {
            Target::Resource(Resource {
                resource: "pods",
                namespace: Namespace::new(namespace),
                ..Resource::default()
            })
        };
        let version = Target::Path("/version");
        for (namespace, resource, target, exact, matching) in [
            ("", "", version, true, true),
            ("", "pods", version, false, true),
            ("a", "", version, false, true),
            ("a", "pods", pods("a"), true, true),
            ("a", "pods", pods(""), false, true),
            ("a", "pods", pods("b"), false, false),
            ("a", "secrets", pods(""), false, false),
            ("", "pods", pods(""), true, true),
        ] {
            let request = Attributes { user: Some(&bob), verb: Verb::GET, target };
            let spec = line(namespace, resource);
            let shown = format!("{namespace:?} {resource:?} {target:?}");
            assert_eq!(
                Policy::from_v0(1, spec.clone()).matches_request(&bob, &request),
                exact,
                "{shown}"
            );
            let policies = Policy::from_v0_matching_absent_attributes(1, spec);
            let is_granted = policies.iter().any(|policy| policy.matches_request(&bob, &request));
            assert_eq!(is_granted, matching, "{shown}");
        }
    }

    #[test]
    fn paths_are_covered_exactly_or_by_prefix() {
        for (part, path, want) in [
            ("*", "", true),
            ("*", "/x", true),
            ("**", "/x", true),
            ("", "", true),
            ("", "/", false),
            ("/api", "/api", true),
            ("/api", "/api2", false),
            ("/api/*", "/api/foo", true),
            ("/api/*", "/api2/foo", false),
            ("/base/*", "/base", false),
            ("/base/*", "/base/", true),
            ("/ap*", "/api", true),
            ("/logs/**", "/logs/x", true),
            ("/logs/**", "/logs/", true),
            ("/ver*ion", "/version", false),
            ("/ver*ion", "/ver*ion", true),
        ] {
            assert_eq!(covers_path(part, path), want, "{part} {path}");
        }
    }
}
