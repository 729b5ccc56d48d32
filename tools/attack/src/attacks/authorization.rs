//! Attacks on authorizers: roles that multiply, and questions to a slow webhook.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::{Load, load, write_file};
use crate::scene::{RawRequest, Scene};
use crate::server_process::StartOptions;
use crate::users::{READER, TENANT, TENANT_NAMESPACE};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A2: roles whose lists multiply to millions of permissions.
pub(super) fn a2() -> Load {
    Load {
        prepare: |scene, _| Box::pin(prepare_roles(scene)),
        ..load(|scene, until| Box::pin(use_roles(scene, until)))
    }
}

/// A role with so many groups, resources and verbs.
fn role(kind: &str, name: &str, size: usize) -> Value {
    let words = |word: &str| (0..size).map(|n| format!("{word}{n}")).collect::<Vec<_>>();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": { "name": name, "labels": { "attack": "yes" } },
        "rules": [{
            "apiGroups": words("group"), "resources": words("resource"), "verbs": words("verb"),
        }],
    })
}

/// Creates the largest cluster role that the server accepts, and one that aggregates it.
async fn prepare_roles(scene: Arc<Scene>) -> anyhow::Result<()> {
    let mut admin = scene.admin().await?;
    for size in [150, 100, 60, 40, 20, 10] {
        let path = format!("{RBAC}/clusterroles");
        let answer = admin.json(Method::POST, &path, &role("ClusterRole", "large", size)).await?;
        if answer.code == 201 {
            break;
        }
    }
    let aggregate = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "aggregate" },
        "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "attack": "yes" } }] },
        "rules": [],
    });
    admin.create(&format!("{RBAC}/clusterroles"), &aggregate).await
}

async fn use_roles(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let own = format!("{RBAC}/namespaces/{TENANT_NAMESPACE}");
    let bind = |role: &str| {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": { "name": "bind" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant" }],
        });
        RawRequest::json(Method::POST, format!("{own}/rolebindings?dryRun=All"), &binding)
    };
    let create = |size| {
        let path = format!("{own}/roles?dryRun=All");
        RawRequest::json(Method::POST, path, &role("Role", "many", size))
    };
    let rules_review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": { "namespace": TENANT_NAMESPACE },
    });
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let requests = vec![
        create(150),
        create(60),
        create(20),
        bind("large"),
        bind("aggregate"),
        RawRequest::json(Method::POST, reviews, &rules_review),
    ];
    scene.flood(Some(TENANT), 16, requests, until).await;
    Ok(())
}

/// A3: requests that wait for a slow authorization webhook, while others ask for what it denies.
pub(super) fn a3() -> Load {
    Load {
        start: |_, directory, hooks| {
            let kubeconfig =
                write_file(directory, "authorize.kubeconfig", &hooks.kubeconfig("/authorize"))?;
            let config = json!({
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
                "authorizers": [
                    { "type": "Webhook", "name": "guard", "webhook": {
                        "timeout": "10s", "subjectAccessReviewVersion": "v1",
                        "matchConditionSubjectAccessReviewVersion": "v1",
                        "failurePolicy": "NoOpinion",
                        "authorizedTTL": "1s", "unauthorizedTTL": "1s",
                        "connectionInfo": { "type": "KubeConfigFile", "kubeConfigFile": kubeconfig },
                        "matchConditions": [
                            { "expression": "has(request.resourceAttributes)" },
                            { "expression": "request.resourceAttributes.name == 'denied' || request.resourceAttributes.name.startsWith('slow')" },
                        ],
                    } },
                    { "type": "Node", "name": "node" },
                    { "type": "RBAC", "name": "rbac" },
                ],
            });
            let file = write_file(directory, "authorization.yaml", &config.to_string())?;
            Ok(StartOptions {
                flags: vec![format!("--authorization-config={file}")],
                ..StartOptions::default()
            })
        },
        ..load(|scene, until| Box::pin(ask_slowly(scene, until)))
    }
}

async fn ask_slowly(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for connection in 0..11 {
        let Ok(streams) = scene.client.streams(Some(READER), 64 << 10).await else { continue };
        for stream in 0..100 {
            let mut streams = streams.clone();
            tasks.spawn(async move {
                let mut round = 0;
                while Instant::now() < until {
                    let name = format!("slow-{connection}-{stream}-{round}");
                    let base = "/api/v1/namespaces/default/configmaps";
                    let path = match stream % 2 {
                        0 => format!("{base}/{name}"),
                        _ => format!("{base}?watch=true&fieldSelector=metadata.name%3D{name}"),
                    };
                    let asked = streams.send(Method::GET, &path, Bytes::new());
                    if tokio::time::timeout_at(until.into(), asked).await.is_err() {
                        return;
                    }
                    round += 1;
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            });
        }
    }
    while tasks.join_next().await.is_some() {}
    Ok(())
}
