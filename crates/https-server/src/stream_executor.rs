//! Runs the streams of an HTTP/2 connection, and ends those whose peer takes nothing.
//!
//! The peer of an HTTP/2 connection decides for each stream how many bytes it takes. A connection that is alive can
//! therefore hold streams that are not, and a timeout of the socket does not see them.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::rt::Executor;
use tokio::time::{Instant, Sleep, sleep};

/// The side that a response body waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyWait {
    /// The service has nothing to send yet.
    Service,
    /// The body has handed over bytes, and is asked for more only when the peer takes these.
    Peer,
}

thread_local! {
    /// The reason why the response body that this thread polled last waits. hyper polls a body inside the future of
    /// its stream, so after the poll of a stream this is the state of its own body.
    static LAST_WAIT: Cell<Option<BodyWait>> = const { Cell::new(None) };
}

/// Records for this thread whether the response body that was polled last waits for the service or for the
/// peer.
pub(crate) fn record_body_wait(wait: BodyWait) {
    LAST_WAIT.set(Some(wait));
}

/// Spawns the futures of streams, and drops one whose peer takes nothing for `stall_timeout`. h2 then sends
/// RST_STREAM and drops what it had buffered of the stream.
#[derive(Clone)]
pub(crate) struct StreamExecutor {
    pub(crate) stall_timeout: Duration,
    /// Called for each stream that is ended.
    pub(crate) report_stall: Arc<dyn Fn() + Send + Sync>,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        tokio::spawn(run_stream(stream, self.stall_timeout, Arc::clone(&self.report_stall)));
    }
}

/// Runs a stream to its end, or until its peer has taken nothing for a while. Time in which the service has nothing to
/// send does not count, so a silent watch stays.
async fn run_stream<F: Future>(
    stream: F,
    stall_timeout: Duration,
    report_stall: Arc<dyn Fn() + Send + Sync>,
) {
    let mut stream = pin!(stream);
    let mut waits_for_peer = false;
    // Most streams never wait for their peer, and those need no timer.
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    std::future::poll_fn(|cx| {
        LAST_WAIT.set(None);
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        match LAST_WAIT.take() {
            // The body was not polled, so nothing has changed.
            None => {}
            Some(BodyWait::Service) => waits_for_peer = false,
            Some(BodyWait::Peer) => {
                waits_for_peer = true;
                match &mut timer {
                    None => timer = Some(Box::pin(sleep(stall_timeout))),
                    Some(timer) => timer.as_mut().reset(Instant::now() + stall_timeout),
                }
            }
        }
        let timer = timer.as_mut().filter(|_| waits_for_peer);
        if timer.is_some_and(|timer| timer.as_mut().poll(cx).is_ready()) {
            report_stall();
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Runs a stream whose body takes these steps, each `step` after the one before, and then never ends. Returns how
    /// long it ran, if it was ended.
    async fn run(steps: &'static [Option<BodyWait>], step: Duration) -> Option<Duration> {
        let n_stalls = Arc::new(AtomicUsize::new(0));
        let report: Arc<dyn Fn() + Send + Sync> = {
            let n_stalls = Arc::clone(&n_stalls);
            Arc::new(move || {
                n_stalls.fetch_add(1, Ordering::Relaxed);
            })
        };
        let mut pace = tokio::time::interval(step);
        pace.tick().await;
        let stream = async move {
            for wait in steps {
                if let Some(wait) = wait {
                    record_body_wait(*wait);
                }
                pace.tick().await;
            }
            std::future::pending::<()>().await;
        };
        let begun = Instant::now();
        let running = run_stream(stream, Duration::from_secs(30), report);
        let is_ended = tokio::time::timeout(Duration::from_secs(600), running).await.is_ok();
        assert_eq!(n_stalls.load(Ordering::Relaxed), usize::from(is_ended));
        is_ended.then(|| begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_if_its_peer_takes_nothing() {
        use BodyWait::{Peer, Service};
        let second = Duration::from_secs(1);
        let seconds = |own: Option<Duration>| own.map(|own| own.as_secs());
        assert_eq!(seconds(run(&[Some(Peer)], second).await), Some(30));
        // Each chunk that the peer takes begins the time anew.
        let slow = run(&[Some(Peer), Some(Peer), Some(Peer)], 20 * second).await;
        assert_eq!(seconds(slow), Some(70));
        // Polls without a poll of the body are no progress.
        assert_eq!(seconds(run(&[Some(Peer), None, None, None], 10 * second).await), Some(30));
        // The service, and a request that is not answered yet, may take as long as they want.
        assert_eq!(seconds(run(&[Some(Peer), Some(Service)], second).await), None);
        assert_eq!(seconds(run(&[None, None], second).await), None);
    }
}
