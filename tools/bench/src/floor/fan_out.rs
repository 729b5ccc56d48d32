//! The delivery of events: many watches on few connections of HTTP/2, while objects are created.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::task::LocalSet;

use crate::floor::column::Column;
use crate::floor::report::Measurement;
use crate::server::populate::config_map;
use crate::server::process::processor_time;

/// The longest time until every watcher has every event.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(60);
/// What a connection and a stream may receive before the client reads it.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// The path whose objects are watched in a round. Each round has a namespace of its own, without older objects.
pub(crate) fn event_path(round: usize) -> String {
    format!("/api/v1/namespaces/fan-out-{round}/configmaps")
}

/// Measures the CPU time of the server for one delivery of one event to one watcher. The creation of the objects
/// is part of it.
///
/// # Errors
/// A watch is refused, or events do not arrive.
pub(crate) async fn measure(
    column: &Column,
    round: usize,
    n_watches_each: usize,
    n_events: usize,
) -> anyhow::Result<Measurement> {
    let path = event_path(round);
    let mut writer = column.client.connect().await?;
    if !column.is_floor {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": format!("fan-out-{round}") },
        });
        column.create(&mut writer, "/api/v1/namespaces", &namespace).await?;
    }
    let tasks = LocalSet::new();
    let n_received = Rc::new(Cell::new(0));
    let n_watches = column.watch_tokens.len() * n_watches_each;
    let measured = async {
        let mut senders = Vec::new();
        for token in &column.watch_tokens {
            let mut sender = connect(column).await?;
            for _ in 0..n_watches_each {
                let watch = open_watch(&mut sender, &path, token).await?;
                tokio::task::spawn_local(count_events(watch, Rc::clone(&n_received)));
            }
            senders.push(sender);
        }
        let cpu = processor_time(column.pid)?;
        let start = Instant::now();
        for number in 0..n_events {
            let object = config_map(&format!("watched-{number:09}"));
            column.create(&mut writer, &path, &object).await?;
        }
        let n_expected = n_events * n_watches;
        while n_received.get() < n_expected {
            ensure!(
                start.elapsed() < DELIVERY_TIMEOUT,
                "{} of {n_expected} events arrived",
                n_received.get()
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let elapsed = start.elapsed();
        let cpu = processor_time(column.pid)?.saturating_sub(cpu);
        Ok(Measurement {
            per_second: n_expected as f64 / elapsed.as_secs_f64(),
            server_time: cpu.div_f64(n_expected as f64),
        })
    };
    tasks.run_until(measured).await
}

type Sender = http2::SendRequest<Empty<Bytes>>;

async fn connect(column: &Column) -> anyhow::Result<Sender> {
    let stream = TokioIo::new(column.client.connect_http2().await?);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES);
    let (sender, connection) = builder.handshake(stream).await?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn open_watch(sender: &mut Sender, path: &str, token: &str) -> anyhow::Result<Incoming> {
    let request = Request::get(format!("https://127.0.0.1{path}?watch=true"))
        .header("authorization", format!("Bearer {token}"))
        .header("accept", "application/json")
        .body(Empty::new())?;
    sender.ready().await?;
    let answer = sender.send_request(request).await.context("a watch was not answered")?;
    ensure!(answer.status() == 200, "a watch was answered {}", answer.status());
    Ok(answer.into_body())
}

/// Counts the lines of a watch, each of which is an event, until the watch ends.
async fn count_events(mut watch: Incoming, n_received: Rc<Cell<usize>>) {
    while let Some(Ok(frame)) = watch.frame().await {
        let bytes = frame.into_data().unwrap_or_default();
        n_received.set(n_received.get() + memchr::memchr_iter(b'\n', &bytes).count());
    }
}
