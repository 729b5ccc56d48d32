//! Logs that audit backends lose events.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::server_state::ServerState;

/// The minimum time between two lines about one backend. A line for each lost event would flood the log.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Logs how many events each backend has lost since the last line, and the last error of its sink. Runs until the
/// task is dropped.
pub(crate) async fn log_audit_losses(server: Arc<ServerState>) {
    let Some(auditor) = &server.auditor else { return };
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
                server.log.error(
                    "audit events were lost",
                    &[("backend", &status.name), ("events", &events), ("why", &why)],
                );
            }
        }
    }
}
