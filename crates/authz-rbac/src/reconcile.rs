//! Reconciling existing roles and bindings with expected ones.

use std::collections::BTreeMap;

use crate::coverage::uncovered_rules;
use crate::policy::{AggregationRule, Binding, LabelSelector, Metadata, Role, Subject};

/// The annotation that, set to `false`, excludes an object from reconciliation.
pub const AUTOUPDATE_ANNOTATION: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// The treatment of permissions and subjects that an object has and that are not expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extras {
    /// They stay; missing ones are added.
    Keep,
    /// They are removed; the object becomes the expected one.
    Remove,
}

/// The write that reconciliation of an object takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reconciled<T> {
    /// The object needs no write.
    Unchanged,
    /// The object differs but is excluded by [`AUTOUPDATE_ANNOTATION`].
    Protected,
    /// The object does not exist and is created.
    Create(T),
    /// The object is replaced.
    Update(T),
    /// The object is deleted and created again, because the role of a binding is immutable.
    Recreate(T),
}

/// Compares an existing role with the expected one.
///
/// 1. Labels and annotations are merged; existing values win.
/// 2. Expected permissions that the existing rules do not grant are added at the end, one rule each.
/// 3. An aggregation rule that is not expected is removed.
pub fn reconcile_role(
    expected: &Role,
    existing: Option<&Role>,
    extras: Extras,
) -> Reconciled<Role> {
    let Some(existing) = existing else {
        return Reconciled::Create(expected.clone());
    };
    let mut role =
        Role { metadata: merge(&existing.metadata, &expected.metadata), ..existing.clone() };
    let missing = uncovered_rules(&existing.rules, &expected.rules);
    let are_both_aggregated =
        expected.aggregation_rule.is_some() && existing.aggregation_rule.is_some();
    match extras {
        Extras::Keep => role.rules.extend(missing),
        Extras::Remove => {
            let has_extras = !are_both_aggregated
                && !uncovered_rules(&expected.rules, &existing.rules).is_empty();
            if has_extras || !missing.is_empty() {
                role.rules = expected.rules.clone();
            }
        }
    }
    role.aggregation_rule = aggregation(expected, existing, extras);
    finish(role, existing, &existing.metadata)
}

/// Compares an existing binding with the expected one. Missing subjects are added at the end.
pub fn reconcile_binding(
    expected: &Binding,
    existing: Option<&Binding>,
    extras: Extras,
) -> Reconciled<Binding> {
    let Some(existing) = existing else {
        return Reconciled::Create(expected.clone());
    };
    if existing.role_ref != expected.role_ref {
        return match is_protected(&existing.metadata) {
            true => Reconciled::Protected,
            false => Reconciled::Recreate(expected.clone()),
        };
    }
    let mut binding =
        Binding { metadata: merge(&existing.metadata, &expected.metadata), ..existing.clone() };
    let without = |subjects: &[Subject], others: &[Subject]| -> Vec<Subject> {
        subjects.iter().filter(|subject| !others.contains(subject)).cloned().collect()
    };
    let missing = without(&expected.subjects, &existing.subjects);
    match extras {
        Extras::Keep => binding.subjects.extend(missing),
        Extras::Remove => {
            if !missing.is_empty() || !without(&existing.subjects, &expected.subjects).is_empty() {
                binding.subjects = expected.subjects.clone();
            }
        }
    }
    finish(binding, existing, &existing.metadata)
}

fn finish<T: PartialEq>(reconciled: T, existing: &T, metadata: &Metadata) -> Reconciled<T> {
    if reconciled == *existing {
        Reconciled::Unchanged
    } else if is_protected(metadata) {
        Reconciled::Protected
    } else {
        Reconciled::Update(reconciled)
    }
}

fn is_protected(metadata: &Metadata) -> bool {
    metadata.annotations.get(AUTOUPDATE_ANNOTATION).is_some_and(|value| value == "false")
}

fn merge(existing: &Metadata, expected: &Metadata) -> Metadata {
    let merge = |existing: &BTreeMap<String, String>, expected: &BTreeMap<String, String>| {
        let mut merged = expected.clone();
        merged.extend(existing.clone());
        merged
    };
    Metadata {
        labels: merge(&existing.labels, &expected.labels),
        annotations: merge(&existing.annotations, &expected.annotations),
        ..existing.clone()
    }
}

fn aggregation(expected: &Role, existing: &Role, extras: Extras) -> Option<AggregationRule> {
    let wanted = expected.aggregation_rule.as_ref()?;
    let present: &[LabelSelector] =
        existing.aggregation_rule.as_ref().map_or(&[], |rule| &rule.cluster_role_selectors);
    let missing =
        wanted.cluster_role_selectors.iter().filter(|selector| !present.contains(selector));
    let has_extras =
        present.iter().any(|selector| !wanted.cluster_role_selectors.contains(selector));
    let mut selectors = present.to_vec();
    selectors.extend(missing.cloned());
    match extras {
        Extras::Remove if has_extras || selectors.len() > present.len() => Some(wanted.clone()),
        Extras::Keep | Extras::Remove if selectors.is_empty() => existing.aggregation_rule.clone(),
        Extras::Keep | Extras::Remove => {
            Some(AggregationRule { cluster_role_selectors: selectors })
        }
    }
}

#[cfg(test)]
mod tests;
