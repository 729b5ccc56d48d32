//! Metrics about the audit backends. Those of Kubernetes have its names.

use audit::{Auditor, LossCause};
use prometheus::{IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry};

/// The value of the label `plugin` under which Kubernetes counts events that a full queue drops.
const BUFFERED: &str = "buffered";

/// The metrics about the audit backends. Without an audit policy all of them are zero.
pub struct AuditMetrics {
    audit_event_count: IntCounter,
    audit_level_counts: IntCounterVec,
    audit_error_counts: IntCounterVec,
    lost_audit_events: IntCounterVec,
    queued_audit_events: IntGaugeVec,
}

impl AuditMetrics {
    /// Registers all metrics with the value zero.
    ///
    /// # Errors
    /// A metric name is malformed or already registered.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counters.clone())).map(|()| counters)
        };
        let events = IntCounter::new(
            "apiserver_audit_event_total",
            "Counter of audit events generated and sent to the audit backend.",
        )?;
        registry.register(Box::new(events.clone()))?;
        let queued_audit_events = IntGaugeVec::new(
            Opts::new(
                "portcullis_audit_queued_events",
                "Number of audit events that wait for a backend or are being written by it.",
            ),
            &["backend"],
        )?;
        registry.register(Box::new(queued_audit_events.clone()))?;
        Ok(Self {
            audit_event_count: events,
            audit_level_counts: counters(
                "apiserver_audit_level_total",
                "Counter of policy levels for audit events (1 per request).",
                &["level"],
            )?,
            audit_error_counts: counters(
                "apiserver_audit_error_total",
                "Counter of audit events that failed to be audited properly. Plugin identifies the \
                 plugin affected by the error.",
                &["plugin"],
            )?,
            lost_audit_events: counters(
                "portcullis_audit_lost_events_total",
                "Number of audit events that a backend lost: its queue was full, one user had taken up \
                 half of the queue, the write failed, or the event was too large.",
                &["backend", "cause"],
            )?,
            queued_audit_events,
        })
    }

    /// Sets the metrics from the counts of the auditor.
    pub fn set_from_auditor(&self, auditor: &Auditor) {
        self.audit_event_count
            .inc_by(auditor.n_events().saturating_sub(self.audit_event_count.get()));
        for (level, count) in auditor.n_requests_by_level() {
            raise_counter_to(&self.audit_level_counts.with_label_values(&[level.name()]), count);
        }
        let mut n_buffered = 0;
        for status in auditor.backend_statuses() {
            let mut n_failed = 0;
            for (cause, count) in status.n_lost_events_by_cause {
                raise_counter_to(
                    &self.lost_audit_events.with_label_values(&[status.name, cause.name()]),
                    count,
                );
                match cause {
                    LossCause::QueueFull | LossCause::UserShare => n_buffered += count,
                    LossCause::Failed | LossCause::TooLarge => n_failed += count,
                }
            }
            raise_counter_to(&self.audit_error_counts.with_label_values(&[status.name]), n_failed);
            let n_queued = i64::try_from(status.n_queued_events).unwrap_or(i64::MAX);
            self.queued_audit_events.with_label_values(&[status.name]).set(n_queued);
        }
        raise_counter_to(&self.audit_error_counts.with_label_values(&[BUFFERED]), n_buffered);
    }
}

/// Raises a counter to a total that another component counts.
fn raise_counter_to(counter: &IntCounter, count: u64) {
    counter.inc_by(count.saturating_sub(counter.get()));
}
