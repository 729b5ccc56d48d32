//! What each webhook was asked, what was saved by not asking it, and how it is doing.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use authz_chain::AuthorizerType;
use authz_webhook::{AttemptResult, CacheEvent, FailOpenCause, MatchOutcome, Rejection};
use prometheus::proto::MetricFamily;

use crate::family;
use crate::names::Names;
use crate::samples::Samples;
use crate::stripes::{Bounds, Distribution, Histogram, Striped, count, read};

/// Classes of times of a call.
const CALL_SECONDS: Bounds<11> = [
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Classes of times of all conditions of one check.
const CONDITION_SECONDS: Bounds<7> =
    [1_000_000, 5_000_000, 10_000_000, 25_000_000, 100_000_000, 200_000_000, 250_000_000];

/// The numbers of one webhook.
#[derive(Debug, Default)]
pub(crate) struct Webhook {
    checks: Striped<Checks>,
    calls: Calls,
    n_failed_open: FailedOpen,
    n_failed_open_by: [AtomicU64; FailOpenCause::ALL.len()],
    cached: Cached,
    n_joined: AtomicU64,
    rejected: Rejected,
}

/// What happens in checks that need no call, and so may happen very often.
#[derive(Debug, Default)]
struct Checks {
    conditions: Histogram<{ CONDITION_SECONDS.len() }>,
    n_errors: AtomicU64,
    n_excluded: AtomicU64,
    n_hits: AtomicU64,
}

/// Attempts by result. Each is counted under one result and timed under the same, so the times are
/// the counts too.
#[derive(Debug, Default)]
struct Calls {
    success: Histogram<{ CALL_SECONDS.len() }>,
    timeout: Histogram<{ CALL_SECONDS.len() }>,
    canceled: Histogram<{ CALL_SECONDS.len() }>,
    error: Histogram<{ CALL_SECONDS.len() }>,
}

impl Calls {
    fn of(&self, result: AttemptResult) -> &Histogram<{ CALL_SECONDS.len() }> {
        match result {
            AttemptResult::Success => &self.success,
            AttemptResult::Timeout => &self.timeout,
            AttemptResult::Canceled => &self.canceled,
            AttemptResult::Error => &self.error,
        }
    }
}

/// Failures by result. There are but two: a request that does not wait is not let through.
#[derive(Debug, Default)]
struct FailedOpen {
    timeout: AtomicU64,
    error: AtomicU64,
}

#[derive(Debug, Default)]
struct Cached {
    misses: AtomicU64,
    stored: AtomicU64,
    expired: AtomicU64,
    evicted: AtomicU64,
    too_large: AtomicU64,
}

#[derive(Debug, Default)]
struct Rejected {
    too_many_in_flight: AtomicU64,
    too_many_of_user: AtomicU64,
}

impl Rejected {
    fn of(&self, why: Rejection) -> &AtomicU64 {
        match why {
            Rejection::TooManyInFlight => &self.too_many_in_flight,
            Rejection::TooManyOfUser => &self.too_many_of_user,
        }
    }
}

impl authz_webhook::WebhookObserver for Webhook {
    fn attempted(&self, result: AttemptResult, took: Duration) {
        self.calls.of(result).observe(&CALL_SECONDS, took);
    }

    fn failed_open(&self, cause: FailOpenCause, result: Option<AttemptResult>) {
        match result {
            // Kubernetes does not count those for which no call was made.
            None => {}
            Some(AttemptResult::Timeout) => count(&self.n_failed_open.timeout),
            Some(_) => count(&self.n_failed_open.error),
        }
        let numbers = FailOpenCause::ALL.into_iter().zip(&self.n_failed_open_by);
        numbers.filter(|(own, _)| *own == cause).for_each(|(_, number)| count(number));
    }

    fn matched(&self, took: Duration, outcome: MatchOutcome) {
        let checks = self.checks.mine();
        checks.conditions.observe(&CONDITION_SECONDS, took);
        if outcome.is_excluded() {
            count(&checks.n_excluded);
        }
        if outcome.has_error() {
            count(&checks.n_errors);
        }
    }

    fn cache(&self, event: CacheEvent) {
        count(match event {
            CacheEvent::Hit => &self.checks.mine().n_hits,
            CacheEvent::Miss => &self.cached.misses,
            CacheEvent::Expired => &self.cached.expired,
            CacheEvent::Stored => &self.cached.stored,
            CacheEvent::Evicted => &self.cached.evicted,
            CacheEvent::TooLarge => &self.cached.too_large,
        });
    }

    fn joined(&self) {
        count(&self.n_joined);
    }

    fn rejected(&self, why: Rejection) {
        count(self.rejected.of(why));
    }
}

/// The numbers of all webhooks.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    all: Names<String, Webhook>,
    /// Those that decide now. What they know themselves is asked of them and not kept twice; a
    /// webhook and the one that replaced it would both report it under one name.
    serving: Mutex<Vec<Weak<authz_webhook::Webhook>>>,
}

impl Webhooks {
    /// The numbers of a webhook.
    pub(crate) fn named(&self, name: &str) -> Arc<Webhook> {
        self.all.named(name.to_owned())
    }

    /// These webhooks decide from now on.
    pub(crate) fn serving<'a>(
        &self,
        webhooks: impl IntoIterator<Item = &'a Arc<authz_webhook::Webhook>>,
    ) {
        let webhooks = webhooks.into_iter().map(Arc::downgrade).collect();
        *self.serving.lock().unwrap_or_else(PoisonError::into_inner) = webhooks;
    }

    /// The numbers as they are now.
    pub(crate) fn collect(&self) -> Vec<MetricFamily> {
        let mut page = Page::new();
        for (name, webhook) in self.all.living() {
            page.show(&name, &webhook);
        }
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for webhook in serving.iter().filter_map(Weak::upgrade) {
            page.show_health(webhook.name(), &webhook.health());
        }
        page.finish()
    }
}

/// The families of webhooks while they are filled.
struct Page {
    evaluations: Samples,
    call_seconds: Samples,
    fail_open: Samples,
    failed_open_by: Samples,
    condition_errors: Samples,
    condition_exclusions: Samples,
    condition_seconds: Samples,
    cache_lookups: Samples,
    cache_events: Samples,
    cache_entries: Samples,
    cache_bytes: Samples,
    joins: Samples,
    in_flight: Samples,
    rejections: Samples,
}

impl Page {
    fn new() -> Self {
        Self {
            evaluations: Samples::of(&family::WEBHOOK_EVALUATIONS),
            call_seconds: Samples::of(&family::WEBHOOK_SECONDS),
            fail_open: Samples::of(&family::FAIL_OPEN),
            failed_open_by: Samples::of(&family::FAILED_OPEN_BY),
            condition_errors: Samples::of(&family::CONDITION_ERRORS),
            condition_exclusions: Samples::of(&family::CONDITION_EXCLUSIONS),
            condition_seconds: Samples::of(&family::CONDITION_SECONDS),
            cache_lookups: Samples::of(&family::CACHE_LOOKUPS),
            cache_events: Samples::of(&family::CACHE_EVENTS),
            cache_entries: Samples::of(&family::CACHE_ENTRIES),
            cache_bytes: Samples::of(&family::CACHE_BYTES),
            joins: Samples::of(&family::JOINS),
            in_flight: Samples::of(&family::IN_FLIGHT),
            rejections: Samples::of(&family::REJECTIONS),
        }
    }

    fn show(&mut self, name: &str, webhook: &Webhook) {
        for result in AttemptResult::ALL {
            let times = [webhook.calls.of(result)];
            let distribution = Distribution::of(&CALL_SECONDS, times.into_iter());
            self.evaluations.counter(&[name, result.name()], distribution.n_all);
            self.call_seconds.histogram(&[name, result.name()], distribution);
        }
        let FailedOpen { timeout, error } = &webhook.n_failed_open;
        self.fail_open.counter(&[name, AttemptResult::Timeout.name()], read(timeout));
        self.fail_open.counter(&[name, AttemptResult::Error.name()], read(error));
        for (cause, number) in FailOpenCause::ALL.into_iter().zip(&webhook.n_failed_open_by) {
            self.failed_open_by.counter(&[cause.name(), name], read(number));
        }

        let checks = &webhook.checks;
        let kind = AuthorizerType::Webhook.name();
        self.condition_errors.counter(&[name, kind], checks.sum(|checks| &checks.n_errors));
        self.condition_exclusions.counter(&[name, kind], checks.sum(|checks| &checks.n_excluded));
        let conditions = checks.distribution(&CONDITION_SECONDS, |checks| &checks.conditions);
        self.condition_seconds.histogram(&[name, kind], conditions);

        let Cached { misses, stored, expired, evicted, too_large } = &webhook.cached;
        let n_hits = checks.sum(|checks| &checks.n_hits);
        self.cache_lookups.counter(&[name, CacheEvent::Hit.name()], n_hits);
        self.cache_lookups.counter(&[name, CacheEvent::Miss.name()], read(misses));
        for (event, number) in [
            (CacheEvent::Stored, stored),
            (CacheEvent::Expired, expired),
            (CacheEvent::Evicted, evicted),
            (CacheEvent::TooLarge, too_large),
        ] {
            self.cache_events.counter(&[event.name(), name], read(number));
        }

        self.joins.counter(&[name], read(&webhook.n_joined));
        for why in Rejection::ALL {
            self.rejections.counter(&[name, why.name()], read(webhook.rejected.of(why)));
        }
    }

    fn show_health(&mut self, name: &str, health: &authz_webhook::WebhookHealth) {
        self.cache_entries.gauge(&[name], health.cache_entries as f64);
        self.cache_bytes.gauge(&[name], health.cache_bytes as f64);
        self.in_flight.gauge(&[name], health.in_flight as f64);
    }

    fn finish(self) -> Vec<MetricFamily> {
        let families = [
            self.evaluations,
            self.call_seconds,
            self.fail_open,
            self.failed_open_by,
            self.condition_errors,
            self.condition_exclusions,
            self.condition_seconds,
            self.cache_lookups,
            self.cache_events,
            self.cache_entries,
            self.cache_bytes,
            self.joins,
            self.in_flight,
            self.rejections,
        ];
        families.map(Samples::finish).into()
    }
}
