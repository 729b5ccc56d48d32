//! What each authorizer of the chain answers, and how quickly.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use authz::Verdict;
use authz_chain::AuthorizerType;
use prometheus::proto::MetricFamily;

use crate::family;
use crate::names::Names;
use crate::samples::Samples;
use crate::stripes::{Bounds, Histogram, Striped, count};

/// From a look into an index to a webhook that never answers.
const SECONDS: Bounds<19> = [
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

/// The numbers of one authorizer.
///
/// INVARIANT: an observation takes three additions to numbers that few threads share.
#[derive(Debug, Default)]
pub(crate) struct Authorizer {
    shares: Striped<Share>,
}

#[derive(Debug, Default)]
struct Share {
    n_allowed: AtomicU64,
    n_denied: AtomicU64,
    n_no_opinion: AtomicU64,
    times: Histogram<{ SECONDS.len() }>,
}

impl Authorizer {
    pub(crate) fn count_decision(&self, verdict: Verdict, took: Duration) {
        let share = self.shares.mine();
        match verdict {
            Verdict::Allow => count(&share.n_allowed),
            Verdict::Deny => count(&share.n_denied),
            Verdict::NoOpinion => count(&share.n_no_opinion),
            // This server did not ask; the numbers of the webhook tell why.
            Verdict::Unavailable(_) => {}
        }
        share.times.observe(&SECONDS, took);
    }
}

/// The numbers of all authorizers.
#[derive(Debug, Default)]
pub(crate) struct Authorizers {
    all: Names<(AuthorizerType, String), Authorizer>,
}

impl Authorizers {
    /// The numbers of an authorizer.
    pub(crate) fn named(&self, kind: AuthorizerType, name: &str) -> Arc<Authorizer> {
        self.all.named((kind, name.to_owned()))
    }

    /// The numbers as they are now.
    pub(crate) fn collect(&self) -> [MetricFamily; 3] {
        let mut decisions = Samples::of(&family::DECISIONS);
        let mut no_opinions = Samples::of(&family::NO_OPINIONS);
        let mut times = Samples::of(&family::AUTHORIZER_SECONDS);
        for ((kind, name), authorizer) in self.all.living() {
            let shares = &authorizer.shares;
            let kind = kind.name();
            decisions.counter(&["allowed", &name, kind], shares.sum(|share| &share.n_allowed));
            decisions.counter(&["denied", &name, kind], shares.sum(|share| &share.n_denied));
            no_opinions.counter(&[&name, kind], shares.sum(|share| &share.n_no_opinion));
            times.histogram(&[&name, kind], shares.distribution(&SECONDS, |share| &share.times));
        }
        [decisions.finish(), no_opinions.finish(), times.finish()]
    }
}
