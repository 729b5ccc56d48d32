//! Runs one connection to its end and enforces the timeouts for the peer.

use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::{Instant, sleep};

use crate::activity_stream::CollectedWritesFlusher;
use crate::connection::{ConnectionActivity, HttpProtocol};
use crate::limits::Limits;
use crate::shutdown::{Shutdown, ShutdownPhase};

/// An HTTP/1.1 or HTTP/2 connection that can be closed gracefully.
pub(crate) trait HttpConnection: Future<Output = hyper::Result<()>> {
    /// Accepts no further requests, and ends once the active ones have ended.
    fn close(self: Pin<&mut Self>);
}

/// How a connection ended.
#[derive(Debug)]
pub(crate) enum ConnectionEnd {
    /// One of the two sides closed it.
    Finished,
    /// The connection broke, or the peer violated the protocol.
    Failed(hyper::Error),
    /// The peer exceeded a timeout.
    TimedOut(&'static str),
}

/// The event that a connection waits for. The number distinguishes one wait from the next of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionWait {
    /// The peer must read bytes that are being sent.
    Reader(u64),
    /// The peer must send the rest of a request head, or its first request.
    Head(u64),
    /// The peer may send another request.
    Request(u64),
    /// The server processes requests.
    Service,
}

/// The state of a connection that does not depend on the HTTP version.
pub(crate) struct RunningConnection<'a, S, E> {
    pub(crate) collected_writes_flusher: CollectedWritesFlusher<S>,
    pub(crate) connection_activity: &'a ConnectionActivity,
    pub(crate) protocol: HttpProtocol,
    pub(crate) limits: &'a Limits,
    pub(crate) shutdown: &'a Shutdown,
    /// Completes when the connection is closed for another one.
    pub(crate) eviction_future: E,
}

impl<S: AsyncWrite + Unpin, E: Future<Output = ()>> RunningConnection<'_, S, E> {
    /// Runs a connection until it ends, or until it is evicted.
    ///
    /// The timer is set when a wait begins that should be short. The idle wait for the next request is
    /// measured without resetting the timer: when the timer fires and no request has begun since, the
    /// connection is idle. A busy connection therefore never touches the timer, and an idle one is
    /// noticed after one to two times its limit.
    ///
    /// Small writes are collected while the connection is polled, and flushed afterwards. After an event of a watch the flush
    /// waits for one turn of the other tasks, because they often have the same event for other watches of the connection.
    pub(crate) async fn run<C: HttpConnection>(self, http_connection: C) -> ConnectionEnd {
        let Self {
            collected_writes_flusher: collected_writes,
            connection_activity: activity,
            protocol,
            limits,
            shutdown,
            eviction_future: eviction,
        } = self;
        let mut eviction = pin!(eviction);
        let mut http_connection = pin!(http_connection);
        let mut closing = pin!(shutdown.wait_for_phase(ShutdownPhase::Closing));
        let mut timed_wait = current_connection_wait(activity, protocol);
        let mut timer = pin!(sleep(timeout_of_wait(timed_wait, false, limits)));
        let mut is_closing = false;
        let mut closing_deadline = None;
        let mut is_flush_deferred = false;
        std::future::poll_fn(|cx| {
            collected_writes.begin_connection_poll();
            loop {
                if let Poll::Ready(result) = http_connection.as_mut().poll(cx) {
                    // An error between requests is not a failure: the peer may disconnect then.
                    let is_at_rest = matches!(
                        current_connection_wait(activity, protocol),
                        ConnectionWait::Request(_)
                    ) || (is_closing && activity.n_active_requests() == 0);
                    return Poll::Ready(match result {
                        Err(error) if !is_at_rest => ConnectionEnd::Failed(error),
                        Ok(()) | Err(_) => ConnectionEnd::Finished,
                    });
                }
                // An HTTP/1.1 response has the header `Connection: close` itself. Hyper would close the
                // connection at once, even while the client still sends its body.
                let is_close_requested =
                    activity.is_close_requested() && protocol == HttpProtocol::Http2;
                if eviction.as_mut().poll(cx).is_ready() {
                    // An HTTP/2 peer learns with GOAWAY that the connection takes no requests, if it reads.
                    http_connection.as_mut().close();
                    let _ = http_connection.as_mut().poll(cx);
                    let _ = collected_writes.poll_flush(cx);
                    return Poll::Ready(ConnectionEnd::Finished);
                }
                is_flush_deferred = !is_flush_deferred && activity.take_expects_more_watch_events();
                match is_flush_deferred {
                    // This task comes after those that are ready to run now.
                    true => cx.waker().wake_by_ref(),
                    // If the flush has to wait, it wakes this task.
                    false => drop(collected_writes.poll_flush(cx)),
                }
                if !is_closing && (is_close_requested || closing.as_mut().poll(cx).is_ready()) {
                    if activity.n_begun_requests() == 0 {
                        return Poll::Ready(ConnectionEnd::Finished);
                    }
                    is_closing = true;
                    http_connection.as_mut().close();
                    // The server drops an idle connection whose peer ignores the graceful close.
                    timed_wait = current_connection_wait(activity, protocol);
                    timer
                        .as_mut()
                        .reset(Instant::now() + timeout_of_wait(timed_wait, is_closing, limits));
                    continue;
                }
                if activity.has_sent_bytes_without_request() {
                    // Settings and pings, for example, which cost the server more than the peer.
                    return Poll::Ready(ConnectionEnd::TimedOut(
                        "the peer sends much and no request",
                    ));
                }
                if !is_closing || activity.n_active_requests() > 0 {
                    closing_deadline = None;
                } else if Instant::now()
                    >= *closing_deadline.get_or_insert_with(|| Instant::now() + limits.idle_timeout)
                {
                    // The server drops a peer that sends only other frames.
                    return Poll::Ready(ConnectionEnd::Finished);
                }
                let wait = current_connection_wait(activity, protocol);
                if wait != timed_wait
                    && matches!(wait, ConnectionWait::Reader(_) | ConnectionWait::Head(_))
                {
                    timed_wait = wait;
                    timer
                        .as_mut()
                        .reset(Instant::now() + timeout_of_wait(wait, is_closing, limits));
                }
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                match timed_wait {
                    ConnectionWait::Reader(_) if wait == timed_wait => {
                        return Poll::Ready(ConnectionEnd::TimedOut("the peer takes no bytes"));
                    }
                    ConnectionWait::Head(_) if wait == timed_wait => {
                        return Poll::Ready(ConnectionEnd::TimedOut(
                            "the peer sends no complete request",
                        ));
                    }
                    ConnectionWait::Request(_) if wait == timed_wait && is_closing => {
                        return Poll::Ready(ConnectionEnd::Finished);
                    }
                    ConnectionWait::Request(_) if wait == timed_wait => {
                        is_closing = true;
                        http_connection.as_mut().close();
                        timer.as_mut().reset(Instant::now() + limits.header_timeout);
                    }
                    ConnectionWait::Reader(_)
                    | ConnectionWait::Head(_)
                    | ConnectionWait::Request(_)
                    | ConnectionWait::Service => {
                        timed_wait = wait;
                        timer
                            .as_mut()
                            .reset(Instant::now() + timeout_of_wait(wait, is_closing, limits));
                    }
                }
            }
        })
        .await
    }
}

fn current_connection_wait(
    activity: &ConnectionActivity,
    protocol: HttpProtocol,
) -> ConnectionWait {
    let requests = activity.n_begun_requests();
    // In HTTP/2, frames that are no requests, such as pings, count as bytes too.
    let is_reading_head = protocol == HttpProtocol::Http1 && activity.is_reading_request_head();
    if requests == 0 {
        // Frames that the server answers, such as settings, do not put off the first request.
        ConnectionWait::Head(requests)
    } else if activity.is_write_blocked() {
        ConnectionWait::Reader(activity.n_bytes_written())
    } else if activity.n_active_requests() > 0 {
        ConnectionWait::Service
    } else if is_reading_head {
        ConnectionWait::Head(requests)
    } else {
        ConnectionWait::Request(requests)
    }
}

fn timeout_of_wait(wait: ConnectionWait, is_closing: bool, limits: &Limits) -> Duration {
    match wait {
        ConnectionWait::Reader(_) => limits.write_stall_timeout,
        ConnectionWait::Head(_) => limits.header_timeout,
        ConnectionWait::Request(_) if is_closing => limits.header_timeout,
        ConnectionWait::Request(_) | ConnectionWait::Service => limits.idle_timeout,
    }
}
