//! `rbac` and `rbac-bootstrap`: the permissions that roles and bindings grant.
//!
//! The recorded code visited bindings in the order of the vector, which a real server does not know. So any
//! reason that the vector lists as acceptable counts as the recorded one, and lists in the order of the visit
//! are sorted before they are compared.

use authz::{Namespace, Rules, TraceRecorder};
use authz_rbac::{ReconcileExtrasPolicy, Snapshot, reconcile_bootstrap_policy};
use manifests::rbac::{
    RbacObject, bootstrap_policy, decode_unvalidated_rbac_object, encode_rbac_subject,
};
use serde_json::{Value, json};

use super::AnswerPair;
use super::recorded_attributes::{RecordedAttributes, parse_user};
use crate::vectors::{UnusableVector, Vector};

/// Answers a vector that contains all objects.
pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    answer_with_snapshot(Snapshot::default(), vector)
}

/// Answers a vector whose objects are added to the default policy.
pub(super) fn answer_with_default_policy(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let policy = bootstrap_policy().map_err(UnusableVector::new)?;
    let mut snapshot = Snapshot::default();
    reconcile_bootstrap_policy(&mut snapshot, &policy, ReconcileExtrasPolicy::Keep);
    answer_with_snapshot(snapshot, vector)
}

/// Kubernetes writes every text, so all of it must agree.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

fn answer_with_snapshot(
    mut snapshot: Snapshot,
    vector: &Vector,
) -> Result<AnswerPair, UnusableVector> {
    put_objects(&mut snapshot, list(vector, "objects"))?;
    let (mut want, mut got) = (Vec::new(), Vec::new());
    for check in list(vector, "checks") {
        let (wanted, ours) = decide_check(&snapshot, check)?;
        want.push(wanted);
        got.push(ours);
    }
    let (mut wanted_rules, mut rules) = (Vec::new(), Vec::new());
    for review in list(vector, "rules") {
        wanted_rules.push(sort_lists(review, &["resourceRules", "nonResourceRules"]));
        rules.push(sort_lists(
            &list_rules(&snapshot, review)?,
            &["resourceRules", "nonResourceRules"],
        ));
    }
    let (mut wanted_subjects, mut subjects) = (Vec::new(), Vec::new());
    for question in list(vector, "whoCan") {
        wanted_subjects.push(sort_lists(question, &["subjects"]));
        subjects.push(sort_lists(&who_can(&snapshot, question)?, &["subjects"]));
    }
    Ok(AnswerPair {
        want: json!({"checks": want, "rules": wanted_rules, "whoCan": wanted_subjects}),
        got: json!({"checks": got, "rules": rules, "whoCan": subjects}),
        warnings: Vec::new(),
    })
}

/// Adds objects without validation.
pub(super) fn put_objects(
    snapshot: &mut Snapshot,
    objects: &[Value],
) -> Result<(), UnusableVector> {
    for object in objects {
        let manifest = decode_unvalidated_rbac_object(object).map_err(UnusableVector::new)?;
        match manifest.into_object_unvalidated().map_err(UnusableVector::new)? {
            RbacObject::Role(role) => snapshot.put_role(role),
            RbacObject::Binding(binding) => snapshot.put_binding(binding),
        }
    }
    Ok(())
}

fn list<'v>(vector: &'v Vector, key: &str) -> &'v [Value] {
    vector.body.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The recorded decision on a check, and ours.
fn decide_check(snapshot: &Snapshot, check: &Value) -> Result<(Value, Value), UnusableVector> {
    let recorded = RecordedAttributes::read(&check["attributes"])?;
    let decision = snapshot.authorize(&recorded.attributes(), TraceRecorder::disabled_recorder());
    let (recorded, own) =
        (check["reason"].as_str().unwrap_or_default(), decision.reason.to_string());
    let others = check["alsoAcceptableReasons"].as_array().into_iter().flatten();
    let is_acceptable = others.chain([&check["reason"]]).any(|reason| *reason == own);
    let is_same = is_acceptable || split_errors(recorded) == split_errors(&own);
    let reason = if is_same { recorded } else { &own };
    let ours = json!({
        "decision": decision.verdict.name(),
        "reason": reason,
        "error": decision.error.map(|error| error.to_string()),
    });
    Ok((json!({"decision": check["decision"], "reason": recorded}), ours))
}

/// Splits an aggregate into its errors, sorted.
fn split_errors(text: &str) -> Vec<&str> {
    let text = text.strip_prefix("RBAC: ").unwrap_or(text);
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let mut parts: Vec<&str> = inner.split(", ").collect();
    parts.sort_unstable();
    parts
}

fn list_rules(snapshot: &Snapshot, review: &Value) -> Result<Value, UnusableVector> {
    let user = parse_user(&review["user"])?.unwrap_or_default();
    let namespace = review["namespace"].as_str().unwrap_or_default();
    let Rules { resource_rules, non_resource_rules, is_incomplete, error } =
        snapshot.rules_for(&user, Namespace::new(namespace));
    let resource_rules: Vec<Value> = resource_rules
        .into_iter()
        .map(|rule| {
            let mut value = json!({
                "verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources,
            });
            if !rule.resource_names.is_empty() {
                value["resourceNames"] = rule.resource_names.into();
            }
            value
        })
        .collect();
    let non_resource_rules: Vec<Value> = non_resource_rules
        .into_iter()
        .map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}))
        .collect();
    Ok(json!({
        "user": review["user"],
        "namespace": review["namespace"],
        "resourceRules": resource_rules,
        "nonResourceRules": non_resource_rules,
        "incomplete": is_incomplete,
        "error": error.map(|error| error.to_string()),
    }))
}

fn who_can(snapshot: &Snapshot, question: &Value) -> Result<Value, UnusableVector> {
    let asked = RecordedAttributes::read(&question["attributes"])?;
    let found = snapshot.who_can(&asked.attributes(), None);
    let subjects: Result<Vec<Value>, _> = found.subjects.iter().map(encode_rbac_subject).collect();
    let errors: Vec<String> = found.role_lookup_errors.iter().map(ToString::to_string).collect();
    Ok(json!({
        "attributes": question["attributes"],
        "subjects": subjects.map_err(UnusableVector::new)?,
        "error": field_errors::aggregate_messages(&errors),
    }))
}

/// A copy of the value in which these lists and the errors are sorted.
fn sort_lists(value: &Value, lists: &[&str]) -> Value {
    let mut value = value.clone();
    for list in lists {
        if let Some(items) = value.get_mut(list).and_then(Value::as_array_mut) {
            items.iter_mut().for_each(Value::sort_all_objects);
            items.sort_by_cached_key(Value::to_string);
        }
    }
    let error = value.get("error").and_then(Value::as_str).filter(|error| !error.is_empty());
    if let Some(parts) = error.map(|error| json!(split_errors(error))) {
        value["error"] = parts;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_compare_in_any_order() {
        assert_eq!(split_errors("RBAC: [b, a]"), split_errors("RBAC: [a, b]"));
        assert_ne!(split_errors("RBAC: [b, a]"), split_errors("RBAC: a"));
    }

    #[test]
    fn lists_in_visiting_order_are_sorted() {
        let one = json!({"subjects": [{"b": 1, "a": 2}, {"a": 1}], "verbs": ["y", "x"]});
        let other = json!({"subjects": [{"a": 1}, {"a": 2, "b": 1}], "verbs": ["y", "x"]});
        assert_eq!(sort_lists(&one, &["subjects"]), sort_lists(&other, &["subjects"]));
        assert_eq!(sort_lists(&one, &["subjects"])["verbs"], json!(["y", "x"]));
    }
}
