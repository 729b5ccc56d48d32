//! `rbac` and `rbac-bootstrap`: what roles and bindings grant.
//!
//! The recorded answers visit bindings in the order of the vector, which a real server does not
//! know. So whichever acceptable reason is ours counts as the recorded one, and lists whose order
//! is that of the visit are compared as sorted lists.

use authz::{Recorder, Rules};
use authz_rbac::{ExtrasPolicy, Snapshot, reconcile_bootstrap_policy};
use manifests::rbac::{Object, bootstrap_policy, decode, encode_subject};
use serde_json::{Value, json};

use super::Answer;
use super::question::{Question, user};
use crate::vectors::Vector;

/// The answer to a vector that holds all its objects.
pub(super) fn answer(vector: &Vector) -> Result<Answer, String> {
    answer_with(Snapshot::default(), vector)
}

/// The answer to a vector whose objects join the default policy.
pub(super) fn answer_beside_defaults(vector: &Vector) -> Result<Answer, String> {
    let policy = bootstrap_policy().map_err(|error| error.to_string())?;
    let mut snapshot = Snapshot::default();
    reconcile_bootstrap_policy(&mut snapshot, &policy, ExtrasPolicy::Keep);
    answer_with(snapshot, vector)
}

/// Every text is written by Kubernetes itself.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

fn answer_with(mut snapshot: Snapshot, vector: &Vector) -> Result<Answer, String> {
    put_objects(&mut snapshot, list(vector, "objects"))?;
    let (mut want, mut got) = (Vec::new(), Vec::new());
    for check in list(vector, "checks") {
        let (wanted, ours) = decision(&snapshot, check)?;
        want.push(wanted);
        got.push(ours);
    }
    let (mut wanted_rules, mut rules) = (Vec::new(), Vec::new());
    for review in list(vector, "rules") {
        wanted_rules.push(in_order(review, &["resourceRules", "nonResourceRules"]));
        rules.push(in_order(&rules_of(&snapshot, review)?, &["resourceRules", "nonResourceRules"]));
    }
    let (mut wanted_subjects, mut subjects) = (Vec::new(), Vec::new());
    for question in list(vector, "whoCan") {
        wanted_subjects.push(in_order(question, &["subjects"]));
        subjects.push(in_order(&who_can(&snapshot, question)?, &["subjects"]));
    }
    Ok(Answer {
        want: json!({"checks": want, "rules": wanted_rules, "whoCan": wanted_subjects}),
        got: json!({"checks": got, "rules": rules, "whoCan": subjects}),
        warnings: Vec::new(),
    })
}

/// Adds objects as they are, valid or not.
pub(super) fn put_objects(snapshot: &mut Snapshot, objects: &[Value]) -> Result<(), String> {
    for object in objects {
        let manifest = decode(object).map_err(|error| error.to_string())?;
        match manifest.into_unchecked().map_err(|faults| faults.to_string())? {
            Object::Role(role) => snapshot.put_role(role),
            Object::Binding(binding) => snapshot.put_binding(binding),
        }
    }
    Ok(())
}

fn list<'v>(vector: &'v Vector, key: &str) -> &'v [Value] {
    vector.body.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What is wanted and what we decide.
fn decision(snapshot: &Snapshot, check: &Value) -> Result<(Value, Value), String> {
    let question = Question::read(&check["attributes"])?;
    let decision = snapshot.authorize(&question.attributes(), Recorder::disabled());
    let (recorded, own) =
        (check["reason"].as_str().unwrap_or_default(), decision.reason.to_string());
    let others = check["alsoAcceptableReasons"].as_array().into_iter().flatten();
    let is_acceptable = others.chain([&check["reason"]]).any(|reason| *reason == own);
    let is_same = is_acceptable || parts(recorded) == parts(&own);
    let reason = if is_same { recorded } else { &own };
    let ours = json!({
        "decision": decision.verdict.name(),
        "reason": reason,
        "error": decision.error.map(|error| error.to_string()),
    });
    Ok((json!({"decision": check["decision"], "reason": recorded}), ours))
}

/// The errors of an aggregate as a set.
fn parts(text: &str) -> Vec<&str> {
    let text = text.strip_prefix("RBAC: ").unwrap_or(text);
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let mut parts: Vec<&str> = inner.split(", ").collect();
    parts.sort_unstable();
    parts
}

fn rules_of(snapshot: &Snapshot, review: &Value) -> Result<Value, String> {
    let asker = user(&review["user"])?.unwrap_or_default();
    let namespace = review["namespace"].as_str().unwrap_or_default();
    let Rules { resource_rules, non_resource_rules, is_incomplete, error } =
        snapshot.rules_for(&asker, namespace);
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

fn who_can(snapshot: &Snapshot, question: &Value) -> Result<Value, String> {
    let asked = Question::read(&question["attributes"])?;
    let found = snapshot.who_can(&asked.attributes(), None);
    let subjects: Result<Vec<Value>, _> = found.subjects.iter().map(encode_subject).collect();
    let errors: Vec<String> = found.role_lookup_errors.iter().map(ToString::to_string).collect();
    Ok(json!({
        "attributes": question["attributes"],
        "subjects": subjects.map_err(|error| error.to_string())?,
        "error": field_errors::aggregate(&errors),
    }))
}

/// The value with some of its lists, and the errors in it, sorted.
fn in_order(value: &Value, lists: &[&str]) -> Value {
    let mut value = value.clone();
    for list in lists {
        if let Some(items) = value.get_mut(list).and_then(Value::as_array_mut) {
            items.iter_mut().for_each(Value::sort_all_objects);
            items.sort_by_cached_key(Value::to_string);
        }
    }
    let error = value.get("error").and_then(Value::as_str).filter(|error| !error.is_empty());
    if let Some(parts) = error.map(|error| json!(parts(error))) {
        value["error"] = parts;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_compare_in_any_order() {
        assert_eq!(parts("RBAC: [b, a]"), parts("RBAC: [a, b]"));
        assert_ne!(parts("RBAC: [b, a]"), parts("RBAC: a"));
    }

    #[test]
    fn lists_of_the_visit_are_sorted_and_others_are_not() {
        let one = json!({"subjects": [{"b": 1, "a": 2}, {"a": 1}], "verbs": ["y", "x"]});
        let other = json!({"subjects": [{"a": 1}, {"a": 2, "b": 1}], "verbs": ["y", "x"]});
        assert_eq!(in_order(&one, &["subjects"]), in_order(&other, &["subjects"]));
        assert_eq!(in_order(&one, &["subjects"])["verbs"], json!(["y", "x"]));
    }
}
