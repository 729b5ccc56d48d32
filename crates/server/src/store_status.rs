//! How full the store is: in metrics, in the log, and in answers to writes that find no room.

use std::sync::Arc;
use std::time::Duration;

use api_object::Status;
use prometheus::{IntCounter, IntGauge, IntGaugeVec, Opts, Registry};
use store::{Alarm, Store, StoreStatus};

use crate::server_state::ServerState;

/// How often the server looks whether the store has raised or cleared an alarm.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Numbers about the space that the store takes up. All are zero for a store of another program.
pub(crate) struct StoreMetrics {
    size: IntGauge,
    live: IntGauge,
    quota: IntGauge,
    history: IntGauge,
    history_max: IntGauge,
    disk_free: IntGauge,
    alarms: IntGaugeVec,
    degraded: IntGauge,
    refused: IntCounter,
    throttled: IntCounter,
}

impl StoreMetrics {
    /// All numbers at zero.
    ///
    /// # Errors
    /// A name is malformed or taken, which a test would have found.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str| {
            let own = IntGauge::new(name, help)?;
            registry.register(Box::new(own.clone())).map(|()| own)
        };
        let counter = |name: &str, help: &str| {
            let own = IntCounter::new(name, help)?;
            registry.register(Box::new(own.clone())).map(|()| own)
        };
        let alarms = IntGaugeVec::new(
            Opts::new(
                "portcullis_store_alarm",
                "Whether the store refuses writes that add, by reason: the quota is used up, or the \
                 disk has too little free space.",
            ),
            &["alarm"],
        )?;
        registry.register(Box::new(alarms.clone()))?;
        Ok(Self {
            size: gauge(
                "apiserver_storage_size_bytes",
                "Size of the files of the embedded store in bytes.",
            )?,
            live: gauge(
                "portcullis_store_live_bytes",
                "Bytes of the current versions of all objects.",
            )?,
            quota: gauge(
                "portcullis_store_quota_bytes",
                "Bytes that the current versions of all objects may take up.",
            )?,
            history: gauge(
                "portcullis_store_history_bytes",
                "Bytes of the changes that watches can still be told.",
            )?,
            history_max: gauge(
                "portcullis_store_history_max_bytes",
                "Bytes of changes beyond which the oldest are forgotten.",
            )?,
            disk_free: gauge(
                "portcullis_store_disk_free_bytes",
                "Free space of the disk of the embedded store in bytes.",
            )?,
            alarms,
            degraded: gauge(
                "portcullis_store_degraded",
                "Whether the store fails to write a snapshot, a page of history or another log file.",
            )?,
            refused: counter(
                "portcullis_store_refused_writes_total",
                "Number of writes that were refused because the store has no room for them.",
            )?,
            throttled: counter(
                "portcullis_store_throttled_writes_total",
                "Number of writes that were put off because one namespace had written too much.",
            )?,
        })
    }

    pub(crate) fn show(&self, status: &StoreStatus) {
        let number = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        for alarm in Alarm::ALL {
            let is_on = status.alarms.contains(&alarm);
            self.alarms.with_label_values(&[alarm.name()]).set(i64::from(is_on));
        }
        self.degraded.set(i64::from(status.degraded.is_some()));
        let Some(usage) = &status.usage else { return };
        self.size.set(number(usage.disk_bytes));
        self.live.set(number(usage.live_bytes));
        self.quota.set(number(usage.quota_bytes));
        self.history.set(number(usage.history_bytes));
        self.history_max.set(number(usage.history_bytes_max));
        self.disk_free.set(number(usage.disk_free_bytes.unwrap_or(0)));
        self.refused.inc_by(usage.n_refused.saturating_sub(self.refused.get()));
        self.throttled.inc_by(usage.n_throttled.saturating_sub(self.throttled.get()));
    }
}

/// Logs each alarm and each failing duty of the store once when it comes and once when it goes, until
/// the task is dropped.
pub(crate) async fn log_store_status<S: Store>(server: Arc<ServerState<S>>) {
    let mut before = StoreStatus::default();
    let mut is_written = true;
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = server.store.status();
        for alarm in Alarm::ALL {
            let facts: [crate::log::Fact<'_>; 1] = [("alarm", &alarm.name())];
            match (before.alarms.contains(&alarm), now.alarms.contains(&alarm)) {
                (false, true) => server.log.error(
                    "the store is short of space and refuses writes that add; delete objects, or \
                     give it more",
                    &facts,
                ),
                (true, false) => server.log.notice("the store has space again", &facts),
                (true, true) | (false, false) => {}
            }
        }
        match (&before.degraded, &now.degraded) {
            (None, Some(why)) => server.log.error("the store is degraded", &[("why", why)]),
            (Some(_), None) => server.log.notice("the store is not degraded any more", &[]),
            (Some(_), Some(_)) | (None, None) => {}
        }
        // Only a store that looks after its own files can tell without asking anybody.
        if now.usage.is_some() {
            match (is_written, server.store.health().await) {
                (true, Err(why)) => {
                    is_written = false;
                    server.log.error("the store can not be written", &[("why", &why)]);
                }
                (false, Ok(())) => {
                    is_written = true;
                    server.log.notice("the store can be written again", &[]);
                }
                (true, Ok(())) | (false, Err(_)) => {}
            }
        }
        before = now;
    }
}

/// The answer to a write that found no room. Trying again does not help, so it asks for no retry.
pub(crate) fn no_space(share: Option<&str>) -> Status {
    Status::insufficient_storage(&match share {
        None => {
            "database space exceeded: writes that add are refused until space is freed".to_owned()
        }
        Some(share) => format!(
            "database space exceeded: {} has used up its share until objects of it are deleted",
            owner(share)
        ),
    })
}

/// The answer to a write of a namespace that has written too much.
pub(crate) fn throttled(share: &str, retry_after: Duration) -> Status {
    let why = format!("{} has written too much data in the last minutes", owner(share));
    let seconds = u32::try_from(retry_after.as_secs()).unwrap_or(u32::MAX).max(1);
    Status::too_many_requests(&why, seconds)
}

/// A share is a namespace, or the prefix of the keys of a resource without one.
fn owner(share: &str) -> String {
    match share.strip_suffix('/') {
        None => format!("namespace {}", go_compat::quote(share)),
        Some(path) => {
            format!("resource {}", go_compat::quote(path.rsplit('/').next().unwrap_or(path)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_name_the_namespace_or_the_resource() {
        let status = throttled("team-a", Duration::from_secs(10));
        assert_eq!((status.code, status.retry_after_seconds()), (429, Some(10)));
        let want =
            "Too many requests: namespace \"team-a\" has written too much data in the last minutes";
        assert_eq!(status.message, want);
        let status = no_space(Some("/registry/minions/"));
        assert_eq!((status.code, status.retry_after_seconds()), (507, None));
        assert!(status.message.contains("resource \"minions\" has used up its share"));
        assert_eq!(no_space(None).reason, "InsufficientStorage");
    }
}
