//! The decisions of the whole authorizer chain, and their durations.

use std::time::Duration;

use authz::{Decision, Verdict};
use prometheus::proto::MetricFamily;

use super::family_definitions;
use crate::family_samples::FamilySamples;
use crate::striped_counters::{BucketBounds, DurationHistogram, StripedCounters};

/// The bounds start at one millisecond, and each bound is twice the previous one.
const BUCKETS_NS: BucketBounds<15> = {
    let mut bounds = [0; 15];
    let mut k = 0;
    while k < bounds.len() {
        bounds[k] = 1_000_000 << k;
        k += 1;
    }
    bounds
};

/// The decisions of the chain. One histogram per result records the durations, and so also counts the decisions.
#[derive(Debug, Default)]
pub(crate) struct ChainDecisions {
    stripes: StripedCounters<DurationsByResult>,
}

#[derive(Debug, Default)]
struct DurationsByResult {
    allowed_durations: DurationHistogram<{ BUCKETS_NS.len() }>,
    denied_durations: DurationHistogram<{ BUCKETS_NS.len() }>,
    error_durations: DurationHistogram<{ BUCKETS_NS.len() }>,
    no_opinion_durations: DurationHistogram<{ BUCKETS_NS.len() }>,
}

type HistogramSelector = fn(&DurationsByResult) -> &DurationHistogram<{ BUCKETS_NS.len() }>;

/// The values of the label `result`, and the histogram of each.
const RESULTS: [(&str, HistogramSelector); 4] = [
    ("allowed", |own| &own.allowed_durations),
    ("denied", |own| &own.denied_durations),
    ("error", |own| &own.error_durations),
    ("no-opinion", |own| &own.no_opinion_durations),
];

impl ChainDecisions {
    /// Records a decision. A request that is allowed in spite of an error counts as allowed; a denial that follows
    /// from an error counts as an error.
    pub(crate) fn record_chain_decision(&self, decision: &Decision, took: Duration) {
        let durations = self.stripes.stripe_of_this_thread();
        let histogram = match (decision.verdict, &decision.error) {
            (Verdict::Allow, _) => &durations.allowed_durations,
            (Verdict::Deny | Verdict::NoOpinion, Some(_)) | (Verdict::Unavailable(_), _) => {
                &durations.error_durations
            }
            (Verdict::Deny, None) => &durations.denied_durations,
            (Verdict::NoOpinion, None) => &durations.no_opinion_durations,
        };
        histogram.observe_duration(&BUCKETS_NS, took);
    }

    /// Reads the counters into metric families.
    pub(crate) fn collect(&self) -> [MetricFamily; 2] {
        let mut decisions = FamilySamples::new(&family_definitions::CHAIN_DECISIONS);
        let mut durations = FamilySamples::new(&family_definitions::CHAIN_DURATION);
        for (result, histogram_of) in RESULTS {
            let merged = self.stripes.merge_histogram_over_stripes(&BUCKETS_NS, histogram_of);
            decisions.push_counter(&[result], merged.n_observations);
            durations.push_histogram(&[result], merged);
        }
        [decisions, durations].map(FamilySamples::into_metric_family)
    }
}
