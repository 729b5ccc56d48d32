//! Answers of webhooks that are huge, or that come one byte at a time.

use std::time::Duration;

use fake_http::{Answer, Body, Conduct, Leaf};
use http::Method;
use serde_json::json;

use super::grant_alice;
use crate::admission_hooks::{HookAuthority, VALIDATING, register};
use crate::cluster::Cluster;
use crate::hooks::{Hooks, rbac};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Answers that would take the memory or the time of the server.
fn answers() -> [(&'static str, Answer); 3] {
    [
        ("1 GB that is announced", Answer::json("").body(Body::Filler(1 << 30))),
        ("without an end", Answer::json("").body(Body::Endless)),
        ("a body that stops", Answer::json("{}").conduct(Conduct::HangInBody)),
    ]
}

/// A20: a tenant's webhook that answers so fails the writes that it matches, by its own timeout, and those of
/// others are as fast and as right as before.
#[tokio::test(flavor = "multi_thread")]
async fn a20_answers_of_an_admission_webhook_concern_its_own_writes() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let tenant = json!({"metadata": {"name": "tenant", "labels": {"owner": "tenant"}}});
    admin.post("/api/v1/namespaces", &tenant).await.expect(201);
    let maps = json!([{"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"]}]);
    let alice = grant_alice(&cluster, "tenant", maps).await;
    let authority = HookAuthority::new();
    let peer = authority.hook(Answer::json("{}"));
    let changes = json!({"timeoutSeconds": 1, "failurePolicy": "Fail",
        "namespaceSelector": {"matchLabels": {"owner": "tenant"}}});
    let webhook = authority.webhook("tenant.example.com", &peer, changes);
    register(&cluster, VALIDATING, "tenant", &[webhook]).await;
    let object = json!({"metadata": {"generateName": "m-"}});
    for (what, answer) in answers() {
        peer.replace(answer).expect("a script");
        let own = "/api/v1/namespaces/tenant/configmaps";
        let (refused, other) = tokio::join!(
            alice.post(own, &object),
            admin.post("/api/v1/namespaces/default/configmaps", &object)
        );
        assert_eq!(refused.code, 500, "{what}: {}", refused.text());
        assert!(refused.text().contains("failed calling webhook"), "{what}: {}", refused.text());
        assert_eq!(other.code, 201, "{what}: {}", other.text());
    }
}

/// A20: the same of an authorization webhook. Users whom another authorizer allows do not notice.
#[tokio::test(flavor = "multi_thread")]
async fn a20_answers_of_an_authorization_webhook_are_bounded() {
    let hooks = Hooks::new();
    let peer = hooks.service(&Leaf::loopback(), Answer::json("{}"));
    hooks.kubeconfig("w", &format!("https://{}/authorize", peer.address()));
    let webhook = hooks.webhook("w", json!({"failurePolicy": "Deny", "timeout": "1s"}));
    let plan = hooks.plan(&[rbac(), webhook]);
    let cluster = hooks.cluster(&plan, |_, _| {}).await;
    let pods = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let alice = grant_alice(&cluster, "default", pods).await;
    let (bob, admin) = (cluster.bob(), cluster.admin());
    for (idx, (what, answer)) in answers().into_iter().enumerate() {
        peer.replace(answer).expect("a script");
        let attributes = json!({"verb": "get", "resource": "pods", "name": idx.to_string(),
            "namespace": "default"});
        let question = json!({"spec": {"resourceAttributes": attributes}}).to_string();
        // The first call, and the attempts after it, end within the time of the request.
        let path = format!("{REVIEWS}?timeout=20s");
        let headers = [("content-type", "application/json")];
        let (refused, allowed, listed) = tokio::join!(
            bob.send(Method::POST, &path, &headers, question.clone()),
            alice.send(Method::POST, &path, &headers, question.clone()),
            admin.get("/api/v1/pods")
        );
        assert_eq!(refused.code, 201, "{what}: {}", refused.text());
        assert_eq!(refused.json()["status"]["allowed"], false, "{what}");
        assert!(refused.json()["status"]["evaluationError"].is_string(), "{what}");
        assert_eq!(allowed.expect(201)["status"]["allowed"], true, "{what}");
        assert_eq!(listed.code, 200, "{what}");
    }
    assert!(peer.wait_idle(Duration::from_secs(60)), "no call is left");
}
