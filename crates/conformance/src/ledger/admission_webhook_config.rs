//! Configurations of webhooks that Portcullis judges otherwise than Kubernetes.

use serde_json::Value;

use crate::suites::Answer;
use crate::vectors::Vector;

/// The fault of a service that lacks either its name or its namespace is told where it is.
pub(super) fn service_member(vector: &Vector, _: &Answer, want: &mut Value) -> bool {
    let mut has_changed = false;
    let webhooks = vector.body.get("object").and_then(|object| object["webhooks"].as_array());
    for (idx, webhook) in webhooks.into_iter().flatten().enumerate() {
        let service = &webhook["clientConfig"]["service"];
        let is_missing = |member: &str| service[member].as_str().unwrap_or_default().is_empty();
        let (missing, told) = match (is_missing("name"), is_missing("namespace")) {
            (true, false) => ("name", "namespace"),
            (false, true) => ("namespace", "name"),
            (_, _) => continue,
        };
        let at = |member: &str| format!("webhooks[{idx}].clientConfig.service.{member}");
        for error in want["errors"].as_array_mut().into_iter().flatten() {
            if error["field"] == at(told) && error["type"] == "Required" {
                error["field"] = Value::String(at(missing));
                error["message"] = Value::String(format!("{}: Required value", at(missing)));
                has_changed = true;
            }
        }
    }
    has_changed
}

/// A function that is new in the version of the peer may be used at once.
///
/// The peer refuses it in new expressions and takes it in stored ones. The object without that fault
/// was never recorded, so that ours stands for it once no other fault is left.
pub(super) fn new_function(_: &Vector, answer: &Answer, want: &mut Value) -> bool {
    const FAULT: &str = ": undeclared reference to 'includes' (in container '')";
    let Some(errors) = want["errors"].as_array_mut() else { return false };
    let is_about_it = |error: &Value| {
        let detail = error["detail"].as_str().unwrap_or_default();
        // The first line of the text is about the first fault.
        let first = detail.lines().next().unwrap_or_default();
        first.starts_with("compilation failed: ") && first.ends_with(FAULT)
    };
    let n_errors = errors.len();
    errors.retain(|error| !is_about_it(error));
    let has_changed = errors.len() < n_errors;
    if has_changed && errors.is_empty() {
        want["result"] = Value::from("valid");
        want["defaulted"] = answer.got["defaulted"].clone();
    }
    has_changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{LEDGER, Outcome, Suite, judge};

    fn outcome(service: Value, told: &str) -> Outcome {
        let field = format!("webhooks[0].clientConfig.service.{told}");
        let error = json!({
            "type": "Required", "field": field, "message": format!("{field}: Required value"),
        });
        judged(json!({"clientConfig": {"service": service}}), error)
    }

    fn judged(webhook: Value, error: Value) -> Outcome {
        let mut body = json!({
            "object": {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "a"},
                "webhooks": [{
                    "name": "a.example.com", "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }],
            },
            "expect": {"result": "invalid", "errors": [error]},
        });
        for (member, value) in webhook.as_object().unwrap() {
            body["object"]["webhooks"][0][member] = value.clone();
        }
        let body = body.as_object().cloned().unwrap();
        let vector = Vector { id: "v".to_owned(), feature: "f".to_owned(), body };
        judge(Suite::AdmissionWebhookConfig, &vector, LEDGER).unwrap().outcome
    }

    #[test]
    fn only_the_member_that_is_missing_may_be_told_instead_of_the_other() {
        let agreed = Outcome::Agreed(vec!["webhook-service-member"]);
        assert_eq!(outcome(json!({"namespace": "n"}), "namespace"), agreed);
        assert_eq!(outcome(json!({"name": "n", "namespace": ""}), "name"), agreed);
        assert_eq!(outcome(json!({"namespace": "n"}), "name"), Outcome::Passed);
        assert!(matches!(outcome(json!({"namespace": "n"}), "path"), Outcome::Failed(_)));
        assert!(matches!(outcome(json!({}), "name"), Outcome::Failed(_)));
    }

    #[test]
    fn only_the_new_function_may_be_used_at_once() {
        let outcome = |expression: &str, function: &str| {
            let webhook = json!({
                "clientConfig": {"url": "https://example.com"},
                "matchConditions": [{"name": "a", "expression": expression}],
            });
            let detail = format!(
                "compilation failed: ERROR: <input>:1:5: undeclared reference to '{function}' (in \
                 container '')\n | x"
            );
            let field = "webhooks[0].matchConditions[0].expression";
            judged(
                webhook,
                json!({
                    "type": "Invalid", "field": field, "badValue": expression, "detail": detail,
                    "message": format!("{field}: Invalid value: {expression:?}: {detail}"),
                }),
            )
        };
        let agreed = Outcome::Agreed(vec!["webhook-new-function"]);
        assert_eq!(outcome("[1].includes(1)", "includes"), agreed);
        assert!(matches!(outcome("[1].includes(1)", "contains"), Outcome::Failed(_)));
        let other_fault = outcome("[1].includes(1) ? 1 : 2", "includes");
        assert!(matches!(other_fault, Outcome::Failed(_)));
    }
}
