//! What the credential of one node may not do.

use std::sync::Arc;
use std::time::Instant;

use http::Method;
use serde_json::{Value, json};

use super::{Load, load};
use crate::scene::Scene;
use crate::server_process::StartOptions;
use crate::users::NODE;

/// A23: a node reads, creates and changes what belongs to others.
pub(super) fn a23() -> Load {
    Load {
        start: |_, _, _| {
            let flags = vec!["--authorization-mode=Node,RBAC".to_owned()];
            Ok(StartOptions { flags, ..StartOptions::default() })
        },
        prepare: |scene, _| Box::pin(prepare_nodes(scene)),
        ..load(|scene, until| Box::pin(try_everything(scene, until)))
    }
}

fn pod(name: &str, node: &str, more: Value) -> Value {
    let mut spec = json!({
        "nodeName": node, "serviceAccountName": "default",
        "containers": [{ "name": "c", "image": "image" }],
    });
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec })
}

fn node(name: &str, metadata: Value, spec: Value) -> Value {
    let mut own = json!({ "name": name });
    if let (Some(own), Some(more)) = (own.as_object_mut(), metadata.as_object()) {
        own.extend(more.clone());
    }
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": own, "spec": spec })
}

async fn prepare_nodes(scene: Arc<Scene>) -> anyhow::Result<()> {
    let mut admin = scene.admin().await?;
    for name in ["worker-1", "worker-2"] {
        admin.create("/api/v1/nodes", &node(name, json!({}), json!({}))).await?;
    }
    let core = "/api/v1/namespaces/default";
    for account in ["default", "other"] {
        let path = format!("{core}/serviceaccounts");
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": account },
        });
        // The server may have made the account `default` itself.
        admin.json(Method::POST, &path, &account).await?;
    }
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "foreign" } });
    admin.create(&format!("{core}/secrets"), &secret).await?;
    admin.create(&format!("{core}/pods"), &pod("own", "worker-1", json!({}))).await?;
    admin.create(&format!("{core}/pods"), &pod("foreign", "worker-2", json!({}))).await
}

/// Requests that the server must refuse.
fn refused() -> Vec<(Method, &'static str, Value)> {
    let token = |pod: &str| {
        json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "boundObjectRef": {
                "kind": "Pod", "apiVersion": "v1", "name": pod, "uid": "0000",
            } },
        })
    };
    let volumes = json!({ "volumes": [{ "name": "v", "secret": { "secretName": "foreign" } }] });
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": { "name": "foreign", "namespace": "default" },
    });
    let owned = json!({ "ownerReferences": [{
        "apiVersion": "v1", "kind": "Node", "name": "worker-2", "uid": "0000",
    }] });
    let labelled = json!({ "labels": { "node-restriction.kubernetes.io/tier": "secret" } });
    let taint = json!({ "taints": [{ "key": "k", "effect": "NoSchedule" }] });
    vec![
        (Method::GET, "/api/v1/namespaces/default/secrets/foreign", Value::Null),
        (Method::GET, "/api/v1/namespaces/default/secrets", Value::Null),
        (Method::POST, "/api/v1/namespaces/default/pods", pod("with-secret", "worker-1", volumes)),
        (Method::POST, "/api/v1/namespaces/default/pods", pod("elsewhere", "worker-2", json!({}))),
        (Method::POST, "/api/v1/namespaces/default/serviceaccounts/other/token", token("own")),
        (
            Method::POST,
            "/api/v1/namespaces/default/serviceaccounts/default/token",
            token("foreign"),
        ),
        (Method::POST, "/api/v1/namespaces/default/pods/foreign/eviction", eviction),
        (Method::DELETE, "/api/v1/namespaces/default/pods/foreign", Value::Null),
        (Method::PUT, "/api/v1/nodes/worker-1", node("worker-1", labelled, json!({}))),
        (Method::PUT, "/api/v1/nodes/worker-1", node("worker-1", owned, json!({}))),
        (Method::PUT, "/api/v1/nodes/worker-1", node("worker-1", json!({}), taint)),
        (Method::PUT, "/api/v1/nodes/worker-2", node("worker-2", json!({}), json!({}))),
        (Method::DELETE, "/api/v1/nodes/worker-2", Value::Null),
        (Method::POST, "/api/v1/nodes", node("worker-3", json!({}), json!({}))),
    ]
}

async fn try_everything(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let mut session = scene.client.session(Some(NODE)).await?;
    let mut is_first = true;
    while Instant::now() < until {
        for (method, path, body) in refused() {
            let answer = match &body {
                Value::Null => {
                    session
                        .send(method.clone(), path, "application/json", Default::default())
                        .await?
                }
                body => session.json(method.clone(), path, body).await?,
            };
            if is_first && !(400..500).contains(&answer.code) {
                scene.differ(format!("a node: {method} {path}: {}", answer.code));
            }
        }
        is_first = false;
    }
    Ok(())
}
