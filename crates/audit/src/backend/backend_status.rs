//! The counts of a backend, for metrics and the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Why an event did not reach its sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// The queue is full.
    QueueFull,
    /// The events of one user take up half of the queue.
    UserShare,
    /// The sink failed to write it.
    Failed,
    /// The event is longer than the backend accepts, even without bodies.
    TooLarge,
}

/// The counts of a backend since it was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendStatus {
    /// The name of the backend.
    pub name: &'static str,
    /// The number of events in the queue, including those that are being written.
    pub n_queued_events: usize,
    /// The number of events that the sink has accepted.
    pub n_written_events: u64,
    /// The number of lost events of each cause.
    pub n_lost_events_by_cause: [(LossCause, u64); 4],
    /// The last error of the sink.
    pub last_sink_error: Option<String>,
}

impl LossCause {
    /// All causes, in the order of metrics.
    pub const ALL: [Self; 4] = [Self::QueueFull, Self::UserShare, Self::Failed, Self::TooLarge];

    /// The label of the cause in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::UserShare => "user_share",
            Self::Failed => "failed",
            Self::TooLarge => "too_large",
        }
    }
}

impl BackendStatus {
    /// The number of lost events of all causes.
    pub fn n_lost_events_in_total(&self) -> u64 {
        self.n_lost_events_by_cause.iter().map(|(_, count)| count).sum()
    }
}

#[derive(Debug, Default)]
pub(super) struct EventCounts {
    n_written_events: AtomicU64,
    n_queue_full_events: AtomicU64,
    n_user_share_exceeded_events: AtomicU64,
    n_failed_events: AtomicU64,
    n_too_large_events: AtomicU64,
    last_sink_error: Mutex<Option<String>>,
}

impl EventCounts {
    pub(super) fn count_written_events(&self, n_events: usize) {
        self.n_written_events.fetch_add(n_events as u64, Ordering::Relaxed);
    }

    pub(super) fn count_lost_events(&self, cause: LossCause, n_events: usize) {
        self.lost_events_counter(cause).fetch_add(n_events as u64, Ordering::Relaxed);
    }

    pub(super) fn set_last_sink_error(&self, message: String) {
        *self.last_sink_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }

    pub(super) fn to_backend_status(&self, name: &'static str, n_queued: usize) -> BackendStatus {
        BackendStatus {
            name,
            n_queued_events: n_queued,
            n_written_events: self.n_written_events.load(Ordering::Relaxed),
            n_lost_events_by_cause: LossCause::ALL
                .map(|cause| (cause, self.lost_events_counter(cause).load(Ordering::Relaxed))),
            last_sink_error: self
                .last_sink_error
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        }
    }

    fn lost_events_counter(&self, cause: LossCause) -> &AtomicU64 {
        match cause {
            LossCause::QueueFull => &self.n_queue_full_events,
            LossCause::UserShare => &self.n_user_share_exceeded_events,
            LossCause::Failed => &self.n_failed_events,
            LossCause::TooLarge => &self.n_too_large_events,
        }
    }
}
