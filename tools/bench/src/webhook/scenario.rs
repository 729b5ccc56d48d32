//! The scenarios of the benchmark, and the amounts of work of each.

use std::sync::Arc;

use authz::Verdict;

use crate::webhook::environment::TargetWebhook;
use crate::webhook::review_request::ReviewRequest;

/// One kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// The answers are cached; the same few requests repeat.
    CachedFew,
    /// The answers are cached among many others, and are no longer in the processor cache.
    CachedMany,
    /// Each request calls the service, one after the other.
    Calls,
    /// Each request calls the service, many at a time.
    CallsAtOnce,
    /// Very many equal requests come at the same moment, and no answer is cached.
    Storm,
    /// Nothing listens at the address of the webhook.
    Dead,
}

impl Scenario {
    /// All scenarios in the order of the report.
    pub(crate) const ALL: [Self; 6] = [
        Self::CachedFew,
        Self::CachedMany,
        Self::Calls,
        Self::CallsAtOnce,
        Self::Dead,
        Self::Storm,
    ];

    /// The name of the scenario in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CachedFew => "cached, few questions",
            Self::CachedMany => "cached, many questions",
            Self::Calls => "call, HTTP/1.1",
            Self::CallsAtOnce => "call, HTTP/1.1, 16 at a time",
            Self::Storm => "storm",
            Self::Dead => "dead service",
        }
    }

    /// Whether every answer comes from the cache.
    pub(crate) fn is_cached(self) -> bool {
        matches!(self, Self::CachedFew | Self::CachedMany)
    }

    /// The name of the scenario in the Go program.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::CachedFew | Self::CachedMany => "cached",
            Self::Calls | Self::CallsAtOnce => "calls",
            Self::Storm => "storm",
            Self::Dead => "dead",
        }
    }

    /// The webhook that the scenario calls.
    pub(crate) fn hook(self) -> TargetWebhook {
        match self {
            Self::CachedFew | Self::CachedMany | Self::Calls | Self::CallsAtOnce => {
                TargetWebhook::Fast
            }
            Self::Storm => TargetWebhook::Slow,
            Self::Dead => TargetWebhook::Dead,
        }
    }
}

/// One scenario in one round.
pub(crate) struct ScenarioRun {
    pub(crate) scenario: Scenario,
    pub(crate) requests: Arc<[ReviewRequest]>,
    /// The number of requests before measuring begins.
    pub(crate) n_warm_up: usize,
    /// The number of concurrent requests.
    pub(crate) n_concurrent: usize,
}

/// The amounts of work of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) n_rounds: usize,
    /// The number of requests with cached answers, which is less than the capacity of a cache.
    pub(crate) n_cached: usize,
    /// The number of different requests in the scenario with few.
    pub(crate) n_few: usize,
    /// The number of measured calls; at most as many calls come before as warm-up.
    pub(crate) n_calls: usize,
    /// The number of equal requests at the same moment.
    pub(crate) n_equal_requests: usize,
}

impl Effort {
    /// The amounts for the published table.
    pub(crate) const FULL: Self =
        Self { n_rounds: 5, n_cached: 4096, n_few: 64, n_calls: 2000, n_equal_requests: 1000 };
    /// The amounts for a test that the benchmark still runs.
    pub(crate) const QUICK: Self =
        Self { n_rounds: 1, n_cached: 64, n_few: 8, n_calls: 32, n_equal_requests: 200 };

    /// A scenario with requests that no earlier round had.
    pub(crate) fn scenario_run(self, scenario: Scenario, round: usize) -> ScenarioRun {
        let n_calls = self.n_calls;
        let (n_requests, n_warm_up, n_concurrent) = match scenario {
            Scenario::CachedFew | Scenario::CachedMany => (self.n_cached, 0, 16),
            Scenario::Calls | Scenario::Dead => (n_calls, n_calls / 10, 1),
            Scenario::CallsAtOnce => (2 * n_calls, n_calls / 10, 16),
            Scenario::Storm => (1, 0, self.n_equal_requests),
        };
        let n_different =
            if scenario == Scenario::CachedFew { self.n_few.max(1) } else { n_requests };
        let numbers = (0..n_requests).map(|number| number % n_different);
        let mut requests: Vec<ReviewRequest> =
            numbers.map(|number| ReviewRequest::make(round, number)).collect();
        if scenario == Scenario::Dead {
            requests.iter_mut().for_each(|review_request| review_request.want = Verdict::NoOpinion);
        }
        ScenarioRun { scenario, requests: requests.into(), n_warm_up, n_concurrent }
    }
}
