//! Posting a SubjectAccessExplanation to a chain.

use access_reviews::ReviewKind;
use authz_chain::ChainMember;
use serde_json::{Value, json};

use crate::review_client::{Fault, ReviewPost, abac, chain};

#[test]
fn an_explanation_contains_decision_and_trace() {
    let line = "{\"user\":\"ana\",\"resource\":\"pods\"}\n";
    let chain = chain(vec![ChainMember::AlwaysDeny, abac(line), ChainMember::AlwaysAllow]);
    let kind = ReviewKind::SubjectAccessExplanation;
    let post = ReviewPost { chain: &chain, kind, version: "v1alpha1", namespace: "", user: None };
    let spec = json!({"user": "ana", "resourceAttributes": {"verb": "get", "resource": "pods"}});
    let answer = post.send(&json!({"spec": spec})).unwrap();
    assert_eq!(answer["kind"], "SubjectAccessExplanation");
    assert_eq!(answer["apiVersion"], "authorization.portcullis.io/v1alpha1");
    assert_eq!(answer["spec"], spec);
    let status = &answer["status"];
    assert_eq!((&status["allowed"], &status["decidedBy"]), (&json!(true), &json!("abac")));
    assert_eq!(status["notAsked"], json!(["alwaysallow"]));
    let asked: Vec<&Value> =
        status["trace"].as_array().unwrap().iter().map(|event| &event["fields"]["name"]).collect();
    assert_eq!(asked, ["kubernetes.io/system-privileged-group", "alwaysdeny", "abac"]);
    let verdict = &status["trace"][1]["children"][0];
    assert_eq!(
        verdict,
        &json!({
            "kind": "verdict",
            "fields": {"decision": "noOpinion", "reason": "Everything is forbidden."},
        })
    );
    let (fault, message) = post.refused(&json!({"spec": {}}));
    assert_eq!(fault, Fault::Invalid);
    assert!(message.starts_with("SubjectAccessExplanation.authorization.portcullis.io \"\" is"));
}
