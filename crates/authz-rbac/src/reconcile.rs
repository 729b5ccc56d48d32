//! Bringing objects that exist in line with objects that are expected.

use std::collections::BTreeMap;

use crate::covers::uncovered;
use crate::policy::{AggregationRule, Binding, LabelSelector, Metadata, Role, Subject};

/// An object whose annotation of this name is `false` belongs to the administrator.
pub const AUTOUPDATE_ANNOTATION: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// What happens to permissions and subjects that are not expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extras {
    /// They stay: what is missing is added.
    Keep,
    /// They go: the object becomes what is expected.
    Remove,
}

/// What has to be done with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reconciled<T> {
    /// Nothing; it is in line.
    Unchanged,
    /// Nothing, although it is not in line: it belongs to the administrator.
    Protected,
    /// It does not exist and is created.
    Create(T),
    /// It is replaced.
    Update(T),
    /// It is deleted and created anew, because the role of a binding can not change.
    Recreate(T),
}

/// Compares a role with what is expected of it.
///
/// Labels and annotations are merged, and those that exist win. Rules that are expected are granted
/// by what exists or else added, taken apart, at the end. An aggregation that is not expected is
/// removed.
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
    let missing = uncovered(&existing.rules, &expected.rules);
    let are_both_aggregated =
        expected.aggregation_rule.is_some() && existing.aggregation_rule.is_some();
    match extras {
        Extras::Keep => role.rules.extend(missing),
        Extras::Remove => {
            let has_extras =
                !are_both_aggregated && !uncovered(&expected.rules, &existing.rules).is_empty();
            if has_extras || !missing.is_empty() {
                role.rules = expected.rules.clone();
            }
        }
    }
    role.aggregation_rule = aggregation(expected, existing, extras);
    finish(role, existing, &existing.metadata)
}

/// Compares a binding with what is expected of it. Subjects that are expected and missing are added
/// at the end.
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
