//! Records requests at backends as a policy demands.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::audit_log::AuditLog;
use crate::backend::{
    Backend, BackendOptions, BackendStatus, EnqueueResult, LossCause, StartBackendError,
};
use crate::event::{Event, ReceivedRequest};
use crate::event_write_receipt::EventWriteReceipt;
use crate::policy::Policy;
use crate::stage::{Level, Stage};

/// The name of the backend that writes a log.
pub const LOG_BACKEND: &str = "log";

/// An audit policy and the backends that get its events.
#[derive(Debug)]
pub struct Auditor {
    policy: Policy,
    backends: Vec<Backend>,
    n_events: AtomicU64,
    n_requests_by_level: [AtomicU64; Level::ALL.len()],
}

/// A future that ends when the queues are empty or the time is over.
pub type FlushFuture<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

impl Auditor {
    /// An auditor with this policy and these backends.
    pub fn new(policy: Policy, backends: Vec<Backend>) -> Self {
        Self {
            policy,
            backends,
            n_events: AtomicU64::new(0),
            n_requests_by_level: Default::default(),
        }
    }

    /// An auditor that writes a log with the default options.
    ///
    /// # Errors
    /// The system has no room for the thread that writes.
    pub fn with_log_backend(policy: Policy, log: AuditLog) -> Result<Self, StartBackendError> {
        let backend = Backend::start(LOG_BACKEND, Arc::new(log), BackendOptions::default())?;
        Ok(Self::new(policy, vec![backend]))
    }

    /// Begins the event of a request; returns `None` if the policy does not record it.
    pub fn begin_event(&self, received: &ReceivedRequest<'_>) -> Option<Event> {
        let config = self.policy.config_for_request(&received.attributes);
        let level = config.level;
        if let Some(count) = self.n_requests_by_level.get(level as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        (level > Level::None).then(|| Event::new(received, config))
    }

    /// Gives an event at a stage to every backend, unless the policy omits the stage. It never waits; the
    /// caller may wait for the receipt.
    pub fn record_event(&self, event: &Event, stage: Stage, now: Timestamp) -> EventWriteReceipt {
        let mut receipt = EventWriteReceipt::default();
        if !event.records_stage(stage) {
            return receipt;
        }
        self.n_events.fetch_add(1, Ordering::Relaxed);
        let line = Bytes::from(event.encode_json_line(stage, now));
        for backend in &self.backends {
            let enqueued = match encode_line_within_limit(backend, event, &line, stage, now) {
                Some(line) => backend.enqueue_event(line, event.queue_share_user()),
                None => {
                    backend.count_dropped_event(LossCause::TooLarge);
                    EnqueueResult::NotRecorded
                }
            };
            match enqueued {
                EnqueueResult::Accepted => {}
                EnqueueResult::Pending(pending) => receipt.add_pending_write(pending),
                EnqueueResult::NotRecorded if backend.is_blocking_strict() => {
                    receipt.mark_dropped_by_strict_backend()
                }
                EnqueueResult::NotRecorded => {}
            }
        }
        receipt
    }

    /// Waits until the events that are in the queues now are written or lost, at most for `limit`. Reports
    /// whether the queues were emptied in time.
    pub fn flush(&self, limit: Duration) -> FlushFuture<'_> {
        let deadline = Instant::now() + limit;
        Box::pin(async move {
            let mut is_flushed = true;
            for backend in &self.backends {
                is_flushed &= timeout_at(deadline, backend.flush()).await.is_ok();
            }
            is_flushed
        })
    }

    /// The number of events at all stages that were given to the backends.
    pub fn n_events(&self) -> u64 {
        self.n_events.load(Ordering::Relaxed)
    }

    /// The number of requests for which the policy chose each level.
    pub fn n_requests_by_level(&self) -> impl Iterator<Item = (Level, u64)> {
        let counts = self.n_requests_by_level.iter();
        Level::ALL.into_iter().zip(counts.map(|count| count.load(Ordering::Relaxed)))
    }

    /// The counts of each backend.
    pub fn backend_statuses(&self) -> impl Iterator<Item = BackendStatus> {
        self.backends.iter().map(Backend::status)
    }
}

/// The line for a backend: without bodies if it is too long with them, and `None` if it is still too long then.
fn encode_line_within_limit(
    backend: &Backend,
    event: &Event,
    line: &Bytes,
    stage: Stage,
    now: Timestamp,
) -> Option<Bytes> {
    let bytes_max = backend.options().event_bytes_max;
    if line.len() <= bytes_max {
        return Some(line.clone());
    }
    let short = Bytes::from(event.encode_json_line_without_bodies(stage, now));
    (short.len() <= bytes_max).then_some(short)
}
