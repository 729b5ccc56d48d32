//! Metrics for operators, under the names that Kubernetes uses.

mod flow_control_metrics;
mod store_metrics;
mod unserved_metric_series;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use ::store::{ListRequest, Prefix};
use component_base::{AuditMetrics, ConnectionMetrics};
use flow_control::FlowController;
use http::Response;
use https_server::Body;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use self::flow_control_metrics::FlowControlMetricsCollector;
use self::store_metrics::StoreMetrics;
use crate::server_state::ServerState;

/// The histogram buckets of request durations in seconds, as in Kubernetes.
const REQUEST_SECONDS_BUCKETS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

/// The histogram buckets of store requests, which are faster.
const STORE_SECONDS_BUCKETS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6,
    0.8, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
];

/// The labels of request metrics.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestMetricLabels<'a> {
    pub(crate) verb: &'a str,
    pub(crate) dry_run_label: &'a str,
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) scope_label: &'a str,
}

/// The metrics of the server.
pub(crate) struct ServerMetrics {
    metrics_registry: Registry,
    request_counts: IntCounterVec,
    request_durations: HistogramVec,
    pub(crate) in_flight_mutating_requests: IntGauge,
    pub(crate) in_flight_read_only_requests: IntGauge,
    pub(crate) long_running_requests: IntGaugeVec,
    pub(crate) sent_watch_events: IntCounterVec,
    pub(crate) request_terminations: IntCounterVec,
    pub(crate) authentication_counts: IntCounterVec,
    /// The series of `authentication_counts` for success. It is kept here because almost every request counts in
    /// it.
    pub(crate) authentication_successes: IntCounter,
    pub(crate) ca_reload_counts: IntCounterVec,
    pub(crate) audit_rejected_requests: IntCounter,
    audit_metrics: AuditMetrics,
    dropped_log_lines: IntCounter,
    pub(crate) request_panics: IntCounter,
    pub(crate) store_request_durations: HistogramVec,
    stored_object_counts: IntGaugeVec,
    undecodable_objects: IntGaugeVec,
    snapshot_revision: IntGauge,
    body_bytes_in_use: IntGauge,
    decoded_body_bytes_in_use: IntGauge,
    requests_waiting_for_webhooks: IntGauge,
    store_metrics: StoreMetrics,
    pub(crate) connection_metrics: ConnectionMetrics,
}

impl ServerMetrics {
    /// Registers all metrics with the value zero.
    ///
    /// # Errors
    /// A metric name is malformed or already registered.
    pub(crate) fn new(
        registry: Registry,
        flow_controller: &Arc<FlowController>,
    ) -> Result<Self, prometheus::Error> {
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counters.clone())).map(|()| counters)
        };
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let gauges = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauges.clone())).map(|()| gauges)
        };
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone())).map(|()| counter)
        };
        let request_labels =
            ["verb", "dry_run", "group", "version", "resource", "subresource", "scope"];
        let request_durations = HistogramVec::new(
            HistogramOpts::new(
                "apiserver_request_duration_seconds",
                "Response latency distribution in seconds for each verb, dry run value, group, \
                 version, resource, subresource, scope and component.",
            )
            .buckets(REQUEST_SECONDS_BUCKETS.to_vec()),
            &[&request_labels[..], &["component"]].concat(),
        )?;
        registry.register(Box::new(request_durations.clone()))?;
        let store_request_durations = HistogramVec::new(
            HistogramOpts::new(
                "etcd_request_duration_seconds",
                "Etcd request latency in seconds for each operation and object type; the embedded \
                 store counts under this name too.",
            )
            .buckets(STORE_SECONDS_BUCKETS.to_vec()),
            &["operation", "type"],
        )?;
        registry.register(Box::new(store_request_durations.clone()))?;
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone())).map(|()| gauge)
        };
        let in_flight = gauges(
            "apiserver_current_inflight_requests",
            "Number of requests that have a seat or have given it back, and have not ended.",
            &["request_kind"],
        )?;
        registry.register(Box::new(FlowControlMetricsCollector::new(flow_controller)?))?;
        let authentications =
            counters("authentication_attempts", "Counter of authenticated attempts.", &["result"])?;
        Ok(Self {
            request_counts: counters(
                "apiserver_request_total",
                "Counter of apiserver requests broken out for each verb, dry run value, group, \
                 version, resource, scope, component, and HTTP response code.",
                &[&request_labels[..], &["component", "code"]].concat(),
            )?,
            request_durations,
            in_flight_mutating_requests: in_flight.with_label_values(&["mutating"]),
            in_flight_read_only_requests: in_flight.with_label_values(&["readOnly"]),
            long_running_requests: gauges(
                "apiserver_longrunning_requests",
                "Gauge of all active long-running requests, by resource.",
                &["verb", "group", "version", "resource"],
            )?,
            sent_watch_events: counters(
                "apiserver_watch_events_total",
                "Number of events sent in watch clients.",
                &["group", "version", "resource"],
            )?,
            request_terminations: counters(
                "apiserver_request_terminations_total",
                "Number of requests which apiserver terminated in self-defense.",
                &["code"],
            )?,
            authentication_successes: authentications.with_label_values(&["success"]),
            authentication_counts: authentications,
            ca_reload_counts: counters(
                "portcullis_authentication_ca_reloads_total",
                "Number of times that a changed file of authorities was read, by outcome.",
                &["file", "status"],
            )?,
            audit_rejected_requests: counter(
                "apiserver_audit_requests_rejected_total",
                "Counter of apiserver requests rejected due to an error in audit logging backend.",
            )?,
            audit_metrics: AuditMetrics::new(&registry)?,
            dropped_log_lines: counter(
                "portcullis_log_dropped_lines_total",
                "Number of log lines that were dropped because standard error did not take them in time.",
            )?,
            request_panics: counter(
                "portcullis_request_panics_total",
                "Number of requests that ended in a fault of the server.",
            )?,
            store_request_durations,
            stored_object_counts: gauges(
                "apiserver_storage_objects",
                "Number of stored objects at the time of last check split by kind.",
                &["resource"],
            )?,
            undecodable_objects: gauges(
                "portcullis_undecodable_objects",
                "Number of stored objects that decisions would depend on but that cannot be decoded; \
                 they count as absent.",
                &["resource"],
            )?,
            snapshot_revision: gauge(
                "portcullis_view_revision",
                "The revision of the store up to which decisions have seen it.",
            )?,
            body_bytes_in_use: gauge(
                "portcullis_request_body_bytes",
                "The bytes that are reserved for the bodies of requests in progress.",
            )?,
            decoded_body_bytes_in_use: gauge(
                "portcullis_request_decoded_bytes",
                "The bytes that the decoded bodies of requests in progress take, as estimated.",
            )?,
            requests_waiting_for_webhooks: gauge(
                "portcullis_requests_waiting_for_webhooks",
                "Number of requests that gave their seat back to wait for webhooks, and have not ended.",
            )?,
            store_metrics: StoreMetrics::new(&registry)?,
            connection_metrics: ConnectionMetrics::new(&registry)?,
            metrics_registry: registry,
        })
    }

    /// Counts a request that has been answered.
    pub(crate) fn count_request(
        &self,
        labels: &RequestMetricLabels<'_>,
        code: u16,
        took: Duration,
    ) {
        let RequestMetricLabels {
            verb,
            dry_run_label: dry_run,
            group,
            version,
            resource,
            subresource,
            scope_label: scope,
        } = *labels;
        let component = "apiserver";
        let mut digits = [0; 5];
        let code = format_u16(code, &mut digits);
        let values = [verb, dry_run, group, version, resource, subresource, scope, component, code];
        self.request_counts.with_label_values(&values).inc();
        let values = [verb, dry_run, group, version, resource, subresource, scope, component];
        self.request_durations.with_label_values(&values).observe(took.as_secs_f64());
    }
}

/// The response to `/metrics`.
pub(crate) async fn metrics_response(server: &ServerState) -> Response<Body> {
    let metrics = &server.metrics;
    metrics.remove_unserved_series(&server.snapshot_cache.snapshot().resource_registry);
    update_object_counts(server).await;
    metrics.store_metrics.set_from_store_status(&server.store.status());
    if let Some(auditor) = &server.auditor {
        metrics.audit_metrics.set_from_auditor(auditor);
    }
    let dropped_lines = &metrics.dropped_log_lines;
    dropped_lines.inc_by(server.log.n_dropped_lines().saturating_sub(dropped_lines.get()));
    metrics.connection_metrics.set_open_connections(server.shutdown.n_connections());
    let cluster = server.snapshot_cache.snapshot();
    for (path, count) in crate::undecodable_objects::count_undecodable_by_path(&cluster) {
        let gauge = metrics.undecodable_objects.with_label_values(&[path]);
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    let revision = cluster.revision.as_u64();
    metrics.snapshot_revision.set(i64::try_from(revision).unwrap_or(i64::MAX));
    let age = server
        .admission_freshness_barrier
        .config_confirmation_age()
        .last_confirmation_age
        .unwrap_or_else(|| server.server_started_at.elapsed());
    server
        .admission_metrics
        .set_admission_config_freshness(server.observed_config_revision().as_u64(), age);
    let n_body_bytes = server.body_bytes_budget.n_bytes_in_use();
    metrics.body_bytes_in_use.set(i64::try_from(n_body_bytes).unwrap_or(i64::MAX));
    let n_decoded_bytes = server.decoded_body_bytes_budget.n_bytes_in_use();
    metrics.decoded_body_bytes_in_use.set(i64::try_from(n_decoded_bytes).unwrap_or(i64::MAX));
    let n_waits = server.webhook_waits_limit.n_permits_in_use();
    metrics.requests_waiting_for_webhooks.set(i64::try_from(n_waits).unwrap_or(i64::MAX));
    component_base::metrics_response(&metrics.metrics_registry)
}

/// Counts the objects of every resource. A resource that cannot be counted now keeps its last count.
async fn update_object_counts(server: &ServerState) {
    let cluster = server.snapshot_cache.snapshot();
    for resource in cluster.resource_registry.stored_resources() {
        let prefix = api_resources::list_key_prefix(&server.store_key_prefix, resource, None);
        let Some(prefix) = prefix.and_then(|text| Prefix::new(&text).ok()) else { continue };
        let request = ListRequest { items_max: NonZeroUsize::new(1), ..ListRequest::default() };
        let Ok(page) = server.store.list(&prefix, request).await else { return };
        let count = page.items.len() as u64 + page.n_remaining_items;
        let name = resource.group_resource().to_string();
        let gauge = server.metrics.stored_object_counts.with_label_values(&[&name]);
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// The `verb` label of a request; a closed set, whatever clients send.
pub(crate) fn metric_verb(verb: &str, method: &str) -> &'static str {
    match (verb, method) {
        ("get", _) | (_, "GET") if verb != "list" && verb != "watch" => "GET",
        ("list", _) => "LIST",
        ("watch", _) => "WATCH",
        ("create", _) | (_, "POST") => "POST",
        ("update", _) | (_, "PUT") => "PUT",
        ("patch", _) | (_, "PATCH") => "PATCH",
        ("deletecollection", _) => "DELETECOLLECTION",
        ("delete", _) | (_, "DELETE") => "DELETE",
        (_, "HEAD") => "HEAD",
        (_, "OPTIONS") => "OPTIONS",
        _ => "OTHER",
    }
}

/// Formats a number without allocating.
fn format_u16(number: u16, digits: &mut [u8; 5]) -> &str {
    let mut rest = number;
    let mut start = digits.len();
    loop {
        start -= 1;
        if let Some(digit) = digits.get_mut(start) {
            *digit = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
        if rest == 0 || start == 0 {
            break;
        }
    }
    std::str::from_utf8(digits.get(start..).unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_under_the_names_of_kubernetes() {
        let metrics =
            ServerMetrics::new(Registry::new(), &Arc::new(FlowController::new(1))).unwrap();
        let labels = RequestMetricLabels {
            verb: "GET",
            version: "v1",
            resource: "pods",
            scope_label: "resource",
            ..RequestMetricLabels::default()
        };
        metrics.count_request(&labels, 200, Duration::from_millis(3));
        let text = prometheus::TextEncoder::new()
            .encode_to_string(&metrics.metrics_registry.gather())
            .unwrap();
        assert!(
            text.contains("apiserver_request_total{code=\"200\",component=\"apiserver\""),
            "{text}"
        );
        assert!(text.contains("apiserver_request_duration_seconds_bucket"), "{text}");
    }

    #[test]
    fn numbers_are_formatted() {
        for number in [0, 7, 200, 65_535] {
            assert_eq!(format_u16(number, &mut [0; 5]), number.to_string());
        }
    }
}
