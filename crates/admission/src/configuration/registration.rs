//! Fail-open registration: who is new may not refuse requests yet (admission §1.6).

use std::collections::HashMap;

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};

use crate::members::text;

/// Checks that an entry whose name is not among the stored ones ignores failures.
pub(super) fn check(
    entry: &Tree,
    stored: &Stored<'_>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if is_fail(entry) && stored.entry(entry).is_none() {
        let detail =
            "must be \"Ignore\" when first registered; update it to \"Fail\" once it is serving";
        errors.push(at.child("failurePolicy").forbidden(detail));
    }
}

/// Whether failures of an entry begin to count with the same write that changes what it is about.
pub(super) fn is_raised_with_changes(entry: &Tree, stored: &Stored<'_>) -> bool {
    stored.entry(entry).is_some_and(|before| {
        let is_changed =
            ["clientConfig", "rules"].iter().any(|it| entry.get(*it) != before.get(*it));
        is_fail(entry) && !is_fail(before) && is_changed
    })
}

fn is_fail(entry: &Tree) -> bool {
    text(entry, "failurePolicy") == Some("Fail")
}

/// The stored entries by name, the first of each.
#[derive(Debug, Default)]
pub(super) struct Stored<'t>(HashMap<&'t str, &'t Tree>);

impl<'t> Stored<'t> {
    pub(super) fn new(entries: &[&'t Tree]) -> Self {
        let mut by_name = HashMap::new();
        for entry in entries {
            by_name.entry(text(entry, "name").unwrap_or_default()).or_insert(*entry);
        }
        Self(by_name)
    }

    /// The stored entry of the same name.
    fn entry(&self, new: &Tree) -> Option<&'t Tree> {
        self.0.get(text(new, "name").unwrap_or_default()).copied()
    }
}
