//! The freshness of the admission configuration.

use std::time::Duration;

use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, Registry};

use crate::register_metrics::{
    register_counter, register_counter_vec, register_gauge, register_int_gauge,
};

/// Why a request is refused before any hook is called: the admission configuration is not known to be current.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StaleConfigRefusal {
    /// No configuration has been read since the start of the server.
    Pending,
    /// The configuration has not been confirmed for too long.
    Stale,
    /// A newer configuration is known to exist and did not arrive in time.
    Behind,
}

impl StaleConfigRefusal {
    /// All reasons for a refusal.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Stale, Self::Behind];

    /// The value of the label `reason`.
    #[must_use]
    pub const fn label_value(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Stale => "stale",
            Self::Behind => "behind",
        }
    }
}

#[derive(Debug)]
pub(crate) struct ConfigFreshness {
    config_revision: IntGauge,
    config_age_seconds: Gauge,
    unconfirmed_config_refusals: IntCounterVec,
    pub(crate) unconfirmed_config_admissions: IntCounter,
}

impl ConfigFreshness {
    /// Registers the metrics. All series exist from the start, so that the first event is an increase.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let unconfirmed_config_refusals = register_counter_vec(
            registry,
            "portcullis_admission_config_refused_total",
            &["reason"],
            "[ALPHA] Requests that were refused because the admission configuration is not known to be current.",
        )?;
        for reason in StaleConfigRefusal::ALL {
            let _ = unconfirmed_config_refusals.with_label_values(&[reason.label_value()]);
        }
        Ok(Self {
            config_revision: register_int_gauge(
                registry,
                "portcullis_admission_config_revision",
                "[ALPHA] Store revision up to which changes of the admission configuration are in effect.",
            )?,
            config_age_seconds: register_gauge(
                registry,
                "portcullis_admission_config_age_seconds",
                "[ALPHA] Time since the store last confirmed that the admission configuration is the newest.",
            )?,
            unconfirmed_config_refusals,
            unconfirmed_config_admissions: register_counter(
                registry,
                "portcullis_admission_config_degraded_total",
                "[ALPHA] Requests that were admitted with a configuration that the store confirmed seconds \
                 before, because the store could not confirm it again.",
            )?,
        })
    }

    pub(crate) fn set_admission_config_freshness(&self, config_revision: u64, age: Duration) {
        self.config_revision.set(i64::try_from(config_revision).unwrap_or(i64::MAX));
        self.config_age_seconds.set(age.as_secs_f64());
    }

    pub(crate) fn count_stale_config_refusal(&self, reason: StaleConfigRefusal) {
        self.unconfirmed_config_refusals.with_label_values(&[reason.label_value()]).inc();
    }
}
