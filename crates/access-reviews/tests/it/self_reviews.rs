//! Posting a SelfSubjectRulesReview or a SelfSubjectReview.

use std::sync::Arc;

use access_reviews::{PreparedReview, ReviewKind, ReviewRequest, prepare_review};
use authz::{Namespace, Rules, User};
use authz_chain::{Chain, ChainMember};
use serde_json::{Value, json};

use crate::review_client::{Fault, ReviewPost, abac, chain, user};

fn rules_of<'p>(chain: &'p Chain, user: Option<&'p User>) -> ReviewPost<'p> {
    ReviewPost {
        chain,
        kind: ReviewKind::SelfSubjectRulesReview,
        version: "v1",
        namespace: "",
        user,
    }
}

fn in_namespace(namespace: &str) -> Value {
    json!({"metadata": {"name": "ignored"}, "spec": {"namespace": namespace}})
}

/// AlwaysAllow yields one rule for all resources and one for all URLs.
#[test]
fn always_allow_lists_two_rules() {
    let (chain, ana) = (chain(vec![ChainMember::AlwaysAllow]), user("ana", &[]));
    let want = json!({
        "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
        "metadata": {}, "spec": {},
        "status": {
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        },
    });
    assert_eq!(rules_of(&chain, Some(&ana)).send(&in_namespace("n")).unwrap(), want);
}

/// The rules of all authorizers follow each other in the order of the chain.
#[test]
fn rules_are_those_of_all_authorizers_in_order() {
    let node = ChainMember::Node(Arc::new(authz_node::Snapshot::default()));
    let lines = "{\"user\":\"system:node:n\",\"resource\":\"pods\",\"readonly\":true}\n";
    let chain = chain(vec![node, abac(lines), ChainMember::AlwaysAllow]);
    let who = user("system:node:n", &["system:nodes"]);
    let status = rules_of(&chain, Some(&who)).send(&in_namespace("n")).unwrap()["status"].clone();
    let first: Vec<&Value> = status["resourceRules"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|rule| &rule["verbs"][0])
        .collect();
    assert_eq!(first, ["get", "*"]);
    assert_eq!(status["incomplete"], true);
    assert_eq!(status["evaluationError"], "node authorizer does not support user rule resolution");
    let (fault, message) = rules_of(&chain, Some(&who)).refused(&json!({"spec": {}}));
    assert_eq!((fault, message.as_str()), (Fault::Malformed, "no namespace on request"));
    assert_eq!(rules_of(&chain, None).refused(&in_namespace("n")).0, Fault::Malformed);
    assert_eq!(
        rules_of(&chain, Some(&who)).refused(&json!({"spec": {"namespace": 1}})).0,
        Fault::Malformed
    );
}

#[test]
fn empty_lists_are_present() {
    let ana = user("ana", &[]);
    let now = jiff::Timestamp::UNIX_EPOCH;
    let request = ReviewRequest { version: "v1beta1", namespace: "", user: Some(&ana), now };
    let review =
        prepare_review(ReviewKind::SelfSubjectRulesReview, &in_namespace("n"), &request).unwrap();
    let PreparedReview::Rules(review) = review else { panic!("rules are asked for") };
    assert_eq!((review.user(), review.namespace()), (&ana, Namespace::new("n")));
    let answer = review.into_response(&Rules::default());
    assert_eq!(answer["apiVersion"], "authorization.k8s.io/v1beta1");
    assert_eq!(
        answer["status"],
        json!({"resourceRules": [], "nonResourceRules": [], "incomplete": false})
    );
}

/// A SelfSubjectReview returns the user info of the caller.
#[test]
fn self_subject_review_returns_the_caller() {
    let mut alice = user("alice", &["dev", "system:authenticated"]);
    alice.uid = "7".to_owned();
    alice.extra.insert("scopes".to_owned(), vec!["a".to_owned()]);
    let chain = chain(vec![]);
    let post = |user| {
        let kind = ReviewKind::SelfSubjectReview;
        ReviewPost { chain: &chain, kind, version: "v1", namespace: "", user }
    };
    let want = json!({
        "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2026-11-16T03:04:05Z"},
        "status": {"userInfo": {
            "username": "alice", "uid": "7", "groups": ["dev", "system:authenticated"],
            "extra": {"scopes": ["a"]},
        }},
    });
    assert_eq!(post(Some(&alice)).send(&json!({})).unwrap(), want);
    let bare = User { name: "bob".to_owned(), ..User::default() };
    let answer = post(Some(&bare)).send(&json!({"status": {"userInfo": {"uid": "x"}}})).unwrap();
    assert_eq!(answer["status"], json!({"userInfo": {"username": "bob"}}));
    assert_eq!(post(None).refused(&json!({})).0, Fault::Malformed);
    assert_eq!(post(Some(&bare)).refused(&json!({"metadata": 1})).0, Fault::Malformed);
}
