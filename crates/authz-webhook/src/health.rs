//! The state of a webhook's calls and cache, for the status page and metrics.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The state of a webhook's calls and of its cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookHealth {
    /// The number of calls in flight.
    pub n_in_flight_calls: usize,
    /// The time when a call last succeeded.
    pub last_successful_call_at: Option<SystemTime>,
    /// The last call that failed.
    pub last_failed_call: Option<LastFailedCall>,
    /// The number of cached answers.
    pub n_cached_answers: usize,
    /// The memory that they take, in bytes.
    pub cache_bytes: usize,
}

/// The last call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFailedCall {
    /// The time when it ended.
    pub at: SystemTime,
    /// The error, without secrets.
    pub message: String,
}

/// The longest message that is kept, in bytes.
const MESSAGE_BYTES_MAX: usize = 2048;

/// The time and the error of the last calls.
#[derive(Debug, Default)]
pub(crate) struct LastCallResultRecorder {
    last_call_results: Mutex<LastCallResults>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct LastCallResults {
    pub(crate) last_successful_call_at: Option<SystemTime>,
    pub(crate) last_failed_call: Option<LastFailedCall>,
}

impl LastCallResultRecorder {
    pub(crate) fn record_successful_call(&self) {
        let now = SystemTime::now();
        self.last_call_results
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .last_successful_call_at = Some(now);
    }

    pub(crate) fn record_failed_call(&self, message: &str) {
        let message = field_errors::truncate_to_bytes(message, MESSAGE_BYTES_MAX).to_owned();
        let failure = LastFailedCall { at: SystemTime::now(), message };
        self.last_call_results.lock().unwrap_or_else(PoisonError::into_inner).last_failed_call =
            Some(failure);
    }

    pub(crate) fn last_call_results(&self) -> LastCallResults {
        self.last_call_results.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
