//! What keeps a bad webhook from harming the server.
//!
//! None of this is part of the configuration file, which stays that of Kubernetes. The defaults are
//! such that a webhook that works never notices them.

use std::time::Duration;

use breaker::BreakerOptions;

/// The limits of one webhook.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guards {
    /// The most calls in flight, each with its retries. Checks that wait for the call of another one
    /// do not count. One more is answered by the failure policy at once.
    pub in_flight_max: usize,
    /// When a webhook is left alone.
    pub breaker: BreakerOptions,
    /// How often a call is tried.
    pub retry: RetryOptions,
    /// The most answers that are kept.
    pub cache_entries_max: usize,
    /// The most memory that kept answers take, in bytes, with the questions they belong to.
    pub cache_bytes_max: usize,
}

/// How often a call is tried, and how long it waits in between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryOptions {
    /// The most attempts; at least one is made.
    pub attempts_max: u32,
    /// The wait after the first attempt.
    pub wait: Duration,
    /// By how much a wait is longer than the one before.
    pub wait_factor: f64,
    /// The most that is added to a wait at random, as a part of it.
    pub jitter: f64,
}

impl Default for Guards {
    /// More calls in flight than a server handles requests; as many answers as Kubernetes keeps.
    fn default() -> Self {
        Self {
            in_flight_max: 1024,
            breaker: BreakerOptions::default(),
            retry: RetryOptions::default(),
            cache_entries_max: 8192,
            cache_bytes_max: 64 << 20,
        }
    }
}

impl Guards {
    /// The defaults without breaker and without a limit of calls in flight: what Kubernetes does.
    pub fn disabled() -> Self {
        Self {
            in_flight_max: usize::MAX,
            breaker: BreakerOptions { is_enabled: false, ..BreakerOptions::default() },
            ..Self::default()
        }
    }
}

impl Default for RetryOptions {
    /// As Kubernetes: waits of 0.5, 0.75, 1.125 and 1.6875 seconds, and up to a fifth more.
    fn default() -> Self {
        Self { attempts_max: 5, wait: Duration::from_millis(500), wait_factor: 1.5, jitter: 0.2 }
    }
}
