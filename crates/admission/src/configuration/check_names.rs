//! Validation of the names of entries.

use std::collections::HashSet;

use field_errors::{BadValue, FieldErrors, FieldPath, dns1123_subdomain_faults};
use serde_json::Value;

/// The least number of segments of a fully qualified name.
const SEGMENTS_MIN: usize = 3;

/// Checks that a name is a domain with at least three segments.
pub(crate) fn check_qualified_name(name: &str, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let faults = dns1123_subdomain_faults(name);
    if name.is_empty() {
        errors.push(at.required(""));
    } else if !faults.is_empty() {
        errors.push(at.invalid(name, &faults.join(",")));
    } else if name.split('.').count() < SEGMENTS_MIN {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(at.invalid(name, detail));
    }
}

/// Reports names that occur twice; empty names are ignored.
#[derive(Debug, Default)]
pub(super) struct DuplicateNameChecker<'t>(HashSet<&'t str>);

impl<'t> DuplicateNameChecker<'t> {
    pub(super) fn check_unique_name(
        &mut self,
        name: &'t str,
        at: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) {
        if !name.is_empty() && !self.0.insert(name) {
            errors.push(at.duplicate(name));
        }
    }
}

/// A list of strings as Go prints it in an error.
pub(super) fn go_string_list(items: &[&str]) -> BadValue {
    let mut json = String::new();
    for c in Value::from(items.to_vec()).to_string().chars() {
        match c {
            // Go's JSON encoder escapes these for HTML.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                json.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => json.push(c),
        }
    }
    BadValue::Json(json)
}
