//! Reconciliation: expected object, existing object, operation.

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
fn check_role(
    expected: &Role,
    existing: &Role,
    extras: ReconcileExtrasPolicy,
    want: ReconcileOperation<Role>,
) {
    assert_eq!(reconcile_role(expected, Some(existing), extras), want);
}

#[test]
fn missing_objects_are_created() {
    let expected = role(&["a"]);
    assert_eq!(
        reconcile_role(&expected, None, ReconcileExtrasPolicy::Keep),
        ReconcileOperation::Create(expected.clone())
    );
    let expected = binding("r", &["a"]);
    assert_eq!(
        reconcile_binding(&expected, None, ReconcileExtrasPolicy::Keep),
        ReconcileOperation::Create(expected.clone())
    );
}

#[test]
fn rules_are_merged_or_replaced() {
    let (a, b) = (role(&["a"]), role(&["b"]));
    check_role(&a, &a, ReconcileExtrasPolicy::Keep, ReconcileOperation::Unchanged);
    check_role(&a, &a, ReconcileExtrasPolicy::Remove, ReconcileOperation::Unchanged);
    check_role(&a, &b, ReconcileExtrasPolicy::Keep, ReconcileOperation::Update(role(&["b", "a"])));
    check_role(&a, &b, ReconcileExtrasPolicy::Remove, ReconcileOperation::Update(a.clone()));
    check_role(&a, &role(&["b", "a"]), ReconcileExtrasPolicy::Keep, ReconcileOperation::Unchanged);
    check_role(
        &a,
        &role(&["b", "a"]),
        ReconcileExtrasPolicy::Remove,
        ReconcileOperation::Update(a.clone()),
    );
    check_role(&a, &role(&["*"]), ReconcileExtrasPolicy::Keep, ReconcileOperation::Unchanged);
}

#[test]
fn labels_that_exist_win() {
    let expected = labelled(&[("1", "a")]);
    check_role(
        &expected,
        &labelled(&[("1", "b")]),
        ReconcileExtrasPolicy::Keep,
        ReconcileOperation::Unchanged,
    );
    check_role(
        &expected,
        &labelled(&[("2", "b")]),
        ReconcileExtrasPolicy::Keep,
        ReconcileOperation::Update(labelled(&[("1", "a"), ("2", "b")])),
    );
}

#[test]
fn objects_with_autoupdate_disabled_are_protected() {
    let annotations = map(&[(AUTOUPDATE_ANNOTATION, "false")]);
    let own = Metadata { annotations: annotations.clone(), ..Metadata::default() };
    let protected = Role { metadata: own.clone(), ..role(&["b"]) };
    check_role(
        &role(&["a"]),
        &protected,
        ReconcileExtrasPolicy::Remove,
        ReconcileOperation::Protected,
    );
    let protected = Binding { metadata: own, ..binding("other", &["a"]) };
    assert_eq!(
        reconcile_binding(&binding("r", &["a"]), Some(&protected), ReconcileExtrasPolicy::Keep),
        ReconcileOperation::Protected
    );
}

#[test]
fn selectors_are_added_and_unexpected_aggregation_is_removed() {
    let existing = aggregated(&["x"]);
    check_role(
        &Role::default(),
        &existing,
        ReconcileExtrasPolicy::Keep,
        ReconcileOperation::Update(Role::default()),
    );
    let both = aggregated(&["x", "y"]);
    check_role(
        &aggregated(&["y"]),
        &existing,
        ReconcileExtrasPolicy::Keep,
        ReconcileOperation::Update(both.clone()),
    );
    check_role(&existing, &both, ReconcileExtrasPolicy::Keep, ReconcileOperation::Unchanged);
    check_role(
        &existing,
        &both,
        ReconcileExtrasPolicy::Remove,
        ReconcileOperation::Update(existing.clone()),
    );
    check_role(
        &existing,
        &Role::default(),
        ReconcileExtrasPolicy::Keep,
        ReconcileOperation::Update(existing.clone()),
    );
}

#[test]
fn aggregated_rules_are_not_extra() {
    let expected = aggregated(&["x"]);
    let filled = Role { rules: role(&["a"]).rules, ..expected.clone() };
    check_role(&expected, &filled, ReconcileExtrasPolicy::Remove, ReconcileOperation::Unchanged);
}

#[test]
fn subjects_are_merged_or_replaced_and_role_changes_recreate() {
    let (expected, existing) = (binding("r", &["a", "c"]), binding("r", &["a", "b"]));
    let reconcile = |extras| reconcile_binding(&expected, Some(&existing), extras);
    assert_eq!(
        reconcile(ReconcileExtrasPolicy::Keep),
        ReconcileOperation::Update(binding("r", &["a", "b", "c"]))
    );
    assert_eq!(
        reconcile(ReconcileExtrasPolicy::Remove),
        ReconcileOperation::Update(expected.clone())
    );
    assert_eq!(
        reconcile_binding(
            &expected,
            Some(&binding("other", &["a", "c"])),
            ReconcileExtrasPolicy::Keep
        ),
        ReconcileOperation::Recreate(expected.clone())
    );
    assert_eq!(
        reconcile_binding(&expected, Some(&expected), ReconcileExtrasPolicy::Remove),
        ReconcileOperation::Unchanged
    );
}
