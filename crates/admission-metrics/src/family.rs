//! Makes families and puts them into a registry.
//!
//! Names, types, labels, label values and classes of durations of the families that Kubernetes has
//! too are those of Kubernetes, so that dashboards and alerts made for it work here. The first word
//! of a help text is how stable the family is.

use std::collections::HashMap;

use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts,
    Registry,
};

/// The label whose values come from configurations.
pub(crate) const NAME: &str = "name";

pub(crate) fn counter(
    registry: &Registry,
    name: &str,
    help: &str,
) -> Result<IntCounter, prometheus::Error> {
    registered(registry, IntCounter::new(name, help)?)
}

pub(crate) fn counters(
    registry: &Registry,
    name: &str,
    labels: &[&str],
    help: &str,
) -> Result<IntCounterVec, prometheus::Error> {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

pub(crate) fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
) -> Result<Gauge, prometheus::Error> {
    registered(registry, Gauge::new(name, help)?)
}

pub(crate) fn int_gauge(
    registry: &Registry,
    name: &str,
    help: &str,
) -> Result<IntGauge, prometheus::Error> {
    registered(registry, IntGauge::new(name, help)?)
}

pub(crate) fn histogram(
    registry: &Registry,
    name: &str,
    seconds: &[f64],
    help: &str,
) -> Result<Histogram, prometheus::Error> {
    let options = HistogramOpts::new(name, help).buckets(seconds.to_vec());
    registered(registry, Histogram::with_opts(options)?)
}

pub(crate) fn histograms(
    registry: &Registry,
    name: &str,
    labels: &[&str],
    seconds: &[f64],
    help: &str,
) -> Result<HistogramVec, prometheus::Error> {
    let options = HistogramOpts::new(name, help).buckets(seconds.to_vec());
    registered(registry, HistogramVec::new(options, labels)?)
}

fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    family: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(family.clone()))?;
    Ok(family)
}

/// Drops the series about names that are not kept.
pub(crate) fn retain<T: MetricVecBuilder>(family: &MetricVec<T>, is_kept: &dyn Fn(&str) -> bool) {
    for shown in family.collect() {
        for series in shown.get_metric() {
            let labels: HashMap<&str, &str> =
                series.get_label().iter().map(|label| (label.name(), label.value())).collect();
            if labels.get(NAME).is_some_and(|name| !is_kept(name)) {
                // Whoever was quicker has dropped it.
                let _ = family.remove(&labels);
            }
        }
    }
}
