//! Logs that audit backends lose events, and writes the last ones when a program stops.

use std::collections::HashMap;
use std::time::Duration;

use audit::Auditor;

use crate::log::Log;

/// The minimum time between two lines about one backend. A line for each lost event would flood the log.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// The maximum time that a stopping program waits until the audit backends have written their queued events.
const AUDIT_FLUSH_TIME_MAX: Duration = Duration::from_secs(5);

/// Logs how many events each backend has lost since the last line, and the last error of its sink. Runs until the
/// task is dropped.
pub async fn log_audit_losses(auditor: Option<&Auditor>, log: Log) {
    let Some(auditor) = auditor else { return };
    let mut n_lost_before: HashMap<&'static str, u64> = HashMap::new();
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for status in auditor.backend_statuses() {
            let n_lost = status.n_lost_events_in_total();
            let before = n_lost_before.insert(status.name, n_lost).unwrap_or(0);
            if n_lost > before {
                let why = status.last_sink_error.as_deref().unwrap_or("the queue is full");
                let events = n_lost - before;
                log.error(
                    "audit events were lost",
                    &[("backend", &status.name), ("events", &events), ("why", &why)],
                );
            }
        }
    }
}

/// Writes the audit events that wait in queues, within a limit, since a backend may hang.
pub async fn flush_audit_events(auditor: Option<&Auditor>, log: Log) {
    let Some(auditor) = auditor else { return };
    if !auditor.flush(AUDIT_FLUSH_TIME_MAX).await {
        for status in auditor.backend_statuses().filter(|status| status.n_queued_events > 0) {
            log.error(
                "audit events are lost, because the backend did not take them before the server stopped",
                &[("backend", &status.name), ("events", &status.n_queued_events)],
            );
        }
    }
}
