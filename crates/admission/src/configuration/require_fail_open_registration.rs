//! Fail-open registration: a new `v1alpha1` entry must have the failure policy `Ignore`.

use std::collections::HashMap;

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};

use crate::json_members::read_string;

/// Checks that an entry whose name is not stored yet has the failure policy `Ignore`.
pub(super) fn check_new_entry_fails_open(
    entry: &Tree,
    stored: &StoredEntriesByName<'_>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if has_failure_policy_fail(entry) && stored.find_entry_of_same_name(entry).is_none() {
        let detail =
            "must be \"Ignore\" when first registered; update it to \"Fail\" once it is serving";
        errors.push(at.child("failurePolicy").forbidden(detail));
    }
}

/// Reports whether an update raises the failure policy of an entry to `Fail` and changes its client configuration
/// or rules.
pub(super) fn is_raised_to_fail_with_changes(
    entry: &Tree,
    stored: &StoredEntriesByName<'_>,
) -> bool {
    stored.find_entry_of_same_name(entry).is_some_and(|before| {
        let is_changed =
            ["clientConfig", "rules"].iter().any(|it| entry.get(*it) != before.get(*it));
        has_failure_policy_fail(entry) && !has_failure_policy_fail(before) && is_changed
    })
}

fn has_failure_policy_fail(entry: &Tree) -> bool {
    read_string(entry, "failurePolicy") == Some("Fail")
}

/// The stored entries by name. If several have the same name, the first one counts.
#[derive(Debug, Default)]
pub(super) struct StoredEntriesByName<'t>(HashMap<&'t str, &'t Tree>);

impl<'t> StoredEntriesByName<'t> {
    pub(super) fn new(entries: &[&'t Tree]) -> Self {
        let mut by_name = HashMap::new();
        for entry in entries {
            by_name.entry(read_string(entry, "name").unwrap_or_default()).or_insert(*entry);
        }
        Self(by_name)
    }

    /// Finds the stored entry with the same name.
    fn find_entry_of_same_name(&self, new: &Tree) -> Option<&'t Tree> {
        self.0.get(read_string(new, "name").unwrap_or_default()).copied()
    }
}
