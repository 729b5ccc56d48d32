//! Creates metrics of the `prometheus` crate and registers them.
//!
//! A help text begins with the stability of the family, such as `[ALPHA]`. Each function fails if the name or a label
//! is malformed, or if the registry already has the family.

use std::collections::HashMap;

use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::{
    Error, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    Opts, Registry,
};

/// The label whose values are names from admission configurations.
pub(crate) const NAME_LABEL: &str = "name";

/// Registers a counter without labels.
///
/// # Errors
/// See the [module](self).
pub(crate) fn register_counter(
    registry: &Registry,
    name: &str,
    help: &str,
) -> Result<IntCounter, Error> {
    register_metric(registry, IntCounter::new(name, help)?)
}

/// Registers a counter with labels.
///
/// # Errors
/// See the [module](self).
pub(crate) fn register_counter_vec(
    registry: &Registry,
    name: &str,
    labels: &[&str],
    help: &str,
) -> Result<IntCounterVec, Error> {
    register_metric(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

/// Registers a gauge of floating-point numbers.
///
/// # Errors
/// See the [module](self).
pub(crate) fn register_gauge(registry: &Registry, name: &str, help: &str) -> Result<Gauge, Error> {
    register_metric(registry, Gauge::new(name, help)?)
}

/// Registers a gauge of integers.
///
/// # Errors
/// See the [module](self).
pub(crate) fn register_int_gauge(
    registry: &Registry,
    name: &str,
    help: &str,
) -> Result<IntGauge, Error> {
    register_metric(registry, IntGauge::new(name, help)?)
}

/// Registers a histogram of durations; `buckets` are upper bounds in seconds.
///
/// # Errors
/// See the [module](self).
pub(crate) fn register_histogram(
    registry: &Registry,
    name: &str,
    buckets: &[f64],
    help: &str,
) -> Result<Histogram, Error> {
    let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
    register_metric(registry, Histogram::with_opts(options)?)
}

/// Registers a histogram of durations with labels; `buckets` are upper bounds in seconds.
///
/// # Errors
/// See the [module](self).
pub(crate) fn register_histogram_vec(
    registry: &Registry,
    name: &str,
    labels: &[&str],
    buckets: &[f64],
    help: &str,
) -> Result<HistogramVec, Error> {
    let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
    register_metric(registry, HistogramVec::new(options, labels)?)
}

fn register_metric<C: Collector + Clone + 'static>(
    registry: &Registry,
    metric: C,
) -> Result<C, Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

/// Removes the series whose label `name` has a value for which `is_kept` is false.
pub(crate) fn retain_series_by_name<T: MetricVecBuilder>(
    metric: &MetricVec<T>,
    is_kept: &dyn Fn(&str) -> bool,
) {
    for family in metric.collect() {
        for series in family.get_metric() {
            let labels: HashMap<&str, &str> =
                series.get_label().iter().map(|label| (label.name(), label.value())).collect();
            if labels.get(NAME_LABEL).is_some_and(|name| !is_kept(name)) {
                // An error means that a concurrent call has removed the series.
                let _ = metric.remove(&labels);
            }
        }
    }
}
