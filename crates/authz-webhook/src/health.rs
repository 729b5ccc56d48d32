//! How a webhook is doing, for operators.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// How a webhook is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// How many calls are in flight.
    pub in_flight: usize,
    /// When a call last succeeded.
    pub last_success: Option<SystemTime>,
    /// When and why a call last failed.
    pub last_failure: Option<LastFailure>,
    /// How many answers are kept.
    pub cache_entries: usize,
    /// How much memory they take.
    pub cache_bytes: usize,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFailure {
    /// When it ended.
    pub at: SystemTime,
    /// What went wrong.
    pub message: String,
}

/// The most of a message that is kept for showing it.
const MESSAGE_BYTES_MAX: usize = 2048;

/// The latest calls.
#[derive(Debug, Default)]
pub(crate) struct Latest {
    ends: Mutex<Ends>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Ends {
    pub(crate) success: Option<SystemTime>,
    pub(crate) failure: Option<LastFailure>,
}

impl Latest {
    pub(crate) fn succeeded(&self) {
        let now = SystemTime::now();
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).success = Some(now);
    }

    pub(crate) fn failed(&self, message: String) {
        let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
        let message = message.get(..end).unwrap_or_default().to_owned();
        let failure = LastFailure { at: SystemTime::now(), message };
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).failure = Some(failure);
    }

    pub(crate) fn ends(&self) -> Ends {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
