//! Objects that no hook and no initializer applies to.

use fake_http::{Answer, Conduct};
use serde_json::{Value, json};

use super::{DEPLOYMENTS, EXTERNAL, INITIALIZERS, Scene, everything, message};
use crate::admission_hooks::{MUTATING, VALIDATING, rule};

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";

/// The kinds that configure admission, each with a change of an object.
fn configurations() -> [(String, Value); 8] {
    let policy = |kind: &str| format!("{REGISTRATION}/{kind}");
    let binding = json!({"spec": {"policyName": "p"}});
    [
        (MUTATING.to_owned(), json!({"webhooks": []})),
        (VALIDATING.to_owned(), json!({"webhooks": []})),
        (EXTERNAL.to_owned(), json!({"externalAdmissionHooks": []})),
        (INITIALIZERS.to_owned(), json!({"initializers": []})),
        (policy("validatingadmissionpolicies"), json!({"spec": {}})),
        (policy("validatingadmissionpolicybindings"), binding.clone()),
        (policy("mutatingadmissionpolicies"), json!({"spec": {}})),
        (policy("mutatingadmissionpolicybindings"), binding),
    ]
}

/// Broken configurations can be repaired, and access reviews are answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_hook_for_everything_stops_no_repair() {
    let scene = Scene::start().await;
    let admin = &scene.admin;
    let hook = scene.hook(Answer::misbehave(Conduct::Refuse));
    for kind in [MUTATING, VALIDATING] {
        scene.ask(kind, &hook, json!({"rules": everything(), "failurePolicy": "Fail"})).await;
    }
    for (path, body) in configurations() {
        let mut body = body;
        body["metadata"] = json!({"name": "x"});
        let made = admin.post(&path, &body).await.expect(201);
        admin.put(&format!("{path}/x"), &made).await.expect(200);
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        admin.patch(&format!("{path}/x"), "merge-patch", &label).await.expect(200);
        admin.delete(&format!("{path}/x")).await.expect(200);
        admin.post(&path, &body).await.expect(201);
        let chosen = format!("{path}?labelSelector=a%3Dc");
        admin.delete(&chosen).await.expect(200);
    }
    let policy = format!("{REGISTRATION}/validatingadmissionpolicies/x/status");
    admin.patch(&policy, "merge-patch", &json!({"status": {}})).await.expect(200);

    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    admin.post(reviews, &review).await.expect(201);
    let review = json!({"spec": {"token": "alice-token"}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    assert_eq!(admin.post(reviews, &review).await.expect(201)["status"]["authenticated"], true);

    let deployment = json!({"metadata": {"name": "d"}});
    let text = message(admin.post(DEPLOYMENTS, &deployment).await, 500);
    let want =
        "Internal error occurred: failed calling webhook \"h.x.y\": failed to call webhook: ";
    assert!(text.starts_with(want), "{text}");
    for kind in [MUTATING, VALIDATING] {
        admin.delete(&format!("{kind}/c")).await.expect(200);
    }
    admin.post(DEPLOYMENTS, &deployment).await.expect(201);
}

/// An initializer of all resources does not apply to admission configurations or to reviews.
#[tokio::test(flavor = "multi_thread")]
async fn an_initializer_of_everything_is_not_assigned_to_configurations() {
    let scene = Scene::start().await;
    let admin = &scene.admin;
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]);
    let body = json!({"metadata": {"name": "all"},
        "initializers": [{"name": "i.x.y", "rules": rules}]});
    admin.post(INITIALIZERS, &body).await.expect(201);
    for (path, mut body) in configurations() {
        body["metadata"] = json!({"name": "x"});
        let made = admin.post(&path, &body).await.expect(201);
        assert_eq!(made["metadata"].get("initializers"), None, "{path}");
    }
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answered = admin.post(reviews, &review).await.expect(201);
    assert_eq!(answered["metadata"].get("initializers"), None);
    // A Deployment is not exempt.
    let path = format!("{DEPLOYMENTS}?includeUninitialized=1");
    let made = admin.post(&path, &json!({"metadata": {"name": "d"}})).await.expect(202);
    assert_eq!(made["metadata"]["initializers"]["pending"], json!([{"name": "i.x.y"}]));
}

/// A rule that can never match produces a warning.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_for_reviews_is_accepted_with_a_warning() {
    let scene = Scene::start().await;
    let hook = scene.hook(crate::admission_hooks::allow());
    let rules = json!([rule(&["*"], "authentication.k8s.io", "tokenreviews")]);
    let webhook = scene.webhook("h.x.y", &hook, json!({"rules": rules}));
    let body = crate::admission_hooks::webhook_configuration(VALIDATING, "c", &[webhook]);
    let answer = scene.admin.post(VALIDATING, &body).await;
    let want = "webhooks[0].rules[0]: tokenreviews.authentication.k8s.io is excluded from admission \
                webhooks; this rule will have no effect";
    assert_eq!(crate::admission_hooks::warnings(&answer), [want]);
    answer.expect(201);
    let review = json!({"spec": {"token": "alice-token"}});
    scene.admin.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.expect(201);
    assert_eq!(hook.n_requests(), 0);
}
