//! `abac`: a policy file is loaded, requests are decided and rules are listed.

use authz::{Namespace, Rules, TraceRecorder};
use document::Source;
use manifests::abac::{
    AbacPolicyLoadError, AbacPolicyLoadOptions, LoadedAbacPolicies, load_abac_policies,
};
use serde_json::{Value, json};

use super::AnswerPair;
use super::recorded_attributes::{RecordedAttributes, parse_user};
use crate::vectors::{UnusableVector, Vector};

/// The name of the file in recorded messages.
const FILE: &str = "POLICY_FILE";

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let policy = vector.text("policy")?;
    let checks = items(vector, "checks")
        .map(|check| json!({ "decision": check["decision"], "reason": check["reason"] }));
    let rules = items(vector, "rules").map(|rules| {
        json!({
            "resourceRules": rules["resourceRules"],
            "nonResourceRules": rules["nonResourceRules"],
            "incomplete": rules["incomplete"],
            "error": rules["error"],
        })
    });
    let error = vector.body.get("error").and_then(Value::as_str).unwrap_or_default();
    let line = vector.body.get("errorLine").and_then(Value::as_u64);
    let want = json!({
        "load": vector.member("load")?,
        "error": without_cause(error, policy, line),
        "errorLine": line,
        "policies": vector.body.get("policies"),
        "checks": checks.collect::<Vec<_>>(),
        "rules": rules.collect::<Vec<_>>(),
    });
    Ok(AnswerPair { want, got: answer_for_policy(policy, vector)?, warnings: Vec::new() })
}

/// Kubernetes writes every reason, so all of it must agree.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

/// Our answer to the checks of a vector with this policy file.
pub(crate) fn answer_for_policy(policy: &str, vector: &Vector) -> Result<Value, UnusableVector> {
    let source = Source { name: FILE, file_bytes: policy.as_bytes() };
    match load_abac_policies(&source, &AbacPolicyLoadOptions::default()) {
        Err(error) => Ok(load_error_to_json(&error, policy)),
        Ok(loaded) => {
            let checks = items(vector, "checks").map(|check| decide_check(&loaded, check));
            let rules =
                items(vector, "rules").map(|rules_request| list_rules(&loaded, rules_request));
            let n_policies = loaded.abac_policy_snapshot.policies().len();
            Ok(json!({
                "load": "ok",
                "policies": (n_policies > 0).then_some(n_policies),
                "checks": checks.collect::<Result<Vec<_>, _>>()?,
                "rules": rules.collect::<Result<Vec<_>, _>>()?,
            }))
        }
    }
}

/// The answer for a file that cannot be loaded because of this line.
pub(crate) fn load_error_answer(policy: &str, line: u64) -> Value {
    json!({ "load": "error", "error": before_cause(policy, Some(line)), "errorLine": line })
}

fn load_error_to_json(error: &AbacPolicyLoadError, policy: &str) -> Value {
    let line = error.line_text.as_ref().and(u64::try_from(error.diagnostic.position.line).ok());
    json!({
        "load": "error",
        "error": without_cause(&error.to_string(), policy, line),
        "errorLine": line,
    })
}

/// A message without its cause, which is the text of a parser, if it has the expected beginning.
fn without_cause(error: &str, policy: &str, line: Option<u64>) -> String {
    let begin = before_cause(policy, line);
    if error.len() > begin.len() && error.starts_with(&begin) { begin } else { error.to_owned() }
}

fn before_cause(policy: &str, line: Option<u64>) -> String {
    match line {
        None => format!("error reading policy file {FILE}: "),
        Some(number) => {
            let idx = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
            let text = policy.lines().nth(idx).unwrap_or_default();
            format!("error reading policy file {FILE}, line {number}: {text}: ")
        }
    }
}

fn decide_check(loaded: &LoadedAbacPolicies, check: &Value) -> Result<Value, UnusableVector> {
    let recorded = RecordedAttributes::read(&check["attributes"])?;
    let decision = loaded
        .abac_policy_snapshot
        .authorize(&recorded.attributes(), TraceRecorder::disabled_recorder());
    Ok(json!({ "decision": decision.verdict.name(), "reason": decision.reason.to_string() }))
}

fn list_rules(loaded: &LoadedAbacPolicies, rules_request: &Value) -> Result<Value, UnusableVector> {
    let user = parse_user(&rules_request["user"])?
        .ok_or_else(|| UnusableVector::new("`rules` has no user"))?;
    let namespace = rules_request["namespace"].as_str().unwrap_or_default();
    let Rules { resource_rules, non_resource_rules, is_incomplete, error } =
        loaded.abac_policy_snapshot.rules_for(&user, Namespace::new(namespace));
    let resource_rules = resource_rules.iter().map(|rule| {
        json!({
            "verbs": rule.verbs,
            "apiGroups": rule.api_groups,
            "resources": rule.resources,
            "resourceNames": rule.resource_names,
        })
    });
    let non_resource_rules = non_resource_rules
        .iter()
        .map(|rule| json!({ "verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls }));
    Ok(json!({
        "resourceRules": resource_rules.collect::<Vec<_>>(),
        "nonResourceRules": non_resource_rules.collect::<Vec<_>>(),
        "incomplete": is_incomplete,
        "error": error.map(|error| error.to_string()),
    }))
}

/// The items of a list that may be absent.
fn items<'v>(vector: &'v Vector, key: &str) -> impl Iterator<Item = &'v Value> {
    vector.body.get(key).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wording_of_parser_causes_is_free() {
        let policy = "{}\n{bad\n";
        let begin = "error reading policy file POLICY_FILE, line 2: {bad: ";
        assert_eq!(without_cause(&format!("{begin}whatever"), policy, Some(2)), begin);
        for other in [begin, "error reading policy file POLICY_FILE, line 1: {}: whatever"] {
            assert_eq!(
                without_cause(other, policy, Some(2)),
                if other == begin { begin } else { other }
            );
        }
        let whole = "error reading policy file POLICY_FILE: ";
        assert_eq!(without_cause(&format!("{whole}too long"), policy, None), whole);
    }
}
