//! Validation of the `v1alpha1` kinds.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};

use super::check_names::{DuplicateNameChecker, check_qualified_name};
use super::check_webhooks::{FAILURE_POLICIES, check_supported_value};
use super::require_fail_open_registration::{self, StoredEntriesByName};
use super::{check_client_config, check_ordering, check_rules};
use crate::json_members::read_string;
use crate::request_matching::RuleDialect;

pub(super) fn check_initializers(
    entries: &[&Tree],
    stored: Option<&[&Tree]>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    check_v1alpha1_entries(entries, stored, at, errors, &|entry, at, errors| {
        check_rules::check_initializer_rules(entry, at, errors);
        check_supported_value(entry, "failurePolicy", &FAILURE_POLICIES, at, errors);
        check_ordering::check_ordering_constraints(entry, at, errors);
    });
}

pub(super) fn check_external_hooks(
    entries: &[&Tree],
    stored: Option<&[&Tree]>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    check_v1alpha1_entries(entries, stored, at, errors, &|entry, at, errors| {
        check_client_config::check_v1alpha1_client_config(entry, at, errors);
        check_rules::check_rules(entry, RuleDialect::V1alpha1, at, errors);
        check_supported_value(entry, "failurePolicy", &FAILURE_POLICIES, at, errors);
    });
}

/// Checks the fields that both kinds have, and calls `check_own` for the others, in the order of the errors.
fn check_v1alpha1_entries(
    entries: &[&Tree],
    stored: Option<&[&Tree]>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
    check_own: &dyn Fn(&Tree, &FieldPath<'_>, &mut FieldErrors),
) {
    let stored = StoredEntriesByName::new(stored.unwrap_or_default());
    let mut seen = DuplicateNameChecker::default();
    for (idx, entry) in entries.iter().enumerate() {
        let at = at.index(idx);
        let name = read_string(entry, "name").unwrap_or_default();
        check_qualified_name(name, &at.child("name"), errors);
        check_own(entry, &at, errors);
        require_fail_open_registration::check_new_entry_fails_open(entry, &stored, &at, errors);
        seen.check_unique_name(name, &at.child("name"), errors);
    }
}
