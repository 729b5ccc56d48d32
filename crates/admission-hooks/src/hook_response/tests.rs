//! Responses of each version, valid and invalid.

use serde_json::json;

use super::*;

const UID: &str = "u-1";

fn read_json(
    version: ReviewVersion,
    phase: Phase,
    body: Value,
) -> Result<HookResponse, CallFailure> {
    let body = body.to_string();
    let received = HttpReply { code: 200, content_type: "application/json", body: body.as_bytes() };
    parse_response(received, version, phase, UID)
}

fn review(version: &str, response: Value) -> Value {
    let api_version = format!("admission.k8s.io/{version}");
    json!({"apiVersion": api_version, "kind": "AdmissionReview", "response": response})
}

fn v1(phase: Phase, response: Value) -> Result<HookResponse, CallFailure> {
    read_json(ReviewVersion::V1, phase, review("v1", response))
}

fn v1beta1(phase: Phase, response: Value) -> Result<HookResponse, CallFailure> {
    read_json(ReviewVersion::V1beta1, phase, review("v1beta1", response))
}

#[test]
fn v1_is_strict_about_uid_and_kind() {
    let invalid = "received invalid webhook response: ";
    let other = v1(Phase::Validating, json!({"uid": "u-2", "allowed": true})).unwrap_err().message;
    assert_eq!(other, format!("{invalid}expected response.uid=\"u-1\", got \"u-2\""));
    for (body, want) in [
        (
            json!({"response": {"uid": UID, "allowed": true}}),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
        ),
        (json!({"apiVersion": "admission.k8s.io/v1", "kind": KIND}), "webhook response was absent"),
        (json!({}), "webhook response was absent"),
    ] {
        let error = read_json(ReviewVersion::V1, Phase::Validating, body).unwrap_err().message;
        assert_eq!(error, format!("{invalid}{want}"));
    }
    assert!(v1(Phase::Validating, json!({"uid": UID, "allowed": true})).unwrap().is_allowed);
    assert!(!v1(Phase::Validating, json!({"uid": UID})).unwrap().is_allowed);
}

#[test]
fn v1beta1_is_not() {
    // Another uid, and no kind. A kind that is another one cannot be decoded.
    let answer = v1beta1(Phase::Validating, json!({"uid": "u-2", "allowed": true})).unwrap();
    assert!(answer.is_allowed);
    let body = json!({"response": {"allowed": true}});
    assert!(read_json(ReviewVersion::V1beta1, Phase::Validating, body).unwrap().is_allowed);
    let other = review("v1", json!({"uid": UID, "allowed": true}));
    let error = read_json(ReviewVersion::V1beta1, Phase::Validating, other).unwrap_err().message;
    assert_eq!(
        error,
        "failed to call webhook: converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): \
         unknown conversion"
    );
}

#[test]
fn v1alpha1_answers_in_its_status() {
    let read = |body| read_json(ReviewVersion::V1alpha1, Phase::Validating, body);
    assert!(read(json!({"status": {"allowed": true}})).unwrap().is_allowed);
    let error = read(json!({"allowed": true})).unwrap_err().message;
    assert_eq!(error, "received invalid webhook response: webhook response was absent");
    let told = json!({"status": {"allowed": false, "status": {"message": "no"}}});
    let answer = read(told).unwrap();
    assert!(!answer.is_allowed);
    assert_eq!(answer.status.unwrap().message.as_deref(), Some("no"));
}

#[test]
fn patches_and_their_types() {
    let patch = "W10="; // []
    let invalid = "received invalid webhook response: ";
    for (response, want) in [
        (json!({"patch": patch}), "webhook returned response.patch but not response.patchType"),
        (
            json!({"patchType": "JSONPatch"}),
            "webhook returned response.patchType but not response.patch",
        ),
        (
            json!({"patch": patch, "patchType": ""}),
            "webhook returned invalid response.patchType of \"\"",
        ),
    ] {
        let mut response = response;
        response["uid"] = UID.into();
        let error = v1(Phase::Mutating, response).unwrap_err().message;
        assert_eq!(error, format!("{invalid}{want}"));
    }
    let odd = json!({"uid": UID, "patch": patch, "patchType": "Foo"});
    assert_eq!(
        v1(Phase::Mutating, odd.clone()).unwrap().unknown_patch_type.as_deref(),
        Some("Foo")
    );
    let answer = v1beta1(Phase::Mutating, odd.clone()).unwrap();
    assert_eq!((answer.patch.as_slice(), answer.unknown_patch_type), (&b"[]"[..], None));
    let error = v1(Phase::Validating, odd.clone()).unwrap_err().message;
    assert_eq!(error, format!("{invalid}validating webhook may not return response.patch"));
    let typed = json!({"uid": UID, "patchType": "JSONPatch"});
    let error = v1(Phase::Validating, typed).unwrap_err().message;
    assert_eq!(error, format!("{invalid}validating webhook may not return response.patchType"));
    assert_eq!(v1beta1(Phase::Validating, odd).unwrap().patch, b"");
    // Base64 may be broken into lines, but not otherwise.
    let lines = json!({"uid": UID, "patch": "W1\n0=\r\n", "patchType": "JSONPatch"});
    assert_eq!(v1(Phase::Mutating, lines).unwrap().patch, b"[]");
    assert!(v1(Phase::Mutating, json!({"uid": UID, "patch": "W1 0="})).is_err());
}

#[test]
fn what_is_no_review_is_a_failed_call() {
    // 302, 204
    let read = |code, body: &str| {
        let received = HttpReply { code, content_type: "", body: body.as_bytes() };
        parse_response(received, ReviewVersion::V1, Phase::Validating, UID).unwrap_err().message
    };
    let allowed = review("v1", json!({"uid": UID, "allowed": true})).to_string();
    for (code, body, want) in [
        (302, allowed.as_str(), "the server responded with the status code 302 but did not"),
        (207, &allowed, "the server responded with the status code 207 but did not"),
        (204, "", "0-length response with status code: 204 and content type: "),
        (200, "{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (200, "nonsense", "couldn't get version/kind; json parse error: "),
        (200, "[]", "couldn't get version/kind; json parse error: "),
        (200, "\"text\"", "couldn't get version/kind; json parse error: "),
        (200, r#"{"kind":1}"#, "couldn't get version/kind; json parse error: "),
        (
            200,
            r#"{"kind":"Pod","apiVersion":"v1"}"#,
            "no kind \"Pod\" is registered for version \"v1\"",
        ),
        (200, r#"{"kind":"Status","apiVersion":"v1","message":"bad"}"#, "bad"),
        (200, r#"{"response":{"allowed":"yes"}}"#, "invalid type: string"),
        // A list is not accepted in place of an object, even with the same items.
        (200, r#"{"response":["u-1",true]}"#, "invalid type: sequence"),
        (200, r#"{"response":{"status":["Failure"]}}"#, "invalid type: sequence"),
    ] {
        let cause = read(code, body);
        let want = format!("failed to call webhook: {want}");
        assert!(cause.starts_with(&want), "{cause}");
    }
    let success = r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#;
    assert_eq!(
        read(200, success),
        "received invalid webhook response: webhook response was absent"
    );
}

#[test]
fn null_is_as_good_as_absent() {
    let response = json!({
        "uid": UID, "allowed": null, "status": null, "patch": null, "patchType": null,
        "auditAnnotations": null, "warnings": null,
    });
    let answer = v1(Phase::Mutating, response).unwrap();
    assert!(!answer.is_allowed && answer.patch.is_empty() && answer.warnings.is_empty());
    let response = json!({
        "uid": UID, "auditAnnotations": {"a": null}, "warnings": [null, "w"],
    });
    let answer = v1(Phase::Mutating, response).unwrap();
    assert_eq!(answer.audit_annotations["a"], "");
    assert_eq!(answer.warnings, ["", "w"]);
}

/// L5: the message does not repeat parts of a response that is no review.
#[test]
fn values_of_a_wrong_type_are_not_repeated() {
    for (response, want) in [
        (json!({"allowed": "5ecret"}), "invalid type: string, expected a boolean"),
        (
            json!({"allowed": "5ecret, expected \"`5ecret"}),
            "invalid type: string, expected a boolean",
        ),
        (json!({"uid": 5}), "invalid type: integer, expected a string"),
        (json!({"uid": ["5ecret"]}), "invalid type: sequence, expected a string"),
    ] {
        let told = v1(Phase::Validating, response).unwrap_err().message;
        assert_eq!(told, format!("failed to call webhook: {want}"));
    }
    let long = "k".repeat(NAME_BYTES_MAX + 1);
    let told =
        read_json(ReviewVersion::V1, Phase::Validating, json!({"kind": long})).unwrap_err().message;
    assert!(told.contains("no kind") && !told.contains(&long), "{told}");
}
