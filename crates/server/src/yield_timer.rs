//! Lets other tasks of a thread run during a long loop.

use std::time::{Duration, Instant};

/// How long a loop runs before other tasks have their turn.
const TURN_TIME_MAX: Duration = Duration::from_millis(1);

/// How many steps of a loop are taken between two looks at the clock.
const STEPS_PER_CLOCK_READ: usize = 32;

/// Measures how long a loop has kept its thread.
#[derive(Debug)]
pub(crate) struct YieldTimer {
    begun: Instant,
    n_steps: usize,
}

impl Default for YieldTimer {
    fn default() -> Self {
        Self { begun: Instant::now(), n_steps: 0 }
    }
}

impl YieldTimer {
    /// Counts a step of the loop, and gives other tasks a turn if the loop has run for a while.
    pub(crate) async fn yield_if_late(&mut self) {
        self.n_steps += 1;
        if self.n_steps.is_multiple_of(STEPS_PER_CLOCK_READ)
            && self.begun.elapsed() >= TURN_TIME_MAX
        {
            tokio::task::yield_now().await;
            self.begun = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A11: on a runtime of one thread, another task runs while a long loop is under way.
    #[tokio::test]
    async fn others_run_during_a_long_loop() {
        let n_turns = Arc::new(AtomicUsize::new(0));
        let other = tokio::spawn({
            let n_turns = Arc::clone(&n_turns);
            async move {
                loop {
                    n_turns.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        });
        let (begun, mut timer) = (Instant::now(), YieldTimer::default());
        while begun.elapsed() < 20 * TURN_TIME_MAX {
            timer.yield_if_late().await;
        }
        other.abort();
        assert!(n_turns.load(Ordering::Relaxed) >= 2);
    }
}
