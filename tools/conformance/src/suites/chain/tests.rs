//! The suite calls the webhooks, and its answers depend on their responses.

use serde_json::{Value, json};

use crate::vectors::Vector;
use crate::{LEDGER, Suite, VectorOutcome, judge};

fn config(name: &str) -> Value {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": [{"name": name, "type": "Webhook", "webhook": {
            "timeout": "3s", "failurePolicy": "NoOpinion", "subjectAccessReviewVersion": "v1",
            "connectionInfo": {
                "type": "KubeConfigFile",
                "kubeConfigFile": format!("/conformance/{name}.kubeconfig"),
            },
        }}],
    })
}

/// Judges a vector of one webhook and one step.
fn outcome(responses: Value, expect: Value) -> VectorOutcome {
    let body = json!({
        "config": config("guard"),
        "webhooks": {"guard": {"responses": responses}},
        "steps": [{"attributes": {"user": {"name": "ana"}, "verb": "get", "path": "/x"}, "expect": expect}],
    });
    let Value::Object(body) = body else { panic!("an object") };
    let vector = Vector { id: "x".to_owned(), feature: "x".to_owned(), body };
    judge(Suite::Chain, &vector, LEDGER).unwrap().outcome
}

fn call(attempts: usize, timeout: &str) -> Value {
    json!([{
        "webhook": "guard", "attempts": attempts, "uri": format!("/authorize?timeout={timeout}"),
        "body": {
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
            "spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}, "user": "ana"},
            "status": {"allowed": false},
        },
    }])
}

#[test]
fn a_webhook_is_called_and_its_answer_decides() {
    let allow = json!([{"body": r#"{"status":{"allowed":true,"reason":"why not"}}"#}]);
    let expect = json!({"decision": "allow", "reason": "why not", "calls": call(1, "3s")});
    assert_eq!(outcome(allow.clone(), expect.clone()), VectorOutcome::Passed);
    for (path, wrong) in [
        ("decision", json!("deny")),
        ("reason", json!("because")),
        ("error", json!("it failed")),
        ("calls", call(2, "3s")),
        ("calls", call(1, "4s")),
        ("calls", json!([])),
    ] {
        let mut expect = expect.clone();
        expect[path] = wrong;
        let VectorOutcome::Failed(differences) = outcome(allow.clone(), expect) else {
            panic!("{path}")
        };
        assert!(differences[0].path.starts_with(&format!("[0].{path}")), "{differences:?}");
    }
    // An absent member of a body differs from an empty one.
    let mut expect = expect;
    expect["calls"][0]["body"]["spec"]["groups"] = json!([]);
    assert!(matches!(outcome(allow, expect), VectorOutcome::Failed(_)));
}

#[test]
fn error_texts_contain_the_recorded_address() {
    let refuse = json!([{"mode": "refuse"}]);
    let expect = json!({
        "decision": "noOpinion", "errorKind": "transport", "calls": [],
        "error": "Post \"http://guard.webhook.test/authorize?timeout=3s\": dial tcp 127.0.0.1:1: \
                  connect: connection refused",
    });
    assert_eq!(outcome(refuse, expect), VectorOutcome::Passed);
}
