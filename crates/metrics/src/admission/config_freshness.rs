//! The freshness of the admission configuration.

use std::time::Duration;

use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, Registry};

use crate::register::{counter, counter_vec, gauge, int_gauge};

/// Why a request is refused before any hook is called: the admission configuration is not known to be current.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfigRefusal {
    /// No configuration has been read since the start of the server.
    Pending,
    /// The configuration has not been confirmed for too long.
    Stale,
    /// A newer configuration is known to exist and did not arrive in time.
    Behind,
}

impl ConfigRefusal {
    /// All reasons of refusals.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Stale, Self::Behind];

    /// The value of the label `reason`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Stale => "stale",
            Self::Behind => "behind",
        }
    }
}

#[derive(Debug)]
pub(crate) struct ConfigFreshness {
    revision: IntGauge,
    age_seconds: Gauge,
    refused_requests: IntCounterVec,
    pub(crate) degraded_requests: IntCounter,
}

impl ConfigFreshness {
    /// Registers the metrics. All series exist from the start, so that the first event is an increase.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let refused_requests = counter_vec(
            registry,
            "portcullis_admission_config_refused_total",
            &["reason"],
            "[ALPHA] Requests that were refused because the admission configuration is not known.",
        )?;
        for reason in ConfigRefusal::ALL {
            let _ = refused_requests.with_label_values(&[reason.label()]);
        }
        Ok(Self {
            revision: int_gauge(
                registry,
                "portcullis_admission_config_revision",
                "[ALPHA] The revision of the store up to which changes of the admission configuration \
                 are in effect.",
            )?,
            age_seconds: gauge(
                registry,
                "portcullis_admission_config_age_seconds",
                "[ALPHA] How long ago the admission configuration was last known to be the newest.",
            )?,
            refused_requests,
            degraded_requests: counter(
                registry,
                "portcullis_admission_config_degraded_total",
                "[ALPHA] Requests that were admitted with a configuration confirmed some seconds \
                 before, because whether it still is the newest could not be read.",
            )?,
        })
    }

    pub(crate) fn set(&self, revision: u64, age: Duration) {
        self.revision.set(i64::try_from(revision).unwrap_or(i64::MAX));
        self.age_seconds.set(age.as_secs_f64());
    }

    pub(crate) fn count_refusal(&self, reason: ConfigRefusal) {
        self.refused_requests.with_label_values(&[reason.label()]).inc();
    }
}
