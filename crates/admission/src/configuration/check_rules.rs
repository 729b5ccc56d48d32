//! Validates the rules of admission configurations.

use std::collections::HashSet;

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};

use super::check_names::go_string_list;
use super::configuration_kind::OPERATIONS;
use crate::json_members::{read_objects, read_string, read_strings};
use crate::request_matching::{ANY, RuleDialect, operations_member_name};

/// The wildcard for all resources and subresources.
const ALL_WITH_SUBRESOURCES: &str = "*/*";
/// The valid scopes, sorted as messages list them.
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// Checks the rules of a hook.
pub(super) fn check_rules(
    hook: &Tree,
    dialect: RuleDialect,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let list = at.child("rules");
    for (idx, rule) in read_objects(hook, "rules").into_iter().enumerate() {
        let at = list.index(idx);
        check_operations(rule, dialect, &at, errors);
        check_groups_and_versions(rule, &at, errors);
        let (resources, path) = (read_strings(rule, "resources"), at.child("resources"));
        match dialect {
            RuleDialect::V1 => check_resources(&resources, &path, errors),
            RuleDialect::V1alpha1 => check_v1alpha1_resources(&resources, &path, errors),
        }
        match read_string(rule, "scope") {
            Some(scope) if !SCOPES.contains(&scope) => {
                errors.push(at.child("scope").not_supported(scope, &SCOPES));
            }
            Some(_) | None => {}
        }
    }
}

/// Checks the rules of an initializer, which have no operations and no subresources.
pub(super) fn check_initializer_rules(entry: &Tree, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let list = at.child("rules");
    for (idx, rule) in read_objects(entry, "rules").into_iter().enumerate() {
        let at = list.index(idx);
        check_groups_and_versions(rule, &at, errors);
        let (resources, path) = (read_strings(rule, "resources"), at.child("resources"));
        check_list_not_empty(&resources, &path, errors);
        for (idx, entry) in resources.iter().enumerate() {
            if entry.contains('/') && *entry != ALL_WITH_SUBRESOURCES {
                let detail = "must not specify subresources";
                errors.push(path.index(idx).invalid(*entry, detail));
            }
        }
        check_wildcard_is_alone(&resources, &path, errors);
    }
}

fn check_operations(
    rule: &Tree,
    dialect: RuleDialect,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let member = operations_member_name(rule, dialect);
    let (operations, path) = (read_strings(rule, member), at.child(member));
    if operations.is_empty() {
        errors.push(path.required(""));
    }
    if operations.len() > 1 && operations.contains(&ANY) {
        let detail = "if '*' is present, must not specify other operations";
        errors.push(path.invalid(go_string_list(&operations), detail));
    }
    for (idx, operation) in operations.iter().enumerate() {
        if !OPERATIONS.contains(operation) {
            errors.push(path.index(idx).not_supported(*operation, &OPERATIONS));
        }
    }
    if dialect == RuleDialect::V1alpha1 && member == "verbs" && rule.contains_key("operations") {
        let others = read_strings(rule, "operations");
        let set =
            |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<HashSet<_>>();
        if set(&others) != set(&operations) {
            let detail = "must equal verbs when both are set";
            errors.push(at.child("operations").invalid(go_string_list(&others), detail));
        }
    }
}

fn check_groups_and_versions(rule: &Tree, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (member, others) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let (items, path) = (read_strings(rule, member), at.child(member));
        if items.is_empty() {
            errors.push(path.required(""));
        }
        if items.len() > 1 && items.contains(&ANY) {
            let detail = format!("if '*' is present, must not specify other {others}");
            errors.push(path.invalid(go_string_list(&items), &detail));
        }
        // The empty group is the core group; there is no empty version.
        if member == "apiVersions" {
            check_no_empty_items(&items, &path, errors);
        }
    }
}

fn check_list_not_empty(items: &[&str], at: &FieldPath<'_>, errors: &mut FieldErrors) {
    if items.is_empty() {
        errors.push(at.required(""));
    }
    check_no_empty_items(items, at, errors);
}

fn check_no_empty_items(items: &[&str], at: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (idx, _) in items.iter().enumerate().filter(|(_, item)| item.is_empty()) {
        errors.push(at.index(idx).required(""));
    }
}

/// Checks resources by the rules of `v1alpha1`, which do not depend on their order: `*` and `*/*` must be the only
/// entry, and no entry may be covered by a wildcard.
fn check_v1alpha1_resources(resources: &[&str], at: &FieldPath<'_>, errors: &mut FieldErrors) {
    check_list_not_empty(resources, at, errors);
    let all: HashSet<&str> = resources.iter().copied().collect();
    for (idx, entry) in resources.iter().enumerate() {
        let Some((resource, subresource)) = entry.split_once('/') else { continue };
        for wider in [format!("{resource}/*"), format!("*/{subresource}")] {
            if wider != *entry && wider != ALL_WITH_SUBRESOURCES && all.contains(wider.as_str()) {
                let detail = format!("if '{wider}' is present, must not specify {entry}");
                errors.push(at.index(idx).invalid(*entry, &detail));
            }
        }
    }
    check_wildcard_is_alone(resources, at, errors);
}

fn check_wildcard_is_alone(resources: &[&str], at: &FieldPath<'_>, errors: &mut FieldErrors) {
    for wildcard in [ANY, ALL_WITH_SUBRESOURCES] {
        if resources.len() > 1 && resources.contains(&wildcard) {
            let detail = format!("if '{wildcard}' is present, must not specify other resources");
            errors.push(at.invalid(go_string_list(resources), &detail));
        }
    }
}

/// Checks resources exactly as Kubernetes does, so that every object that Kubernetes accepts is accepted here.
///
/// The result depends on the order: a wildcard is compared only with later entries, and `*` beside a bare resource is found
/// only if the last entry without a slash is a bare resource. Other overlaps become [warnings](find_covered_resources).
fn check_resources(resources: &[&str], at: &FieldPath<'_>, errors: &mut FieldErrors) {
    if resources.is_empty() {
        errors.push(at.required(""));
    }
    let mut all_subresources_of = HashSet::new();
    let mut subresource_of_all = HashSet::new();
    let mut last_is_bare_resource = false;
    for (idx, entry) in resources.iter().enumerate() {
        let at = at.index(idx);
        if entry.is_empty() {
            errors.push(at.required(""));
            continue;
        }
        let Some((resource, subresource)) = entry.split_once('/') else {
            last_is_bare_resource = *entry != ANY;
            continue;
        };
        let mut refuse = |wider: String| {
            let detail = format!("if '{wider}' is present, must not specify {entry}");
            errors.push(at.invalid(*entry, &detail));
        };
        if all_subresources_of.contains(resource) {
            refuse(format!("{resource}/*"));
        }
        if subresource_of_all.contains(subresource) {
            refuse(format!("*/{subresource}"));
        }
        if subresource == ANY {
            all_subresources_of.insert(resource);
        }
        if resource == ANY {
            subresource_of_all.insert(subresource);
        }
    }
    if resources.len() > 1 && resources.contains(&ALL_WITH_SUBRESOURCES) {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(at.invalid(go_string_list(resources), detail));
    }
    if resources.contains(&ANY) && last_is_bare_resource {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(at.invalid(go_string_list(resources), detail));
    }
}

/// Finds the entries of a valid rule that another entry covers, each with the covering entry.
pub(super) fn find_covered_resources<'t>(resources: &[&'t str]) -> Vec<(usize, &'t str, String)> {
    let all: HashSet<&str> = resources.iter().copied().collect();
    let mut found = Vec::new();
    for (idx, entry) in resources.iter().enumerate() {
        let wider = match entry.split_once('/') {
            Some((resource, subresource)) => {
                vec![format!("{resource}/*"), format!("*/{subresource}")]
            }
            None => vec![ANY.to_owned()],
        };
        let wider = wider.into_iter().filter(|wider| wider != entry);
        found.extend(
            wider.filter(|wider| all.contains(wider.as_str())).map(|wider| (idx, *entry, wider)),
        );
    }
    found
}
