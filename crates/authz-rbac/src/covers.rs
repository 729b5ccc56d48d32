//! Do some rules grant everything that others grant?

use std::borrow::Borrow;

use crate::policy::PolicyRule;
use crate::rule::matches_path;

/// The parts of `wanted` that `owned` does not grant, each with one verb, group, resource and name,
/// or with one verb and path, in order; nothing if all is granted.
///
/// One rule of the owner has to grant a part by itself. `*` is granted only by `*`, and what has no
/// name is not granted by a rule with names.
pub fn uncovered<R: Borrow<PolicyRule>>(owned: &[R], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    wanted
        .iter()
        .flat_map(atoms)
        .filter(|atom| !owned.iter().any(|rule| covers(rule.borrow(), atom)))
        .collect()
}

/// Takes a rule apart. A rule without groups or resources has no parts that speak of resources.
fn atoms(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &String| vec![text.clone()];
    let mut atoms = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let atom = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    atoms.push(atom);
                    continue;
                }
                let named = |name| PolicyRule { resource_names: one(name), ..atom.clone() };
                atoms.extend(rule.resource_names.iter().map(named));
            }
        }
    }
    for url in &rule.non_resource_urls {
        for verb in &rule.verbs {
            let (verbs, non_resource_urls) = (one(verb), one(url));
            atoms.push(PolicyRule { verbs, non_resource_urls, ..PolicyRule::default() });
        }
    }
    atoms
}

fn covers(owned: &PolicyRule, atom: &PolicyRule) -> bool {
    let has_any = |list: &[String]| list.iter().any(|entry| entry == "*");
    let has_all = |list: &[String], wanted: &[String]| {
        has_any(list) || wanted.iter().all(|wanted| list.contains(wanted))
    };
    let has_resource = |wanted: &String| {
        owned.resources.contains(wanted)
            || wanted.split_once('/').is_some_and(|(_, subresource)| {
                let is_any_of_it = |entry: &String| entry.strip_prefix("*/") == Some(subresource);
                owned.resources.iter().any(is_any_of_it)
            })
    };
    let has_url =
        |wanted: &String| owned.non_resource_urls.iter().any(|entry| matches_path(entry, wanted));
    has_all(&owned.verbs, &atom.verbs)
        && has_all(&owned.api_groups, &atom.api_groups)
        && (has_any(&owned.resources) || atom.resources.iter().all(has_resource))
        && atom.non_resource_urls.iter().all(has_url)
        && (owned.resource_names.is_empty()
            || (!atom.resource_names.is_empty()
                && atom.resource_names.iter().all(|name| owned.resource_names.contains(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `verbs @ groups : resources [names]` or `verbs ~ urls`, lists joined by commas.
    fn rule(text: &str) -> PolicyRule {
        let list = |text: &str| -> Vec<String> {
            text.trim().split(',').map(|entry| entry.replace("core", "")).collect()
        };
        if let Some((verbs, urls)) = text.split_once('~') {
            let (verbs, non_resource_urls) = (list(verbs), list(urls));
            return PolicyRule { verbs, non_resource_urls, ..PolicyRule::default() };
        }
        let (verbs, rest) = text.split_once('@').unwrap();
        let (groups, rest) = rest.split_once(':').unwrap();
        let (resources, names) = rest.split_once('[').unwrap_or((rest, ""));
        PolicyRule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            resource_names: match names.trim_end_matches(']') {
                "" => Vec::new(),
                names => list(names),
            },
            ..PolicyRule::default()
        }
    }

    #[track_caller]
    fn check(owned: &[&str], wanted: &[&str], want: &[&str]) {
        let rules = |texts: &[&str]| texts.iter().map(|text| rule(text)).collect::<Vec<_>>();
        assert_eq!(uncovered(&rules(owned), &rules(wanted)), rules(want));
    }

    #[test]
    fn what_is_covered() {
        check(&["get@core:pods"], &["get@core:pods"], &[]);
        check(&["get@core:*/scale"], &["get@core:foo/scale"], &[]);
        check(
            &["delete@core:deployments", "delete@core:builds", "update@core:builds,deployments"],
            &["delete,update@core:builds,deployments"],
            &[],
        );
        check(&["get@a,b:pods"], &["get@a:pods", "get@b:pods"], &[]);
        check(&["get@*:pods"], &["get@a,b:pods"], &[]);
        check(&["get@a:pods"], &["get@a:pods[foo,bar]"], &[]);
        check(&["get~*"], &["get~/apis,/apis/v1,/"], &[]);
        check(&["get~/*"], &["get~/,/foo"], &[]);
    }

    #[test]
    fn what_is_not_covered() {
        check(
            &["delete,update@core:builds,deployments", "delete@core:pods"],
            &["delete,update@core:builds,deployments,pods"],
            &["update@core:pods"],
        );
        check(&["get@a:pods"], &["get@*:pods"], &["get@*:pods"]);
        check(&["get,list,watch@a:pods"], &["*@a:pods"], &["*@a:pods"]);
        check(&["get@a:pods,services"], &["get@a:*"], &["get@a:*"]);
        check(&["get@a:pods[foo,bar]"], &["get@a:pods"], &["get@a:pods"]);
        check(&["get~/apis/*"], &["get~/apis,/apis/v1"], &["get~/apis"]);
        check(&["get@a:builds"], &["get@a:builds", "get~/apis"], &["get~/apis"]);
        check(&["get~/*"], &["get~"], &["get~"]);
        check(&["get~/api/*/*"], &["get~/api/v1"], &["get~/api/v1"]);
    }
}
