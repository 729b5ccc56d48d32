//! The state of a webhook's calls and cache, for the status page and metrics.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The state of a webhook's calls and of its cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookHealth {
    /// The number of calls in flight.
    pub in_flight: usize,
    /// The time when a call last succeeded.
    pub last_success: Option<SystemTime>,
    /// The last call that failed.
    pub last_failure: Option<LastFailure>,
    /// The number of cached answers.
    pub cache_entries: usize,
    /// The memory that they take, in bytes.
    pub cache_bytes: usize,
}

/// The last call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFailure {
    /// The time when it ended.
    pub at: SystemTime,
    /// The error, without secrets.
    pub message: String,
}

/// The longest message that is kept, in bytes.
const MESSAGE_BYTES_MAX: usize = 2048;

/// The time and the error of the last calls.
#[derive(Debug, Default)]
pub(crate) struct RecentCalls {
    last_results: Mutex<LastCallResults>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct LastCallResults {
    pub(crate) success: Option<SystemTime>,
    pub(crate) failure: Option<LastFailure>,
}

impl RecentCalls {
    pub(crate) fn record_success(&self) {
        let now = SystemTime::now();
        self.last_results.lock().unwrap_or_else(PoisonError::into_inner).success = Some(now);
    }

    pub(crate) fn record_failure(&self, message: &str) {
        let message = field_errors::truncate(message, MESSAGE_BYTES_MAX).to_owned();
        let failure = LastFailure { at: SystemTime::now(), message };
        self.last_results.lock().unwrap_or_else(PoisonError::into_inner).failure = Some(failure);
    }

    pub(crate) fn last_results(&self) -> LastCallResults {
        self.last_results.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
