//! One connection from its first request to its end, and how long it may wait for the peer.

use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::connection::{Activity, Protocol};
use crate::limits::Limits;
use crate::shutdown::{Phase, Shutdown};

/// A connection that carries requests and can be asked to stop doing so.
pub(crate) trait Carrier: Future<Output = hyper::Result<()>> {
    /// Takes no further requests, and ends when those under way have.
    fn close(self: Pin<&mut Self>);
}

/// How a connection ended.
#[derive(Debug)]
pub(crate) enum End {
    /// One of the two sides closed it.
    Finished,
    /// It broke, or the peer did not speak the protocol.
    Failed(hyper::Error),
    /// The peer kept us waiting for too long.
    TimedOut(&'static str),
}

/// What a connection waits for. The number tells one wait from the next of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// The peer to take bytes that are being sent.
    Reader(u64),
    /// The rest of the head of a request, or the first request of all.
    Head(u64),
    /// The next request.
    Request(u64),
    /// The server itself: requests are being worked on.
    Service,
}

/// Runs a connection until it ends.
///
/// The timer is set when a wait for the peer begins that should be short. A wait for the next
/// request is measured by letting the timer run out and looking whether anything happened
/// meanwhile, so a busy connection never touches it; such a wait is noticed after one to two times
/// its limit.
pub(crate) async fn drive<C: Carrier>(
    carrier: C,
    activity: &Activity,
    protocol: Protocol,
    limits: &Limits,
    shutdown: &Shutdown,
) -> End {
    let mut carrier = pin!(carrier);
    let mut closing = pin!(shutdown.reached(Phase::Closing));
    let mut armed = observe(activity, protocol);
    let mut timer = pin!(sleep(limit(armed, limits)));
    let mut is_closing = false;
    std::future::poll_fn(|cx| {
        loop {
            if let Poll::Ready(result) = carrier.as_mut().poll(cx) {
                // Who leaves while nothing is under way owes nobody a goodbye.
                let is_at_rest = matches!(observe(activity, protocol), Wait::Request(_))
                    || (is_closing && activity.requests_active() == 0);
                return Poll::Ready(match result {
                    Err(error) if !is_at_rest => End::Failed(error),
                    Ok(()) | Err(_) => End::Finished,
                });
            }
            if !is_closing
                && (activity.is_close_requested() || closing.as_mut().poll(cx).is_ready())
            {
                if activity.requests_begun() == 0 {
                    return Poll::Ready(End::Finished);
                }
                is_closing = true;
                carrier.as_mut().close();
                continue;
            }
            let wait = observe(activity, protocol);
            if wait != armed && matches!(wait, Wait::Reader(_) | Wait::Head(_)) {
                armed = wait;
                timer.as_mut().reset(Instant::now() + limit(wait, limits));
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            match armed {
                Wait::Reader(_) if wait == armed => {
                    return Poll::Ready(End::TimedOut("the peer takes no bytes"));
                }
                Wait::Head(_) if wait == armed => {
                    return Poll::Ready(End::TimedOut("the peer sends no complete request"));
                }
                Wait::Request(_) if wait == armed && is_closing => {
                    return Poll::Ready(End::Finished);
                }
                Wait::Request(_) if wait == armed => {
                    is_closing = true;
                    carrier.as_mut().close();
                    timer.as_mut().reset(Instant::now() + limits.header_timeout);
                }
                Wait::Reader(_) | Wait::Head(_) | Wait::Request(_) | Wait::Service => {
                    armed = wait;
                    timer.as_mut().reset(Instant::now() + limit(wait, limits));
                }
            }
        }
    })
    .await
}

fn observe(activity: &Activity, protocol: Protocol) -> Wait {
    let requests = activity.requests_begun();
    // Frames of HTTP/2 that are no requests, such as pings, are bytes too.
    let is_reading_head = protocol == Protocol::Http1 && activity.is_reading_head();
    if activity.is_write_blocked() {
        Wait::Reader(activity.total_bytes_written())
    } else if activity.requests_active() > 0 {
        Wait::Service
    } else if requests == 0 || is_reading_head {
        Wait::Head(requests)
    } else {
        Wait::Request(requests)
    }
}

fn limit(wait: Wait, limits: &Limits) -> Duration {
    match wait {
        Wait::Reader(_) => limits.write_stall_timeout,
        Wait::Head(_) => limits.header_timeout,
        Wait::Request(_) | Wait::Service => limits.idle_timeout,
    }
}
