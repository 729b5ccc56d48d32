//! Attacks by lists: answers that nobody reads, and selectors that take long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Load, load};
use crate::http2_frames::{END_HEADERS, END_STREAM, HEADERS, RawConnection, frame, get};
use crate::scene::{RawRequest, Scene};
use crate::users::{READER, config_map};

/// The number of the setting of the window with which streams begin.
const INITIAL_WINDOW_SIZE: u16 = 4;

async fn create_namespace(scene: &Scene, name: &str) -> anyhow::Result<()> {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    scene.admin().await?.create("/api/v1/namespaces", &namespace).await
}

/// A9: 40 streams of one connection ask for lists of 50 MB and read nothing.
pub(super) fn a9() -> Load {
    Load {
        prepare: |scene, _| Box::pin(prepare_large_objects(scene)),
        duration: Duration::from_secs(8),
        ..load(|scene, until| Box::pin(leave_lists_unread(scene, until)))
    }
}

async fn prepare_large_objects(scene: Arc<Scene>) -> anyhow::Result<()> {
    create_namespace(&scene, "large").await?;
    let object = |number| config_map(&format!("large-{number}"), 100_000);
    scene.create_all("/api/v1/namespaces/large/configmaps", 500, object).await
}

async fn leave_lists_unread(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    while Instant::now() < until {
        let settings = [(INITIAL_WINDOW_SIZE, 0)];
        let Ok(mut connection) = RawConnection::open(&scene.client, &settings).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let block = get("/api/v1/namespaces/large/configmaps", Some(READER));
        for stream in 0..40 {
            let request = frame(HEADERS, END_HEADERS | END_STREAM, 2 * stream + 1, &block);
            if connection.send(&request).await.is_err() {
                break;
            }
        }
        connection.wait_for_end(until).await;
    }
    Ok(())
}

/// A11: lists of 50,000 objects with selectors of thousands of terms.
pub(super) fn a11() -> Load {
    Load {
        prepare: |scene, _| Box::pin(prepare_many_objects(scene)),
        ..load(|scene, until| Box::pin(select(scene, until)))
    }
}

async fn prepare_many_objects(scene: Arc<Scene>) -> anyhow::Result<()> {
    create_namespace(&scene, "many").await?;
    let object = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": format!("many-{number}"),
                "labels": { "a": "b", "number": format!("n{number}") },
            },
        })
    };
    scene.create_all("/api/v1/namespaces/many/configmaps", 50_000, object).await
}

/// Selectors of 10,000 terms, which are longer than most servers accept, and selectors of about the longest target
/// that they accept.
async fn select(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let base = "/api/v1/namespaces/many/configmaps";
    let labels = |n_terms| {
        let terms: Vec<String> = (0..n_terms).map(|n| format!("a!%3Dx{n}")).collect();
        RawRequest::get(format!("{base}?labelSelector={}", terms.join(",")))
    };
    let fields = |n_terms| {
        let terms: Vec<String> = (0..n_terms).map(|n| format!("metadata.name!%3Dx{n}")).collect();
        RawRequest::get(format!("{base}?fieldSelector={}", terms.join(",")))
    };
    let values = |n_values| {
        let values: Vec<String> = (0..n_values).map(|n| format!("x{n}")).collect();
        RawRequest::get(format!("{base}?labelSelector=number%20in%20({})", values.join(",")))
    };
    let requests =
        vec![labels(10_000), fields(10_000), labels(650), fields(300), values(1_300), labels(1)];
    scene.flood(Some(READER), 16, requests, until).await;
    Ok(())
}
