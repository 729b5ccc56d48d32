//! Coverage, permission by permission.

use authz_rbac::PolicyRule;

/// The parts of `wanted` that `owned` does not grant, each with one verb, group, resource and name, or
/// with one verb and path: every part is compared with every rule.
pub fn uncovered(owned: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    let is_missing = |part: &PolicyRule| !owned.iter().any(|rule| covers(rule, part));
    wanted.iter().flat_map(parts).filter(is_missing).collect()
}

/// Takes a rule apart. A rule without groups or resources has no parts that are about resources.
fn parts(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &String| vec![text.clone()];
    let mut parts = Vec::new();
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
                    parts.push(part);
                    continue;
                }
                let named = |name| PolicyRule { resource_names: one(name), ..part.clone() };
                parts.extend(rule.resource_names.iter().map(named));
            }
        }
    }
    for url in &rule.non_resource_urls {
        for verb in &rule.verbs {
            let (verbs, non_resource_urls) = (one(verb), one(url));
            parts.push(PolicyRule { verbs, non_resource_urls, ..PolicyRule::default() });
        }
    }
    parts
}

fn covers(owned: &PolicyRule, part: &PolicyRule) -> bool {
    let has_any = |list: &[String]| list.iter().any(|entry| entry == "*");
    let has_all = |list: &[String], wanted: &[String]| {
        has_any(list) || wanted.iter().all(|wanted| list.contains(wanted))
    };
    let has_resource = |wanted: &String| {
        owned.resources.contains(wanted)
            || wanted.split_once('/').is_some_and(|(_, subresource)| {
                owned.resources.contains(&format!("*/{subresource}"))
            })
    };
    let has_url = |wanted: &String| {
        owned.non_resource_urls.iter().any(|entry| {
            entry == wanted
                || (entry.ends_with('*') && wanted.starts_with(entry.trim_end_matches('*')))
        })
    };
    has_all(&owned.verbs, &part.verbs)
        && has_all(&owned.api_groups, &part.api_groups)
        && (has_any(&owned.resources) || part.resources.iter().all(has_resource))
        && part.non_resource_urls.iter().all(has_url)
        && (owned.resource_names.is_empty()
            || (!part.resource_names.is_empty()
                && part.resource_names.iter().all(|name| owned.resource_names.contains(name))))
}
