//! Certificates of webhooks that were refused.

use std::sync::atomic::AtomicU64;

use prometheus::proto::MetricFamily;

use crate::family;
use crate::samples::Samples;
use crate::stripes::{count, read};

/// The numbers of all connections to webhooks.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    n_missing_san: AtomicU64,
    n_sha1: AtomicU64,
}

impl https_client::Observe for Certificates {
    fn missing_san(&self) {
        count(&self.n_missing_san);
    }

    fn sha1_signature(&self) {
        count(&self.n_sha1);
    }
}

impl Certificates {
    /// The numbers as they are now.
    pub(crate) fn collect(&self) -> [MetricFamily; 2] {
        let mut missing_san = Samples::of(&family::MISSING_SAN);
        let mut sha1 = Samples::of(&family::INSECURE_SHA1);
        missing_san.counter(&[], read(&self.n_missing_san));
        sha1.counter(&[], read(&self.n_sha1));
        [missing_san.finish(), sha1.finish()]
    }
}
