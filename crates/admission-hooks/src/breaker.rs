//! Leaves a service alone that does not answer.
//!
//! A hook that is down costs every request that it matches its timeout, and the requests wait for
//! it one after the other. After some calls in a row that failed the breaker opens, and calls fail
//! at once; what that means is up to the failure policy, as with any other failure. After a while one
//! call is let through to see whether the service is back; if that fails too, the next wait is twice
//! as long.
//!
//! What counts is whether the service lives, not whether it agrees with us: no whole HTTP answer, a
//! status code of 500 or more, and 429 count as failures, and every other answer closes the breaker.
//! A call that nobody waited for to the end says nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// When a service is left alone, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerOptions {
    /// Whether there is a breaker at all.
    pub is_enabled: bool,
    /// How many calls in a row have to fail.
    pub failures_to_open: u32,
    /// How long the service is left alone at first. Doubles with each probe that fails.
    pub open_min: Duration,
    /// How long it is left alone at most.
    pub open_max: Duration,
}

impl Default for BreakerOptions {
    fn default() -> Self {
        Self {
            is_enabled: true,
            failures_to_open: 10,
            open_min: Duration::from_secs(1),
            open_max: Duration::from_secs(30),
        }
    }
}

/// Why a call is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Halt {
    #[error(
        "webhook was not called: its last {n_failures} calls failed, and it is left alone for \
         another {}ms",
        .wait.as_millis()
    )]
    Open { n_failures: u32, wait: Duration },
    #[error(
        "webhook was not called: its last {n_failures} calls failed, and another one is on its way \
         to see whether it is back"
    )]
    Probing { n_failures: u32 },
}

/// What a call says about the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Alive,
    Dead,
}

/// The breaker of one service.
#[derive(Debug)]
pub(crate) struct Breaker {
    options: BreakerOptions,
    phase: Mutex<Phase>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Closed { n_failures: u32 },
    Open { n_failures: u32, until: Instant, wait: Duration },
    HalfOpen { n_failures: u32, wait: Duration },
}

/// Leave to make one call. Dropped without a sign, it says that nobody waited for the end.
#[derive(Debug)]
pub(crate) struct Pass {
    breaker: Arc<Breaker>,
    is_probe: bool,
}

impl Breaker {
    pub(crate) fn new(options: BreakerOptions) -> Self {
        Self { options, phase: Mutex::new(Phase::Closed { n_failures: 0 }) }
    }

    /// Asks for leave to make a call.
    pub(crate) fn admit(self: &Arc<Self>, now: Instant) -> Result<Pass, Halt> {
        let mut phase = self.lock();
        let is_probe = match *phase {
            Phase::Closed { .. } => false,
            Phase::Open { n_failures, until, wait } if until <= now => {
                *phase = Phase::HalfOpen { n_failures, wait };
                true
            }
            Phase::Open { n_failures, until, .. } => {
                return Err(Halt::Open { n_failures, wait: until - now });
            }
            Phase::HalfOpen { n_failures, .. } => return Err(Halt::Probing { n_failures }),
        };
        drop(phase);
        Ok(Pass { breaker: Arc::clone(self), is_probe })
    }

    fn ended(&self, is_probe: bool, sign: Sign, now: Instant) {
        if !self.options.is_enabled {
            return;
        }
        let mut phase = self.lock();
        *phase = match (*phase, sign) {
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
            (Phase::HalfOpen { n_failures, wait }, Sign::Dead) if is_probe => {
                self.open(n_failures.saturating_add(1), wait.saturating_mul(2), now)
            }
            // Calls from before the breaker opened say nothing new.
            (open @ (Phase::Open { .. } | Phase::HalfOpen { .. }), Sign::Dead) => open,
        };
    }

    /// The probe came to nothing, so that the next call is one.
    fn abandoned(&self) {
        let mut phase = self.lock();
        if let Phase::HalfOpen { n_failures, wait } = *phase {
            *phase = Phase::Open { n_failures, until: Instant::now(), wait };
        }
    }

    fn open(&self, n_failures: u32, wait: Duration, now: Instant) -> Phase {
        let wait = wait.min(self.options.open_max);
        Phase::Open { n_failures, until: now.checked_add(wait).unwrap_or(now), wait }
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// Tells how the call ended.
    pub(crate) fn ended(mut self, sign: Sign, now: Instant) {
        self.breaker.ended(self.is_probe, sign, now);
        self.is_probe = false;
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.abandoned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn breaker(failures_to_open: u32) -> Arc<Breaker> {
        let options = BreakerOptions { failures_to_open, ..BreakerOptions::default() };
        Arc::new(Breaker::new(options))
    }

    #[test]
    fn opens_after_failures_in_a_row_and_waits_longer_each_time() {
        let (breaker, now) = (breaker(2), Instant::now());
        for sign in [Sign::Dead, Sign::Alive, Sign::Dead, Sign::Dead] {
            breaker.admit(now).unwrap().ended(sign, now);
        }
        let halt = breaker.admit(now).unwrap_err();
        assert_eq!(halt, Halt::Open { n_failures: 2, wait: SECOND });
        let probe = breaker.admit(now + SECOND).unwrap();
        assert_eq!(breaker.admit(now + SECOND).unwrap_err(), Halt::Probing { n_failures: 2 });
        probe.ended(Sign::Dead, now + SECOND);
        let halt = breaker.admit(now + SECOND).unwrap_err();
        assert_eq!(halt, Halt::Open { n_failures: 3, wait: 2 * SECOND });
        breaker.admit(now + 3 * SECOND).unwrap().ended(Sign::Alive, now);
        assert!(breaker.admit(now).is_ok());
    }

    #[test]
    fn a_probe_that_nobody_waited_for_is_followed_by_another() {
        let (breaker, now) = (breaker(1), Instant::now());
        breaker.admit(now).unwrap().ended(Sign::Dead, now);
        drop(breaker.admit(now + SECOND).unwrap());
        assert!(breaker.admit(now + SECOND).is_ok());
    }

    #[test]
    fn a_disabled_one_never_opens() {
        let options =
            BreakerOptions { is_enabled: false, failures_to_open: 1, ..BreakerOptions::default() };
        let (breaker, now) = (Arc::new(Breaker::new(options)), Instant::now());
        breaker.admit(now).unwrap().ended(Sign::Dead, now);
        assert!(breaker.admit(now).is_ok());
    }
}
