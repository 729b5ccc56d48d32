//! The authorization configuration in effect, and the results of reloads.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use authz_reload::{AppliedConfig, ReloadStatus, sha256_hash};
use prometheus::proto::MetricFamily;

use super::family_definitions;
use crate::family_samples::FamilySamples;

/// The metrics of the authorization configuration.
#[derive(Debug)]
pub(crate) struct ConfigReloads {
    /// The hash of the identity of this server.
    server_id_hash: String,
    reload_state: Mutex<ReloadState>,
}

/// One value behind one lock, so that a collector reads a hash together with its generation.
#[derive(Debug, Default)]
struct ReloadState {
    config_hash: Option<String>,
    config_generation: u64,
    successful_reloads: ReloadCountAndTime,
    failed_reloads: ReloadCountAndTime,
}

#[derive(Debug, Default)]
struct ReloadCountAndTime {
    n_reloads: u64,
    last_reload_unix_seconds: f64,
}

impl ConfigReloads {
    pub(crate) fn new(server_id: &str) -> Self {
        Self { server_id_hash: sha256_hash(server_id.as_bytes()), reload_state: Mutex::default() }
    }

    pub(crate) fn record_reload(&self, status: ReloadStatus, at: SystemTime) {
        let mut state = self.lock();
        let count = match status {
            ReloadStatus::Success => &mut state.successful_reloads,
            ReloadStatus::Failure => &mut state.failed_reloads,
        };
        count.n_reloads += 1;
        // A time before 1970 is exposed as 1970.
        count.last_reload_unix_seconds =
            at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    }

    pub(crate) fn set_applied_config(&self, applied: &AppliedConfig<'_>) {
        let mut state = self.lock();
        state.config_hash = applied.hash.map(str::to_owned);
        state.config_generation = applied.generation;
    }

    pub(crate) fn collect_config_generation(&self) -> MetricFamily {
        let mut generation = FamilySamples::new(&family_definitions::CONFIG_GENERATION);
        generation.push_gauge(&[], self.lock().config_generation as f64);
        generation.into_metric_family()
    }

    /// Reads the metrics that only a server with a configuration file exposes.
    pub(crate) fn collect_config_file_metrics(&self) -> [MetricFamily; 3] {
        let mut last_times = FamilySamples::new(&family_definitions::LAST_RELOAD_TIME);
        let mut counts = FamilySamples::new(&family_definitions::RELOADS);
        let mut info = FamilySamples::new(&family_definitions::CONFIG_INFO);
        let state = self.lock();
        for status in ReloadStatus::ALL {
            let count = match status {
                ReloadStatus::Success => &state.successful_reloads,
                ReloadStatus::Failure => &state.failed_reloads,
            };
            if count.n_reloads > 0 {
                let labels = [&self.server_id_hash, status.name()];
                last_times.push_gauge(&labels, count.last_reload_unix_seconds);
            }
            counts.push_counter(&[&self.server_id_hash, status.name()], count.n_reloads);
        }
        if let Some(hash) = &state.config_hash {
            info.push_gauge(&[&self.server_id_hash, hash], 1.0);
        }
        [last_times, counts, info].map(FamilySamples::into_metric_family)
    }

    fn lock(&self) -> MutexGuard<'_, ReloadState> {
        self.reload_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
