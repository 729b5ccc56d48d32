//! Validation of match conditions.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath, label_key_faults};

use super::check_names::DuplicateNameChecker;
use super::ratcheting::UpdateRatchet;
use crate::json_members::{read_objects, read_string};
use crate::match_conditions::{ConditionCompiler, ConditionError, MATCH_CONDITIONS_MAX};

/// Checks the match conditions of one webhook. All webhooks of an object share the compiler and its budget.
pub(super) fn check_match_conditions(
    webhook: &Tree,
    strictness: &UpdateRatchet<'_>,
    compiler: &mut ConditionCompiler,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = at.child("matchConditions");
    let conditions = read_objects(webhook, "matchConditions");
    if conditions.len() > MATCH_CONDITIONS_MAX {
        errors.push(at.too_many(conditions.len(), MATCH_CONDITIONS_MAX));
    }
    let mut seen = DuplicateNameChecker::default();
    for (idx, condition) in conditions.iter().enumerate() {
        let at = at.index(idx);
        let expression = read_string(condition, "expression").unwrap_or_default().trim();
        let path = at.child("expression");
        if expression.is_empty() {
            errors.push(path.required(""));
        } else {
            let is_stored = strictness.stored_expressions.contains(expression);
            let checked = match is_stored {
                true => compiler.compile_stored_expression(expression).map(|_| ()),
                false => compiler.check_new_expression(expression),
            };
            match checked {
                Ok(()) => {}
                Err(ConditionError::Invalid(detail)) => {
                    errors.push(path.invalid(expression, &detail));
                }
                Err(ConditionError::Internal(detail)) => errors.push(path.internal(&detail)),
            }
        }
        let (name, path) = (read_string(condition, "name").unwrap_or_default(), at.child("name"));
        if name.is_empty() {
            errors.push(path.required(""));
        } else {
            errors.extend(label_key_faults(name).iter().map(|fault| path.invalid(name, fault)));
        }
        seen.check_unique_name(name, &path, errors);
    }
}
