//! Differences in the validation of webhook configurations.

use serde_json::Value;

use crate::suites::AnswerPair;
use crate::vectors::Vector;

/// If a Service reference lacks its name or its namespace, the fault is reported at the missing member.
pub(super) fn service_member(vector: &Vector, _: &AnswerPair, want: &mut Value) -> bool {
    let mut has_changed = false;
    let webhooks = vector.body.get("object").and_then(|object| object["webhooks"].as_array());
    for (idx, webhook) in webhooks.into_iter().flatten().enumerate() {
        let service = &webhook["clientConfig"]["service"];
        let is_missing = |member: &str| service[member].as_str().unwrap_or_default().is_empty();
        let (missing, reported_member) = match (is_missing("name"), is_missing("namespace")) {
            (true, false) => ("name", "namespace"),
            (false, true) => ("namespace", "name"),
            (_, _) => continue,
        };
        let at = |member: &str| format!("webhooks[{idx}].clientConfig.service.{member}");
        for error in want["errors"].as_array_mut().into_iter().flatten() {
            if error["field"] == at(reported_member) && error["type"] == "Required" {
                error["field"] = Value::String(at(missing));
                error["message"] = Value::String(format!("{}: Required value", at(missing)));
                has_changed = true;
            }
        }
    }
    has_changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{LEDGER, Suite, VectorOutcome, judge};

    fn outcome(service: Value, reported_member: &str) -> VectorOutcome {
        let field = format!("webhooks[0].clientConfig.service.{reported_member}");
        let error = json!({
            "type": "Required", "field": field, "message": format!("{field}: Required value"),
        });
        let body = json!({
            "object": {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "a"},
                "webhooks": [{
                    "name": "a.example.com", "sideEffects": "None",
                    "admissionReviewVersions": ["v1"], "clientConfig": {"service": service},
                }],
            },
            "expect": {"result": "invalid", "errors": [error]},
        });
        let body = body.as_object().cloned().unwrap();
        let vector = Vector { id: "v".to_owned(), feature: "f".to_owned(), body };
        judge(Suite::AdmissionWebhookConfig, &vector, LEDGER).unwrap().outcome
    }

    #[test]
    fn the_rule_explains_the_missing_service_member_only() {
        let agreed = VectorOutcome::Agreed(vec!["webhook-service-member"]);
        assert_eq!(outcome(json!({"namespace": "n"}), "namespace"), agreed);
        assert_eq!(outcome(json!({"name": "n", "namespace": ""}), "name"), agreed);
        assert_eq!(outcome(json!({"namespace": "n"}), "name"), VectorOutcome::Passed);
        assert!(matches!(outcome(json!({"namespace": "n"}), "path"), VectorOutcome::Failed(_)));
        assert!(matches!(outcome(json!({}), "name"), VectorOutcome::Failed(_)));
    }
}
