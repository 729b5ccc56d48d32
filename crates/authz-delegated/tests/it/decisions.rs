//! Who decides, and what.

use std::time::Duration;

use authz::{Attributes, Authorizer, Decision, Recorder, Target, User, Verdict};
use authz_chain::{AuthorizerName, Chain, Member};
use authz_delegated::{ALWAYS_ALLOW_GROUPS, ALWAYS_ALLOW_PATHS, Delegated, WEBHOOK};
use fake_http::{Answer, Conduct};
use serde_json::json;
use tokio::time::{advance, pause, resume};

use crate::fixture::{Core, allows, ask, ask_in_group, lists_flunders, says};

#[tokio::test]
async fn the_core_server_is_asked_by_a_review() {
    let core = Core::start(allows());
    let delegated = core.delegated();
    assert_eq!(delegated.warnings(), [""; 0]);
    let user = User { name: "ana".into(), groups: vec!["readers".into()], ..User::default() };
    let outcome = delegated.authorize(&lists_flunders(&user), Recorder::off()).await;
    assert_eq!(outcome.decided_by, Some(WEBHOOK));
    assert_eq!(outcome.decision.verdict, Verdict::Allow);
    assert_eq!(outcome.decision.reason, "RBAC: allowed");
    let [request] = &core.peer.requests()[..] else { panic!() };
    assert_eq!(request.method, "POST");
    assert_eq!(request.target, "/apis/authorization.k8s.io/v1/subjectaccessreviews?timeout=10s");
    assert_eq!(request.header("authorization"), Some("Bearer first"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    let resource = json!({"namespace": "team-a", "verb": "list", "group": "wardle.example.com",
        "version": "v1", "resource": "flunders"});
    assert_eq!(
        body,
        json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "metadata": {}, "status": {"allowed": false},
            "spec": {"resourceAttributes": resource, "user": "ana", "groups": ["readers"]}})
    );
}

#[tokio::test]
async fn a_server_may_have_a_path_of_its_own() {
    let core = Core::start(allows());
    for (path, want) in [("/clusters/a", "/clusters/a"), ("/clusters/a/", "/clusters/a"), ("/", "")]
    {
        core.write_kubeconfig(path);
        assert_eq!(ask(&core.delegated(), "ana").await.verdict, Verdict::Allow);
        let [request] = &core.peer.take_requests()[..] else { panic!() };
        let want = format!("{want}/apis/authorization.k8s.io/v1/subjectaccessreviews?timeout=10s");
        assert_eq!(request.target, want);
    }
}

#[tokio::test]
async fn what_the_core_server_says_counts() {
    for (status, verdict, reason) in [
        (r#"{"allowed":false,"reason":"none"}"#, Verdict::NoOpinion, "kubernetes.io/webhook: none"),
        (r#"{"allowed":false,"denied":true,"reason":"frozen"}"#, Verdict::Deny, "frozen"),
        (r#"{"allowed":false}"#, Verdict::NoOpinion, ""),
    ] {
        let core = Core::start(says(status));
        let decision = ask(&core.delegated(), "ana").await;
        assert_eq!(decision.verdict, verdict, "{status}");
        assert_eq!(decision.reason, reason, "{status}");
        assert!(decision.error.is_none(), "{status}");
    }
}

#[tokio::test]
async fn groups_and_paths_are_allowed_without_the_core_server() {
    let core = Core::start(says(r#"{"allowed":false}"#));
    let delegated = core.delegated();
    let ana = User { name: "ana".into(), ..User::default() };
    let root = User { groups: vec!["system:masters".into()], ..User::default() };
    let outcome = delegated.authorize(&lists_flunders(&root), Recorder::off()).await;
    assert_eq!(outcome.decided_by, Some(ALWAYS_ALLOW_GROUPS));
    assert_eq!(outcome.decision.verdict, Verdict::Allow);
    for path in ["/healthz", "/readyz", "/livez"] {
        let attributes = Attributes { user: Some(&ana), verb: "get", target: Target::Path(path) };
        let outcome = delegated.authorize(&attributes, Recorder::off()).await;
        assert_eq!(outcome.decided_by, Some(ALWAYS_ALLOW_PATHS), "{path}");
        assert_eq!(outcome.decision.verdict, Verdict::Allow, "{path}");
    }
    assert_eq!(core.peer.n_requests(), 0);
    let attributes =
        Attributes { user: Some(&ana), verb: "get", target: Target::Path("/healthz/etcd") };
    let outcome = delegated.authorize(&attributes, Recorder::off()).await;
    assert_eq!(outcome.decided_by, None);
    assert_eq!(core.peer.n_requests(), 1);
}

/// Unlike in the chain of the core server, nobody is above the configuration.
#[tokio::test]
async fn without_groups_the_core_server_is_asked_about_everybody() {
    let core = Core::start(says(r#"{"allowed":false,"denied":true}"#));
    let mut options = core.options();
    options.always_allow_groups = vec!["admins".into()];
    let delegated = Delegated::new(&options).unwrap();
    assert_eq!(ask_in_group(&delegated, "a", "admins").await.verdict, Verdict::Allow);
    assert_eq!(ask_in_group(&delegated, "a", "system:masters").await.verdict, Verdict::Deny);
    options.always_allow_groups.clear();
    options.always_allow_paths.clear();
    let delegated = Delegated::new(&options).unwrap();
    assert_eq!(ask_in_group(&delegated, "a", "system:masters").await.verdict, Verdict::Deny);
    let user = User::default();
    let attributes =
        Attributes { user: Some(&user), verb: "get", target: Target::Path("/healthz") };
    let outcome = delegated.authorize(&attributes, Recorder::off()).await;
    assert_eq!(outcome.decision.verdict, Verdict::Deny);
}

#[track_caller]
fn check_failure(decision: &Decision, message: &str) {
    assert_eq!(decision.verdict, Verdict::NoOpinion);
    assert_eq!(decision.reason, "");
    let error = decision.error.as_ref().unwrap().to_string();
    assert!(error.contains(message), "{error}");
}

#[tokio::test]
async fn a_failure_is_no_opinion() {
    for (answer, message) in [
        (Answer::json("{}").status(403), "unknown"),
        (Answer::json("").status(201), "0-length response with status code: 201"),
        (Answer::misbehave(Conduct::Close), "EOF"),
        (Answer::misbehave(Conduct::Refuse), "connection refused"),
    ] {
        let core = Core::start(answer);
        check_failure(&ask(&core.delegated(), "ana").await, message);
    }
}

#[tokio::test]
async fn a_failure_is_not_kept() {
    let core = Core::start(vec![Answer::json("{}").status(403), allows()]);
    let delegated = core.delegated();
    check_failure(&ask(&delegated, "ana").await, "unknown");
    assert!(delegated.health().last_failure.is_some());
    assert_eq!(ask(&delegated, "ana").await.verdict, Verdict::Allow);
}

#[tokio::test]
async fn a_core_server_of_another_authority_is_not_believed() {
    let core = Core::start(allows());
    core.write("ca.crt", &fake_http::Authority::new("other").unwrap().pem());
    check_failure(&ask(&core.delegated(), "ana").await, "certificate");
    assert_eq!(core.peer.n_requests(), 0);
}

#[tokio::test]
async fn a_request_without_a_user_is_reported() {
    let core = Core::start(says(r#"{"allowed":false,"reason":"who?"}"#));
    let delegated = core.delegated();
    let attributes = Attributes { user: None, verb: "get", target: Target::Path("/x") };
    let decision = delegated.authorize(&attributes, Recorder::off()).await.decision;
    assert_eq!(decision.verdict, Verdict::NoOpinion);
    let want = "kubernetes.io/always-allow-groups: Error\nkubernetes.io/webhook: who?";
    assert_eq!(decision.reason, want);
    assert_eq!(decision.error.unwrap().to_string(), "no user on request.");
}

/// Answers are used for ten seconds and not for longer, those that allow and the others.
#[tokio::test]
async fn answers_are_known_for_ten_seconds() {
    for answer in [allows(), says(r#"{"allowed":false,"denied":true}"#)] {
        let core = Core::start(answer);
        let delegated = core.delegated();
        let first = ask(&delegated, "ana").await.verdict;
        pause();
        advance(Duration::from_millis(9_000)).await;
        assert_eq!(ask(&delegated, "ana").await.verdict, first);
        assert_eq!(core.peer.n_requests(), 1);
        advance(Duration::from_millis(1_001)).await;
        resume();
        assert_eq!(ask(&delegated, "ana").await.verdict, first);
        assert_eq!(core.peer.n_requests(), 2);
        assert_eq!(ask(&delegated, "ben").await.verdict, first);
        assert_eq!(core.peer.n_requests(), 3);
    }
}

#[tokio::test]
async fn each_ttl_counts_for_its_own_answers() {
    let core = Core::start(vec![allows(), says(r#"{"allowed":false}"#)]);
    let mut options = core.options();
    options.unauthorized_ttl = Duration::ZERO;
    let delegated = Delegated::new(&options).unwrap();
    for _ in 0..2 {
        assert_eq!(ask(&delegated, "ana").await.verdict, Verdict::Allow);
    }
    assert_eq!(core.peer.n_requests(), 1);
    for n in 2..4 {
        assert_eq!(ask(&delegated, "ben").await.verdict, Verdict::NoOpinion);
        assert_eq!(core.peer.n_requests(), n);
    }
}

/// A server whose chain has other authorizers too can slot this as one of them.
#[tokio::test]
async fn it_is_an_authorizer_like_others() {
    let core = Core::start(allows());
    let delegated: std::sync::Arc<dyn Authorizer> = std::sync::Arc::new(core.delegated());
    let name = AuthorizerName::new("delegated").unwrap();
    let chain = Chain::new(vec![Member::Plugin(name, delegated)]).unwrap();
    let user = User { name: "ana".into(), ..User::default() };
    let outcome = chain.authorize(&lists_flunders(&user), Recorder::off()).await;
    assert_eq!(outcome.decided_by, Some("delegated"));
    assert_eq!(outcome.decision.verdict, Verdict::Allow);
}
