//! Leaves a webhook alone that does not answer.
//!
//! A webhook that is down costs every request its timeout. After some calls in a row that failed,
//! the breaker opens: checks are answered by the failure policy at once. After a while one call is
//! let through to see whether the webhook is back; if that fails too, the next wait is twice as long.
//!
//! What counts is whether the service lives, not whether it agrees with us:
//! - No whole HTTP answer (refused, reset, TLS, timeout), a status code of 500 or more, and 429 count
//!   as failures. Retries belong to their call: a call that succeeds in the end is a success.
//! - Every other answer closes the breaker, also a 4xx and one that is malformed. Such a service
//!   answers at once, and what it has against a question is no reason to leave out the next.
//! - A call that nobody waited for to the end says nothing.
//!
//! A webhook that answers any question in between never sees its breaker open. Mind what that means
//! for a webhook that denies, has the failure policy `NoOpinion`, and can be made to fail by certain
//! questions: who can ask them in a row, with nobody else asking, can open its breaker. Such a
//! webhook should have the policy `Deny`, with or without a breaker.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::CallError;
use crate::guards::BreakerOptions;
use crate::observe::{BreakerState, Observe};

/// The breaker of one webhook.
pub(crate) struct Breaker {
    options: BreakerOptions,
    observe: Arc<dyn Observe>,
    phase: Mutex<Phase>,
}

/// INVARIANT: `wait` lies between `open_min` and `open_max`.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Closed { n_failures: u32 },
    Open { n_failures: u32, until: Instant, wait: Duration },
    HalfOpen { n_failures: u32, wait: Duration },
}

/// Leave to make one call. What became of it is told to the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    Normal,
    /// The call that finds out whether the webhook is back.
    Probe,
}

/// What a call says about the webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Alive,
    Dead,
    /// Nobody waited for the end.
    None,
}

impl Sign {
    pub(crate) fn of<T>(outcome: &Result<T, CallError>) -> Self {
        match outcome {
            Ok(_) => Self::Alive,
            Err(CallError::Transport { .. }) => Self::Dead,
            Err(CallError::Response { status, .. }) if *status >= 500 || *status == 429 => {
                Self::Dead
            }
            Err(CallError::Response { .. }) => Self::Alive,
            Err(
                CallError::BreakerOpen { .. }
                | CallError::BreakerProbing { .. }
                | CallError::TooManyInFlight { .. }
                | CallError::Lost,
            ) => Self::None,
        }
    }
}

impl Breaker {
    pub(crate) fn new(options: BreakerOptions, observe: Arc<dyn Observe>) -> Self {
        Self { options, observe, phase: Mutex::new(Phase::Closed { n_failures: 0 }) }
    }

    pub(crate) fn state(&self) -> BreakerState {
        self.lock().state()
    }

    /// Asks for leave to make a call.
    pub(crate) fn admit(&self, now: Instant) -> Result<Pass, CallError> {
        if !self.options.is_enabled {
            return Ok(Pass::Normal);
        }
        let mut phase = self.lock();
        match *phase {
            Phase::Closed { .. } => Ok(Pass::Normal),
            Phase::Open { n_failures, until, wait } if until <= now => {
                self.enter(&mut phase, Phase::HalfOpen { n_failures, wait });
                Ok(Pass::Probe)
            }
            Phase::Open { n_failures, until, .. } => {
                Err(CallError::BreakerOpen { n_failures, wait: until - now })
            }
            Phase::HalfOpen { n_failures, .. } => Err(CallError::BreakerProbing { n_failures }),
        }
    }

    /// Takes note of how a call ended.
    pub(crate) fn ended(&self, pass: Pass, sign: Sign, now: Instant) {
        if !self.options.is_enabled {
            return;
        }
        let mut phase = self.lock();
        let next = match (*phase, pass, sign) {
            // Whoever answers is alive, also when the call began before the breaker opened.
            (_, _, Sign::Alive) => Phase::Closed { n_failures: 0 },
            (Phase::Closed { n_failures }, _, Sign::Dead) => {
                let n_failures = n_failures.saturating_add(1);
                if n_failures >= self.options.failures_to_open {
                    self.open(n_failures, self.options.open_min, now)
                } else {
                    Phase::Closed { n_failures }
                }
            }
            (Phase::HalfOpen { n_failures, wait }, Pass::Probe, Sign::Dead) => {
                self.open(n_failures.saturating_add(1), wait.saturating_mul(2), now)
            }
            // The probe came to nothing, so that the next call is one.
            (Phase::HalfOpen { n_failures, wait }, Pass::Probe, Sign::None) => {
                Phase::Open { n_failures, until: now, wait }
            }
            // Calls from before the breaker opened say nothing new.
            (open @ (Phase::Open { .. } | Phase::HalfOpen { .. }), _, Sign::Dead | Sign::None) => {
                open
            }
            (closed @ Phase::Closed { .. }, _, Sign::None) => closed,
        };
        self.enter(&mut phase, next);
    }

    fn open(&self, n_failures: u32, wait: Duration, now: Instant) -> Phase {
        let wait = wait.min(self.options.open_max);
        let until = now.checked_add(wait).unwrap_or(now);
        Phase::Open { n_failures, until, wait }
    }

    /// States are told while the lock is held, so that they are told in order.
    fn enter(&self, phase: &mut Phase, next: Phase) {
        let is_new = phase.state() != next.state();
        *phase = next;
        if is_new {
            self.observe.breaker(next.state());
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
