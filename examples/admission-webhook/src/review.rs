//! Reads and writes `AdmissionReview` of the versions `v1` and `v1alpha1`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::decide::Answer;

/// The request of a review.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReviewRequest {
    version: Version,
    /// The operation, such as `CREATE`.
    operation: String,
    namespace: String,
    name: String,
    /// The object; null for a delete.
    pub(crate) object: Value,
}

/// The version of a review, which its answer has too.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Version {
    /// The version with `spec` and `status`, for hooks of an `ExternalAdmissionHookConfiguration`.
    V1alpha1,
    /// The version with `request` and `response`, which have the same uid.
    V1 { uid: String },
}

/// Reads the request of a review; `None` if the version is unknown.
pub(crate) fn read(body: &[u8]) -> Option<ReviewRequest> {
    let mut review: Value = serde_json::from_slice(body).ok()?;
    let (version, part) = match review["apiVersion"].as_str()? {
        "admission.k8s.io/v1" => {
            (Version::V1 { uid: review["request"]["uid"].as_str()?.to_owned() }, "request")
        }
        "admission.k8s.io/v1alpha1" => (Version::V1alpha1, "spec"),
        _ => return None,
    };
    let asked = review.get_mut(part)?;
    let object = asked.get_mut("object").map(Value::take).unwrap_or_default();
    let text = |field: &str| asked[field].as_str().unwrap_or_default().to_owned();
    let (operation, namespace, name) = (text("operation"), text("namespace"), text("name"));
    Some(ReviewRequest { version, operation, namespace, name, object })
}

/// The review with the answer.
pub(crate) fn write(request: &ReviewRequest, answer: &Answer) -> Value {
    let mut result = json!({"allowed": answer.denial.is_none()});
    if let Some(why) = &answer.denial {
        result["status"] =
            json!({"status": "Failure", "message": why, "reason": "Forbidden", "code": 403});
    }
    let (version, part) = match &request.version {
        // This version has neither patches nor warnings.
        Version::V1alpha1 => ("admission.k8s.io/v1alpha1", "status"),
        Version::V1 { uid } => {
            result["uid"] = json!(uid);
            result["warnings"] = json!(answer.warnings);
            if !answer.patch.is_empty() {
                let patch = Value::Array(answer.patch.clone()).to_string();
                result["patchType"] = json!("JSONPatch");
                result["patch"] = json!(STANDARD.encode(patch));
            }
            ("admission.k8s.io/v1", "response")
        }
    };
    json!({"apiVersion": version, "kind": "AdmissionReview", part: result})
}

/// The line that the program prints for a review.
pub(crate) fn line(path: &str, request: &ReviewRequest, answer: &Answer) -> String {
    let ReviewRequest { operation, namespace, name, .. } = request;
    let version = match request.version {
        Version::V1alpha1 => "v1alpha1",
        Version::V1 { .. } => "v1",
    };
    let said = match &answer.denial {
        Some(why) => format!("denied, {why}"),
        None if !answer.patch.is_empty() => "patched".to_owned(),
        None => "allowed".to_owned(),
    };
    format!("{path} {version} {operation} {namespace}/{name}: {said}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(review: &Value) -> ReviewRequest {
        read(review.to_string().as_bytes()).unwrap()
    }

    fn v1() -> ReviewRequest {
        request(&json!({
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": "u", "operation": "CREATE", "namespace": "n", "name": "web", "object": {"a": 1},
            },
        }))
    }

    fn v1alpha1() -> ReviewRequest {
        request(&json!({
            "apiVersion": "admission.k8s.io/v1alpha1",
            "spec": {"operation": "DELETE", "object": null},
        }))
    }

    #[test]
    fn questions_are_read_in_both_versions() {
        assert_eq!(v1().object, json!({"a": 1}));
        assert_eq!(v1alpha1().object, Value::Null);
        for unknown in [
            r#"{"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u"}}"#,
            r#"{"apiVersion":"admission.k8s.io/v1","request":{}}"#,
            r#"{"apiVersion":"admission.k8s.io/v1","request":"u"}"#,
            r#"{"apiVersion":"admission.k8s.io/v1alpha1"}"#,
            "{}",
            "1",
            "{",
        ] {
            assert_eq!(read(unknown.as_bytes()), None, "{unknown}");
        }
    }

    #[test]
    fn an_answer_has_the_version_of_its_question() {
        let allowed = Answer { warnings: vec!["w".to_owned()], ..Answer::default() };
        assert_eq!(
            write(&v1(), &allowed)["response"],
            json!({"uid": "u", "allowed": true, "warnings": ["w"]})
        );
        let denied = Answer { denial: Some("no".to_owned()), ..Answer::default() };
        let status =
            json!({"status": "Failure", "message": "no", "reason": "Forbidden", "code": 403});
        let answer = write(&v1(), &denied);
        assert_eq!(answer["response"]["allowed"], false);
        assert_eq!(answer["response"]["status"], status);
        let answer = write(&v1alpha1(), &denied);
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1alpha1");
        assert_eq!(answer["status"], json!({"allowed": false, "status": status}));
    }

    #[test]
    fn a_patch_is_sent_in_base64_with_its_type() {
        let answer =
            Answer { patch: vec![json!({"op": "remove", "path": "/a"})], ..Answer::default() };
        let response = &write(&v1(), &answer)["response"];
        assert_eq!(response["patchType"], "JSONPatch");
        let patch = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
        assert_eq!(patch, br#"[{"op":"remove","path":"/a"}]"#);
        assert_eq!(line("/mutate", &v1(), &answer), "/mutate v1 CREATE n/web: patched");
    }
}
