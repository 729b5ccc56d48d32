//! Insecure certificates that webhooks present.

use std::sync::atomic::AtomicU64;

use prometheus::proto::MetricFamily;

use super::family_definitions;
use crate::family_samples::FamilySamples;
use crate::striped_counters::{increment_counter, load_counter};

/// The counters of all connections to webhooks, those for admission included: Kubernetes counts them together.
#[derive(Debug, Default)]
pub(crate) struct InsecureCertificateCounters {
    n_missing_san: AtomicU64,
    n_sha1_signatures: AtomicU64,
}

impl https_client::CertificateObserver for InsecureCertificateCounters {
    fn on_missing_san(&self) {
        increment_counter(&self.n_missing_san);
    }

    fn on_sha1_signature(&self) {
        increment_counter(&self.n_sha1_signatures);
    }
}

impl InsecureCertificateCounters {
    /// Reads the counters into metric families.
    pub(crate) fn collect(&self) -> [MetricFamily; 2] {
        let mut missing_san = FamilySamples::new(&family_definitions::MISSING_SAN);
        let mut sha1 = FamilySamples::new(&family_definitions::SHA1_SIGNATURES);
        missing_san.push_counter(&[], load_counter(&self.n_missing_san));
        sha1.push_counter(&[], load_counter(&self.n_sha1_signatures));
        [missing_san, sha1].map(FamilySamples::into_metric_family)
    }
}
