//! The shutdown of a server, in phases.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};

/// The default rate at which watches are ended. Each one reconnects to another server, which should
/// not get all at once.
const WATCHES_ENDED_PER_SECOND: usize = 200;

/// The number of batches a second in which watches are ended.
const PACE_STEPS_PER_SECOND: usize = 20;

/// The phase of a shutdown. Phases only move forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShutdownPhase {
    /// All requests are served.
    Serving,
    /// All requests are served, but readiness fails, so that load balancers choose other servers.
    Unready,
    /// No connection is accepted, and new requests on open ones are refused.
    Refusing,
    /// Connections are closed as soon as their active requests have ended.
    Closing,
    /// All connections are dropped, with or without active requests.
    Dropping,
}

/// The phase of a server, shared by all its tasks.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<ShutdownState>);

#[derive(Debug)]
struct ShutdownState {
    phase_sender: watch::Sender<ShutdownPhase>,
    n_connections: watch::Sender<usize>,
    n_watches: AtomicUsize,
    /// One permit lets one watch end; closing the semaphore ends all.
    watch_end_permits: Arc<Semaphore>,
}

/// The durations of the parts of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainPlan {
    /// How long requests are served after readiness fails.
    pub unready_delay: Duration,
    /// The time in which watches are ended. Zero ends them at a fixed rate.
    pub watch_termination_period: Duration,
    /// Upper bound on the time in which active requests end.
    pub request_drain_timeout: Duration,
}

/// How a shutdown ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainResult {
    /// Every active request got its response.
    Clean,
    /// The time ran out, and this many connections were dropped.
    Dropped(usize),
}

/// The registration of a running watch. Dropping it unregisters the watch.
#[derive(Debug)]
pub struct WatchRegistration(Arc<ShutdownState>);

/// The registration of an open connection.
#[derive(Debug)]
pub(crate) struct ConnectionRegistration(Arc<ShutdownState>);

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    /// A server in phase [`ShutdownPhase::Serving`].
    pub fn new() -> Self {
        Self(Arc::new(ShutdownState {
            phase_sender: watch::Sender::new(ShutdownPhase::Serving),
            n_connections: watch::Sender::new(0),
            n_watches: AtomicUsize::new(0),
            watch_end_permits: Arc::new(Semaphore::new(0)),
        }))
    }

    /// The phase that the shutdown has reached.
    pub fn current_phase(&self) -> ShutdownPhase {
        *self.0.phase_sender.borrow()
    }

    /// Moves to a later phase. Moving to an earlier one does nothing.
    pub fn advance_to_phase(&self, phase: ShutdownPhase) {
        self.0.phase_sender.send_if_modified(|current| {
            let is_later = phase > *current;
            *current = phase.max(*current);
            is_later
        });
    }

    /// Completes when `phase` or a later one is reached.
    pub fn wait_for_phase(
        &self,
        phase: ShutdownPhase,
    ) -> impl Future<Output = ()> + Send + 'static {
        let mut receiver = self.0.phase_sender.subscribe();
        async move {
            // The sender is gone only when the server is; that counts as reached.
            let _ = receiver.wait_for(|current| *current >= phase).await;
        }
    }

    /// Registers a watch, which must end when [`WatchRegistration::wait_for_watch_end`] completes.
    pub fn register_watch(&self) -> WatchRegistration {
        self.0.n_watches.fetch_add(1, Ordering::Relaxed);
        WatchRegistration(Arc::clone(&self.0))
    }

    /// The number of registered watches.
    pub fn n_watches(&self) -> usize {
        self.0.n_watches.load(Ordering::Relaxed)
    }

    /// The number of open connections.
    pub fn n_connections(&self) -> usize {
        *self.0.n_connections.borrow()
    }

    /// Ends the watches at 200 a second, or faster if `grace` requires it.
    pub async fn end_watches(&self, grace: Duration) {
        let step = Duration::from_secs(1) / PACE_STEPS_PER_SECOND as u32;
        let watches = self.n_watches();
        let per_step = watches_per_step(watches, grace);
        let mut steps_left = watches.div_ceil(per_step);
        while steps_left > 0 && self.n_watches() > 0 {
            self.0.watch_end_permits.add_permits(per_step);
            steps_left -= 1;
            if steps_left > 0 {
                sleep(step).await;
            }
        }
        // This also ends watches that were registered meanwhile.
        self.0.watch_end_permits.close();
    }

    /// Moves through all phases. After the watches have been told to end, active requests have
    /// `request_timeout` to end; the remaining connections are dropped.
    pub async fn drain(&self, plan: DrainPlan) -> DrainResult {
        self.advance_to_phase(ShutdownPhase::Unready);
        sleep(plan.unready_delay).await;
        self.advance_to_phase(ShutdownPhase::Refusing);
        self.end_watches(plan.watch_termination_period).await;
        self.advance_to_phase(ShutdownPhase::Closing);
        let mut connections = self.0.n_connections.subscribe();
        let deadline = Instant::now() + plan.request_drain_timeout;
        let drained = match tokio::time::timeout_at(
            deadline,
            connections.wait_for(|open| *open == 0),
        )
        .await
        {
            Ok(_) => DrainResult::Clean,
            Err(_) => DrainResult::Dropped(self.n_connections()),
        };
        self.advance_to_phase(ShutdownPhase::Dropping);
        // Dropping is immediate; the timeout guards against a task that never yields.
        let _ = timeout(Duration::from_secs(1), connections.wait_for(|open| *open == 0)).await;
        drained
    }

    pub(crate) fn register_connection(&self) -> ConnectionRegistration {
        self.0.n_connections.send_modify(|open| *open += 1);
        ConnectionRegistration(Arc::clone(&self.0))
    }
}

impl WatchRegistration {
    /// Completes when the watch must end.
    pub fn wait_for_watch_end(&self) -> impl Future<Output = ()> + Send + 'static {
        let watch_end_permits = Arc::clone(&self.0.watch_end_permits);
        async move {
            // Each permit ends one watch; a closed semaphore ends all.
            if let Ok(permit) = watch_end_permits.acquire().await {
                permit.forget();
            }
        }
    }
}

impl Drop for WatchRegistration {
    fn drop(&mut self) {
        self.0.n_watches.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for ConnectionRegistration {
    fn drop(&mut self) {
        self.0.n_connections.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// The number of watches to end in one step, at least one.
fn watches_per_step(watches: usize, grace: Duration) -> usize {
    let grace_steps = grace.as_millis() as usize * PACE_STEPS_PER_SECOND / 1000;
    let wanted = if grace_steps == 0 { 0 } else { watches.div_ceil(grace_steps) };
    wanted.max(WATCHES_ENDED_PER_SECOND / PACE_STEPS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_never_move_back() {
        let shutdown = Shutdown::new();
        shutdown.advance_to_phase(ShutdownPhase::Closing);
        shutdown.advance_to_phase(ShutdownPhase::Unready);
        assert_eq!(shutdown.current_phase(), ShutdownPhase::Closing);
    }

    #[test]
    fn pace() {
        let cases = [
            (0, 0, 10),
            (1_000, 0, 10),
            (1_000, 1_000, 50),
            (1_000, 60_000, 10),
            (10_000, 5_000, 100),
            (3, 1, 10), // a grace shorter than a step is as good as none
        ];
        for (watches, grace_ms, want) in cases {
            let got = watches_per_step(watches, Duration::from_millis(grace_ms));
            assert_eq!(got, want, "{watches} watches in {grace_ms} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn watches_end_at_the_pace() {
        let shutdown = Shutdown::new();
        let begin = Instant::now();
        let watches: Vec<_> = (0..400)
            .map(|_| {
                let watch = shutdown.register_watch();
                tokio::spawn(async move {
                    watch.wait_for_watch_end().await;
                    begin.elapsed()
                })
            })
            .collect();
        tokio::task::yield_now().await;
        shutdown.end_watches(Duration::ZERO).await;
        let mut last = Duration::ZERO;
        for watch in watches {
            last = last.max(watch.await.unwrap());
        }
        assert!((1_500..=2_500).contains(&last.as_millis()), "{last:?}");
        assert_eq!(shutdown.n_watches(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_comes_late_ends_at_once() {
        let shutdown = Shutdown::new();
        shutdown.end_watches(Duration::ZERO).await;
        shutdown.register_watch().wait_for_watch_end().await;
    }

    #[tokio::test(start_paused = true)]
    async fn draining_waits_for_connections_and_then_drops_them() {
        let plan = DrainPlan {
            unready_delay: Duration::from_secs(3),
            watch_termination_period: Duration::ZERO,
            request_drain_timeout: Duration::from_secs(60),
        };
        let begin = Instant::now();
        let idle = Shutdown::new();
        assert_eq!(idle.drain(plan).await, DrainResult::Clean);
        assert_eq!(begin.elapsed().as_secs(), 3);

        let busy = Shutdown::new();
        let connection = busy.register_connection();
        let begin = Instant::now();
        assert_eq!(busy.drain(plan).await, DrainResult::Dropped(1));
        assert!(begin.elapsed().as_secs() >= 63);
        assert_eq!(busy.current_phase(), ShutdownPhase::Dropping);
        drop(connection);
    }
}
