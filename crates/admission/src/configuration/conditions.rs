//! The match conditions of webhooks (admission M12 to M17).

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath, label_key_faults};

use super::names::Seen;
use super::ratchet::Strictness;
use crate::conditions::{ConditionCompiler, ConditionError, MATCH_CONDITIONS_MAX};
use crate::members::{objects, text};

/// Checks the conditions of one webhook; those of the whole object share a compiler.
pub(super) fn check(
    webhook: &Tree,
    strictness: &Strictness<'_>,
    compiler: &mut ConditionCompiler,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = at.child("matchConditions");
    let conditions = objects(webhook, "matchConditions");
    if conditions.len() > MATCH_CONDITIONS_MAX {
        errors.push(at.too_many(conditions.len(), MATCH_CONDITIONS_MAX));
    }
    let mut seen = Seen::default();
    for (idx, condition) in conditions.iter().enumerate() {
        let at = at.index(idx);
        let expression = text(condition, "expression").unwrap_or_default().trim();
        let path = at.child("expression");
        if expression.is_empty() {
            errors.push(path.required(""));
        } else {
            let is_stored = strictness.stored_expressions.contains(expression);
            let checked = match is_stored {
                true => compiler.compile(expression).map(|_| ()),
                false => compiler.check_new(expression),
            };
            match checked {
                Ok(()) => {}
                Err(ConditionError::Invalid(detail)) => {
                    errors.push(path.invalid(expression, &detail));
                }
                Err(ConditionError::Internal(detail)) => errors.push(path.internal(&detail)),
            }
        }
        let (name, path) = (text(condition, "name").unwrap_or_default(), at.child("name"));
        if name.is_empty() {
            errors.push(path.required(""));
        } else {
            errors.extend(label_key_faults(name).iter().map(|fault| path.invalid(name, fault)));
        }
        seen.check(name, &path, errors);
    }
}
