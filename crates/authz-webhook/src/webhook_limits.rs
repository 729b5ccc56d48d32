//! The limits of one webhook.
//!
//! None of them is in the configuration file, which is that of Kubernetes. A webhook that works never reaches the
//! defaults.

use std::time::Duration;

/// The limits of one webhook.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WebhookLimits {
    /// The maximum number of calls in flight, each with its retries; one user has at most half of them. A check that
    /// shares the call of another check does not count. A check that needs one more call is not decided:
    /// [`authz::UnavailableCause::TooManyCalls`].
    pub in_flight_calls_max: usize,
    /// The attempts of one call.
    pub retry_options: RetryOptions,
    /// The maximum number of cached answers.
    pub cache_entries_max: usize,
    /// The maximum memory of the cache in bytes, including its keys.
    pub cache_bytes_max: usize,
}

/// The attempts of one call, and the waits between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryOptions {
    /// The maximum number of attempts; at least one attempt is made.
    pub attempts_max: u32,
    /// The wait after the first attempt.
    pub first_retry_wait: Duration,
    /// The factor by which each wait is longer than the one before.
    pub retry_wait_factor: f64,
    /// The largest random addition to a wait, as a fraction of the wait.
    pub jitter_fraction: f64,
}

impl Default for WebhookLimits {
    /// More calls in flight than a server handles requests; as many cached answers as Kubernetes.
    fn default() -> Self {
        Self {
            in_flight_calls_max: 1024,
            retry_options: RetryOptions::default(),
            cache_entries_max: 8192,
            cache_bytes_max: 64 << 20,
        }
    }
}

impl WebhookLimits {
    /// The defaults without a limit on calls in flight, as in Kubernetes.
    pub fn without_in_flight_limit() -> Self {
        Self { in_flight_calls_max: usize::MAX, ..Self::default() }
    }
}

impl Default for RetryOptions {
    /// The defaults of Kubernetes: waits of 0.5, 0.75, 1.125 and 1.6875 seconds, each extended by
    /// up to 20 % at random.
    fn default() -> Self {
        Self {
            attempts_max: 5,
            first_retry_wait: Duration::from_millis(500),
            retry_wait_factor: 1.5,
            jitter_fraction: 0.2,
        }
    }
}
