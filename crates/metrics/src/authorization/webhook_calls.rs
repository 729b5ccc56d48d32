//! The calls, cache lookups, match conditions and limits of each authorization webhook.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use authz_chain::AuthorizerType;
use authz_webhook::{AttemptResult, CacheEvent, CallRejection, FailOpenCause, MatchResultKind};
use prometheus::proto::MetricFamily;

use super::family_definitions;
use crate::family_samples::FamilySamples;
use crate::series_by_name::SeriesByName;
use crate::striped_counters::{
    BucketBounds, DurationHistogram, MergedHistogram, StripedCounters, increment_counter,
    load_counter,
};

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
    skipped_call_counters: StripedCounters<SkippedCallCounters>,
    call_durations: CallDurations,
    fail_open_counters: FailOpenCounters,
    /// In the order of [`FailOpenCause::ALL`].
    fail_open_counts_by_cause: [AtomicU64; FailOpenCause::ALL.len()],
    cache_counters: CacheCounters,
    n_deduplicated_calls: AtomicU64,
    rejection_counters: InFlightRejectionCounters,
}

/// Counters of requests that need no call, which can be very frequent.
#[derive(Debug, Default)]
struct SkippedCallCounters {
    match_condition_durations: DurationHistogram<{ CONDITION_BUCKETS_NS.len() }>,
    n_condition_errors: AtomicU64,
    n_excluded_by_condition: AtomicU64,
    n_cache_hits: AtomicU64,
}

/// Call attempts by result. One histogram per result records the durations, and so also counts the attempts.
#[derive(Debug, Default)]
struct CallDurations {
    success_durations: DurationHistogram<{ CALL_BUCKETS_NS.len() }>,
    timeout_durations: DurationHistogram<{ CALL_BUCKETS_NS.len() }>,
    canceled_durations: DurationHistogram<{ CALL_BUCKETS_NS.len() }>,
    error_durations: DurationHistogram<{ CALL_BUCKETS_NS.len() }>,
}

impl CallDurations {
    fn histogram_for_result(
        &self,
        result: AttemptResult,
    ) -> &DurationHistogram<{ CALL_BUCKETS_NS.len() }> {
        match result {
            AttemptResult::Success => &self.success_durations,
            AttemptResult::Timeout => &self.timeout_durations,
            AttemptResult::Canceled => &self.canceled_durations,
            AttemptResult::Error => &self.error_durations,
        }
    }
}

/// Calls that failed open, by result. Only timeouts and errors fail open; a cancelled request never does.
#[derive(Debug, Default)]
struct FailOpenCounters {
    n_fail_open_timeouts: AtomicU64,
    n_fail_open_errors: AtomicU64,
}

#[derive(Debug, Default)]
struct CacheCounters {
    n_cache_misses: AtomicU64,
    n_stored_entries: AtomicU64,
    n_expired_entries: AtomicU64,
    n_evicted_entries: AtomicU64,
    n_too_large_entries: AtomicU64,
}

#[derive(Debug, Default)]
struct InFlightRejectionCounters {
    n_rejected_at_total_limit: AtomicU64,
    n_rejected_at_user_limit: AtomicU64,
}

impl InFlightRejectionCounters {
    fn counter_for_reason(&self, reason: CallRejection) -> &AtomicU64 {
        match reason {
            CallRejection::TooManyInFlight => &self.n_rejected_at_total_limit,
            CallRejection::TooManyOfUser => &self.n_rejected_at_user_limit,
        }
    }
}

impl authz_webhook::WebhookObserver for WebhookCounters {
    fn on_attempt_end(&self, result: AttemptResult, took: Duration) {
        self.call_durations.histogram_for_result(result).observe_duration(&CALL_BUCKETS_NS, took);
    }

    fn on_fail_open(&self, cause: FailOpenCause, result: Option<AttemptResult>) {
        match result {
            // Kubernetes does not count requests for which no call was made.
            None => {}
            Some(AttemptResult::Timeout) => {
                increment_counter(&self.fail_open_counters.n_fail_open_timeouts)
            }
            Some(AttemptResult::Success | AttemptResult::Canceled | AttemptResult::Error) => {
                increment_counter(&self.fail_open_counters.n_fail_open_errors);
            }
        }
        let by_cause = FailOpenCause::ALL.into_iter().zip(&self.fail_open_counts_by_cause);
        by_cause
            .filter(|(own, _)| *own == cause)
            .for_each(|(_, counter)| increment_counter(counter));
    }

    fn on_conditions_evaluated(&self, took: Duration, outcome: MatchResultKind) {
        let counters = self.skipped_call_counters.stripe_of_this_thread();
        counters.match_condition_durations.observe_duration(&CONDITION_BUCKETS_NS, took);
        if outcome.is_webhook_skipped() {
            increment_counter(&counters.n_excluded_by_condition);
        }
        if outcome.has_condition_error() {
            increment_counter(&counters.n_condition_errors);
        }
    }

    fn on_cache_event(&self, event: CacheEvent) {
        increment_counter(match event {
            CacheEvent::Hit => &self.skipped_call_counters.stripe_of_this_thread().n_cache_hits,
            CacheEvent::Miss => &self.cache_counters.n_cache_misses,
            CacheEvent::Expired => &self.cache_counters.n_expired_entries,
            CacheEvent::Stored => &self.cache_counters.n_stored_entries,
            CacheEvent::Evicted => &self.cache_counters.n_evicted_entries,
            CacheEvent::TooLarge => &self.cache_counters.n_too_large_entries,
        });
    }

    fn on_shared_call(&self) {
        increment_counter(&self.n_deduplicated_calls);
    }

    fn on_call_rejected(&self, reason: CallRejection) {
        increment_counter(self.rejection_counters.counter_for_reason(reason));
    }
}

/// The metrics of all authorization webhooks.
#[derive(Debug, Default)]
pub(crate) struct WebhookCalls {
    counters_by_webhook: SeriesByName<String, WebhookCounters>,
    /// The webhooks of the current configuration. The collector reads cache sizes and calls in flight from these only,
    /// because after a reload an old webhook and its replacement would report them under the same name.
    active_webhooks: Mutex<Vec<Weak<authz_webhook::Webhook>>>,
}

impl WebhookCalls {
    pub(crate) fn get_or_create_counters(&self, name: &str) -> Arc<WebhookCounters> {
        self.counters_by_webhook.get_or_create_metrics(name.to_owned())
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
        for (name, counters) in self.counters_by_webhook.list_metrics_in_use() {
            families.push_webhook_counters(&name, &counters);
        }
        let active = self.active_webhooks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for webhook in active.iter().filter_map(Weak::upgrade) {
            families.push_webhook_health(webhook.name(), &webhook.health());
        }
        families.into_metric_families()
    }
}

/// The samples of all families of webhooks.
struct WebhookFamilies {
    webhook_evaluations: FamilySamples,
    call_durations: FamilySamples,
    fail_open_counts: FamilySamples,
    fail_open_counts_by_cause: FamilySamples,
    match_condition_error_counts: FamilySamples,
    match_condition_exclusion_counts: FamilySamples,
    match_condition_durations: FamilySamples,
    cache_lookups: FamilySamples,
    cache_events: FamilySamples,
    cache_entries: FamilySamples,
    cache_bytes: FamilySamples,
    deduplicated_calls: FamilySamples,
    calls_in_flight: FamilySamples,
    rejection_counts: FamilySamples,
}

impl WebhookFamilies {
    fn new() -> Self {
        Self {
            webhook_evaluations: FamilySamples::new(&family_definitions::WEBHOOK_EVALUATIONS),
            call_durations: FamilySamples::new(&family_definitions::WEBHOOK_DURATION),
            fail_open_counts: FamilySamples::new(&family_definitions::FAIL_OPEN),
            fail_open_counts_by_cause: FamilySamples::new(&family_definitions::FAIL_OPEN_BY_CAUSE),
            match_condition_error_counts: FamilySamples::new(
                &family_definitions::MATCH_CONDITION_ERRORS,
            ),
            match_condition_exclusion_counts: FamilySamples::new(
                &family_definitions::MATCH_CONDITION_EXCLUSIONS,
            ),
            match_condition_durations: FamilySamples::new(
                &family_definitions::MATCH_CONDITION_DURATION,
            ),
            cache_lookups: FamilySamples::new(&family_definitions::CACHE_LOOKUPS),
            cache_events: FamilySamples::new(&family_definitions::CACHE_EVENTS),
            cache_entries: FamilySamples::new(&family_definitions::CACHE_ENTRIES),
            cache_bytes: FamilySamples::new(&family_definitions::CACHE_BYTES),
            deduplicated_calls: FamilySamples::new(&family_definitions::JOINED_CALLS),
            calls_in_flight: FamilySamples::new(&family_definitions::CALLS_IN_FLIGHT),
            rejection_counts: FamilySamples::new(&family_definitions::REJECTIONS),
        }
    }

    fn push_webhook_counters(&mut self, name: &str, counters: &WebhookCounters) {
        for result in AttemptResult::ALL {
            let histograms = [counters.call_durations.histogram_for_result(result)].into_iter();
            let merged = MergedHistogram::merge_histograms(&CALL_BUCKETS_NS, histograms);
            self.webhook_evaluations.push_counter(&[name, result.name()], merged.n_observations);
            self.call_durations.push_histogram(&[name, result.name()], merged);
        }
        let FailOpenCounters { n_fail_open_timeouts, n_fail_open_errors } =
            &counters.fail_open_counters;
        self.fail_open_counts.push_counter(
            &[name, AttemptResult::Timeout.name()],
            load_counter(n_fail_open_timeouts),
        );
        self.fail_open_counts
            .push_counter(&[name, AttemptResult::Error.name()], load_counter(n_fail_open_errors));
        for (cause, counter) in
            FailOpenCause::ALL.into_iter().zip(&counters.fail_open_counts_by_cause)
        {
            self.fail_open_counts_by_cause
                .push_counter(&[cause.name(), name], load_counter(counter));
        }

        let skipped_call_counters = &counters.skipped_call_counters;
        let labels = [name, AuthorizerType::Webhook.name()];
        let n_fail_open_errors =
            skipped_call_counters.sum_counter_over_stripes(|own| &own.n_condition_errors);
        self.match_condition_error_counts.push_counter(&labels, n_fail_open_errors);
        self.match_condition_exclusion_counts.push_counter(
            &labels,
            skipped_call_counters.sum_counter_over_stripes(|own| &own.n_excluded_by_condition),
        );
        let durations = skipped_call_counters
            .merge_histogram_over_stripes(&CONDITION_BUCKETS_NS, |own| {
                &own.match_condition_durations
            });
        self.match_condition_durations.push_histogram(&labels, durations);

        let cache_counters = &counters.cache_counters;
        let n_hits = skipped_call_counters.sum_counter_over_stripes(|own| &own.n_cache_hits);
        self.cache_lookups.push_counter(&[name, CacheEvent::Hit.name()], n_hits);
        self.cache_lookups.push_counter(
            &[name, CacheEvent::Miss.name()],
            load_counter(&cache_counters.n_cache_misses),
        );
        for (event, counter) in [
            (CacheEvent::Stored, &cache_counters.n_stored_entries),
            (CacheEvent::Expired, &cache_counters.n_expired_entries),
            (CacheEvent::Evicted, &cache_counters.n_evicted_entries),
            (CacheEvent::TooLarge, &cache_counters.n_too_large_entries),
        ] {
            self.cache_events.push_counter(&[event.name(), name], load_counter(counter));
        }

        self.deduplicated_calls.push_counter(&[name], load_counter(&counters.n_deduplicated_calls));
        for reason in CallRejection::ALL {
            let counter = counters.rejection_counters.counter_for_reason(reason);
            self.rejection_counts.push_counter(&[name, reason.name()], load_counter(counter));
        }
    }

    fn push_webhook_health(&mut self, name: &str, health: &authz_webhook::WebhookHealth) {
        self.cache_entries.push_gauge(&[name], health.n_cached_answers as f64);
        self.cache_bytes.push_gauge(&[name], health.cache_bytes as f64);
        self.calls_in_flight.push_gauge(&[name], health.n_in_flight_calls as f64);
    }

    fn into_metric_families(self) -> Vec<MetricFamily> {
        let families = [
            self.webhook_evaluations,
            self.call_durations,
            self.fail_open_counts,
            self.fail_open_counts_by_cause,
            self.match_condition_error_counts,
            self.match_condition_exclusion_counts,
            self.match_condition_durations,
            self.cache_lookups,
            self.cache_events,
            self.cache_entries,
            self.cache_bytes,
            self.deduplicated_calls,
            self.calls_in_flight,
            self.rejection_counts,
        ];
        families.map(FamilySamples::into_metric_family).into()
    }
}
