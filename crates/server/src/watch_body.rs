//! The response body of a watch: events as they happen, until the client, its time limit or the server ends
//! it.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use https_server::Body;
use tokio::time::Instant;

use crate::request_record::RequestRecord;
use crate::respond::ResponseFormat;
use crate::rest::Watcher;
use crate::server_state::ServerState;

/// The most unsent chunks of a client that reads slowly. Later events wait in the store, which keeps the
/// history anyway. A chunk may have an object of more than a megabyte.
const CHUNKS_MAX: usize = 1;
/// Pending events are sent in one chunk, up to about this many bytes.
const CHUNK_BYTES: usize = 32 * 1024;

/// How long a watch waits for a client that reads nothing.
const STALLED_TIME_MAX: Duration = Duration::from_secs(60);

/// When a watch ends: after the time that the client sets, or after a random time between the minimum and
/// twice the minimum, so that clients that connected together do not reconnect together.
pub(crate) fn watch_end_time(server: &ServerState, timeout_seconds: u64) -> Instant {
    let least = server.api_settings.watch_duration_min;
    let length = match timeout_seconds {
        0 => {
            let [high, low] = server.random_bytes::<2>();
            let part = f64::from(u16::from_be_bytes([high, low])) / f64::from(u16::MAX);
            least + least.mul_f64(part)
        }
        seconds => Duration::from_secs(seconds.min(86_400)),
    };
    Instant::now() + length
}

/// The response to a watch, whose body a task sends.
pub(crate) fn respond_with_watch(
    server: &Arc<ServerState>,
    mut watcher: Watcher,
    format: ResponseFormat,
    record: &mut RequestRecord,
) -> Response<Body> {
    let (sender, body) = Body::channel(CHUNKS_MAX);
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    let registration = server.shutdown.register_watch();
    let stream_record = record.record_stream(server);
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let resource = Arc::clone(&watcher.resource);
        let (group, version, plural) = (&*resource.group, &*resource.version, &*resource.plural);
        let running = server
            .metrics
            .long_running_requests
            .with_label_values(&["WATCH", group, version, plural]);
        let sent_events = server.metrics.watch_events.with_label_values(&[group, version, plural]);
        running.inc();
        let mut is_first = true;
        let ended = registration.wait_for_end();
        tokio::pin!(ended);
        loop {
            let event = tokio::select! {
                event = watcher.next() => event,
                () = &mut ended => break,
                () = sender.wait_for_disconnect() => break,
            };
            let Ok(event) = event else { break };
            let mut chunk = format.encode_event(&resource, &event, is_first);
            is_first = false;
            sent_events.inc();
            while chunk.len() < CHUNK_BYTES && watcher.has_pending_events() {
                let Ok(event) = watcher.next().await else { break };
                chunk.extend(format.encode_event(&resource, &event, false));
                sent_events.inc();
            }
            // A client that reads nothing must not keep unsent chunks in memory.
            let is_sent = tokio::select! {
                sent = sender.send(chunk.into()) => sent.is_ok(),
                () = &mut ended => false,
                () = tokio::time::sleep(STALLED_TIME_MAX) => false,
            };
            if !is_sent {
                break;
            }
        }
        running.dec();
        drop((watcher, registration, stream_record));
    });
    response
}
