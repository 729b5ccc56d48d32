//! Limits on the size of a role.

use authz_rbac::{ROLE_COMBINATIONS_MAX, RULE_COMBINATIONS_MAX, Role, n_permissions_of_rules};
use field_errors::{BadValue, FieldErrors, FieldPath};

/// Checks a role against the size limits. Kubernetes has no such limit, so a larger object from
/// elsewhere still takes effect; only the API refuses it.
///
/// Rules that are unchanged from `old` are not checked, so that a role that was stored before the
/// limit existed can still be changed. The rules of an aggregated role come from other roles, which
/// have the same limits, and their sum may be larger.
pub fn check_role_limits(role: &Role, old: Option<&Role>) -> FieldErrors {
    let mut faults = FieldErrors::new();
    if old.is_some_and(|old| old.rules == role.rules) {
        return faults;
    }
    let rules = FieldPath::root("rules");
    for (idx, rule) in role.rules.iter().enumerate() {
        let n_own = rule.n_permissions();
        if n_own > RULE_COMBINATIONS_MAX {
            let detail = format!(
                "must have at most {RULE_COMBINATIONS_MAX} combinations of API groups, resources, \
                 verbs and names, or of URLs and verbs; split the rule into several, or use fewer \
                 entries"
            );
            faults.push(rules.index(idx).invalid(number_bad_value(n_own), &detail));
        }
    }
    let n_all = n_permissions_of_rules(&role.rules);
    if n_all > ROLE_COMBINATIONS_MAX && role.aggregation_rule.is_none() && faults.is_empty() {
        let detail = format!(
            "must have at most {ROLE_COMBINATIONS_MAX} combinations of API groups, resources, verbs \
             and names in all rules together; split the role into several"
        );
        faults.push(rules.invalid(number_bad_value(n_all), &detail));
    }
    faults
}

fn number_bad_value(value: u64) -> BadValue {
    BadValue::Json(value.to_string())
}
