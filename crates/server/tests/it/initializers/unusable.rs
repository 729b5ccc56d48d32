//! Uninitialized objects cannot be used.

use http::Method;
use serde_json::{Value, json};

use super::scene::{INITIALIZERS, Scene, configuration, entry, pending};

const PODS: &str = "/api/v1/namespaces/default/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces";

/// A server on which new objects of these resources wait for an initializer that never acts.
async fn scene(resources: &[&str]) -> Scene {
    let scene = Scene::start().await;
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": resources}]);
    let entries = json!([entry("a.x.y", json!({"rules": rules}))]);
    scene.admin.post(INITIALIZERS, &configuration("a", entries)).await.expect(201);
    scene.set_policy("a.x.y", "Fail").await;
    scene
}

async fn create_waiting(scene: &Scene, path: &str, body: &Value) -> Value {
    scene.admin.post(&format!("{path}?includeUninitialized=1"), body).await.expect(202)
}

async fn initialize(scene: &Scene, path: &str) {
    let patch = json!({"metadata": {"initializers": null}});
    let done = scene.admin.patch(path, "merge-patch", &patch).await.expect(200);
    assert_eq!(pending(&done), None);
}

/// A21: a namespace that waits for its initializers is absent for creators, and can be deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a21_a_namespace_that_waits_takes_no_content() {
    let scene = scene(&["namespaces"]).await;
    let admin = &scene.admin;
    let map = json!({"metadata": {"name": "m"}});
    for name in ["kept", "dropped"] {
        create_waiting(&scene, "/api/v1/namespaces", &json!({"metadata": {"name": name}})).await;
        let maps = format!("/api/v1/namespaces/{name}/configmaps");
        let refused = admin.post(&maps, &map).await.expect(404);
        assert_eq!(refused["message"], format!("namespaces \"{name}\" not found"));
        let role = json!({"metadata": {"name": "r"}});
        admin.put(&format!("{ROLES}/{name}/roles/r"), &role).await.expect(404);
        let token = json!({"spec": {}});
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default/token");
        admin.post(&account, &token).await.expect(404);
    }
    admin.delete("/api/v1/namespaces/dropped").await.expect(200);
    while admin.get("/api/v1/namespaces/dropped").await.code != 404 {
        tokio::task::yield_now().await;
    }
    initialize(&scene, "/api/v1/namespaces/kept").await;
    admin.post("/api/v1/namespaces/kept/configmaps", &map).await.expect(201);
}

/// A21: accounts, pods and secrets that wait are absent for tokens.
#[tokio::test(flavor = "multi_thread")]
async fn a21_no_token_is_for_an_object_that_waits() {
    let scene = scene(&["serviceaccounts", "pods", "secrets"]).await;
    let admin = &scene.admin;
    let named = |name: &str| json!({"metadata": {"name": name}});
    create_waiting(&scene, ACCOUNTS, &named("sa")).await;
    let token = format!("{ACCOUNTS}/sa/token");
    let request = json!({"spec": {"audiences": ["x"]}});
    let refused = admin.post(&token, &request).await.expect(404);
    assert_eq!(refused["message"], "serviceaccounts \"sa\" not found");
    initialize(&scene, &format!("{ACCOUNTS}/sa")).await;
    admin.post(&token, &request).await.expect(201);

    let pod = json!({"metadata": {"name": "p"}, "spec": {"serviceAccountName": "sa",
        "containers": [{"name": "c", "image": "i"}]}});
    for (path, body, kind) in [(PODS, pod, "Pod"), (SECRETS, named("s"), "Secret")] {
        let made = create_waiting(&scene, path, &body).await;
        let name = made["metadata"]["name"].as_str().unwrap();
        let bound = json!({"apiVersion": "v1", "kind": kind, "name": name,
            "uid": made["metadata"]["uid"]});
        let request = json!({"spec": {"audiences": ["x"], "boundObjectRef": bound}});
        let refused = admin.post(&token, &request).await.expect(404);
        assert_eq!(refused["details"]["name"], name, "{kind}: {refused}");
        initialize(&scene, &format!("{path}/{name}")).await;
        admin.post(&token, &request).await.expect(201);
    }
}

/// A21: a mirror pod skips initializers that must not be skipped only if its node creates it, or
/// somebody who may leave them out anyway.
#[tokio::test(flavor = "multi_thread")]
async fn a21_the_annotation_of_mirror_pods_skips_no_initializer() {
    let scene = scene(&["pods"]).await;
    let alice = scene.grant_alice(&[]).await;
    let path = format!("{PODS}?includeUninitialized=1");
    let mirror = |name: &str, node: Option<&str>| {
        let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
        if let Some(node) = node {
            spec["nodeName"] = json!(node);
        }
        json!({"metadata": {"name": name, "annotations": {"kubernetes.io/config.mirror": "x"}},
            "spec": spec})
    };
    for client in [&alice, &scene.admin] {
        let refused = client.post(&path, &mirror("m", None)).await.expect(422);
        let want = "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": must \
                    set spec.nodeName if mirror pod annotation is set";
        assert!(refused["message"].as_str().unwrap().ends_with(want), "{refused}");
    }
    let made = alice.post(&path, &mirror("of-alice", Some("n1"))).await.expect(202);
    assert_eq!(pending(&made), Some(vec!["a.x.y"]));
    let node = json!({"metadata": {"name": "n1"}});
    let node = scene.admin.post("/api/v1/nodes", &node).await.expect(201);
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "controller": true,
        "uid": node["metadata"]["uid"]});
    for (name, user, code) in [("own", "system:node:n1", 201), ("foreign", "system:node:n2", 403)] {
        let headers = [
            ("impersonate-user", user),
            ("impersonate-group", "system:nodes"),
            ("content-type", "application/json"),
        ];
        let mut body = mirror(name, Some("n1"));
        body["metadata"]["ownerReferences"] = json!([owner]);
        let made = scene.admin.send(Method::POST, &path, &headers, body.to_string()).await;
        assert_eq!(pending(&made.expect(code)), None);
    }
    let made = scene.admin.post(&path, &mirror("of-admin", Some("n1"))).await.expect(201);
    assert_eq!(pending(&made), None, "who may `initialize` could leave them out anyway");
}
