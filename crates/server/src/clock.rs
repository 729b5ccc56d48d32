//! The clock that timers use. Tests replace it with a manual clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;

/// The clock of the system, or a clock that a test advances.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System {
        started: Instant,
    },
    Manual {
        /// The wall-clock time at the start.
        started: Timestamp,
        elapsed: Arc<watch::Sender<Duration>>,
        sleepers: SleepDeadlines,
    },
}

/// The times until which current sleepers sleep.
type SleepDeadlines = Arc<watch::Sender<Vec<Duration>>>;

/// Registers a sleeper until it is dropped.
struct SleeperGuard {
    sleeps_until: Duration,
    sleep_deadlines: SleepDeadlines,
}

impl Default for Clock {
    fn default() -> Self {
        Self(Source::System { started: Instant::now() })
    }
}

impl Clock {
    /// A clock that stands still until a test [advances](Self::advance) it.
    #[must_use]
    pub fn new_manual_clock(started: Timestamp) -> Self {
        let elapsed = Arc::new(watch::Sender::new(Duration::ZERO));
        Self(Source::Manual { started, elapsed, sleepers: Arc::default() })
    }

    /// Advances a manual clock and all its clones. The clock of the system is not affected.
    pub fn advance_time(&self, by: Duration) {
        if let Source::Manual { elapsed, .. } = &self.0 {
            elapsed.send_modify(|elapsed| *elapsed = elapsed.saturating_add(by));
        }
    }

    /// Waits until this many tasks sleep until this time on a manual clock. They stay asleep until a test
    /// advances the clock.
    pub async fn wait_for_sleepers(&self, until: Duration, n_sleepers: usize) {
        if let Source::Manual { sleepers, .. } = &self.0 {
            let n_sleeping = |all: &[Duration]| all.iter().filter(|one| **one == until).count();
            // The sender lives as long as this value, so waiting does not fail.
            let _ = sleepers.subscribe().wait_for(|all| n_sleeping(all) >= n_sleepers).await;
        }
    }

    /// The time since the clock was created. It never decreases.
    pub(crate) fn elapsed(&self) -> Duration {
        match &self.0 {
            Source::System { started } => started.elapsed(),
            Source::Manual { elapsed, .. } => *elapsed.borrow(),
        }
    }

    /// Returns the wall-clock time of this clock.
    pub(crate) fn wall_time(&self) -> Timestamp {
        match &self.0 {
            Source::System { .. } => Timestamp::now(),
            Source::Manual { started, elapsed, .. } => {
                let elapsed = SignedDuration::try_from(*elapsed.borrow());
                let now = elapsed.ok().and_then(|elapsed| started.checked_add(elapsed).ok());
                now.unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Waits until [`elapsed`](Self::elapsed) is at least this.
    pub(crate) async fn wait_until_elapsed(&self, at: Duration) {
        match &self.0 {
            Source::System { started } => match started.checked_add(at) {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            },
            Source::Manual { elapsed, sleepers, .. } => {
                let _sleeper = SleeperGuard::new(at, sleepers);
                // The sender lives as long as this value, so waiting does not fail.
                let _ = elapsed.subscribe().wait_for(|elapsed| *elapsed >= at).await;
            }
        }
    }
}

impl SleeperGuard {
    fn new(until: Duration, sleepers: &SleepDeadlines) -> Self {
        sleepers.send_modify(|all| all.push(until));
        Self { sleeps_until: until, sleep_deadlines: Arc::clone(sleepers) }
    }
}

impl Drop for SleeperGuard {
    fn drop(&mut self) {
        self.sleep_deadlines.send_modify(|all| {
            if let Some(idx) = all.iter().position(|one| *one == self.sleeps_until) {
                all.swap_remove(idx);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_clock_of_the_system_is_not_advanced() {
        let clock = Clock::default();
        clock.advance_time(SECOND);
        assert_eq!(clock.elapsed(), Duration::ZERO);
        clock.wait_until_elapsed(2 * SECOND).await;
        assert_eq!(clock.elapsed(), 2 * SECOND);
    }

    #[tokio::test]
    async fn a_manual_clock_moves_when_it_is_advanced() {
        let started: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let clock = Clock::new_manual_clock(started);
        let waiting = tokio::spawn({
            let clock = clock.clone();
            async move { clock.wait_until_elapsed(2 * SECOND).await }
        });
        clock.wait_for_sleepers(2 * SECOND, 1).await;
        clock.advance_time(SECOND);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        clock.advance_time(SECOND);
        waiting.await.unwrap();
        assert_eq!(clock.wall_time().to_string(), "2026-11-16T10:00:02Z");
        clock.advance_time(Duration::MAX);
        assert_eq!((clock.elapsed(), clock.wall_time()), (Duration::MAX, Timestamp::MAX));
    }
}
