//! Configuration files that Portcullis accepts and Kubernetes does not.

use serde_json::{Value, json};

use crate::suites::AnswerPair;
use crate::vectors::Vector;

/// A built-in authorizer without a name gets its type in lower case as name.
pub(super) fn built_in_without_name(_: &Vector, answer: &AnswerPair, want: &mut Value) -> bool {
    let withdrawn = WithdrawnFault {
        warning: "missing-built-in-name",
        kind: "Required",
        field: ".name",
        replacement_field: ".name",
    };
    withdraw(&withdrawn, answer, want)
}

/// The connection type `KubeConfig` is another name of `KubeConfigFile`; other faults of the connection are then
/// reported in place of Kubernetes' fault about the type.
pub(super) fn connection_type_kubeconfig(
    _: &Vector,
    answer: &AnswerPair,
    want: &mut Value,
) -> bool {
    let withdrawn = WithdrawnFault {
        warning: "kube-config-alias",
        kind: "NotSupported",
        field: ".connectionInfo.type",
        replacement_field: ".connectionInfo.kubeConfigFile",
    };
    withdraw(&withdrawn, answer, want)
}

/// A fault that Kubernetes reports and we do not, because we accept the value with a warning.
struct WithdrawnFault {
    /// The code of the warning that our answer must contain.
    warning: &'static str,
    /// The type of the fault.
    kind: &'static str,
    /// The path of the fault below the entry of the authorizer.
    field: &'static str,
    /// The path of faults that the accepted value may have. They take the place of the withdrawn fault.
    replacement_field: &'static str,
}

/// Removes the fault from the wanted answer wherever our answer has the warning.
fn withdraw(withdrawn: &WithdrawnFault, answer: &AnswerPair, want: &mut Value) -> bool {
    let mut errors = faults(want).to_vec();
    let mut has_changed = false;
    for warning in answer.warnings.iter().filter(|warning| warning.code == withdrawn.warning) {
        // For example, `authorizers[1].connectionInfo.type` belongs to the entry `authorizers[1]`.
        let Some(entry) = warning.field.find(']').map(|end| &warning.field[..=end]) else {
            continue;
        };
        let field = format!("{entry}{}", withdrawn.field);
        let is_it = |fault: &Value| fault["type"] == withdrawn.kind && fault["field"] == field;
        if let Some(at) = errors.iter().position(is_it) {
            let replacement_field = format!("{entry}{}", withdrawn.replacement_field);
            let ours =
                faults(&answer.got).iter().filter(|fault| fault["field"] == replacement_field);
            errors.splice(at..=at, ours.cloned());
            has_changed = true;
        }
    }
    if has_changed {
        *want = with_faults(errors, answer);
    }
    has_changed
}

fn faults(answer: &Value) -> &[Value] {
    answer["errors"].as_array().map_or(&[], Vec::as_slice)
}

/// Makes the expected answer with these faults. If no fault is left, the recording does not show the rest of
/// Kubernetes' answer, so the only expectation is that validation does not refuse the file.
fn with_faults(errors: Vec<Value>, answer: &AnswerPair) -> Value {
    if errors.is_empty() {
        return match answer.got["result"].as_str() {
            Some("valid" | "nameError") => answer.got.clone(),
            _ => json!({"result": "valid"}),
        };
    }
    let messages: Vec<&str> = errors.iter().filter_map(|fault| fault["message"].as_str()).collect();
    json!({"result": "invalid", "error": field_errors::aggregate_messages(&messages), "errors": errors})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::Warning;
    use crate::{LEDGER, Rule, Suite, VectorOutcome, judge};

    fn fault(kind: &str, field: &str) -> Value {
        json!({"type": kind, "field": field, "message": format!("{field}: {kind}")})
    }

    fn invalid(errors: Vec<Value>) -> Value {
        with_faults(errors, &answer(Value::Null, &[]))
    }

    fn answer(got: Value, warnings: &[(&str, &str)]) -> AnswerPair {
        let warnings = warnings
            .iter()
            .map(|(code, field)| Warning { code: (*code).into(), field: (*field).into() })
            .collect();
        AnswerPair { want: Value::Null, got, warnings }
    }

    fn amended(
        amend: fn(&Vector, &AnswerPair, &mut Value) -> bool,
        mut want: Value,
        answer: &AnswerPair,
    ) -> Option<Value> {
        let vector =
            Vector { id: "v".into(), feature: "f".into(), body: serde_json::Map::default() };
        amend(&vector, answer, &mut want).then_some(want)
    }

    #[test]
    fn a_missing_name_is_withdrawn_and_other_faults_stay() {
        let other = fault("Required", "authorizers[1].timeout");
        let want = invalid(vec![fault("Required", "authorizers[0].name"), other.clone()]);
        let got = answer(
            invalid(vec![other.clone()]),
            &[("missing-built-in-name", "authorizers[0].name")],
        );
        let amended = amended(built_in_without_name, want, &got).unwrap();
        assert_eq!(amended, invalid(vec![other]));
        assert_eq!(amended["error"], "authorizers[1].timeout: Required");
    }

    #[test]
    fn a_missing_name_without_the_warning_stays() {
        let want = invalid(vec![fault("Required", "authorizers[0].name")]);
        let elsewhere =
            answer(json!({"result": "valid"}), &[("missing-built-in-name", "authorizers[1].name")]);
        assert_eq!(amended(built_in_without_name, want.clone(), &elsewhere), None);
        let another = answer(json!({"result": "valid"}), &[("other", "authorizers[0].name")]);
        assert_eq!(amended(built_in_without_name, want, &another), None);
    }

    #[test]
    fn a_file_without_other_faults_must_not_be_refused() {
        let want = || invalid(vec![fault("Required", "authorizers[0].name")]);
        let warnings = &[("missing-built-in-name", "authorizers[0].name")];
        let valid = answer(json!({"result": "valid", "effective": {}}), warnings);
        assert_eq!(amended(built_in_without_name, want(), &valid), Some(valid.got));
        let refused = answer(json!({"result": "decodeError"}), warnings);
        assert_eq!(
            amended(built_in_without_name, want(), &refused),
            Some(json!({"result": "valid"}))
        );
    }

    #[test]
    fn faults_of_the_accepted_connection_take_the_place_of_its_type() {
        let before = fault("Required", "authorizers[0].failurePolicy");
        let after = fault("TooMany", "authorizers[0].matchConditions");
        let file = fault("Invalid", "authorizers[0].connectionInfo.kubeConfigFile");
        let refused = fault("NotSupported", "authorizers[0].connectionInfo.type");
        let want = invalid(vec![before.clone(), refused, after.clone()]);
        let ours = invalid(vec![before, file, after]);
        let warnings = &[("kube-config-alias", "authorizers[0].connectionInfo.type")];
        assert_eq!(
            amended(connection_type_kubeconfig, want, &answer(ours.clone(), warnings)),
            Some(ours)
        );
    }

    /// The vector is Kubernetes' recorded answer to the connection type of the proposal.
    #[test]
    fn the_rule_explains_a_recorded_answer() {
        let refused = "authorizers[0].connectionInfo.type: Unsupported value: \
            {\"Type\":\"KubeConfig\",\"KubeConfigFile\":\"/conformance/authz.kubeconfig\"}: \
            supported values: \"InClusterConfig\", \"KubeConfigFile\"";
        let webhook = json!({
            "timeout": "3s", "failurePolicy": "Deny", "subjectAccessReviewVersion": "v1",
            "connectionInfo": {
                "type": "KubeConfig", "kubeConfigFile": "/conformance/authz.kubeconfig",
            },
        });
        let text = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
            "authorizers": [{"type": "Webhook", "name": "guard", "webhook": webhook}],
        });
        let body = json!({
            "text": text.to_string(),
            "files": {"/conformance/authz.kubeconfig": "regular"},
            "expect": {"result": "invalid", "error": refused, "errors": [{
                "type": "NotSupported", "field": "authorizers[0].connectionInfo.type",
                "badValue": {
                    "Type": "KubeConfig", "KubeConfigFile": "/conformance/authz.kubeconfig",
                },
                "detail": "supported values: \"InClusterConfig\", \"KubeConfigFile\"",
                "message": refused,
            }]},
        });
        let Value::Object(body) = body else { panic!("the body is an object") };
        let vector = Vector { id: "v".into(), feature: "f".into(), body };
        let outcome = |ledger: &[Rule]| judge(Suite::ConfigLoad, &vector, ledger).unwrap().outcome;
        assert_eq!(outcome(LEDGER), VectorOutcome::Agreed(vec!["connection-type-kubeconfig"]));
        assert!(matches!(outcome(&[]), VectorOutcome::Failed(_)));
    }
}
