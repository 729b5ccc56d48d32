//! Matching rules against requests, and listing the rules of a user.

use authz::{
    Attributes, EvaluationErrors, Namespace, NonResourceRule, Resource, ResourceRule, Rules,
    Target, User,
};

use crate::policy::PolicyRule;
use crate::snapshot::{RoleLookupError, Snapshot, UserBinding};

/// The size limit of a list of rules: the bytes of their text, plus [`ELEMENT_OVERHEAD_BYTES`] for each element. A user
/// who is bound to large roles many times would otherwise get far more than a person can read.
const LISTED_BYTES_MAX: usize = 8 << 20;

/// The bytes of an element of a list in addition to its text.
const ELEMENT_OVERHEAD_BYTES: usize = 32;

/// A list of a rule, and the part of a request with which it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RulePart {
    Verb,
    ApiGroup,
    Resource,
    ResourceName,
    Path,
}

impl RulePart {
    /// The name of the list in manifests.
    pub(crate) const fn manifest_field_name(self) -> &'static str {
        match self {
            Self::Verb => "verbs",
            Self::ApiGroup => "apiGroups",
            Self::Resource => "resources",
            Self::ResourceName => "resourceNames",
            Self::Path => "nonResourceURLs",
        }
    }

    /// The list in a rule.
    pub(crate) fn values_in_rule(self, rule: &PolicyRule) -> &[String] {
        match self {
            Self::Verb => &rule.verbs,
            Self::ApiGroup => &rule.api_groups,
            Self::Resource => &rule.resources,
            Self::ResourceName => &rule.resource_names,
            Self::Path => &rule.non_resource_urls,
        }
    }
}

const RESOURCE_PARTS: &[RulePart] =
    &[RulePart::Verb, RulePart::ApiGroup, RulePart::Resource, RulePart::ResourceName];
const PATH_PARTS: &[RulePart] = &[RulePart::Verb, RulePart::Path];

/// The parts of a request that a rule has to match.
pub(crate) const fn rule_parts_for_request(attributes: &Attributes<'_>) -> &'static [RulePart] {
    match attributes.target {
        Target::Resource(_) => RESOURCE_PARTS,
        Target::Path(_) => PATH_PARTS,
    }
}

impl PolicyRule {
    /// Reports whether the rule allows the request. The user of the request is ignored.
    ///
    /// 1. For a resource, the rule must list the verb, the API group, the resource and, if it lists
    ///    resource names, the name.
    /// 2. For a path, the rule must list the verb and the path.
    ///
    /// Field and label selectors of a request are ignored.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        rule_parts_for_request(attributes)
            .iter()
            .all(|part| self.matches_request_part(*part, attributes))
    }

    /// Reports whether the rule matches this part of the request.
    pub(crate) fn matches_request_part(&self, part: RulePart, attributes: &Attributes<'_>) -> bool {
        match (part, &attributes.target) {
            (RulePart::Verb, _) => {
                contains(&self.verbs, attributes.verb.as_str()) || contains(&self.verbs, "*")
            }
            (RulePart::ApiGroup, Target::Resource(resource)) => {
                contains(&self.api_groups, resource.api_group) || contains(&self.api_groups, "*")
            }
            (RulePart::Resource, Target::Resource(resource)) => {
                self.resources.iter().any(|entry| matches_resource(entry, resource))
            }
            (RulePart::ResourceName, Target::Resource(resource)) => {
                self.resource_names.is_empty() || contains(&self.resource_names, resource.name)
            }
            (RulePart::Path, Target::Path(path)) => {
                self.non_resource_urls.iter().any(|entry| matches_path(entry, path))
            }
            (RulePart::ApiGroup | RulePart::Resource | RulePart::ResourceName, Target::Path(_))
            | (RulePart::Path, Target::Resource(_)) => false,
        }
    }
}

pub(crate) fn contains(list: &[String], element: &str) -> bool {
    list.iter().any(|own| own == element)
}

/// Reports whether an element of `resources` matches a resource. `*` matches everything, subresources
/// included; `*/scale` matches that subresource of every resource. All else is literal, so `pods` does
/// not match `pods/log`, and `pods/*` matches a subresource that is called `*`.
pub(crate) fn matches_resource(entry: &str, resource: &Resource<'_>) -> bool {
    if entry == "*" {
        return true;
    }
    if resource.subresource.is_empty() {
        return entry == resource.resource;
    }
    let Some(head) = entry.strip_suffix(resource.subresource).and_then(|s| s.strip_suffix('/'))
    else {
        return false;
    };
    head == resource.resource || head == "*"
}

/// Reports whether an element of `nonResourceURLs` matches a path. An element that ends in `*` matches
/// every path that begins with the text before the stars.
pub(crate) fn matches_path(entry: &str, path: &str) -> bool {
    entry == path || (entry.ends_with('*') && path.starts_with(entry.trim_end_matches('*')))
}

/// The rules that a user holds.
#[derive(Debug, Clone, Default)]
pub struct HeldRules<'a> {
    /// The rules of the role of each binding, in the order of bindings: ClusterRoleBindings before
    /// RoleBindings, both by name. A role is repeated if several bindings grant it.
    pub roles: Vec<&'a [PolicyRule]>,
    /// The errors about roles that do not exist. The user would hold their rules as well.
    pub role_lookup_errors: Vec<RoleLookupError>,
}

impl Snapshot {
    /// Returns the rules that a user holds in a namespace, including the rules that the user holds in the whole
    /// cluster.
    pub fn held_rules(&self, user: &User, namespace: Namespace<'_>) -> HeldRules<'_> {
        let mut held_rules = HeldRules::default();
        for UserBinding { binding, role, .. } in self.bindings_of_user(user, namespace) {
            match role {
                Some(compiled) => held_rules.roles.push(&compiled.role.rules),
                None => held_rules.role_lookup_errors.push(RoleLookupError::new(binding)),
            }
        }
        held_rules
    }

    /// Lists the rules that a user holds in a namespace. The list is marked incomplete if it exceeds 8 MiB. A
    /// binding to a role that does not exist adds an error; the list still counts as complete.
    pub fn rules_for(&self, user: &User, namespace: Namespace<'_>) -> Rules {
        let HeldRules { roles, role_lookup_errors } = self.held_rules(user, namespace);
        let mut listed = Rules::default();
        let mut bytes_left = LISTED_BYTES_MAX;
        for rule in roles.into_iter().flatten() {
            let Some(bytes_after) = bytes_left.checked_sub(count_rule_bytes(rule)) else {
                listed.is_incomplete = true;
                break;
            };
            bytes_left = bytes_after;
            if !rule.resources.is_empty() {
                listed.resource_rules.push(ResourceRule {
                    verbs: rule.verbs.clone(),
                    api_groups: rule.api_groups.clone(),
                    resources: rule.resources.clone(),
                    resource_names: rule.resource_names.clone(),
                });
            }
            if !rule.non_resource_urls.is_empty() {
                listed.non_resource_rules.push(NonResourceRule {
                    verbs: rule.verbs.clone(),
                    non_resource_urls: rule.non_resource_urls.clone(),
                });
            }
        }
        let truncated = listed.is_incomplete.then(|| {
            let n_mebibytes = LISTED_BYTES_MAX >> 20;
            EvaluationErrors::message(format!(
                "the rules beyond the first {n_mebibytes} MiB are not listed"
            ))
        });
        let failures = role_lookup_errors.into_iter().map(EvaluationErrors::from).chain(truncated);
        listed.error = failures.reduce(|mut all, next| {
            all.append_errors(next);
            all
        });
        listed
    }
}

/// Counts the bytes of a rule in a list.
fn count_rule_bytes(rule: &PolicyRule) -> usize {
    let PolicyRule { verbs, api_groups, resources, resource_names, non_resource_urls } = rule;
    let lists = [verbs, api_groups, resources, resource_names, non_resource_urls];
    let elements = lists.into_iter().flatten();
    elements.map(|element| element.len() + ELEMENT_OVERHEAD_BYTES).sum::<usize>()
        + ELEMENT_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use authz::Verb;

    use super::*;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|&entry| entry.to_owned()).collect()
    }

    fn resource_rule(resources: &[&str], names: &[&str]) -> PolicyRule {
        PolicyRule {
            verbs: list(&["get"]),
            api_groups: list(&[""]),
            resources: list(resources),
            resource_names: list(names),
            ..PolicyRule::default()
        }
    }

    fn allows(rule: &PolicyRule, verb: &str, path: &str, name: &str) -> bool {
        let (resource, subresource) = path.split_once('/').unwrap_or((path, ""));
        let resource = Resource { resource, subresource, name, ..Resource::default() };
        rule.allows(&Attributes {
            user: None,
            verb: Verb::new(verb),
            target: Target::Resource(resource),
        })
    }

    #[test]
    fn resource_wildcards_have_two_forms() {
        for (entry, asked, want) in [
            ("pods", "pods", true),
            ("pods", "pods/log", false),
            ("pods/log", "pods/log", true),
            ("pods/log", "pods", false),
            ("*", "pods/log", true),
            ("*/scale", "anything/scale", true),
            ("*/scale", "anything/scales", false),
            ("*/scale", "scale", false),
            ("pods/*", "pods/log", false),
            ("pods/*", "pods/*", true),
            ("Pods", "pods", false),
        ] {
            assert_eq!(allows(&resource_rule(&[entry], &[]), "get", asked, ""), want, "{entry}");
        }
        assert!(!allows(&resource_rule(&[], &[]), "get", "pods", ""));
    }

    #[test]
    fn a_rule_with_resource_names_requires_the_name() {
        let rule = resource_rule(&["pods"], &["a"]);
        assert!(allows(&rule, "get", "pods", "a"));
        assert!(!allows(&rule, "get", "pods", "b"));
        assert!(!allows(&rule, "get", "pods", ""));
        assert!(!allows(&rule, "GET", "pods", "a"));
    }

    #[test]
    fn paths_end_in_stars_or_are_equal() {
        for (entry, path, want) in [
            ("/apis", "/apis", true),
            ("/apis", "/apis/v1", false),
            ("/apis/*", "/apis/v1/foobar", true),
            ("/apis/*", "/apis", false),
            ("/apis/**", "/apis/", true),
            ("*", "", true),
            ("/read*z", "/readyz", false),
            ("/foo/*", "/notfoo/bar", false),
        ] {
            assert_eq!(matches_path(entry, path), want, "{entry} {path}");
        }
    }

    #[test]
    fn rules_for_paths_and_for_resources_do_not_mix() {
        let everything = list(&["*"]);
        let paths = PolicyRule {
            verbs: everything.clone(),
            non_resource_urls: everything.clone(),
            ..PolicyRule::default()
        };
        assert!(!allows(&paths, "get", "pods", ""));
        let resources = PolicyRule {
            verbs: everything.clone(),
            api_groups: everything.clone(),
            resources: everything,
            ..PolicyRule::default()
        };
        let version = Attributes { user: None, verb: Verb::GET, target: Target::Path("/version") };
        assert!(!resources.allows(&version));
        assert!(paths.allows(&version));
    }
}
