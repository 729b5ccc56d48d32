//! What the whole chain answers about requests, and how quickly.

use std::time::Duration;

use authz::{Decision, Verdict};
use prometheus::proto::MetricFamily;

use crate::family;
use crate::samples::Samples;
use crate::stripes::{Bounds, Histogram, Striped};

/// From a millisecond on, each twice the one before.
const SECONDS: Bounds<15> = {
    let mut bounds = [0; 15];
    let mut k = 0;
    while k < bounds.len() {
        bounds[k] = 1_000_000 << k;
        k += 1;
    }
    bounds
};

/// The numbers of all requests. Each request is counted under one result and timed under the same,
/// so the times are the counts too.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    shares: Striped<Share>,
}

#[derive(Debug, Default)]
struct Share {
    allowed: Histogram<{ SECONDS.len() }>,
    denied: Histogram<{ SECONDS.len() }>,
    error: Histogram<{ SECONDS.len() }>,
    no_opinion: Histogram<{ SECONDS.len() }>,
}

/// The times of one result.
type Part = fn(&Share) -> &Histogram<{ SECONDS.len() }>;

/// All results.
const RESULTS: [(&str, Part); 4] = [
    ("allowed", |share| &share.allowed),
    ("denied", |share| &share.denied),
    ("error", |share| &share.error),
    ("no-opinion", |share| &share.no_opinion),
];

impl Requests {
    /// Counts a request. What is allowed is so in spite of an error; otherwise an error says more
    /// than the refusal that follows from it.
    pub(crate) fn decided(&self, decision: &Decision, took: Duration) {
        let share = self.shares.mine();
        let times = match (decision.verdict, &decision.error) {
            (Verdict::Allow, _) => &share.allowed,
            (Verdict::Deny | Verdict::NoOpinion, Some(_)) | (Verdict::Unavailable(_), _) => {
                &share.error
            }
            (Verdict::Deny, None) => &share.denied,
            (Verdict::NoOpinion, None) => &share.no_opinion,
        };
        times.observe(&SECONDS, took);
    }

    /// The numbers as they are now.
    pub(crate) fn collect(&self) -> [MetricFamily; 2] {
        let mut attempts = Samples::of(&family::ATTEMPTS);
        let mut times = Samples::of(&family::ATTEMPT_SECONDS);
        for (result, part) in RESULTS {
            let distribution = self.shares.distribution(&SECONDS, part);
            attempts.counter(&[result], distribution.n_all);
            times.histogram(&[result], distribution);
        }
        [attempts.finish(), times.finish()]
    }
}
