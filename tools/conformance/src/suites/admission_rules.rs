//! `admission-rules`: which requests a rule of a webhook matches.

use admission::{
    GroupVersionKind, GroupVersionResource, Rule, RuleDialect, RuleTarget,
    is_admission_configuration,
};
use serde_json::{Value, json};

use super::AnswerPair;
use crate::vectors::{UnusableVector, Vector};

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let rule = vector
        .member("rule")?
        .as_object()
        .ok_or_else(|| UnusableVector::new("`rule` is not an object"))?;
    let rule = Rule::read(rule, RuleDialect::V1);
    let checks = vector.list("checks")?;
    let want: Vec<Value> = checks.iter().map(recorded_check).collect();
    let got: Vec<Value> = checks.iter().map(|check| match_rule(&rule, check)).collect();
    Ok(AnswerPair { want: json!(want), got: json!(got), warnings: Vec::new() })
}

/// The answers have no texts.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

fn recorded_check(check: &Value) -> Value {
    json!({ "matches": check["matches"], "exempt": check["exemptConfigurationResource"] })
}

fn match_rule(rule: &Rule, check: &Value) -> Value {
    let text = |member: &str| check[member].as_str().unwrap_or_default();
    let (group, version) = (text("group"), text("version"));
    let target = RuleTarget {
        operation: text("operation"),
        resource: GroupVersionResource { group, version, resource: text("resource") },
        subresource: text("subresource"),
        namespace: text("namespace"),
    };
    let kind = GroupVersionKind { group, version, kind: text("kind") };
    json!({ "matches": rule.matches(&target), "exempt": is_admission_configuration(&kind) })
}
