//! Questions and answers: `AdmissionReview` in the version `v1` and in the old `v1alpha1`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::decide::Answer;

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    version: Version,
    /// What is done: `CREATE`, for example.
    operation: String,
    namespace: String,
    name: String,
    /// The object; null if it is to be deleted.
    pub(crate) object: Value,
}

/// The form in which a question came and its answer is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Version {
    /// With `spec` and `status`, for hooks of an `ExternalAdmissionHookConfiguration`.
    V1alpha1,
    /// With `request` and `response`, which carry the same identifier.
    V1 { uid: String },
}

/// The question in a review, if it is one of a version that is known.
pub(crate) fn read(body: &[u8]) -> Option<Question> {
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
    Some(Question { version, operation, namespace, name, object })
}

/// The review that answers.
pub(crate) fn write(question: &Question, answer: &Answer) -> Value {
    let mut result = json!({"allowed": answer.denial.is_none()});
    if let Some(why) = &answer.denial {
        result["status"] =
            json!({"status": "Failure", "message": why, "reason": "Forbidden", "code": 403});
    }
    let (version, part) = match &question.version {
        // Neither patches nor warnings exist there.
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

/// A line for people.
pub(crate) fn line(path: &str, question: &Question, answer: &Answer) -> String {
    let Question { operation, namespace, name, .. } = question;
    let version = match question.version {
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

    fn question(review: &Value) -> Question {
        read(review.to_string().as_bytes()).unwrap()
    }

    fn v1() -> Question {
        question(&json!({
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": "u", "operation": "CREATE", "namespace": "n", "name": "web", "object": {"a": 1},
            },
        }))
    }

    fn v1alpha1() -> Question {
        question(&json!({
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
