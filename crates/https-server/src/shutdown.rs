//! The way from serving to gone, in phases.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};

/// How many watches are ended in a second if nothing asks for more. Each one comes back as a new
/// watch on some other server, which should not get them all at once.
const WATCHES_ENDED_PER_SECOND: usize = 200;

/// How many times in a second watches are let go.
const PACE_STEPS_PER_SECOND: usize = 20;

/// Where a server is on its way down. Phases only ever move forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Everything is answered.
    Serving,
    /// Everything is answered, but readiness is denied, so that load balancers look elsewhere.
    Unready,
    /// No connection is accepted, and new requests on open ones are to be refused.
    Refusing,
    /// Connections are closed as soon as what is under way in them has ended.
    Closing,
    /// Connections are dropped.
    Dropping,
}

/// The phase of a server, shared by all who act on it.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    phase: watch::Sender<Phase>,
    connections: watch::Sender<usize>,
    watches: AtomicUsize,
    /// A permit lets one watch end; closing lets all of them.
    watch_ends: Arc<Semaphore>,
}

/// How long each part of a shutdown may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainPlan {
    /// How long requests are still served after readiness is denied.
    pub delay: Duration,
    /// Within what time watches are ended. Zero ends them at a fixed pace.
    pub watch_grace: Duration,
    /// How long requests that are under way may take to end.
    pub request_timeout: Duration,
}

/// How a shutdown ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every request that was under way got its answer.
    Clean,
    /// Time ran out, and this many connections were dropped.
    Dropped(usize),
}

/// The registration of a running watch. Dropping it says that the watch has ended.
#[derive(Debug)]
pub struct WatchEnd(Arc<Shared>);

/// The registration of an open connection.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<Shared>);

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    /// A server that is serving.
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            phase: watch::Sender::new(Phase::Serving),
            connections: watch::Sender::new(0),
            watches: AtomicUsize::new(0),
            watch_ends: Arc::new(Semaphore::new(0)),
        }))
    }

    /// The phase at this moment.
    pub fn phase(&self) -> Phase {
        *self.0.phase.borrow()
    }

    /// Moves to a later phase. Moving to an earlier one does nothing.
    pub fn advance(&self, phase: Phase) {
        self.0.phase.send_if_modified(|current| {
            let is_later = phase > *current;
            *current = phase.max(*current);
            is_later
        });
    }

    /// Completes when `phase` or a later one is reached.
    pub fn reached(&self, phase: Phase) -> impl Future<Output = ()> + Send + 'static {
        let mut receiver = self.0.phase.subscribe();
        async move {
            // The sender can only be gone if nobody is left to shut down; that counts as reached.
            let _ = receiver.wait_for(|current| *current >= phase).await;
        }
    }

    /// Registers a watch, which is to end when [`WatchEnd::ended`] completes.
    pub fn watch(&self) -> WatchEnd {
        self.0.watches.fetch_add(1, Ordering::Relaxed);
        WatchEnd(Arc::clone(&self.0))
    }

    /// How many watches are registered.
    pub fn watches(&self) -> usize {
        self.0.watches.load(Ordering::Relaxed)
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        *self.0.connections.borrow()
    }

    /// Tells the watches to end: 200 in a second, or faster if `grace` is set and asks for it.
    pub async fn end_watches(&self, grace: Duration) {
        let step = Duration::from_secs(1) / PACE_STEPS_PER_SECOND as u32;
        let watches = self.watches();
        let per_step = watches_per_step(watches, grace);
        let mut steps_left = watches.div_ceil(per_step);
        while steps_left > 0 && self.watches() > 0 {
            self.0.watch_ends.add_permits(per_step);
            steps_left -= 1;
            if steps_left > 0 {
                sleep(step).await;
            }
        }
        // Whatever began to watch meanwhile has had its notice.
        self.0.watch_ends.close();
    }

    /// Walks through all phases. Requests that are under way have `request_timeout` to end once
    /// the watches were told to; what is left then is dropped.
    pub async fn drain(&self, plan: DrainPlan) -> Drained {
        self.advance(Phase::Unready);
        sleep(plan.delay).await;
        self.advance(Phase::Refusing);
        self.end_watches(plan.watch_grace).await;
        self.advance(Phase::Closing);
        let mut connections = self.0.connections.subscribe();
        let deadline = Instant::now() + plan.request_timeout;
        let drained = match tokio::time::timeout_at(
            deadline,
            connections.wait_for(|open| *open == 0),
        )
        .await
        {
            Ok(_) => Drained::Clean,
            Err(_) => Drained::Dropped(self.connections()),
        };
        self.advance(Phase::Dropping);
        // Dropping takes no time of its own; the bound is against a task that never yields.
        let _ = timeout(Duration::from_secs(1), connections.wait_for(|open| *open == 0)).await;
        drained
    }

    pub(crate) fn open_connection(&self) -> OpenConnection {
        self.0.connections.send_modify(|open| *open += 1);
        OpenConnection(Arc::clone(&self.0))
    }
}

impl WatchEnd {
    /// Completes when the watch is to end.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let watch_ends = Arc::clone(&self.0.watch_ends);
        async move {
            // A permit is used up by the one watch it lets end; a closed semaphore ends all.
            if let Ok(permit) = watch_ends.acquire().await {
                permit.forget();
            }
        }
    }
}

impl Drop for WatchEnd {
    fn drop(&mut self) {
        self.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// How many watches are let go in one step, at least one.
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
        shutdown.advance(Phase::Closing);
        shutdown.advance(Phase::Unready);
        assert_eq!(shutdown.phase(), Phase::Closing);
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
                let watch = shutdown.watch();
                tokio::spawn(async move {
                    watch.ended().await;
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
        assert_eq!(shutdown.watches(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_comes_late_ends_at_once() {
        let shutdown = Shutdown::new();
        shutdown.end_watches(Duration::ZERO).await;
        shutdown.watch().ended().await;
    }

    #[tokio::test(start_paused = true)]
    async fn draining_waits_for_connections_and_then_drops_them() {
        let plan = DrainPlan {
            delay: Duration::from_secs(3),
            watch_grace: Duration::ZERO,
            request_timeout: Duration::from_secs(60),
        };
        let begin = Instant::now();
        let idle = Shutdown::new();
        assert_eq!(idle.drain(plan).await, Drained::Clean);
        assert_eq!(begin.elapsed().as_secs(), 3);

        let busy = Shutdown::new();
        let connection = busy.open_connection();
        let begin = Instant::now();
        assert_eq!(busy.drain(plan).await, Drained::Dropped(1));
        assert!(begin.elapsed().as_secs() >= 63);
        assert_eq!(busy.phase(), Phase::Dropping);
        drop(connection);
    }
}
