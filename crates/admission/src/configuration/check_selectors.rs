//! Validation of label selectors.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath, label_key_faults, label_value_faults};

use crate::json_members::{read_object, read_objects, read_string, read_strings};
use crate::request_matching::parse_selector_operator;

/// The members of a webhook that hold a selector.
pub(super) const SELECTOR_MEMBERS: [&str; 2] = ["namespaceSelector", "objectSelector"];

/// Checks a selector. The values of match expressions are checked only if `checks_values`.
pub(super) fn check_selector(
    selector: &Tree,
    checks_values: bool,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let path = at.child("matchLabels");
    let labels = read_object(selector, "matchLabels").into_iter().flatten();
    let mut labels: Vec<(&str, &str)> =
        labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
    labels.sort_unstable();
    for (key, value) in labels {
        errors.extend(label_key_faults(key).iter().map(|fault| path.invalid(key, fault)));
        errors.extend(label_value_faults(value).iter().map(|fault| path.invalid(value, fault)));
    }
    let list = at.child("matchExpressions");
    for (idx, expression) in read_objects(selector, "matchExpressions").into_iter().enumerate() {
        check_match_expression(expression, checks_values, &list.index(idx), errors);
    }
}

fn check_match_expression(
    expression: &Tree,
    checks_values: bool,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    use authz::LabelOperator::{DoesNotExist, Exists, In, NotIn};
    let path = at.child("values");
    let values = read_strings(expression, "values");
    let operator = read_string(expression, "operator").unwrap_or_default();
    match parse_selector_operator(operator) {
        Some(In | NotIn) if values.is_empty() => {
            errors.push(path.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        Some(Exists | DoesNotExist) if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(path.forbidden(detail));
        }
        Some(_) => {}
        None => {
            errors.push(at.child("operator").invalid(operator, "not a valid selector operator"));
        }
    }
    let key = read_string(expression, "key").unwrap_or_default();
    errors.extend(label_key_faults(key).iter().map(|fault| at.child("key").invalid(key, fault)));
    if checks_values {
        for (idx, value) in values.iter().enumerate() {
            let faults = label_value_faults(value);
            errors.extend(faults.iter().map(|fault| path.index(idx).invalid(*value, fault)));
        }
    }
}
