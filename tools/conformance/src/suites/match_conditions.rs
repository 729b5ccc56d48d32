//! `match-conditions`: the CEL expressions that decide whether a webhook is called.

use authz_chain::AuthorizerConfiguration;
use authz_webhook::{MatchConditions, MatchResult};
use config::authorization_config::LoadError;
use serde_json::{Value, json};

use super::AnswerPair;
use super::config_load::{diagnostic_to_json, load};
use super::recorded_review::RecordedReview;
use crate::compare::length_through;
use crate::vectors::{UnusableVector, Vector};

/// The path of the webhook in the configuration that is built from a vector. Recorded paths are relative to the
/// webhook.
const WEBHOOK: &str = "authorizers[0].";

pub(super) fn exact_length(text: &str) -> usize {
    length_through(text, &["compilation failed: "])
}

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
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
            let answers = cases.iter().map(|case| evaluate_case(&conditions, case));
            json!({ "compile": "ok", "cases": answers.collect::<Result<Vec<_>, _>>()? })
        }
        Err(errors) => json!({ "compile": "error", "errors": errors }),
    };
    Ok(AnswerPair { want, got, warnings: Vec::new() })
}

/// A recorded case without the request.
fn recorded_case(case: &Value) -> Value {
    json!({ "result": case["result"], "error": case["error"], "cost": case["cost"] })
}

/// Compiles the conditions as part of a configuration, as a server does.
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
                Ok(webhook.webhook_settings.match_conditions.clone())
            }
            other => Err(unexpected(format!("{} authorizers", other.len()))),
        },
        Err(LoadError::Invalid(diagnostics)) => Err(diagnostics
            .iter()
            .map(|diagnostic| relative_to_webhook(diagnostic_to_json(diagnostic)))
            .collect()),
        Err(error @ (LoadError::Decode(_) | LoadError::Server(_))) => {
            Err(unexpected(error.to_string()))
        }
    }
}

/// A fault with its path relative to the webhook.
fn relative_to_webhook(mut fault: Value) -> Value {
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
/// The cost is compared if it is recorded: for a single condition that yields a value, unless the cost depends on
/// the order in which Go visits a map.
fn evaluate_case(conditions: &MatchConditions, case: &Value) -> Result<Value, UnusableVector> {
    let review = RecordedReview::read(&case["request"])?;
    let spec = review.to_spec(conditions.used_selectors());
    let cost = match conditions.as_slice() {
        [only] if !case["cost"].is_null() => Some(only.evaluate(&spec).1),
        _ => None,
    };
    Ok(match conditions.evaluate(&spec) {
        MatchResult::Matched => json!({ "result": "match", "cost": cost }),
        MatchResult::Excluded { .. } => json!({ "result": "noMatch", "cost": cost }),
        MatchResult::Failed(error) => json!({ "result": "error", "error": error, "cost": cost }),
    })
}
