//! The metric families of a registry, indexed by name.

use std::collections::{BTreeMap, BTreeSet};

use prometheus::proto::{MetricFamily, MetricType};
use prometheus::{Registry, TextEncoder};

/// All families that have a sample, by name.
pub type ExportedMetrics = BTreeMap<String, Family>;

/// The labels and samples of one metric family.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of the labels, with all values that occur.
    pub labels: BTreeMap<String, BTreeSet<String>>,
    /// Values of counters and gauges, and counts of histograms, by labels such as `a=1,b=2`.
    pub samples: BTreeMap<String, f64>,
}

/// The reason why the metrics of a registry cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The labels of a sample are out of order.
    #[error("labels of {0} are not sorted: {1:?}")]
    UnsortedLabels(String, Vec<String>),
    /// The family is a summary or has no type.
    #[error("{0} is of the kind {1:?}")]
    UnusedKind(String, MetricType),
    /// Two samples have the same labels.
    #[error("{0} exports {1:?} twice")]
    DuplicateSeries(String, Vec<String>),
}

/// Gathers the metrics of the registry.
///
/// # Errors
/// A family is malformed or of a kind that this project does not use.
pub fn gather_exported_metrics(registry: &Registry) -> Result<ExportedMetrics, MetricsError> {
    registry
        .gather()
        .iter()
        .map(|family| Ok((family.name().to_owned(), read_family(family)?)))
        .collect()
}

fn read_family(family: &MetricFamily) -> Result<Family, MetricsError> {
    let name = family.name();
    let kind = family.get_field_type();
    let mut labels = BTreeMap::<String, BTreeSet<String>>::new();
    let mut samples = BTreeMap::new();
    for sample in family.get_metric() {
        let mut key = Vec::new();
        for label in sample.get_label() {
            labels.entry(label.name().to_owned()).or_default().insert(label.value().to_owned());
            key.push(format!("{}={}", label.name(), label.value()));
        }
        if !key.is_sorted() {
            return Err(MetricsError::UnsortedLabels(name.to_owned(), key));
        }
        let value = match kind {
            MetricType::COUNTER => sample.get_counter().get_value(),
            MetricType::GAUGE => sample.get_gauge().get_value(),
            MetricType::HISTOGRAM => sample.get_histogram().get_sample_count() as f64,
            MetricType::SUMMARY | MetricType::UNTYPED => {
                return Err(MetricsError::UnusedKind(name.to_owned(), kind));
            }
        };
        if samples.insert(key.join(","), value).is_some() {
            return Err(MetricsError::DuplicateSeries(name.to_owned(), key));
        }
    }
    let kind = match kind {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::HISTOGRAM | MetricType::SUMMARY | MetricType::UNTYPED => "histogram",
    };
    Ok(Family { kind, labels, samples })
}

/// The samples of one family, as `labels value`, sorted.
///
/// # Errors
/// As for [`gather_exported_metrics`].
pub fn samples(registry: &Registry, name: &str) -> Result<Vec<String>, MetricsError> {
    let exported = gather_exported_metrics(registry)?;
    let samples = exported.get(name).into_iter().flat_map(|family| &family.samples);
    Ok(samples.map(|(labels, value)| format!("{labels} {value}")).collect())
}

/// Renders the registry in the text format that Prometheus scrapes.
///
/// # Errors
/// The encoder refuses a family.
pub fn text(registry: &Registry) -> Result<String, prometheus::Error> {
    TextEncoder::new().encode_to_string(&registry.gather())
}
