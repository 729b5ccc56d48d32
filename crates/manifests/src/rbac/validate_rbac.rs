//! Validation of RBAC objects, as the API server does it.

use authz_rbac::{AggregationRule, Binding, GROUP, LabelSelector, PolicyRule, Role, Subject};
use field_errors::{
    BadValue, FieldError, FieldErrors, FieldPath, dns1123_subdomain_faults, label_key_faults,
    label_value_faults, path_segment_faults,
};

use super::decode_rbac::{Kind, RbacObject, UnvalidatedRbacObject};
use super::metadata_validation::{
    METADATA, OwnersAndFinalizers, invalid_value_errors, validate_labels, validate_metadata,
};

/// Validates a new version of an object alone and against the stored one, and sets defaults.
///
/// # Errors
/// Every fault.
pub fn validate_rbac_object_update(
    manifest: UnvalidatedRbacObject,
    old: &RbacObject,
) -> Result<RbacObject, FieldErrors> {
    manifest.into_validated_update(Some(old))
}

pub(super) fn missing_namespace_error() -> FieldError {
    METADATA.child("namespace").required("")
}

pub(super) fn validate_rbac_object(
    kind: Kind,
    object: &RbacObject,
    ownership: &OwnersAndFinalizers,
    old: Option<&RbacObject>,
) -> FieldErrors {
    let mut faults = FieldErrors::new();
    validate_metadata(kind, object.metadata(), ownership, &mut faults);
    match (object, old) {
        (RbacObject::Role(role), old) => {
            let old = match old {
                Some(RbacObject::Role(old)) => Some(old),
                Some(RbacObject::Binding(_)) | None => None,
            };
            validate_role(kind, role, old, &mut faults);
        }
        (RbacObject::Binding(binding), old) => {
            validate_binding(kind, binding, &mut faults);
            if let Some(RbacObject::Binding(old)) = old
                && old.role_ref != binding.role_ref
            {
                faults.push(changed_role_ref_error(binding));
            }
        }
    }
    faults
}

/// Validates a role. Like Kubernetes, it reports missing verbs after everything else.
fn validate_role(kind: Kind, role: &Role, old: Option<&Role>, faults: &mut FieldErrors) {
    let rules = FieldPath::root("rules");
    for (idx, rule) in role.rules.iter().enumerate() {
        validate_rbac_rule(kind, &rules.index(idx), rule, faults);
    }
    let is_without_verbs = |(_, rule): &(usize, &PolicyRule)| rule.verbs.is_empty();
    let without_verbs = role.rules.iter().enumerate().filter(is_without_verbs);
    let missing_verbs = without_verbs.map(|(idx, _)| rules.index(idx).child("verbs").required(""));
    if let (Kind::ClusterRole, Some(aggregation)) = (kind, &role.aggregation_rule) {
        let old = old.and_then(|old| old.aggregation_rule.as_ref());
        validate_aggregation_rule(aggregation, old, faults);
    }
    faults.extend(missing_verbs);
}

fn validate_rbac_rule(kind: Kind, at: &FieldPath<'_>, rule: &PolicyRule, faults: &mut FieldErrors) {
    if !rule.non_resource_urls.is_empty() {
        let at = at.child("nonResourceURLs");
        let mut invalid =
            |detail| faults.push(at.invalid(text_list_bad_value(&rule.non_resource_urls), detail));
        if kind.is_namespaced() {
            invalid("namespaced rules cannot apply to non-resource URLs");
        }
        let PolicyRule { api_groups, resources, resource_names, .. } = rule;
        if !(api_groups.is_empty() && resources.is_empty() && resource_names.is_empty()) {
            invalid("rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if rule.api_groups.is_empty() {
        let detail = "resource rules must supply at least one api group";
        faults.push(at.child("apiGroups").required(detail));
    }
    if rule.resources.is_empty() {
        let detail = "resource rules must supply at least one resource";
        faults.push(at.child("resources").required(detail));
    }
}

fn text_list_bad_value(texts: &[String]) -> BadValue {
    BadValue::Json(serde_json::Value::from(texts).to_string())
}

fn validate_aggregation_rule(
    rule: &AggregationRule,
    old: Option<&AggregationRule>,
    faults: &mut FieldErrors,
) {
    let at = FieldPath::root("aggregationRule");
    let at = at.child("clusterRoleSelectors");
    if rule.cluster_role_selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        faults.push(at.required(detail));
    }
    // An object that was stored before these checks existed can still be changed in its other fields.
    let is_any_value_allowed =
        old.is_some_and(|old| old.cluster_role_selectors.iter().any(has_invalid_label_value));
    for (idx, selector) in rule.cluster_role_selectors.iter().enumerate() {
        let at = at.index(idx);
        let n_before = faults.len();
        validate_label_selector(&at, selector, is_any_value_allowed, faults);
        if faults.len() > n_before {
            let value = BadValue::Json("null".to_owned());
            faults.push(at.invalid(value, "invalid label selector."));
        }
    }
}

fn has_invalid_label_value(selector: &LabelSelector) -> bool {
    let mut values = selector.match_expressions.iter().flat_map(|expression| &expression.values);
    values.any(|value| !label_value_faults(value).is_empty())
}

fn validate_label_selector(
    at: &FieldPath<'_>,
    selector: &LabelSelector,
    is_any_value_allowed: bool,
    faults: &mut FieldErrors,
) {
    validate_labels(&at.child("matchLabels"), &selector.match_labels, faults);
    let at = at.child("matchExpressions");
    for (idx, expression) in selector.match_expressions.iter().enumerate() {
        let at = at.index(idx);
        let values = at.child("values");
        match expression.operator.as_str() {
            "In" | "NotIn" if expression.values.is_empty() => {
                faults.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"))
            }
            "Exists" | "DoesNotExist" if !expression.values.is_empty() => {
                faults.push(values.forbidden(
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ))
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                faults.push(at.child("operator").invalid(other, "not a valid selector operator"));
            }
        }
        faults.extend(invalid_value_errors(
            &at.child("key"),
            &expression.key,
            label_key_faults(&expression.key),
        ));
        if !is_any_value_allowed {
            for (idx, value) in expression.values.iter().enumerate() {
                faults.extend(invalid_value_errors(
                    &values.index(idx),
                    value,
                    label_value_faults(value),
                ));
            }
        }
    }
}

/// Validates a binding. Like Kubernetes, it reports missing names after everything else.
fn validate_binding(kind: Kind, binding: &Binding, faults: &mut FieldErrors) {
    let at = FieldPath::root("roleRef");
    let role = &binding.role_ref;
    if role.api_group != GROUP {
        faults.push(at.child("apiGroup").not_supported(role.api_group.as_str(), &[GROUP]));
    }
    let kinds: &[&str] =
        if kind.is_namespaced() { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&role.kind.as_str()) {
        faults.push(at.child("kind").not_supported(role.kind.as_str(), kinds));
    }
    let name = at.child("name");
    faults.extend(invalid_value_errors(&name, &role.name, path_segment_faults(&role.name)));
    let subjects = FieldPath::root("subjects");
    for (idx, subject) in binding.subjects.iter().enumerate() {
        validate_rbac_subject(kind, &subjects.index(idx), subject, faults);
    }
    for (idx, _) in binding.subjects.iter().enumerate().filter(|(_, own)| own.name.is_empty()) {
        faults.push(subjects.index(idx).child("name").required(""));
    }
    if role.name.is_empty() {
        faults.push(name.required(""));
    }
}

fn validate_rbac_subject(
    kind: Kind,
    at: &FieldPath<'_>,
    subject: &Subject,
    faults: &mut FieldErrors,
) {
    let name = at.child("name");
    let api_group = at.child("apiGroup");
    match subject.kind.as_str() {
        "ServiceAccount" => {
            if !subject.name.is_empty() {
                let messages = dns1123_subdomain_faults(&subject.name);
                faults.extend(invalid_value_errors(&name, &subject.name, messages));
            }
            if !subject.api_group.is_empty() {
                faults.push(api_group.not_supported(subject.api_group.as_str(), &[""]));
            }
            if !kind.is_namespaced() && subject.namespace.is_empty() {
                faults.push(at.child("namespace").required(""));
            }
        }
        "User" | "Group" => {
            if subject.api_group != GROUP {
                faults.push(api_group.not_supported(subject.api_group.as_str(), &[GROUP]));
            }
        }
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            faults.push(at.child("kind").not_supported(other, &kinds));
        }
    }
}

/// The names of the members are those in the message of Kubernetes.
fn changed_role_ref_error(binding: &Binding) -> FieldError {
    let role = &binding.role_ref;
    let value = serde_json::json!({
        "APIGroup": role.api_group, "Kind": role.kind, "Name": role.name,
    });
    FieldPath::root("roleRef").invalid(BadValue::Json(value.to_string()), "field is immutable")
}
