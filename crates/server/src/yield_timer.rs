//! A timer that lets a long loop yield to other tasks of its thread.

use std::time::{Duration, Instant};

/// The maximum time that a loop runs before it yields to other tasks.
const TURN_TIME_MAX: Duration = Duration::from_millis(1);

/// The number of loop steps between two reads of the clock.
const STEPS_PER_CLOCK_READ: usize = 32;

/// Measures how long a loop has kept its thread.
#[derive(Debug)]
pub(crate) struct YieldTimer {
    turn_started_at: Instant,
    n_loop_steps: usize,
}

impl Default for YieldTimer {
    fn default() -> Self {
        Self { turn_started_at: Instant::now(), n_loop_steps: 0 }
    }
}

impl YieldTimer {
    /// Counts a step of the loop, and yields to other tasks if the loop has run for [`TURN_TIME_MAX`].
    pub(crate) async fn yield_if_turn_over(&mut self) {
        self.n_loop_steps += 1;
        if self.n_loop_steps.is_multiple_of(STEPS_PER_CLOCK_READ)
            && self.turn_started_at.elapsed() >= TURN_TIME_MAX
        {
            tokio::task::yield_now().await;
            self.turn_started_at = Instant::now();
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
            timer.yield_if_turn_over().await;
        }
        other.abort();
        assert!(n_turns.load(Ordering::Relaxed) >= 2);
    }
}
