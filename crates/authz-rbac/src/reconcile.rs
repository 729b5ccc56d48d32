//! Reconciling existing roles and bindings with expected ones.

use std::collections::BTreeMap;

use crate::policy::{AggregationRule, Binding, LabelSelector, Metadata, Role, Subject};
use crate::rule_coverage::uncovered_rules;

/// The annotation that, set to `false`, excludes an object from reconciliation.
pub const AUTOUPDATE_ANNOTATION: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// The treatment of unexpected permissions and subjects of an object during reconciliation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileExtrasPolicy {
    /// Reconciliation keeps unexpected permissions and subjects and adds the missing ones.
    Keep,
    /// Reconciliation removes unexpected permissions and subjects, so that the object equals the expected one.
    Remove,
}

/// The write that reconciles an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReconcileOperation<T> {
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
    extras: ReconcileExtrasPolicy,
) -> ReconcileOperation<Role> {
    let Some(existing) = existing else {
        return ReconcileOperation::Create(expected.clone());
    };
    let mut role = Role {
        metadata: merge_metadata(&existing.metadata, &expected.metadata),
        ..existing.clone()
    };
    let missing = uncovered_rules(&existing.rules, &expected.rules);
    let are_both_aggregated =
        expected.aggregation_rule.is_some() && existing.aggregation_rule.is_some();
    match extras {
        ReconcileExtrasPolicy::Keep => role.rules.extend(missing),
        ReconcileExtrasPolicy::Remove => {
            let has_extras = !are_both_aggregated
                && !uncovered_rules(&expected.rules, &existing.rules).is_empty();
            if has_extras || !missing.is_empty() {
                role.rules = expected.rules.clone();
            }
        }
    }
    role.aggregation_rule = reconcile_aggregation_rule(expected, existing, extras);
    to_reconcile_operation(role, existing, &existing.metadata)
}

/// Compares an existing binding with the expected one. Missing subjects are added at the end.
pub fn reconcile_binding(
    expected: &Binding,
    existing: Option<&Binding>,
    extras: ReconcileExtrasPolicy,
) -> ReconcileOperation<Binding> {
    let Some(existing) = existing else {
        return ReconcileOperation::Create(expected.clone());
    };
    if existing.role_ref != expected.role_ref {
        return match is_autoupdate_disabled(&existing.metadata) {
            true => ReconcileOperation::Protected,
            false => ReconcileOperation::Recreate(expected.clone()),
        };
    }
    let mut binding = Binding {
        metadata: merge_metadata(&existing.metadata, &expected.metadata),
        ..existing.clone()
    };
    let without = |subjects: &[Subject], others: &[Subject]| -> Vec<Subject> {
        subjects.iter().filter(|subject| !others.contains(subject)).cloned().collect()
    };
    let missing = without(&expected.subjects, &existing.subjects);
    match extras {
        ReconcileExtrasPolicy::Keep => binding.subjects.extend(missing),
        ReconcileExtrasPolicy::Remove => {
            if !missing.is_empty() || !without(&existing.subjects, &expected.subjects).is_empty() {
                binding.subjects = expected.subjects.clone();
            }
        }
    }
    to_reconcile_operation(binding, existing, &existing.metadata)
}

fn to_reconcile_operation<T: PartialEq>(
    reconciled: T,
    existing: &T,
    metadata: &Metadata,
) -> ReconcileOperation<T> {
    if reconciled == *existing {
        ReconcileOperation::Unchanged
    } else if is_autoupdate_disabled(metadata) {
        ReconcileOperation::Protected
    } else {
        ReconcileOperation::Update(reconciled)
    }
}

fn is_autoupdate_disabled(metadata: &Metadata) -> bool {
    metadata.annotations.get(AUTOUPDATE_ANNOTATION).is_some_and(|value| value == "false")
}

fn merge_metadata(existing: &Metadata, expected: &Metadata) -> Metadata {
    let merge_metadata = |existing: &BTreeMap<String, String>,
                          expected: &BTreeMap<String, String>| {
        let mut merged = expected.clone();
        merged.extend(existing.clone());
        merged
    };
    Metadata {
        labels: merge_metadata(&existing.labels, &expected.labels),
        annotations: merge_metadata(&existing.annotations, &expected.annotations),
        ..existing.clone()
    }
}

fn reconcile_aggregation_rule(
    expected: &Role,
    existing: &Role,
    extras: ReconcileExtrasPolicy,
) -> Option<AggregationRule> {
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
        ReconcileExtrasPolicy::Remove if has_extras || selectors.len() > present.len() => {
            Some(wanted.clone())
        }
        ReconcileExtrasPolicy::Keep | ReconcileExtrasPolicy::Remove if selectors.is_empty() => {
            existing.aggregation_rule.clone()
        }
        ReconcileExtrasPolicy::Keep | ReconcileExtrasPolicy::Remove => {
            Some(AggregationRule { cluster_role_selectors: selectors })
        }
    }
}

#[cfg(test)]
mod tests;
