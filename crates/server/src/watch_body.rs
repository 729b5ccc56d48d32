//! The response body of a watch: events as they happen, until the client, its time limit or the server ends
//! it.

use std::sync::Arc;
use std::time::Duration;

use api_resources::Resource;
use bytes::Bytes;
use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use https_server::{Body, ChunkSender};
use prometheus::{IntCounter, IntGauge};
use tokio::time::Instant;

use crate::request_record::RequestRecord;
use crate::respond::ResponseFormat;
use crate::rest::{WatchEvent, Watcher};
use crate::server_state::ServerState;

/// Pending events are sent in one chunk, up to about this many bytes. Later events wait in the store, which keeps the
/// history anyway.
const CHUNK_BYTES: usize = 32 * 1024;

/// When a watch ends: after the time that the client sets, or after a random time between the minimum and
/// twice the minimum, so that clients that connected together do not reconnect together.
pub(crate) fn watch_end_time(server: &ServerState, watch_timeout_seconds: i64) -> Instant {
    let least = server.api_settings.watch_duration_min;
    let length = match watch_timeout_seconds {
        0 => {
            let [high, low] = server.random_bytes::<2>();
            let part = f64::from(u16::from_be_bytes([high, low])) / f64::from(u16::MAX);
            least + least.mul_f64(part)
        }
        seconds => Duration::from_secs(u64::try_from(seconds).unwrap_or_default().min(86_400)),
    };
    Instant::now() + length
}

/// The response to a watch. Its events are read and encoded when the client takes them.
pub(crate) fn respond_with_watch(
    server: &Arc<ServerState>,
    watcher: Watcher,
    format: ResponseFormat,
    record: &mut RequestRecord,
) -> Response<Body> {
    let registration = server.shutdown.register_watch();
    let stream_record = record.record_watch_stream_begin(server);
    let server = Arc::clone(server);
    let body = Body::from_producer(|sender| async move {
        let running = RunningWatchGuard::count_running_watch(&server, &watcher.resource);
        tokio::select! {
            () = send_watch_events(&server, watcher, format, &running, &sender) => {}
            () = registration.wait_for_watch_end() => {}
        }
        drop((running, stream_record));
    });
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Sends events until the watch ends.
async fn send_watch_events(
    server: &ServerState,
    mut watcher: Watcher,
    format: ResponseFormat,
    running: &RunningWatchGuard,
    sender: &ChunkSender,
) {
    let resource = Arc::clone(&watcher.resource);
    let encode = |event: WatchEvent, is_first: bool| -> Bytes {
        running.sent_events_counter.inc();
        format.encode_shared_watch_event(&server.encoded_event_cache, &resource, event, is_first)
    };
    let mut is_first = true;
    while let Ok(event) = watcher.next().await {
        let mut chunk = encode(event, is_first);
        is_first = false;
        if watcher.has_pending_events() {
            let mut events = Vec::with_capacity(CHUNK_BYTES);
            events.extend_from_slice(&chunk);
            while events.len() < CHUNK_BYTES && watcher.has_pending_events() {
                let Ok(event) = watcher.next().await else { break };
                events.extend_from_slice(&encode(event, false));
            }
            chunk = events.into();
        }
        sender.send(chunk).await;
    }
}

/// Counts a watch as running until it is dropped, and counts its events.
struct RunningWatchGuard {
    running_watches_gauge: IntGauge,
    sent_events_counter: IntCounter,
}

impl RunningWatchGuard {
    fn count_running_watch(server: &ServerState, resource: &Resource) -> Self {
        let (group, version, plural) = (&*resource.group, &*resource.version, &*resource.plural);
        let metrics = &server.metrics;
        let running =
            metrics.long_running_requests.with_label_values(&["WATCH", group, version, plural]);
        let sent_events = metrics.sent_watch_events.with_label_values(&[group, version, plural]);
        running.inc();
        Self { running_watches_gauge: running, sent_events_counter: sent_events }
    }
}

impl Drop for RunningWatchGuard {
    fn drop(&mut self) {
        self.running_watches_gauge.dec();
    }
}
