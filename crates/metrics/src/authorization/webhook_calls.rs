//! The calls, cache lookups, match conditions and limits of each authorization webhook.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use authz_chain::AuthorizerType;
use authz_webhook::{AttemptResult, CacheEvent, CallRejection, FailOpenCause, MatchResultKind};
use prometheus::proto::MetricFamily;

use super::families;
use crate::samples::Samples;
use crate::series_by_name::SeriesByName;
use crate::striped_counters::{BucketBounds, Histogram, MergedHistogram, Striped, increment, load};

/// Buckets for the duration of one call.
const CALL_BUCKETS_NS: BucketBounds<11> = [
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

/// Buckets for the evaluation of all match conditions for one request.
const CONDITION_BUCKETS_NS: BucketBounds<7> =
    [1_000_000, 5_000_000, 10_000_000, 25_000_000, 100_000_000, 200_000_000, 250_000_000];

/// The counters of one webhook.
#[derive(Debug, Default)]
pub(crate) struct WebhookCounters {
    without_call: Striped<WithoutCallCounters>,
    call_durations: CallDurations,
    fail_open: FailOpenCounters,
    /// In the order of [`FailOpenCause::ALL`].
    fail_open_by_cause: [AtomicU64; FailOpenCause::ALL.len()],
    cache: CacheCounters,
    n_joined_calls: AtomicU64,
    rejections: InFlightRejectionCounters,
}

/// Counters of requests that need no call, which can be very frequent.
#[derive(Debug, Default)]
struct WithoutCallCounters {
    condition_durations: Histogram<{ CONDITION_BUCKETS_NS.len() }>,
    n_condition_errors: AtomicU64,
    n_excluded: AtomicU64,
    n_cache_hits: AtomicU64,
}

/// Call attempts by result. Each is timed under its result, so the histograms also give the counts.
#[derive(Debug, Default)]
struct CallDurations {
    success: Histogram<{ CALL_BUCKETS_NS.len() }>,
    timeout: Histogram<{ CALL_BUCKETS_NS.len() }>,
    canceled: Histogram<{ CALL_BUCKETS_NS.len() }>,
    error: Histogram<{ CALL_BUCKETS_NS.len() }>,
}

impl CallDurations {
    fn by_result(&self, result: AttemptResult) -> &Histogram<{ CALL_BUCKETS_NS.len() }> {
        match result {
            AttemptResult::Success => &self.success,
            AttemptResult::Timeout => &self.timeout,
            AttemptResult::Canceled => &self.canceled,
            AttemptResult::Error => &self.error,
        }
    }
}

/// Calls that failed open, by result. Only timeouts and errors do: a cancelled request never fails open.
#[derive(Debug, Default)]
struct FailOpenCounters {
    n_timeouts: AtomicU64,
    n_errors: AtomicU64,
}

#[derive(Debug, Default)]
struct CacheCounters {
    n_misses: AtomicU64,
    n_stored: AtomicU64,
    n_expired: AtomicU64,
    n_evicted: AtomicU64,
    n_too_large: AtomicU64,
}

#[derive(Debug, Default)]
struct InFlightRejectionCounters {
    n_too_many_in_flight: AtomicU64,
    n_too_many_of_user: AtomicU64,
}

impl InFlightRejectionCounters {
    fn by_reason(&self, reason: CallRejection) -> &AtomicU64 {
        match reason {
            CallRejection::TooManyInFlight => &self.n_too_many_in_flight,
            CallRejection::TooManyOfUser => &self.n_too_many_of_user,
        }
    }
}

impl authz_webhook::WebhookObserver for WebhookCounters {
    fn on_attempt(&self, result: AttemptResult, took: Duration) {
        self.call_durations.by_result(result).observe(&CALL_BUCKETS_NS, took);
    }

    fn on_fail_open(&self, cause: FailOpenCause, result: Option<AttemptResult>) {
        match result {
            // Kubernetes does not count requests for which no call was made.
            None => {}
            Some(AttemptResult::Timeout) => increment(&self.fail_open.n_timeouts),
            Some(AttemptResult::Success | AttemptResult::Canceled | AttemptResult::Error) => {
                increment(&self.fail_open.n_errors);
            }
        }
        let by_cause = FailOpenCause::ALL.into_iter().zip(&self.fail_open_by_cause);
        by_cause.filter(|(own, _)| *own == cause).for_each(|(_, counter)| increment(counter));
    }

    fn on_match(&self, took: Duration, outcome: MatchResultKind) {
        let counters = self.without_call.for_this_thread();
        counters.condition_durations.observe(&CONDITION_BUCKETS_NS, took);
        if outcome.is_excluded() {
            increment(&counters.n_excluded);
        }
        if outcome.has_error() {
            increment(&counters.n_condition_errors);
        }
    }

    fn on_cache_event(&self, event: CacheEvent) {
        increment(match event {
            CacheEvent::Hit => &self.without_call.for_this_thread().n_cache_hits,
            CacheEvent::Miss => &self.cache.n_misses,
            CacheEvent::Expired => &self.cache.n_expired,
            CacheEvent::Stored => &self.cache.n_stored,
            CacheEvent::Evicted => &self.cache.n_evicted,
            CacheEvent::TooLarge => &self.cache.n_too_large,
        });
    }

    fn on_shared_call(&self) {
        increment(&self.n_joined_calls);
    }

    fn on_rejection(&self, reason: CallRejection) {
        increment(self.rejections.by_reason(reason));
    }
}

/// The metrics of all authorization webhooks.
#[derive(Debug, Default)]
pub(crate) struct WebhookCalls {
    counters: SeriesByName<String, WebhookCounters>,
    /// The webhooks of the current configuration. A collector reads the size of the cache and the calls in flight from
    /// them: after a reload, the old webhook and its replacement would both report these under one name.
    active_webhooks: Mutex<Vec<Weak<authz_webhook::Webhook>>>,
}

impl WebhookCalls {
    pub(crate) fn get_or_create(&self, name: &str) -> Arc<WebhookCounters> {
        self.counters.get_or_create(name.to_owned())
    }

    pub(crate) fn set_active_webhooks<'a>(
        &self,
        webhooks: impl IntoIterator<Item = &'a Arc<authz_webhook::Webhook>>,
    ) {
        let webhooks = webhooks.into_iter().map(Arc::downgrade).collect();
        *self.active_webhooks.lock().unwrap_or_else(PoisonError::into_inner) = webhooks;
    }

    /// Reads the counters into metric families.
    pub(crate) fn collect(&self) -> Vec<MetricFamily> {
        let mut families = WebhookFamilies::new();
        for (name, counters) in self.counters.in_use() {
            families.push_counters(&name, &counters);
        }
        let active = self.active_webhooks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for webhook in active.iter().filter_map(Weak::upgrade) {
            families.push_health(webhook.name(), &webhook.health());
        }
        families.into_families()
    }
}

/// The samples of all families of webhooks.
struct WebhookFamilies {
    evaluations: Samples,
    call_durations: Samples,
    fail_open: Samples,
    fail_open_by_cause: Samples,
    condition_errors: Samples,
    condition_exclusions: Samples,
    condition_durations: Samples,
    cache_lookups: Samples,
    cache_events: Samples,
    cache_entries: Samples,
    cache_bytes: Samples,
    joined_calls: Samples,
    calls_in_flight: Samples,
    rejections: Samples,
}

impl WebhookFamilies {
    fn new() -> Self {
        Self {
            evaluations: Samples::new(&families::WEBHOOK_EVALUATIONS),
            call_durations: Samples::new(&families::WEBHOOK_DURATION),
            fail_open: Samples::new(&families::FAIL_OPEN),
            fail_open_by_cause: Samples::new(&families::FAIL_OPEN_BY_CAUSE),
            condition_errors: Samples::new(&families::MATCH_CONDITION_ERRORS),
            condition_exclusions: Samples::new(&families::MATCH_CONDITION_EXCLUSIONS),
            condition_durations: Samples::new(&families::MATCH_CONDITION_DURATION),
            cache_lookups: Samples::new(&families::CACHE_LOOKUPS),
            cache_events: Samples::new(&families::CACHE_EVENTS),
            cache_entries: Samples::new(&families::CACHE_ENTRIES),
            cache_bytes: Samples::new(&families::CACHE_BYTES),
            joined_calls: Samples::new(&families::JOINED_CALLS),
            calls_in_flight: Samples::new(&families::CALLS_IN_FLIGHT),
            rejections: Samples::new(&families::REJECTIONS),
        }
    }

    fn push_counters(&mut self, name: &str, counters: &WebhookCounters) {
        for result in AttemptResult::ALL {
            let histograms = [counters.call_durations.by_result(result)].into_iter();
            let merged = MergedHistogram::merge(&CALL_BUCKETS_NS, histograms);
            self.evaluations.push_counter(&[name, result.name()], merged.n_all);
            self.call_durations.push_histogram(&[name, result.name()], merged);
        }
        let FailOpenCounters { n_timeouts, n_errors } = &counters.fail_open;
        self.fail_open.push_counter(&[name, AttemptResult::Timeout.name()], load(n_timeouts));
        self.fail_open.push_counter(&[name, AttemptResult::Error.name()], load(n_errors));
        for (cause, counter) in FailOpenCause::ALL.into_iter().zip(&counters.fail_open_by_cause) {
            self.fail_open_by_cause.push_counter(&[cause.name(), name], load(counter));
        }

        let without_call = &counters.without_call;
        let labels = [name, AuthorizerType::Webhook.name()];
        let n_errors = without_call.sum(|own| &own.n_condition_errors);
        self.condition_errors.push_counter(&labels, n_errors);
        self.condition_exclusions.push_counter(&labels, without_call.sum(|own| &own.n_excluded));
        let durations =
            without_call.merged_histogram(&CONDITION_BUCKETS_NS, |own| &own.condition_durations);
        self.condition_durations.push_histogram(&labels, durations);

        let cache = &counters.cache;
        let n_hits = without_call.sum(|own| &own.n_cache_hits);
        self.cache_lookups.push_counter(&[name, CacheEvent::Hit.name()], n_hits);
        self.cache_lookups.push_counter(&[name, CacheEvent::Miss.name()], load(&cache.n_misses));
        for (event, counter) in [
            (CacheEvent::Stored, &cache.n_stored),
            (CacheEvent::Expired, &cache.n_expired),
            (CacheEvent::Evicted, &cache.n_evicted),
            (CacheEvent::TooLarge, &cache.n_too_large),
        ] {
            self.cache_events.push_counter(&[event.name(), name], load(counter));
        }

        self.joined_calls.push_counter(&[name], load(&counters.n_joined_calls));
        for reason in CallRejection::ALL {
            let counter = counters.rejections.by_reason(reason);
            self.rejections.push_counter(&[name, reason.name()], load(counter));
        }
    }

    fn push_health(&mut self, name: &str, health: &authz_webhook::WebhookHealth) {
        self.cache_entries.push_gauge(&[name], health.n_cached_answers as f64);
        self.cache_bytes.push_gauge(&[name], health.cache_bytes as f64);
        self.calls_in_flight.push_gauge(&[name], health.n_in_flight as f64);
    }

    fn into_families(self) -> Vec<MetricFamily> {
        let families = [
            self.evaluations,
            self.call_durations,
            self.fail_open,
            self.fail_open_by_cause,
            self.condition_errors,
            self.condition_exclusions,
            self.condition_durations,
            self.cache_lookups,
            self.cache_events,
            self.cache_entries,
            self.cache_bytes,
            self.joined_calls,
            self.calls_in_flight,
            self.rejections,
        ];
        families.map(Samples::into_family).into()
    }
}
