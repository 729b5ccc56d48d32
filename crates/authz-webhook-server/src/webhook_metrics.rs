//! The metrics of the webhook itself. Those of its authorizers are in the crate `metrics`.

use std::time::Duration;

use prometheus::{
    Error, GaugeVec, Histogram, HistogramOpts, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use crate::cluster_resource::ClusterResource;

/// The upper bounds of the buckets of durations, in seconds. A decision without a call takes less than a millisecond.
const DURATION_BUCKETS: [f64; 10] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

/// The result of a review, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReviewResult {
    Allow,
    Deny,
    NoOpinion,
    /// The body is not a valid review.
    Invalid,
    /// The webhook could not decide: 503.
    Unavailable,
    /// Too many reviews are in progress: 429.
    TooMany,
}

impl ReviewResult {
    /// The value of the label `result`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::NoOpinion => "no_opinion",
            Self::Invalid => "invalid",
            Self::Unavailable => "unavailable",
            Self::TooMany => "too_many",
        }
    }
}

/// The metrics of the webhook.
#[derive(Debug)]
pub(crate) struct WebhookMetrics {
    reviews: IntCounterVec,
    review_durations: Histogram,
    watch_failures: IntCounterVec,
    proof_ages: GaugeVec,
    cached_objects: IntGaugeVec,
    recent_decisions: IntGauge,
    reviews_in_progress: IntGauge,
    ca_reloads: IntCounterVec,
}

impl WebhookMetrics {
    /// Registers all metrics.
    ///
    /// # Errors
    /// A metric is already registered.
    pub(crate) fn new(registry: &Registry) -> Result<Self, Error> {
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counters.clone())).map(|()| counters)
        };
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone())).map(|()| gauge)
        };
        let review_durations = Histogram::with_opts(
            HistogramOpts::new(
                "portcullis_webhook_review_duration_seconds",
                "Duration of the reviews that got a decision.",
            )
            .buckets(DURATION_BUCKETS.to_vec()),
        )?;
        registry.register(Box::new(review_durations.clone()))?;
        let proof_ages = GaugeVec::new(
            Opts::new(
                "portcullis_webhook_cache_proof_age_seconds",
                "Age of the last proof that the cache of a resource is current; -1 before the first.",
            ),
            &["resource"],
        )?;
        registry.register(Box::new(proof_ages.clone()))?;
        let cached_objects = IntGaugeVec::new(
            Opts::new("portcullis_webhook_cached_objects", "Number of cached objects."),
            &["resource"],
        )?;
        registry.register(Box::new(cached_objects.clone()))?;
        Ok(Self {
            reviews: counters(
                "portcullis_webhook_reviews_total",
                "Number of SubjectAccessReviews by result.",
                &["result"],
            )?,
            review_durations,
            watch_failures: counters(
                "portcullis_webhook_watch_failures_total",
                "Number of failed lists and watches of a resource of the cluster.",
                &["resource"],
            )?,
            proof_ages,
            cached_objects,
            recent_decisions: gauge(
                "portcullis_webhook_recent_decisions",
                "Number of decisions that can be explained.",
            )?,
            reviews_in_progress: gauge(
                "portcullis_webhook_reviews_in_progress",
                "Number of reviews in progress.",
            )?,
            ca_reloads: counters(
                "portcullis_webhook_ca_reloads_total",
                "Number of reloads of the CA file of clients.",
                &["file", "status"],
            )?,
        })
    }

    /// Counts a review. Its duration counts only if it got a decision.
    pub(crate) fn count_review(&self, result: ReviewResult, took: Duration) {
        self.reviews.with_label_values(&[result.name()]).inc();
        if matches!(result, ReviewResult::Allow | ReviewResult::Deny | ReviewResult::NoOpinion) {
            self.review_durations.observe(took.as_secs_f64());
        }
    }

    /// Counts a failed list or watch.
    pub(crate) fn count_watch_failure(&self, resource: ClusterResource) {
        self.watch_failures.with_label_values(&[resource.plural()]).inc();
    }

    /// Counts a reload of a CA file.
    pub(crate) fn count_ca_reload(&self, file: &str, status: &str) {
        self.ca_reloads.with_label_values(&[file, status]).inc();
    }

    /// Sets the state of one cache.
    pub(crate) fn set_cache_state(
        &self,
        resource: ClusterResource,
        proof_age: Option<Duration>,
        n_objects: usize,
    ) {
        let age = proof_age.map_or(-1.0, |age| age.as_secs_f64());
        self.proof_ages.with_label_values(&[resource.plural()]).set(age);
        let count = i64::try_from(n_objects).unwrap_or(i64::MAX);
        self.cached_objects.with_label_values(&[resource.plural()]).set(count);
    }

    /// Sets the numbers of decisions that can be explained and of reviews in progress.
    pub(crate) fn set_usage(&self, n_decisions: usize, n_reviews: usize) {
        self.recent_decisions.set(i64::try_from(n_decisions).unwrap_or(i64::MAX));
        self.reviews_in_progress.set(i64::try_from(n_reviews).unwrap_or(i64::MAX));
    }
}
