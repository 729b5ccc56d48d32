//! The breaker of one service.
//!
//! What counts is whether the service lives, not whether it agrees with us:
//! - No whole HTTP answer (refused, reset, TLS, timeout), a status code of 500 or more, and 429 count
//!   as failures. Retries belong to their call: a call that succeeds in the end is a success.
//! - Every other answer closes the breaker, also a 4xx and one that is malformed. Such a service
//!   answers at once, and what it has against a question is no reason to leave out the next.
//! - A call that nobody waited for to the end says nothing.
//!
//! A service that answers any question in between never sees its breaker open. Mind what that means
//! for a service that refuses requests, that is passed over when it fails, and that can be made to
//! fail by certain questions: who can ask them in a row, with nobody else asking, can open its
//! breaker. The failure of such a service should refuse requests, with or without a breaker.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::options::{BreakerOptions, BreakerState};

/// The breaker of one service.
pub struct Breaker {
    options: BreakerOptions,
    /// Is told the new state whenever it changes.
    tell: Box<dyn Fn(BreakerState) + Send + Sync>,
    phase: Mutex<Phase>,
    /// How many probes there were, which gives each a number of its own: one that ends late must not
    /// be taken for the one that is under way.
    n_probes: AtomicU64,
}

/// INVARIANT: `wait` lies between `open_min` and `open_max`.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Closed { n_failures: u32 },
    Open { n_failures: u32, until: Instant, wait: Duration },
    HalfOpen { n_failures: u32, until: Instant, wait: Duration, probe: u64 },
}

/// Leave to make one call. Dropped without a sign, it says that nobody waited for the end.
#[must_use = "a call that is not made should not count as one that was given up"]
#[derive(Debug)]
pub struct Pass {
    breaker: Arc<Breaker>,
    /// The number of the call that finds out whether the service is back, if this is one.
    probe: Option<u64>,
}

/// What a call says about the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It has answered.
    Alive,
    /// It has not, or only to say that it can not.
    Dead,
}

/// Why a call is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// The service is left alone.
    #[error(
        "webhook was not called: its last {n_failures} calls failed, and it is left alone for \
         another {}ms",
        .wait.as_millis()
    )]
    Open {
        /// How many calls in a row failed.
        n_failures: u32,
        /// How long it will be left alone.
        wait: Duration,
    },
    /// Another call is finding out whether the service is back.
    #[error(
        "webhook was not called: its last {n_failures} calls failed, and another one is on its way \
         to see whether it is back"
    )]
    Probing {
        /// How many calls in a row failed.
        n_failures: u32,
    },
}

impl Sign {
    /// What an answer with this HTTP status code says.
    pub const fn of_status(code: u16) -> Self {
        if code >= 500 || code == 429 { Self::Dead } else { Self::Alive }
    }
}

impl Breaker {
    /// A breaker that is closed. `tell` is called with each new state, in their order, and must not
    /// block.
    pub fn new(
        options: BreakerOptions,
        tell: impl Fn(BreakerState) + Send + Sync + 'static,
    ) -> Self {
        let phase = Mutex::new(Phase::Closed { n_failures: 0 });
        Self { options, tell: Box::new(tell), phase, n_probes: AtomicU64::new(0) }
    }

    /// Whether the service is called.
    pub fn state(&self) -> BreakerState {
        self.lock().state()
    }

    /// Asks for leave to make a call.
    ///
    /// # Errors
    /// [`Halt`] if it is not to be made.
    pub fn admit(self: &Arc<Self>, now: Instant) -> Result<Pass, Halt> {
        let mut phase = self.lock();
        let probe = match *phase {
            Phase::Closed { .. } => None,
            Phase::Open { n_failures, until, wait } if until <= now => {
                let probe = self.n_probes.fetch_add(1, Ordering::Relaxed);
                self.enter(&mut phase, Phase::HalfOpen { n_failures, until, wait, probe });
                Some(probe)
            }
            Phase::Open { n_failures, until, .. } => {
                return Err(Halt::Open { n_failures, wait: until.duration_since(now) });
            }
            Phase::HalfOpen { n_failures, .. } => return Err(Halt::Probing { n_failures }),
        };
        drop(phase);
        Ok(Pass { breaker: Arc::clone(self), probe })
    }

    fn ended(&self, ended: Option<u64>, sign: Sign, now: Instant) {
        if !self.options.is_enabled {
            return;
        }
        let mut phase = self.lock();
        let next = match (*phase, sign) {
            // Whoever answers is alive, also when the call began before the breaker opened.
            (_, Sign::Alive) => Phase::Closed { n_failures: 0 },
            (Phase::Closed { n_failures }, Sign::Dead) => {
                let n_failures = n_failures.saturating_add(1);
                if n_failures >= self.options.failures_to_open {
                    self.open(n_failures, self.options.open_min, now)
                } else {
                    Phase::Closed { n_failures }
                }
            }
            (Phase::HalfOpen { n_failures, wait, probe, .. }, Sign::Dead)
                if ended == Some(probe) =>
            {
                self.open(n_failures.saturating_add(1), wait.saturating_mul(2), now)
            }
            // Calls from before the breaker opened say nothing new.
            (open @ (Phase::Open { .. } | Phase::HalfOpen { .. }), Sign::Dead) => open,
        };
        self.enter(&mut phase, next);
    }

    /// A probe came to nothing, so that the next call is one.
    fn abandoned(&self, abandoned: u64) {
        let mut phase = self.lock();
        if let Phase::HalfOpen { n_failures, until, wait, probe } = *phase
            && probe == abandoned
        {
            self.enter(&mut phase, Phase::Open { n_failures, until, wait });
        }
    }

    fn open(&self, n_failures: u32, wait: Duration, now: Instant) -> Phase {
        let wait = wait.min(self.options.open_max);
        Phase::Open { n_failures, until: now.checked_add(wait).unwrap_or(now), wait }
    }

    /// States are told while the lock is held, so that they are told in order.
    fn enter(&self, phase: &mut Phase, next: Phase) {
        let is_new = phase.state() != next.state();
        *phase = next;
        if is_new {
            (self.tell)(next.state());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Phase {
    fn state(&self) -> BreakerState {
        match self {
            Self::Closed { .. } => BreakerState::Closed,
            Self::Open { .. } => BreakerState::Open,
            Self::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }
}

impl Pass {
    /// Tells how the call ended.
    pub fn ended(mut self, sign: Sign, now: Instant) {
        self.breaker.ended(self.probe.take(), sign, now);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(probe) = self.probe.take() {
            self.breaker.abandoned(probe);
        }
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("options", &self.options)
            .field("phase", &*self.lock())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
