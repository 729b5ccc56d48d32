//! How much a role may grant.

use authz_rbac::{ROLE_COMBINATIONS_MAX, RULE_COMBINATIONS_MAX, Role, n_combinations};
use field_errors::{BadValue, FieldErrors, FieldPath};

/// What is too large about a role. Kubernetes has no such limit, so an object from elsewhere that is
/// larger still takes effect; only the API refuses to take it.
///
/// A role that was stored before there was a limit can still be changed otherwise: rules that stay as
/// they are in `old` are not looked at. Those of an aggregated role come from others, which have the
/// same limits, and their sum may be larger.
pub fn limit_errors(role: &Role, old: Option<&Role>) -> FieldErrors {
    let mut faults = FieldErrors::new();
    if old.is_some_and(|old| old.rules == role.rules) {
        return faults;
    }
    let rules = FieldPath::root("rules");
    for (idx, rule) in role.rules.iter().enumerate() {
        let n_own = rule.n_combinations();
        if n_own > RULE_COMBINATIONS_MAX {
            let detail = format!(
                "must have at most {RULE_COMBINATIONS_MAX} combinations of API groups, resources, \
                 verbs and names, or of URLs and verbs; split the rule into several, or use fewer \
                 entries"
            );
            faults.push(rules.index(idx).invalid(number(n_own), &detail));
        }
    }
    let n_all = n_combinations(&role.rules);
    if n_all > ROLE_COMBINATIONS_MAX && role.aggregation_rule.is_none() && faults.is_empty() {
        let detail = format!(
            "must have at most {ROLE_COMBINATIONS_MAX} combinations of API groups, resources, verbs \
             and names in all rules together; split the role into several"
        );
        faults.push(rules.invalid(number(n_all), &detail));
    }
    faults
}

fn number(value: u64) -> BadValue {
    BadValue::Json(value.to_string())
}
