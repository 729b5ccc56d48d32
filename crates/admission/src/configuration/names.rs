//! The names of entries, and how values of lists show in faults.

use std::collections::HashSet;

use field_errors::{BadValue, FieldErrors, FieldPath, dns1123_subdomain_faults};
use serde_json::Value;

/// How many segments a fully qualified name has at least.
const SEGMENTS_MIN: usize = 3;

/// Checks that a name is a domain with at least three segments (admission V2 to V4).
pub(crate) fn check_qualified(name: &str, at: &FieldPath<'_>, errors: &mut FieldErrors) {
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

/// Tells names that occurred before; an empty one is nobody's name.
#[derive(Debug, Default)]
pub(super) struct Seen<'t>(HashSet<&'t str>);

impl<'t> Seen<'t> {
    pub(super) fn check(&mut self, name: &'t str, at: &FieldPath<'_>, errors: &mut FieldErrors) {
        if !name.is_empty() && !self.0.insert(name) {
            errors.push(at.duplicate(name));
        }
    }
}

/// A list of texts as Go writes it in JSON.
pub(super) fn shown(items: &[&str]) -> BadValue {
    let mut json = String::new();
    for c in Value::from(items.to_vec()).to_string().chars() {
        match c {
            // Go's encoder keeps these out of scripts.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                json.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => json.push(c),
        }
    }
    BadValue::Json(json)
}
