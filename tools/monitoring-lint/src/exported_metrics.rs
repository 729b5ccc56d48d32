//! What a registry shows, in a form that can be asked.

use std::collections::{BTreeMap, BTreeSet};

use prometheus::proto::{MetricFamily, MetricType};
use prometheus::{Registry, TextEncoder};

/// All families that have a sample.
pub type ExportedMetrics = BTreeMap<String, Family>;

/// One family.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of the labels, with all values that occur.
    pub labels: BTreeMap<String, BTreeSet<String>>,
    /// Values of counters and gauges, and counts of histograms, by labels such as `a=1,b=2`.
    pub samples: BTreeMap<String, f64>,
}

/// What the registry shows now.
///
/// # Errors
/// Something that nobody should show: labels out of order, a series that stands twice, or a kind of
/// family that is not used here.
pub fn gather_exported_metrics(registry: &Registry) -> Result<ExportedMetrics, String> {
    registry.gather().iter().map(|family| Ok((family.name().to_owned(), read(family)?))).collect()
}

fn read(family: &MetricFamily) -> Result<Family, String> {
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
            return Err(format!("labels of {name} are not sorted: {key:?}"));
        }
        let value = match kind {
            MetricType::COUNTER => sample.get_counter().get_value(),
            MetricType::GAUGE => sample.get_gauge().get_value(),
            MetricType::HISTOGRAM => sample.get_histogram().get_sample_count() as f64,
            MetricType::SUMMARY | MetricType::UNTYPED => {
                return Err(format!("{name} is of the kind {kind:?}"));
            }
        };
        if samples.insert(key.join(","), value).is_some() {
            return Err(format!("{name} shows {key:?} twice"));
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
pub fn samples(registry: &Registry, name: &str) -> Result<Vec<String>, String> {
    let exposed = gather_exported_metrics(registry)?;
    let samples = exposed.get(name).into_iter().flat_map(|family| &family.samples);
    Ok(samples.map(|(labels, value)| format!("{labels} {value}")).collect())
}

/// What is scraped.
///
/// # Errors
/// The registry holds what can not be written.
pub fn text(registry: &Registry) -> Result<String, prometheus::Error> {
    TextEncoder::new().encode_to_string(&registry.gather())
}
