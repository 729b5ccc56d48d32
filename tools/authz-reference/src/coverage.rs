//! Compares two sets of rules, permission by permission.

use authz_rbac::PolicyRule;

/// Returns the permissions of `requested` that `held` does not grant, each with one verb, group, resource and
/// name, or with one verb and path. Every permission is compared with every rule.
pub fn uncovered_rules(held: &[PolicyRule], requested: &[PolicyRule]) -> Vec<PolicyRule> {
    let is_missing = |part: &PolicyRule| !held.iter().any(|rule| covers(rule, part));
    requested.iter().flat_map(split_permissions).filter(is_missing).collect()
}

/// Splits a rule into single permissions. A rule without groups or resources has none for resources.
fn split_permissions(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &String| vec![text.clone()];
    let mut permissions = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let part = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    permissions.push(part);
                    continue;
                }
                let named = |name| PolicyRule { resource_names: one(name), ..part.clone() };
                permissions.extend(rule.resource_names.iter().map(named));
            }
        }
    }
    for url in &rule.non_resource_urls {
        for verb in &rule.verbs {
            let (verbs, non_resource_urls) = (one(verb), one(url));
            permissions.push(PolicyRule { verbs, non_resource_urls, ..PolicyRule::default() });
        }
    }
    permissions
}

fn covers(held: &PolicyRule, part: &PolicyRule) -> bool {
    let has_wildcard = |list: &[String]| list.iter().any(|entry| entry == "*");
    let has_all = |list: &[String], requested: &[String]| {
        has_wildcard(list) || requested.iter().all(|requested| list.contains(requested))
    };
    let has_resource = |requested: &String| {
        held.resources.contains(requested)
            || requested.split_once('/').is_some_and(|(_, subresource)| {
                held.resources.contains(&format!("*/{subresource}"))
            })
    };
    let has_url = |requested: &String| {
        held.non_resource_urls.iter().any(|entry| {
            entry == requested
                || (entry.ends_with('*') && requested.starts_with(entry.trim_end_matches('*')))
        })
    };
    has_all(&held.verbs, &part.verbs)
        && has_all(&held.api_groups, &part.api_groups)
        && (has_wildcard(&held.resources) || part.resources.iter().all(has_resource))
        && part.non_resource_urls.iter().all(has_url)
        && (held.resource_names.is_empty()
            || (!part.resource_names.is_empty()
                && part.resource_names.iter().all(|name| held.resource_names.contains(name))))
}
