//! Logs the alarms and the health of the store.

use std::sync::Arc;
use std::time::Duration;

use component_base::LogField;
use store::{Alarm, StoreStatus};

use crate::server_state::ServerState;

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Logs once when an alarm is raised or cleared, when the store becomes degraded or recovers, and, for a
/// store with its own files, when it can no longer be written or can be written again. A second failing
/// duty of a degraded store is not logged while the first one lasts. Runs until the task is dropped.
pub(crate) async fn log_store_alarms(server: Arc<ServerState>) {
    let mut before = StoreStatus::default();
    let mut is_writable = true;
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = server.store.status();
        for alarm in Alarm::ALL {
            let fields: [LogField<'_>; 1] = [("alarm", &alarm.name())];
            match (before.alarms.contains(&alarm), now.alarms.contains(&alarm)) {
                (false, true) => server.log.error(
                    "the store is short of space and refuses writes that add; delete objects, or \
                     give it more",
                    &fields,
                ),
                (true, false) => server.log.notice("the store has space again", &fields),
                (true, true) | (false, false) => {}
            }
        }
        match (&before.maintenance_failure_text, &now.maintenance_failure_text) {
            (None, Some(why)) => server.log.error("the store is degraded", &[("why", why)]),
            (Some(_), None) => server.log.notice("the store is not degraded any more", &[]),
            (Some(_), Some(_)) | (None, None) => {}
        }
        // Only the embedded store reports its health without a request over the network.
        if now.space_usage.is_some() {
            match (is_writable, server.store.check_health().await) {
                (true, Err(why)) => {
                    is_writable = false;
                    server.log.error("the store cannot be written", &[("why", &why)]);
                }
                (false, Ok(())) => {
                    is_writable = true;
                    server.log.notice("the store can be written again", &[]);
                }
                (true, Ok(())) | (false, Err(_)) => {}
            }
        }
        before = now;
    }
}
