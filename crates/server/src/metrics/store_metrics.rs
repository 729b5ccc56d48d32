//! Metrics about the space that the store uses.

use prometheus::{IntCounter, IntGauge, IntGaugeVec, Opts, Registry};
use store::{Alarm, StoreStatus};

/// The metrics about the space that the store uses. All are zero for etcd.
pub(crate) struct StoreMetrics {
    store_size_bytes: IntGauge,
    live_object_bytes: IntGauge,
    store_quota_bytes: IntGauge,
    store_history_bytes: IntGauge,
    store_history_bytes_max: IntGauge,
    disk_free_bytes: IntGauge,
    raised_store_alarms: IntGaugeVec,
    is_store_degraded: IntGauge,
    refused_writes: IntCounter,
    throttled_writes: IntCounter,
}

impl StoreMetrics {
    /// Registers all metrics with the value zero.
    ///
    /// # Errors
    /// A metric name is malformed or already registered.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone())).map(|()| gauge)
        };
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone())).map(|()| counter)
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
            store_size_bytes: gauge(
                "apiserver_storage_size_bytes",
                "Size of the files of the embedded store in bytes.",
            )?,
            live_object_bytes: gauge(
                "portcullis_store_live_bytes",
                "Bytes of the current versions of all objects.",
            )?,
            store_quota_bytes: gauge(
                "portcullis_store_quota_bytes",
                "Bytes that the current versions of all objects may take up.",
            )?,
            store_history_bytes: gauge(
                "portcullis_store_history_bytes",
                "Bytes of the changes that watches can still be told.",
            )?,
            store_history_bytes_max: gauge(
                "portcullis_store_history_max_bytes",
                "Bytes of changes beyond which the oldest are forgotten.",
            )?,
            disk_free_bytes: gauge(
                "portcullis_store_disk_free_bytes",
                "Free space of the disk of the embedded store in bytes.",
            )?,
            raised_store_alarms: alarms,
            is_store_degraded: gauge(
                "portcullis_store_degraded",
                "Whether the store fails to write a snapshot, a page of history or another log file.",
            )?,
            refused_writes: counter(
                "portcullis_store_refused_writes_total",
                "Number of writes that were refused because the store has no room for them.",
            )?,
            throttled_writes: counter(
                "portcullis_store_throttled_writes_total",
                "Number of writes that were put off because one namespace had written too much.",
            )?,
        })
    }

    /// Sets the metrics from the status of the store.
    pub(crate) fn set_from_store_status(&self, status: &StoreStatus) {
        let gauge_value = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        for alarm in Alarm::ALL {
            let is_on = status.alarms.contains(&alarm);
            self.raised_store_alarms.with_label_values(&[alarm.name()]).set(i64::from(is_on));
        }
        self.is_store_degraded.set(i64::from(status.maintenance_failure_text.is_some()));
        let Some(usage) = &status.space_usage else { return };
        self.store_size_bytes.set(gauge_value(usage.disk_bytes));
        self.live_object_bytes.set(gauge_value(usage.live_bytes));
        self.store_quota_bytes.set(gauge_value(usage.quota_bytes));
        self.store_history_bytes.set(gauge_value(usage.history_bytes));
        self.store_history_bytes_max.set(gauge_value(usage.history_bytes_max));
        self.disk_free_bytes.set(gauge_value(usage.disk_free_bytes.unwrap_or(0)));
        self.refused_writes
            .inc_by(usage.n_refused_writes.saturating_sub(self.refused_writes.get()));
        self.throttled_writes
            .inc_by(usage.n_throttled_writes.saturating_sub(self.throttled_writes.get()));
    }
}
