//! The body of a watch: events as they happen, until the client, the time or the server ends it.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use https_server::Body;
use store::Store;
use tokio::time::Instant;

use crate::record::Record;
use crate::respond::Form;
use crate::rest::Watcher;
use crate::server_state::ServerState;

/// How many chunks may wait for a client that reads slowly. What comes after them waits in the
/// store, which keeps the history anyway. A chunk may hold an object of more than a megabyte.
const CHUNKS_MAX: usize = 1;
/// Events that are ready together are sent together, up to about so many bytes.
const CHUNK_BYTES: usize = 32 * 1024;

/// How long a watch waits for a client that takes nothing.
const STALLED_MAX: Duration = Duration::from_secs(60);

/// When a watch ends: as the client says, or some time between the least and twice that, so that
/// clients that came together do not come back together.
pub(crate) fn end<S>(server: &ServerState<S>, timeout_seconds: u64) -> Instant {
    let least = server.options.min_watch;
    let length = match timeout_seconds {
        0 => {
            let [high, low] = server.random::<2>();
            let part = f64::from(u16::from_be_bytes([high, low])) / f64::from(u16::MAX);
            least + least.mul_f64(part)
        }
        seconds => Duration::from_secs(seconds.min(86_400)),
    };
    Instant::now() + length
}

/// The answer to a watch that has begun.
pub(crate) fn respond<S: Store>(
    server: &Arc<ServerState<S>>,
    mut watcher: Watcher<S>,
    form: Form,
    record: &mut Record,
) -> Response<Body> {
    let (sender, body) = Body::channel(CHUNKS_MAX);
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    let registration = server.shutdown.register_watch();
    let stream_record = record.stream_begun(server);
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let resource = Arc::clone(&watcher.resource);
        let labels = [resource.group.as_str(), &resource.version, &resource.plural];
        let running = server
            .metrics
            .long_running
            .with_label_values(&["WATCH", labels[0], labels[1], labels[2]]);
        let told = server.metrics.watch_events.with_label_values(&labels);
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
            let mut chunk = form.event(&resource, &event, is_first);
            is_first = false;
            told.inc();
            while chunk.len() < CHUNK_BYTES && watcher.is_ready() {
                let Ok(event) = watcher.next().await else { break };
                chunk.extend(form.event(&resource, &event, false));
                told.inc();
            }
            // A peer that takes nothing does not keep what it is sent in memory.
            let is_sent = tokio::select! {
                sent = sender.send(chunk.into()) => sent.is_ok(),
                () = &mut ended => false,
                () = tokio::time::sleep(STALLED_MAX) => false,
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
