//! The resources that the default roles of Kubernetes name, with their API groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::rbac::bootstrap_policy;

/// The resources of the default roles. Built once, because every role is compared with them.
pub(super) static BUILT_IN_RESOURCES: LazyLock<BuiltInResources> =
    LazyLock::new(BuiltInResources::new);

#[derive(Debug, Default)]
pub(super) struct BuiltInResources {
    /// The resources of each group.
    groups: BTreeMap<String, BTreeSet<String>>,
}

/// The reason why the API groups of a rule do not have a resource.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResourceNotInGroupsExplanation {
    pub(super) reason: String,
    pub(super) hint: String,
}

impl BuiltInResources {
    fn new() -> Self {
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let roles = bootstrap_policy().map(|policy| policy.roles).unwrap_or_default();
        for rule in roles.iter().flat_map(|role| &role.rules) {
            let names = rule.resources.iter().filter_map(|resource| resource.split('/').next());
            let names: BTreeSet<_> = names.filter(|name| *name != "*").map(str::to_owned).collect();
            for group in rule.api_groups.iter().filter(|group| is_served_by_kubernetes(group)) {
                groups.entry(group.clone()).or_default().extend(names.iter().cloned());
            }
        }
        Self { groups }
    }

    /// Explains why none of these groups has the resource. Returns an explanation only if all groups are built in,
    /// and the resource belongs to another group or is written in the singular.
    pub(super) fn explain_resource_not_in_groups(
        &self,
        resource: &str,
        api_groups: &[String],
    ) -> Option<ResourceNotInGroupsExplanation> {
        let of_rule: Option<Vec<_>> =
            api_groups.iter().map(|group| self.groups.get(group)).collect();
        let of_rule = of_rule?;
        let has = |name: &str| of_rule.iter().any(|resources| resources.contains(name));
        if has(resource) {
            return None;
        }
        let shown: Vec<_> = api_groups.iter().map(|group| go_compat::quote(group)).collect();
        let reason = format!("there is none in the API group {}", shown.join(" or "));
        if let Some(plural) = possible_plurals(resource).into_iter().find(|plural| has(plural)) {
            return Some(ResourceNotInGroupsExplanation {
                reason,
                hint: format!("did you mean `{plural}`?"),
            });
        }
        let (group, _) = self.groups.iter().find(|(_, resources)| resources.contains(resource))?;
        let group = go_compat::quote(group);
        Some(ResourceNotInGroupsExplanation {
            reason,
            hint: format!("it is in the API group `{group}`"),
        })
    }
}

/// Reports whether kube-apiserver itself serves the group. Default roles also name groups of metrics servers, whose
/// resources are not known here.
fn is_served_by_kubernetes(group: &str) -> bool {
    group != "*" && !group.ends_with("metrics.k8s.io")
}

/// The possible plural forms of a word.
fn possible_plurals(word: &str) -> [String; 3] {
    let stem = word.strip_suffix('y').unwrap_or(word);
    [format!("{word}s"), format!("{word}es"), format!("{stem}ies")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misplaced_resources_are_found() {
        let hint = |resource: &str, groups: &[&str]| {
            let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
            BUILT_IN_RESOURCES
                .explain_resource_not_in_groups(resource, &groups)
                .map(|find_misplaced_resource| find_misplaced_resource.hint)
        };
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(hint("deployments", &[""]), is("it is in the API group `\"apps\"`"));
        assert_eq!(hint("pods", &["apps"]), is("it is in the API group `\"\"`"));
        assert_eq!(hint("secret", &[""]), is("did you mean `secrets`?"));
        assert_eq!(
            hint("networkpolicy", &["networking.k8s.io"]),
            is("did you mean `networkpolicies`?")
        );
        for (resource, groups) in [
            ("deployments", &["", "apps"][..]),
            ("deployments", &["example.com"]),
            ("pods", &["metrics.k8s.io"]),
            ("nodes", &["metrics.k8s.io"]),
            ("services", &["custom.metrics.k8s.io"]),
            ("deployments", &["external.metrics.k8s.io"]),
            ("nodes", &["metrics.k8s.io", ""]),
            ("pods", &["*"]),
            ("widgets", &[""]),
            ("events", &[""]),
            ("events", &["events.k8s.io"]),
            ("leases", &["coordination.k8s.io"]),
        ] {
            assert_eq!(hint(resource, groups), None, "{resource} {groups:?}");
        }
    }
}
