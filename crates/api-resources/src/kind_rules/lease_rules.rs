//! The validation rules of Leases.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use crate::json_members::{string_member, value_at_path};

const STRATEGIES: [&str; 1] = ["OldestEmulationVersion"];

pub(super) fn validate(tree: &Tree, errors: &mut FieldErrors) {
    let (spec, path) = (value_at_path(tree, &["spec"]), FieldPath::root("spec"));
    let given = |key: &str| spec.get(key).and_then(Value::as_i64);
    if let Some(seconds) = given("leaseDurationSeconds").filter(|&it| it <= 0) {
        let path = path.child("leaseDurationSeconds");
        errors.push(path.invalid(seconds, "must be greater than 0"));
    }
    if let Some(n_transitions) = given("leaseTransitions").filter(|&it| it < 0) {
        let path = path.child("leaseTransitions");
        errors.push(path.invalid(n_transitions, "must be greater than or equal to 0"));
    }
    let strategy = string_member(spec, "strategy");
    if !strategy.is_empty() && !STRATEGIES.contains(&strategy) {
        errors.push(path.child("strategy").not_supported(strategy, &STRATEGIES));
    }
    if strategy.is_empty() && !string_member(spec, "preferredHolder").is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(path.child("preferredHolder").forbidden(detail));
    }
}
