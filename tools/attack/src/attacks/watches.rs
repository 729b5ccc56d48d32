//! Attacks by watches, of which some are never read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;

use super::{Load, load};
use crate::scene::Scene;
use crate::users::{READER, WRITER, WRITER_NAMESPACE, config_map};

const N_CONNECTIONS: usize = 50;
const N_STREAMS: usize = 100;
/// The pause between two writes to the objects that are watched.
const WRITE_PAUSE: Duration = Duration::from_millis(20);

/// A10: 5,000 watches, of which a fifth is never read, while objects change.
pub(super) fn a10() -> Load {
    Load { duration: Duration::from_secs(10), ..load(|scene, until| Box::pin(watch(scene, until))) }
}

async fn watch(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    let writing = Arc::clone(&scene);
    tasks.spawn(
        async move { while write(&writing, until).await.is_err() && Instant::now() < until {} },
    );
    for connection in 0..N_CONNECTIONS {
        let client = scene.client.clone();
        tasks.spawn(async move {
            let Ok(streams) = client.streams(Some(READER), 64 << 10).await else { return };
            let mut watches = tokio::task::JoinSet::new();
            for _ in 0..N_STREAMS {
                let mut streams = streams.clone();
                watches.spawn(async move {
                    let path =
                        format!("/api/v1/namespaces/{WRITER_NAMESPACE}/configmaps?watch=true");
                    let opened = streams.open(Method::GET, &path, Bytes::new());
                    let Ok(Ok(mut answer)) = tokio::time::timeout_at(until.into(), opened).await
                    else {
                        return;
                    };
                    if connection % 5 == 0 {
                        // This watch stays open and is never read.
                        return tokio::time::sleep_until(until.into()).await;
                    }
                    loop {
                        let frame = answer.body_mut().frame();
                        match tokio::time::timeout_at(until.into(), frame).await {
                            Ok(Some(Ok(_))) => {}
                            _ => return,
                        }
                    }
                });
            }
            while watches.join_next().await.is_some() {}
        });
    }
    while tasks.join_next().await.is_some() {}
    Ok(())
}

/// Updates one object of 10 kB again and again.
async fn write(scene: &Scene, until: Instant) -> anyhow::Result<()> {
    let mut writer = scene.client.session(Some(WRITER)).await?;
    let maps = format!("/api/v1/namespaces/{WRITER_NAMESPACE}/configmaps");
    let mut number = 0;
    writer.json(Method::POST, &maps, &config_map("changing", 10_000)).await?;
    while Instant::now() < until {
        number += 1;
        let object = config_map("changing", 10_000 + number % 100);
        writer.json(Method::PUT, &format!("{maps}/changing"), &object).await?;
        tokio::time::sleep(WRITE_PAUSE).await;
    }
    Ok(())
}
