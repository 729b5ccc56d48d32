//! The answers of each authorizer, and their durations.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use authz::Verdict;
use authz_chain::AuthorizerType;
use prometheus::proto::MetricFamily;

use super::family_definitions;
use crate::family_samples::FamilySamples;
use crate::series_by_name::SeriesByName;
use crate::striped_counters::{
    BucketBounds, DurationHistogram, StripedCounters, increment_counter,
};

/// The bounds range from the lookup in an index to the timeout of a webhook.
const BUCKETS_NS: BucketBounds<19> = [
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    5_000_000,
    25_000_000,
    100_000_000,
    500_000_000,
    2_500_000_000,
    10_000_000_000,
    30_000_000_000,
];

/// The counters of one authorizer.
///
/// INVARIANT: one observation makes three additions, all to counters that few threads share.
#[derive(Debug, Default)]
pub(crate) struct AuthorizerCounters {
    stripes: StripedCounters<AuthorizerStripe>,
}

#[derive(Debug, Default)]
struct AuthorizerStripe {
    n_allowed: AtomicU64,
    n_denied: AtomicU64,
    n_no_opinion: AtomicU64,
    decision_durations: DurationHistogram<{ BUCKETS_NS.len() }>,
}

impl AuthorizerCounters {
    pub(crate) fn count_authorizer_decision(&self, verdict: Verdict, took: Duration) {
        let stripe = self.stripes.stripe_of_this_thread();
        match verdict {
            Verdict::Allow => increment_counter(&stripe.n_allowed),
            Verdict::Deny => increment_counter(&stripe.n_denied),
            Verdict::NoOpinion => increment_counter(&stripe.n_no_opinion),
            // The webhook was not called; the metrics of the webhook have the reason.
            Verdict::Unavailable(_) => {}
        }
        stripe.decision_durations.observe_duration(&BUCKETS_NS, took);
    }
}

/// The counters of all authorizers.
#[derive(Debug, Default)]
pub(crate) struct AuthorizerDecisions {
    counters_by_authorizer: SeriesByName<(AuthorizerType, String), AuthorizerCounters>,
}

impl AuthorizerDecisions {
    pub(crate) fn get_or_create_counters(
        &self,
        kind: AuthorizerType,
        name: &str,
    ) -> Arc<AuthorizerCounters> {
        self.counters_by_authorizer.get_or_create_metrics((kind, name.to_owned()))
    }

    /// Reads the counters into metric families.
    pub(crate) fn collect(&self) -> [MetricFamily; 3] {
        let mut decisions = FamilySamples::new(&family_definitions::AUTHORIZER_DECISIONS);
        let mut no_opinions = FamilySamples::new(&family_definitions::NO_OPINIONS);
        let mut durations = FamilySamples::new(&family_definitions::AUTHORIZER_DURATION);
        for ((kind, name), authorizer) in self.counters_by_authorizer.list_metrics_in_use() {
            let stripes = &authorizer.stripes;
            let kind = kind.name();
            decisions.push_counter(
                &["allowed", &name, kind],
                stripes.sum_counter_over_stripes(|own| &own.n_allowed),
            );
            decisions.push_counter(
                &["denied", &name, kind],
                stripes.sum_counter_over_stripes(|own| &own.n_denied),
            );
            no_opinions.push_counter(
                &[&name, kind],
                stripes.sum_counter_over_stripes(|own| &own.n_no_opinion),
            );
            let merged =
                stripes.merge_histogram_over_stripes(&BUCKETS_NS, |own| &own.decision_durations);
            durations.push_histogram(&[&name, kind], merged);
        }
        [decisions, no_opinions, durations].map(FamilySamples::into_metric_family)
    }
}
