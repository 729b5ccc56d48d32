//! What an extension server asks of the server that decides for it.

use std::sync::Arc;
use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

/// Upper ends of the classes of durations, in seconds; those of Kubernetes.
const SECONDS: [f64; 8] = [0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0];

/// The numbers of the delegated role. Its requests are few, since answers are kept, so these are
/// looked up by their label each time.
#[derive(Debug)]
pub struct DelegatedMetrics {
    requests: IntCounterVec,
    seconds: HistogramVec,
}

impl DelegatedMetrics {
    /// All numbers at zero, to be seen in the registry.
    ///
    /// # Errors
    /// The registry has the families already.
    pub fn new(registry: &Registry) -> Result<Arc<Self>, prometheus::Error> {
        let requests = IntCounterVec::new(
            Opts::new(
                "apiserver_delegated_authz_request_total",
                "[ALPHA] Reviews sent to the server that decides, by the status code of its answer.",
            ),
            &["code"],
        )?;
        let seconds = HistogramVec::new(
            HistogramOpts::new(
                "apiserver_delegated_authz_request_duration_seconds",
                "[ALPHA] How long such a review took in seconds, by the status code of its answer.",
            )
            .buckets(SECONDS.to_vec()),
            &["code"],
        )?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(seconds.clone()))?;
        Ok(Arc::new(Self { requests, seconds }))
    }
}

impl authz_delegated::Observe for DelegatedMetrics {
    fn requested(&self, code: &str, took: Duration) {
        self.requests.with_label_values(&[code]).inc();
        self.seconds.with_label_values(&[code]).observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authz_delegated::Observe as _;
    use prometheus::{Encoder, TextEncoder};

    /// The families M13 and M14 of the chain.
    #[test]
    fn reviews_are_counted_by_their_code() {
        let registry = Registry::new();
        let metrics = DelegatedMetrics::new(&registry).unwrap();
        metrics.requested("201", Duration::from_millis(600));
        metrics.requested("<error>", Duration::from_secs(11));
        let mut text = Vec::new();
        TextEncoder::new().encode(&registry.gather(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for line in [
            "apiserver_delegated_authz_request_total{code=\"201\"} 1",
            "apiserver_delegated_authz_request_total{code=\"<error>\"} 1",
            "apiserver_delegated_authz_request_duration_seconds_bucket{code=\"201\",le=\"0.5\"} 0",
            "apiserver_delegated_authz_request_duration_seconds_bucket{code=\"201\",le=\"0.7\"} 1",
            "apiserver_delegated_authz_request_duration_seconds_bucket{code=\"<error>\",le=\"10\"} 0",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
        assert!(DelegatedMetrics::new(&registry).is_err());
    }
}
