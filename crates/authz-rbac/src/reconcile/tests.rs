//! The table of reconciliation: expected, existing, outcome.

use std::collections::BTreeMap;

use super::*;
use crate::policy::{PolicyRule, RoleRef};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn role(verbs: &[&str]) -> Role {
    let rule = |verb: &&str| PolicyRule {
        verbs: vec![(*verb).to_owned()],
        api_groups: vec![String::new()],
        resources: vec!["pods".to_owned()],
        ..PolicyRule::default()
    };
    Role { rules: verbs.iter().map(rule).collect(), ..Role::default() }
}

fn labelled(labels: &[(&str, &str)]) -> Role {
    Role { metadata: Metadata { labels: map(labels), ..Metadata::default() }, ..Role::default() }
}

fn aggregated(labels: &[&str]) -> Role {
    let selector = |label: &&str| LabelSelector {
        match_labels: map(&[(label, "true")]),
        ..LabelSelector::default()
    };
    let cluster_role_selectors = labels.iter().map(selector).collect();
    Role { aggregation_rule: Some(AggregationRule { cluster_role_selectors }), ..Role::default() }
}

fn binding(role: &str, users: &[&str]) -> Binding {
    Binding {
        role_ref: RoleRef { kind: "ClusterRole".into(), name: role.into(), ..RoleRef::default() },
        subjects: users.iter().map(|user| Subject::user(user)).collect(),
        ..Binding::default()
    }
}

#[track_caller]
fn check_role(expected: &Role, existing: &Role, extras: Extras, want: Reconciled<Role>) {
    assert_eq!(reconcile_role(expected, Some(existing), extras), want);
}

#[test]
fn what_is_missing_is_created() {
    let expected = role(&["a"]);
    assert_eq!(reconcile_role(&expected, None, Extras::Keep), Reconciled::Create(expected.clone()));
    let expected = binding("r", &["a"]);
    assert_eq!(
        reconcile_binding(&expected, None, Extras::Keep),
        Reconciled::Create(expected.clone())
    );
}

#[test]
fn rules_are_united_or_replaced() {
    let (a, b) = (role(&["a"]), role(&["b"]));
    check_role(&a, &a, Extras::Keep, Reconciled::Unchanged);
    check_role(&a, &a, Extras::Remove, Reconciled::Unchanged);
    check_role(&a, &b, Extras::Keep, Reconciled::Update(role(&["b", "a"])));
    check_role(&a, &b, Extras::Remove, Reconciled::Update(a.clone()));
    check_role(&a, &role(&["b", "a"]), Extras::Keep, Reconciled::Unchanged);
    check_role(&a, &role(&["b", "a"]), Extras::Remove, Reconciled::Update(a.clone()));
    check_role(&a, &role(&["*"]), Extras::Keep, Reconciled::Unchanged);
}

#[test]
fn labels_that_exist_win() {
    let expected = labelled(&[("1", "a")]);
    check_role(&expected, &labelled(&[("1", "b")]), Extras::Keep, Reconciled::Unchanged);
    check_role(
        &expected,
        &labelled(&[("2", "b")]),
        Extras::Keep,
        Reconciled::Update(labelled(&[("1", "a"), ("2", "b")])),
    );
}

#[test]
fn what_belongs_to_the_administrator_is_left_alone() {
    let annotations = map(&[(AUTOUPDATE_ANNOTATION, "false")]);
    let own = Metadata { annotations: annotations.clone(), ..Metadata::default() };
    let protected = Role { metadata: own.clone(), ..role(&["b"]) };
    check_role(&role(&["a"]), &protected, Extras::Remove, Reconciled::Protected);
    let protected = Binding { metadata: own, ..binding("other", &["a"]) };
    assert_eq!(
        reconcile_binding(&binding("r", &["a"]), Some(&protected), Extras::Keep),
        Reconciled::Protected
    );
}

#[test]
fn selectors_are_added_and_unexpected_aggregation_is_removed() {
    let existing = aggregated(&["x"]);
    check_role(&Role::default(), &existing, Extras::Keep, Reconciled::Update(Role::default()));
    let both = aggregated(&["x", "y"]);
    check_role(&aggregated(&["y"]), &existing, Extras::Keep, Reconciled::Update(both.clone()));
    check_role(&existing, &both, Extras::Keep, Reconciled::Unchanged);
    check_role(&existing, &both, Extras::Remove, Reconciled::Update(existing.clone()));
    check_role(&existing, &Role::default(), Extras::Keep, Reconciled::Update(existing.clone()));
}

#[test]
fn rules_that_aggregation_filled_in_are_not_extra() {
    let expected = aggregated(&["x"]);
    let filled = Role { rules: role(&["a"]).rules, ..expected.clone() };
    check_role(&expected, &filled, Extras::Remove, Reconciled::Unchanged);
}

#[test]
fn subjects_are_united_or_replaced_and_roles_recreate() {
    let (expected, existing) = (binding("r", &["a", "c"]), binding("r", &["a", "b"]));
    let reconcile = |extras| reconcile_binding(&expected, Some(&existing), extras);
    assert_eq!(reconcile(Extras::Keep), Reconciled::Update(binding("r", &["a", "b", "c"])));
    assert_eq!(reconcile(Extras::Remove), Reconciled::Update(expected.clone()));
    assert_eq!(
        reconcile_binding(&expected, Some(&binding("other", &["a", "c"])), Extras::Keep),
        Reconciled::Recreate(expected.clone())
    );
    assert_eq!(
        reconcile_binding(&expected, Some(&expected), Extras::Remove),
        Reconciled::Unchanged
    );
}
