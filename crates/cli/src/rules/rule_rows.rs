//! Merges rules into one row per resource or path.

use std::collections::{BTreeMap, BTreeSet};

use api_resources::ResolvedResource;
use authz::Rules;

/// The usual order of verbs; all others follow in alphabetical order.
const VERB_ORDER: [&str; 8] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// The allowed verbs of one resource.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResourceRuleRow {
    pub(super) verbs: Vec<String>,
    pub(super) api_group: String,
    pub(super) resource: String,
    /// The names of the objects; empty for all objects.
    pub(super) resource_names: Vec<String>,
}

/// Builds one row for each resource and set of names, sorted by group, then by resource. A row has the verbs
/// of all rules about them.
pub(super) fn build_resource_rows(rules: &Rules) -> Vec<ResourceRuleRow> {
    let mut rows: BTreeMap<(&str, &str, BTreeSet<&str>), BTreeSet<&str>> = BTreeMap::new();
    for rule in &rules.resource_rules {
        let names: BTreeSet<&str> = rule.resource_names.iter().map(String::as_str).collect();
        for group in &rule.api_groups {
            for resource in &rule.resources {
                let verbs = rows.entry((group, resource, names.clone())).or_default();
                verbs.extend(rule.verbs.iter().map(String::as_str));
            }
        }
    }
    let row =
        |((group, resource, names), verbs): ((&str, &str, BTreeSet<&str>), _)| ResourceRuleRow {
            verbs: sort_verbs(verbs),
            api_group: group.to_owned(),
            resource: resource.to_owned(),
            resource_names: names.into_iter().map(str::to_owned).collect(),
        };
    rows.into_iter().map(row).collect()
}

/// Removes the rules that do not match a resource, and all rules about paths.
pub(super) fn retain_rules_for_resource(rules: &mut Rules, resource: &ResolvedResource) {
    let ResolvedResource { group, plural, subresource, .. } = resource;
    let combined = match subresource.as_str() {
        "" => plural.clone(),
        subresource => format!("{plural}/{subresource}"),
    };
    let for_all = format!("*/{subresource}");
    let has_resource = |own: &String| {
        own == "*" || *own == combined || (!subresource.is_empty() && *own == for_all)
    };
    let has_group = |own: &String| own == "*" || own == group;
    rules.non_resource_rules.clear();
    rules.resource_rules.retain_mut(|rule| {
        rule.api_groups.retain(has_group);
        rule.resources.retain(has_resource);
        !rule.api_groups.is_empty() && !rule.resources.is_empty()
    });
}

/// Collects the verbs of each path.
pub(super) fn build_non_resource_rows(rules: &Rules) -> BTreeMap<String, Vec<String>> {
    let mut rows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for rule in &rules.non_resource_rules {
        for path in &rule.non_resource_urls {
            rows.entry(path).or_default().extend(rule.verbs.iter().map(String::as_str));
        }
    }
    rows.into_iter().map(|(path, verbs)| (path.to_owned(), sort_verbs(verbs))).collect()
}

/// Sorts verbs by [`VERB_ORDER`]. `*` replaces all others.
fn sort_verbs(verbs: BTreeSet<&str>) -> Vec<String> {
    if verbs.contains("*") {
        return vec!["*".to_owned()];
    }
    let known = VERB_ORDER.into_iter().filter(|verb| verbs.contains(verb));
    let others = verbs.iter().copied().filter(|verb| !VERB_ORDER.contains(verb));
    known.chain(others).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use authz::{NonResourceRule, ResourceRule};

    fn list(texts: &str) -> Vec<String> {
        texts.split_whitespace().map(|text| text.trim_matches('"').to_owned()).collect()
    }

    fn rule([verbs, groups, resources, names]: [&str; 4]) -> ResourceRule {
        ResourceRule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            resource_names: list(names),
        }
    }

    #[test]
    fn rules_about_one_resource_are_one_row() {
        let rules = Rules {
            resource_rules: vec![
                rule(["watch get", "\"\"", "pods services", ""]),
                rule(["bind list", "\"\" apps", "pods", ""]),
                rule(["get", "\"\"", "pods", "b a"]),
                rule(["update", "\"\"", "pods", "a b"]),
                rule(["get *", "*", "*", ""]),
            ],
            ..Rules::default()
        };
        let rows: Vec<String> = build_resource_rows(&rules)
            .into_iter()
            .map(|row| {
                let [verbs, names] = [row.verbs, row.resource_names].map(|list| list.join(","));
                format!("{verbs} {:?} {} {names}", row.api_group, row.resource)
            })
            .collect();
        assert_eq!(
            rows,
            [
                "get,list,watch,bind \"\" pods ",
                "get,update \"\" pods a,b",
                "get,watch \"\" services ",
                "* \"*\" * ",
                "list,bind \"apps\" pods ",
            ]
        );
    }

    #[test]
    fn rules_about_one_path_are_one_row() {
        let rule = |verbs: &str, paths: &str| NonResourceRule {
            verbs: list(verbs),
            non_resource_urls: list(paths),
        };
        let rules = Rules {
            non_resource_rules: vec![rule("get", "/b /a"), rule("post", "/a")],
            ..Rules::default()
        };
        let rows = build_non_resource_rows(&rules);
        assert_eq!(rows["/a"], ["get", "post"]);
        assert_eq!(rows["/b"], ["get"]);
    }
}
