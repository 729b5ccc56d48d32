//! Attacks by definitions of custom resources.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Map, Value, json};

use super::{Load, load};
use crate::scene::Scene;
use crate::users::{ADMIN, TENANT};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const N_DEFINITIONS: usize = 10_000;
const N_CONNECTIONS: usize = 8;

/// A18: 10,000 definitions, and schemas of 1 MB.
pub(super) fn a18() -> Load {
    Load {
        clean: |scene, _| Box::pin(remove_definitions(scene)),
        duration: Duration::from_secs(30),
        ..load(|scene, until| Box::pin(define(scene, until)))
    }
}

fn definition(run: usize, number: usize, schema: &Value) -> Value {
    let plural = format!("things{run}x{number}");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.attack.example.com") },
        "spec": {
            "group": "attack.example.com", "scope": "Namespaced",
            "names": {
                "plural": plural, "singular": format!("thing{run}x{number}"),
                "kind": format!("Thing{run}x{number}"), "listKind": format!("Thing{run}x{number}List"),
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

/// A schema of about 1 MB.
fn large_schema() -> Value {
    let mut pattern = String::new();
    for letter in 0..200 {
        let _ = write!(pattern, "(a{letter}|b{letter})?");
    }
    let properties: Map<String, Value> = (0..10_000)
        .map(|n| (format!("field{n}"), json!({ "type": "string", "maxLength": 10, "description": "a field of the attack" })))
        .chain([("spec".to_owned(), json!({ "type": "string", "pattern": pattern }))])
        .collect();
    json!({ "type": "object", "properties": properties })
}

async fn define(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    let small = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let large = large_schema();
    for first in 0..N_CONNECTIONS {
        let (client, run) = (scene.client.clone(), scene.run);
        let (small, large) = (small.clone(), large.clone());
        tasks.spawn(async move {
            let Ok(mut tenant) = client.session(Some(TENANT)).await else { return };
            for number in (first..N_DEFINITIONS).step_by(N_CONNECTIONS) {
                let schema = if number % 1_000 == 0 { &large } else { &small };
                let definition = definition(run, number, schema);
                let sent = tenant.json(Method::POST, DEFINITIONS, &definition);
                match tokio::time::timeout_at(until.into(), sent).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(_)) | Err(_) => return,
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    Ok(())
}

async fn remove_definitions(scene: Arc<Scene>) -> anyhow::Result<()> {
    let mut admin = scene.client.session(Some(ADMIN)).await?;
    admin.send(Method::DELETE, DEFINITIONS, "application/json", Bytes::new()).await?;
    let deadline = Instant::now() + Duration::from_secs(120);
    while Instant::now() < deadline {
        let left = admin.get(&format!("{DEFINITIONS}?limit=1")).await?;
        let items = left.json().get("items").and_then(Value::as_array).map_or(0, Vec::len);
        if items == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}
