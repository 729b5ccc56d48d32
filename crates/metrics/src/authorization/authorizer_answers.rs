//! The answers of each authorizer, and their durations.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use authz::Verdict;
use authz_chain::AuthorizerType;
use prometheus::proto::MetricFamily;

use super::families;
use crate::family_samples::FamilySamples;
use crate::series_by_name::SeriesByName;
use crate::striped_counters::{BucketBounds, Histogram, Striped, increment};

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
    stripes: Striped<AuthorizerStripe>,
}

#[derive(Debug, Default)]
struct AuthorizerStripe {
    n_allowed: AtomicU64,
    n_denied: AtomicU64,
    n_no_opinion: AtomicU64,
    answer_durations: Histogram<{ BUCKETS_NS.len() }>,
}

impl AuthorizerCounters {
    pub(crate) fn count_decision(&self, verdict: Verdict, took: Duration) {
        let stripe = self.stripes.stripe_of_this_thread();
        match verdict {
            Verdict::Allow => increment(&stripe.n_allowed),
            Verdict::Deny => increment(&stripe.n_denied),
            Verdict::NoOpinion => increment(&stripe.n_no_opinion),
            // The webhook was not called; the metrics of the webhook have the reason.
            Verdict::Unavailable(_) => {}
        }
        stripe.answer_durations.observe(&BUCKETS_NS, took);
    }
}

/// The counters of all authorizers.
#[derive(Debug, Default)]
pub(crate) struct AuthorizerAnswers {
    counters: SeriesByName<(AuthorizerType, String), AuthorizerCounters>,
}

impl AuthorizerAnswers {
    pub(crate) fn get_or_create(
        &self,
        kind: AuthorizerType,
        name: &str,
    ) -> Arc<AuthorizerCounters> {
        self.counters.get_or_create((kind, name.to_owned()))
    }

    /// Reads the counters into metric families.
    pub(crate) fn collect(&self) -> [MetricFamily; 3] {
        let mut decisions = FamilySamples::new(&families::AUTHORIZER_DECISIONS);
        let mut no_opinions = FamilySamples::new(&families::NO_OPINIONS);
        let mut durations = FamilySamples::new(&families::AUTHORIZER_DURATION);
        for ((kind, name), authorizer) in self.counters.list_in_use() {
            let stripes = &authorizer.stripes;
            let kind = kind.name();
            decisions
                .push_counter(&["allowed", &name, kind], stripes.sum_counter(|own| &own.n_allowed));
            decisions
                .push_counter(&["denied", &name, kind], stripes.sum_counter(|own| &own.n_denied));
            no_opinions.push_counter(&[&name, kind], stripes.sum_counter(|own| &own.n_no_opinion));
            let merged = stripes.merged_histogram(&BUCKETS_NS, |own| &own.answer_durations);
            durations.push_histogram(&[&name, kind], merged);
        }
        [decisions, no_opinions, durations].map(FamilySamples::into_family)
    }
}
