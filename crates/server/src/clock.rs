//! What time it is, for what happens by itself after some time.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;

/// A clock. That of the system, unless somebody turns its hands, as tests do.
#[derive(Debug, Clone)]
pub struct Clock(Hands);

#[derive(Debug, Clone)]
enum Hands {
    System {
        begun: Instant,
    },
    Manual {
        /// What the clock on the wall showed in the beginning.
        begun: Timestamp,
        passed: Arc<watch::Sender<Duration>>,
        sleepers: Sleepers,
    },
}

/// Until when those who sleep now do so.
type Sleepers = Arc<watch::Sender<Vec<Duration>>>;

/// Somebody who sleeps.
struct Sleeper {
    until: Duration,
    sleepers: Sleepers,
}

impl Default for Clock {
    fn default() -> Self {
        Self(Hands::System { begun: Instant::now() })
    }
}

impl Clock {
    /// A clock that stands still until it is [turned](Self::advance).
    #[must_use]
    pub fn manual(begun: Timestamp) -> Self {
        let passed = Arc::new(watch::Sender::new(Duration::ZERO));
        Self(Hands::Manual { begun, passed, sleepers: Arc::default() })
    }

    /// Lets time pass on a clock that stands still, and on all clones of it. The clock of the system
    /// can not be turned.
    pub fn advance(&self, by: Duration) {
        if let Hands::Manual { passed, .. } = &self.0 {
            passed.send_modify(|passed| *passed = passed.saturating_add(by));
        }
    }

    /// Waits until so many sleep until this time on a clock that stands still. Then nothing happens before
    /// it is turned.
    pub async fn until_asleep(&self, until: Duration, n_sleepers: usize) {
        if let Hands::Manual { sleepers, .. } = &self.0 {
            let n_now = |now: &[Duration]| now.iter().filter(|own| **own == until).count();
            // The sender lives as long as this value, so waiting does not fail.
            let _ = sleepers.subscribe().wait_for(|now| n_now(now) >= n_sleepers).await;
        }
    }

    /// How much time has passed since the clock began. It never goes back.
    pub(crate) fn now(&self) -> Duration {
        match &self.0 {
            Hands::System { begun } => begun.elapsed(),
            Hands::Manual { passed, .. } => *passed.borrow(),
        }
    }

    /// What the clock on the wall shows.
    pub(crate) fn wall(&self) -> Timestamp {
        match &self.0 {
            Hands::System { .. } => Timestamp::now(),
            Hands::Manual { begun, passed, .. } => {
                let passed = SignedDuration::try_from(*passed.borrow());
                let now = passed.ok().and_then(|passed| begun.checked_add(passed).ok());
                now.unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Waits until [`now`](Self::now) is at least this.
    pub(crate) async fn sleep_until(&self, at: Duration) {
        match &self.0 {
            Hands::System { begun } => match begun.checked_add(at) {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            },
            Hands::Manual { passed, sleepers, .. } => {
                let _sleeper = Sleeper::new(at, sleepers);
                // As above.
                let _ = passed.subscribe().wait_for(|passed| *passed >= at).await;
            }
        }
    }
}

impl Sleeper {
    fn new(until: Duration, sleepers: &Sleepers) -> Self {
        sleepers.send_modify(|all| all.push(until));
        Self { until, sleepers: Arc::clone(sleepers) }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.sleepers.send_modify(|all| {
            if let Some(idx) = all.iter().position(|own| *own == self.until) {
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
    async fn the_clock_of_the_system_goes_by_itself() {
        let clock = Clock::default();
        clock.advance(SECOND);
        assert_eq!(clock.now(), Duration::ZERO);
        clock.sleep_until(2 * SECOND).await;
        assert_eq!(clock.now(), 2 * SECOND);
    }

    #[tokio::test]
    async fn a_clock_that_stands_still_is_turned() {
        let begun: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let clock = Clock::manual(begun);
        let waiting = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(2 * SECOND).await }
        });
        clock.until_asleep(2 * SECOND, 1).await;
        clock.advance(SECOND);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        clock.advance(SECOND);
        waiting.await.unwrap();
        assert_eq!(clock.wall().to_string(), "2026-11-16T10:00:02Z");
        clock.advance(Duration::MAX);
        assert_eq!((clock.now(), clock.wall()), (Duration::MAX, Timestamp::MAX));
    }
}
