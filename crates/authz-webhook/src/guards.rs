//! The limits of one webhook.
//!
//! None of this is part of the configuration file, which stays that of Kubernetes. The defaults are
//! such that a webhook that works never notices them.

use std::time::Duration;

/// The limits of one webhook.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guards {
    /// The most calls in flight, each with its retries, of which one user has at most half. Checks that
    /// wait for the call of another one do not count. A check that would need one more is not decided:
    /// [`authz::Unavailable::TooManyCalls`].
    pub in_flight_max: usize,
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
            retry: RetryOptions::default(),
            cache_entries_max: 8192,
            cache_bytes_max: 64 << 20,
        }
    }
}

impl Guards {
    /// The defaults without a limit of calls in flight: what Kubernetes does.
    pub fn disabled() -> Self {
        Self { in_flight_max: usize::MAX, ..Self::default() }
    }
}

impl Default for RetryOptions {
    /// As Kubernetes: waits of 0.5, 0.75, 1.125 and 1.6875 seconds, and up to a fifth more.
    fn default() -> Self {
        Self { attempts_max: 5, wait: Duration::from_millis(500), wait_factor: 1.5, jitter: 0.2 }
    }
}
