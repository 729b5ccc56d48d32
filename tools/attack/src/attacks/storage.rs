//! Attacks on what the store needs: descriptors, disk, and room for objects that wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::json;

use super::{Load, load};
use crate::scene::Scene;
use crate::server_process::StartOptions;
use crate::users::{WRITER, WRITER_NAMESPACE, config_map};

/// The descriptors of the server.
const DESCRIPTORS_MAX: u64 = 512;
/// The connections that try to use them up.
const N_CONNECTIONS: usize = 2_000;

/// A13: all descriptors are used up while a writer makes the store begin new files.
pub(super) fn a13() -> Load {
    Load {
        start: |_, _, _| {
            Ok(StartOptions { descriptors_max: Some(DESCRIPTORS_MAX), ..StartOptions::default() })
        },
        duration: Duration::from_secs(10),
        ..load(|scene, until| Box::pin(use_up_descriptors(scene, until)))
    }
}

async fn use_up_descriptors(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..N_CONNECTIONS / 10 {
        let client = scene.client.clone();
        tasks.spawn(async move {
            let mut held = Vec::new();
            for _ in 0..10 {
                let opened = tokio::time::timeout_at(until.into(), client.connect_tls(false));
                held.extend(opened.await.ok().and_then(Result::ok));
            }
            tokio::time::sleep_until(until.into()).await;
        });
    }
    // Objects of 1 MB that are replaced fill file after file.
    let writing = Arc::clone(&scene);
    tasks.spawn(async move {
        let Ok(mut writer) = writing.client.session(Some(WRITER)).await else { return };
        let maps = format!("/api/v1/namespaces/{WRITER_NAMESPACE}/configmaps");
        let object = config_map("rotating", 900_000);
        let _ = writer.json(Method::POST, &maps, &object).await;
        while Instant::now() < until {
            if writer.json(Method::PUT, &format!("{maps}/rotating"), &object).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    while tasks.join_next().await.is_some() {}
    // After the attack the store must take writes again.
    let mut admin = scene.admin().await?;
    let path = format!("/api/v1/namespaces/{WRITER_NAMESPACE}/configmaps");
    let answer =
        admin.json(Method::POST, &path, &config_map(&format!("after-{}", scene.run), 10)).await?;
    if answer.code != 201 {
        scene.differ(format!("a write after the attack: {}", answer.code));
    }
    Ok(())
}

/// A21: 10,000 objects that wait for an initializer which never acts.
pub(super) fn a21() -> Load {
    Load {
        prepare: |scene, _| Box::pin(prepare_initializer(scene)),
        clean: |scene, _| Box::pin(remove_waiting(scene)),
        duration: Duration::from_secs(8),
        ..load(|scene, until| Box::pin(wait_for_initializers(scene, until)))
    }
}

/// Registers an initializer for secrets, which the innocents do not write.
async fn prepare_initializer(scene: Arc<Scene>) -> anyhow::Result<()> {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1alpha1", "kind": "InitializerConfiguration",
        "metadata": { "name": "never" },
        "initializers": [{
            "name": "never.attack.example.com",
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"] }],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1alpha1/initializerconfigurations";
    scene.admin().await?.create(path, &configuration).await
}

async fn wait_for_initializers(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for connection in 0..100 {
        let client = scene.client.clone();
        let run = scene.run;
        tasks.spawn(async move {
            let Ok(streams) = client.streams(Some(WRITER), 64 << 10).await else { return };
            let mut creates = tokio::task::JoinSet::new();
            for stream in 0..100 {
                let mut streams = streams.clone();
                creates.spawn(async move {
                    let secret = json!({
                        "apiVersion": "v1", "kind": "Secret",
                        "metadata": { "name": format!("waiting-{run}-{connection}-{stream}") },
                    });
                    let path = format!("/api/v1/namespaces/{WRITER_NAMESPACE}/secrets");
                    let body = Bytes::from(secret.to_string());
                    let sent = streams.send(Method::POST, &path, body);
                    let _ = tokio::time::timeout_at(until.into(), sent).await;
                });
            }
            while creates.join_next().await.is_some() {}
        });
    }
    while tasks.join_next().await.is_some() {}
    Ok(())
}

async fn remove_waiting(scene: Arc<Scene>) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{WRITER_NAMESPACE}/secrets?includeUninitialized=true");
    scene.admin().await?.send(Method::DELETE, &path, "application/json", Bytes::new()).await?;
    Ok(())
}
