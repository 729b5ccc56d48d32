//! Attacks by request bodies: slow, large and malicious ones.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Load, load};
use crate::client::Client;
use crate::scene::{RawRequest, Scene};
use crate::users::{READER, WRITER, WRITER_NAMESPACE, config_map};

/// The longest body that a server reads.
const BODY_BYTES_MAX: usize = 3 << 20;
const N_SLOW: usize = 300;

/// A8: bodies that come slowly or never, and bodies of users who may not write.
pub(super) fn a8() -> Load {
    Load {
        duration: Duration::from_secs(8),
        ..load(|scene, until| Box::pin(send_slowly(scene, until)))
    }
}

async fn send_slowly(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for idx in 0..2 * N_SLOW {
        let client = scene.client.clone();
        let token = [None, Some(READER), Some(WRITER)].get(idx % 3).copied().flatten();
        let interval = (idx < N_SLOW).then_some(Duration::from_secs(1));
        tasks.spawn(async move {
            // A server that ends the connection has defended itself.
            let _ = announce_body(&client, token, interval, until).await;
        });
    }
    let path = "/api/v1/namespaces/innocent-0/configmaps";
    let unwanted = RawRequest {
        method: Method::POST,
        path: path.to_owned(),
        content_type: "application/json",
        body: vec![b' '; BODY_BYTES_MAX].into(),
    };
    tokio::join!(
        scene.flood(None, 5, vec![unwanted.clone()], until),
        scene.flood(Some(READER), 5, vec![unwanted], until),
    );
    while tasks.join_next().await.is_some() {}
    Ok(())
}

/// Announces a body of the greatest length and sends one byte at each interval, or nothing.
async fn announce_body(
    client: &Client,
    token: Option<&str>,
    interval: Option<Duration>,
    until: Instant,
) -> anyhow::Result<()> {
    let mut stream = client.connect_tls(false).await?;
    let credentials = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let head = format!(
        "POST /api/v1/namespaces/{WRITER_NAMESPACE}/configmaps HTTP/1.1\r\nHost: 127.0.0.1\r\n{}\
         Content-Type: application/json\r\nContent-Length: {BODY_BYTES_MAX}\r\n\r\n{{",
        credentials.unwrap_or_default()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = [0; 1024];
    while Instant::now() < until {
        tokio::select! {
            read = stream.read(&mut answer) => if read? == 0 { return Ok(()) },
            () = tokio::time::sleep(interval.unwrap_or(Duration::from_secs(1))) => {
                if interval.is_some() {
                    stream.write_all(b" ").await?;
                    stream.flush().await?;
                }
            }
        }
    }
    Ok(())
}

/// A15: patches of many operations, applies of 3 MB, merges of wide objects, copies that grow.
pub(super) fn a15() -> Load {
    Load {
        prepare: |scene, _| Box::pin(prepare_patched(scene)),
        ..load(|scene, until| Box::pin(patch(scene, until)))
    }
}

fn maps() -> String {
    format!("/api/v1/namespaces/{WRITER_NAMESPACE}/configmaps")
}

/// A value with so many members.
fn wide(prefix: &str, n_members: usize) -> Value {
    (0..n_members)
        .map(|n| (format!("{prefix}{n}"), Value::from("v")))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

async fn prepare_patched(scene: Arc<Scene>) -> anyhow::Result<()> {
    let mut admin = scene.admin().await?;
    let mut object = config_map("patched", 10);
    if let Some(data) = object.get_mut("data") {
        *data = wide("k", 40_000);
    }
    admin.create(&maps(), &object).await
}

async fn patch(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let path = format!("{}/patched?dryRun=All", maps());
    let request = |content_type, body: String| RawRequest {
        method: Method::PATCH,
        path: path.clone(),
        content_type,
        body: body.into(),
    };
    let operations: Vec<Value> = (0..10_000)
        .map(|n| json!({ "op": "add", "path": format!("/data/n{n}"), "value": "v" }))
        .collect();
    let copies: Vec<Value> = (0..10_000)
        .map(|n| json!({ "op": "copy", "from": "/data", "path": format!("/data/copy{n}") }))
        .collect();
    let tests: Vec<Value> = (0..10_000)
        .map(|n| json!({ "op": "test", "path": format!("/data/k{n}"), "value": "v" }))
        .collect();
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "patched" },
        "data": wide("applied", 130_000),
    });
    let mut apply = request("application/apply-patch+yaml", applied.to_string());
    apply.path = format!("{}/patched?fieldManager=attack&force=true", maps());
    let merged = json!({ "data": wide("k", 60_000) }).to_string();
    let requests = vec![
        request("application/json-patch+json", Value::from(operations).to_string()),
        request("application/json-patch+json", Value::from(copies).to_string()),
        request("application/json-patch+json", Value::from(tests).to_string()),
        apply,
        request("application/merge-patch+json", merged.clone()),
        request("application/strategic-merge-patch+json", merged),
    ];
    scene.flood(Some(WRITER), 8, requests, until).await;
    Ok(())
}

/// A16: alias bombs, keys of 1 MB, 100,000 labels, 150,000 faults.
pub(super) fn a16() -> Load {
    load(|scene, until| Box::pin(send_bombs(scene, until)))
}

async fn send_bombs(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let path = format!("{}?dryRun=All", maps());
    let request = |content_type, body: String| RawRequest {
        method: Method::POST,
        path: path.clone(),
        content_type,
        body: Bytes::from(body),
    };
    let mut bomb = String::from("apiVersion: v1\nkind: ConfigMap\na0: &a0 [x, x]\n");
    for level in 1..60 {
        let before = level - 1;
        let _ =
            writeln!(bomb, "a{level}: &a{level} [*a{before}, *a{before}, *a{before}, *a{before}]");
    }
    let long_key = "k".repeat(1 << 20);
    let labels = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "labels", "labels": wide("label", 100_000) },
    });
    let faults: serde_json::Map<String, Value> =
        (0..150_000).map(|n| (format!("/{n}"), Value::from("v"))).collect();
    let faults = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "faults" }, "data": faults,
    });
    let key = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "key" },
        "data": { long_key.as_str(): "v" },
    });
    let requests = vec![
        request("application/yaml", bomb),
        request("application/json", key.to_string()),
        request("application/json", labels.to_string()),
        request("application/json", faults.to_string()),
        request("application/json", "[".repeat(1 << 20)),
    ];
    scene.flood(Some(WRITER), 8, requests, until).await;
    Ok(())
}
