//! The entries of the proposal's kinds (admission §1.5).

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};

use super::names::{Seen, check_qualified};
use super::registration::{self, Stored};
use super::webhooks::{FAILURE_POLICIES, check_supported};
use super::{client, ordering, rules};
use crate::matching::Dialect;
use crate::members::text;

pub(super) fn check_initializers(
    entries: &[&Tree],
    stored: Option<&[&Tree]>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    check_entries(entries, stored, at, errors, &|entry, at, errors| {
        rules::check_for_initializer(entry, at, errors);
        check_supported(entry, "failurePolicy", &FAILURE_POLICIES, at, errors);
        ordering::check(entry, at, errors);
    });
}

pub(super) fn check_hooks(
    entries: &[&Tree],
    stored: Option<&[&Tree]>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    check_entries(entries, stored, at, errors, &|entry, at, errors| {
        client::check_v1alpha1(entry, at, errors);
        rules::check(entry, Dialect::V1alpha1, at, errors);
        check_supported(entry, "failurePolicy", &FAILURE_POLICIES, at, errors);
    });
}

/// Checks what both kinds have in common, and what an entry has of its own in between.
fn check_entries(
    entries: &[&Tree],
    stored: Option<&[&Tree]>,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
    check_own: &dyn Fn(&Tree, &FieldPath<'_>, &mut FieldErrors),
) {
    let stored = Stored::new(stored.unwrap_or_default());
    let mut seen = Seen::default();
    for (idx, entry) in entries.iter().enumerate() {
        let at = at.index(idx);
        let name = text(entry, "name").unwrap_or_default();
        check_qualified(name, &at.child("name"), errors);
        check_own(entry, &at, errors);
        registration::check(entry, &stored, &at, errors);
        seen.check(name, &at.child("name"), errors);
    }
}
