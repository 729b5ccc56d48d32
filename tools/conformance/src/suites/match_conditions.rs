//! `match-conditions`: the CEL expressions that decide whether a webhook is asked.

use authz_chain::AuthorizerConfiguration;
use authz_webhook::{MatchConditions, MatchResult};
use config::authorization_config::LoadError;
use serde_json::{Value, json};

use super::Answer;
use super::config_load::{field_fault, load};
use super::review::Review;
use crate::compare::length_through;
use crate::vectors::Vector;

/// Where the webhook is in the configuration that is made of a vector. Recorded paths are
/// relative to the webhook.
const WEBHOOK: &str = "authorizers[0].";

pub(super) fn exact_length(text: &str) -> usize {
    length_through(text, &["compilation failed: "])
}

pub(super) fn answer(vector: &Vector) -> Result<Answer, String> {
    let expressions = vector.list("expressions")?;
    let cases = match vector.text("compile")? {
        "ok" => vector.list("cases")?,
        _ => &[],
    };
    let want = json!({
        "compile": vector.member("compile")?,
        "errors": vector.body.get("errors"),
        "cases": cases.iter().map(recorded_case).collect::<Vec<_>>(),
    });
    let got = match compile(expressions) {
        Ok(conditions) => {
            let answers = cases.iter().map(|case| evaluate(&conditions, case));
            json!({ "compile": "ok", "cases": answers.collect::<Result<Vec<_>, _>>()? })
        }
        Err(errors) => json!({ "compile": "error", "errors": errors }),
    };
    Ok(Answer { want, got, warnings: Vec::new() })
}

/// A recorded case without the request.
fn recorded_case(case: &Value) -> Value {
    json!({ "result": case["result"], "error": case["error"], "cost": case["cost"] })
}

/// Compiles the conditions as part of a configuration, which is how a server gets them.
fn compile(expressions: &[Value]) -> Result<MatchConditions, Vec<Value>> {
    let conditions: Vec<Value> =
        expressions.iter().map(|expression| json!({ "expression": expression })).collect();
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": [{
            "type": "Webhook",
            "name": "webhook",
            "webhook": {
                "timeout": "1s",
                "failurePolicy": "NoOpinion",
                "subjectAccessReviewVersion": "v1",
                "matchConditionSubjectAccessReviewVersion": "v1",
                "connectionInfo": { "type": "InClusterConfig" },
                "matchConditions": conditions,
            },
        }],
    });
    let unexpected = |text: String| vec![json!({ "unexpected": text })];
    match load(&configuration.to_string()).configuration {
        Ok(configuration) => match configuration.authorizers() {
            [AuthorizerConfiguration::Webhook(webhook)] => {
                Ok(webhook.settings.match_conditions.clone())
            }
            other => Err(unexpected(format!("{} authorizers", other.len()))),
        },
        Err(LoadError::Invalid(diagnostics)) => {
            Err(diagnostics.iter().map(|diagnostic| relative(field_fault(diagnostic))).collect())
        }
        Err(error @ (LoadError::Decode(_) | LoadError::Server(_))) => {
            Err(unexpected(error.to_string()))
        }
    }
}

/// A fault with its path relative to the webhook.
fn relative(mut fault: Value) -> Value {
    for key in ["field", "message"] {
        let text = fault[key].as_str().and_then(|text| text.strip_prefix(WEBHOOK));
        if let Some(text) = text.map(str::to_owned) {
            fault[key] = Value::String(text);
        }
    }
    fault
}

/// Evaluates all conditions.
///
/// The cost is compared where it is recorded: for a single condition that gives a value, unless
/// the value depends on the order in which Go happens to visit a map.
fn evaluate(conditions: &MatchConditions, case: &Value) -> Result<Value, String> {
    let review = Review::read(&case["request"])?;
    let view = review.view(conditions.used_selectors());
    let cost = match conditions.as_slice() {
        [only] if !case["cost"].is_null() => Some(only.evaluate(&view).1),
        _ => None,
    };
    Ok(match conditions.evaluate(&view) {
        MatchResult::Matched => json!({ "result": "match", "cost": cost }),
        MatchResult::Excluded { .. } => json!({ "result": "noMatch", "cost": cost }),
        MatchResult::Failed(error) => json!({ "result": "error", "error": error, "cost": cost }),
    })
}
