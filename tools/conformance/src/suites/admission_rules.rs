//! `admission-rules`: which requests a rule of a webhook is about.

use admission::{
    GroupVersionKind, GroupVersionResource, Rule, RuleDialect, RuleTarget,
    is_admission_configuration,
};
use serde_json::{Value, json};

use super::Answer;
use crate::vectors::Vector;

pub(super) fn answer(vector: &Vector) -> Result<Answer, String> {
    let rule = vector.member("rule")?.as_object().ok_or("`rule` is not an object")?;
    let rule = Rule::read(rule, RuleDialect::V1);
    let checks = vector.list("checks")?;
    let want: Vec<Value> = checks.iter().map(recorded).collect();
    let got: Vec<Value> = checks.iter().map(|check| asked(&rule, check)).collect();
    Ok(Answer { want: json!(want), got: json!(got), warnings: Vec::new() })
}

/// Nothing but outcomes is compared.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

fn recorded(check: &Value) -> Value {
    json!({ "matches": check["matches"], "exempt": check["exemptConfigurationResource"] })
}

fn asked(rule: &Rule, check: &Value) -> Value {
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
