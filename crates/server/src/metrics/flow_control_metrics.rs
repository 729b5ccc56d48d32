//! The metrics of priority and fairness, under the names that Kubernetes uses.
//!
//! The flow controller counts, and this collector reads the counts when a client requests the metrics. The labels are
//! names of flow schemas and priority levels in force, so a series disappears with its object.

use std::sync::Arc;

use flow_control::{DurationHistogram, FlowController};
use prometheus::core::{Collector, Desc};
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};

/// The labels of a schema's series.
const FLOW: &[&str] = &["flow_schema", "priority_level"];

/// A metric family of priority and fairness.
struct MetricFamilyDefinition {
    name: &'static str,
    labels: &'static [&'static str],
    metric_type: MetricType,
    help_text: &'static str,
}

const DISPATCHED: usize = 0;
const REJECTED: usize = 1;
const WAITING: usize = 2;
const EXECUTING: usize = 3;
const EXECUTING_SEATS: usize = 4;
const WAIT_SECONDS: usize = 5;
const EXECUTION_SECONDS: usize = 6;
const NOMINAL_SEATS: usize = 7;
const CURRENT_SEATS: usize = 8;

const FAMILIES: [MetricFamilyDefinition; 9] = [
    MetricFamilyDefinition {
        name: "apiserver_flowcontrol_dispatched_requests_total",
        labels: FLOW,
        metric_type: MetricType::COUNTER,
        help_text: "Number of requests executed by API Priority and Fairness subsystem",
    },
    MetricFamilyDefinition {
        name: "apiserver_flowcontrol_rejected_requests_total",
        labels: &["flow_schema", "priority_level", "reason"],
        metric_type: MetricType::COUNTER,
        help_text: "Number of requests rejected by API Priority and Fairness subsystem",
    },
    MetricFamilyDefinition {
        name: "apiserver_flowcontrol_current_inqueue_requests",
        labels: FLOW,
        metric_type: MetricType::GAUGE,
        help_text: "Number of requests currently pending in queues of the API Priority and Fairness subsystem",
    },
    MetricFamilyDefinition {
        name: "apiserver_flowcontrol_current_executing_requests",
        labels: FLOW,
        metric_type: MetricType::GAUGE,
        help_text: "Number of requests in regular execution phase in the API Priority and Fairness subsystem",
    },
    MetricFamilyDefinition {
        name: "apiserver_flowcontrol_current_executing_seats",
        labels: FLOW,
        metric_type: MetricType::GAUGE,
        help_text: "Concurrency (number of seats) occupied by the currently executing requests",
    },
    MetricFamilyDefinition {
        name: "apiserver_flowcontrol_request_wait_duration_seconds",
        labels: &["execute", "flow_schema", "priority_level"],
        metric_type: MetricType::HISTOGRAM,
        help_text: "Length of time a request spent waiting in its queue",
    },
    MetricFamilyDefinition {
        name: "apiserver_flowcontrol_request_execution_seconds",
        labels: &["flow_schema", "priority_level", "type"],
        metric_type: MetricType::HISTOGRAM,
        help_text: "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution",
    },
    MetricFamilyDefinition {
        name: "apiserver_flowcontrol_nominal_limit_seats",
        labels: &["priority_level"],
        metric_type: MetricType::GAUGE,
        help_text: "Nominal number of execution seats configured for each priority level",
    },
    MetricFamilyDefinition {
        name: "apiserver_flowcontrol_current_limit_seats",
        labels: &["priority_level"],
        metric_type: MetricType::GAUGE,
        help_text: "Current number of execution seats of each priority level; levels do not borrow, so it is the nominal number",
    },
];

/// Reads the counts of a flow controller.
pub(super) struct FlowControlMetricsCollector {
    flow_controller: Arc<FlowController>,
    metric_descriptors: Vec<Desc>,
}

impl FlowControlMetricsCollector {
    /// # Errors
    /// A metric name is malformed.
    pub(super) fn new(flow_controller: &Arc<FlowController>) -> Result<Self, prometheus::Error> {
        let descriptors = FAMILIES.iter().map(|family| {
            let labels = family.labels.iter().map(|label| (*label).to_owned()).collect();
            Desc::new(
                family.name.to_owned(),
                family.help_text.to_owned(),
                labels,
                Default::default(),
            )
        });
        let descriptors = descriptors.collect::<Result<_, _>>()?;
        Ok(Self { flow_controller: Arc::clone(flow_controller), metric_descriptors: descriptors })
    }
}

impl Collector for FlowControlMetricsCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.metric_descriptors.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut samples = FlowControlMetricSamples::default();
        for own in self.flow_controller.flow_schema_usages() {
            let flow = [&*own.flow_schema_name, &*own.priority_level_name];
            samples.push_counter(DISPATCHED, &flow, own.n_dispatched_requests);
            for (why, n) in own.n_rejected_requests_by_reason {
                samples.push_counter(
                    REJECTED,
                    &[&own.flow_schema_name, &own.priority_level_name, why.reason_label_value()],
                    n,
                );
            }
            samples.push_gauge(WAITING, &flow, own.n_waiting_requests as f64);
            samples.push_gauge(EXECUTING, &flow, own.n_executing_requests as f64);
            samples.push_gauge(EXECUTING_SEATS, &flow, own.seats_in_use as f64);
            for (execute, waits) in
                [("true", own.dispatched_wait_durations), ("false", own.rejected_wait_durations)]
            {
                samples.push_histogram(
                    WAIT_SECONDS,
                    &[execute, &own.flow_schema_name, &own.priority_level_name],
                    &waits,
                );
            }
            for (kind, durations) in [
                ("regular", own.execution_durations),
                ("watch", own.watch_initialization_durations),
            ] {
                let labels = [&*own.flow_schema_name, &*own.priority_level_name, kind];
                samples.push_histogram(EXECUTION_SECONDS, &labels, &durations);
            }
        }
        for own in self.flow_controller.priority_level_usages() {
            let seats = f64::from(own.seats_max.unwrap_or_default());
            samples.push_gauge(NOMINAL_SEATS, &[&own.name], seats);
            samples.push_gauge(CURRENT_SEATS, &[&own.name], seats);
        }
        samples.into_metric_families()
    }
}

/// The samples of each family.
#[derive(Default)]
struct FlowControlMetricSamples([Vec<Metric>; FAMILIES.len()]);

impl FlowControlMetricSamples {
    /// A counter is exposed from its first event on, as in Kubernetes.
    fn push_counter(&mut self, family: usize, values: &[&str], count: u64) {
        if count > 0 {
            let mut counter = Counter::default();
            counter.set_value(count as f64);
            self.push(family, values, |sample| sample.set_counter(counter));
        }
    }

    fn push_gauge(&mut self, family: usize, values: &[&str], value: f64) {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        self.push(family, values, |sample| sample.set_gauge(gauge));
    }

    fn push_histogram(&mut self, family: usize, values: &[&str], durations: &DurationHistogram) {
        if durations.n_observations == 0 {
            return;
        }
        let buckets = durations.cumulative_buckets.iter().map(|&(bound, n)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(n);
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(durations.n_observations);
        histogram.set_sample_sum(durations.duration_sum_seconds);
        self.push(family, values, |sample| sample.set_histogram(histogram));
    }

    fn push(&mut self, family: usize, values: &[&str], set: impl FnOnce(&mut Metric)) {
        let (Some(definition), Some(samples)) = (FAMILIES.get(family), self.0.get_mut(family))
        else {
            return;
        };
        let labels = definition.labels.iter().zip(values).map(|(name, value)| {
            let mut label = LabelPair::default();
            label.set_name((*name).to_owned());
            label.set_value((*value).to_owned());
            label
        });
        let mut sample = Metric::from_label(labels.collect());
        set(&mut sample);
        samples.push(sample);
    }

    fn into_metric_families(self) -> Vec<MetricFamily> {
        let families = FAMILIES.iter().zip(self.0).filter(|(_, samples)| !samples.is_empty());
        let families = families.map(|(definition, samples)| {
            let mut family = MetricFamily::default();
            family.set_name(definition.name.to_owned());
            family.set_help(definition.help_text.to_owned());
            family.set_field_type(definition.metric_type);
            family.set_metric(samples);
            family
        });
        families.collect()
    }
}
