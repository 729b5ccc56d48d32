//! How new the configuration is that requests are admitted with (admission §5).

use std::time::Duration;

use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, Registry};

use crate::family::{counter, counters, gauge, int_gauge};

/// Why a request is refused without asking anybody: nobody knows whom to ask.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Stale, Self::Behind];

    /// The label `reason`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Stale => "stale",
            Self::Behind => "behind",
        }
    }
}

/// The numbers of the configuration.
#[derive(Debug)]
pub(crate) struct Configurations {
    revision: IntGauge,
    age: Gauge,
    refused: IntCounterVec,
    pub(crate) degraded: IntCounter,
}

impl Configurations {
    /// All series are there from the start, so that the first event is an increase.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let refused = counters(
            registry,
            "portcullis_admission_config_refused_total",
            &["reason"],
            "[ALPHA] Requests that were refused because the admission configuration is not known.",
        )?;
        for reason in ConfigRefusal::ALL {
            let _ = refused.with_label_values(&[reason.label()]);
        }
        Ok(Self {
            revision: int_gauge(
                registry,
                "portcullis_admission_config_revision",
                "[ALPHA] The revision of the store up to which changes of the admission configuration \
                 are in effect.",
            )?,
            age: gauge(
                registry,
                "portcullis_admission_config_age_seconds",
                "[ALPHA] How long ago the admission configuration was last known to be the newest.",
            )?,
            refused,
            degraded: counter(
                registry,
                "portcullis_admission_config_degraded_total",
                "[ALPHA] Requests that were admitted with a configuration confirmed some seconds \
                 before, because whether it still is the newest could not be read.",
            )?,
        })
    }

    pub(crate) fn show(&self, revision: u64, age: Duration) {
        self.revision.set(i64::try_from(revision).unwrap_or(i64::MAX));
        self.age.set(age.as_secs_f64());
    }

    pub(crate) fn refused(&self, reason: ConfigRefusal) {
        self.refused.with_label_values(&[reason.label()]).inc();
    }
}
