//! What a registry shows, in a form that tests can ask.

use std::collections::{BTreeMap, BTreeSet};

use prometheus::proto::MetricType;
use prometheus::{Registry, TextEncoder};

/// All families that have a sample.
pub(crate) type Exposed = BTreeMap<String, Family>;

/// One family.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) kind: &'static str,
    /// The names of the labels, with all values that occur.
    pub(crate) labels: BTreeMap<String, BTreeSet<String>>,
    /// Values of counters and gauges, and counts of histograms, by labels such as `a=1,b=2`.
    pub(crate) samples: BTreeMap<String, f64>,
}

/// What the registry shows now.
pub(crate) fn look(registry: &Registry) -> Exposed {
    let families = registry.gather();
    let family = |family: &prometheus::proto::MetricFamily| {
        let kind = family.get_field_type();
        let mut labels = BTreeMap::<String, BTreeSet<String>>::new();
        let mut samples = BTreeMap::new();
        for sample in family.get_metric() {
            let mut key = Vec::new();
            for label in sample.get_label() {
                labels.entry(label.name().to_owned()).or_default().insert(label.value().to_owned());
                key.push(format!("{}={}", label.name(), label.value()));
            }
            assert!(key.is_sorted(), "labels of {} are not sorted: {key:?}", family.name());
            let value = match kind {
                MetricType::COUNTER => sample.get_counter().get_value(),
                MetricType::GAUGE => sample.get_gauge().get_value(),
                MetricType::HISTOGRAM => sample.get_histogram().get_sample_count() as f64,
                MetricType::SUMMARY | MetricType::UNTYPED => panic!("{kind:?}"),
            };
            let old = samples.insert(key.join(","), value);
            assert!(old.is_none(), "{} shows {key:?} twice", family.name());
        }
        let kind = match kind {
            MetricType::COUNTER => "counter",
            MetricType::GAUGE => "gauge",
            _ => "histogram",
        };
        (family.name().to_owned(), Family { kind, labels, samples })
    };
    families.iter().map(family).collect()
}

/// The samples of one family, as `labels value`, sorted.
pub(crate) fn samples(registry: &Registry, name: &str) -> Vec<String> {
    let exposed = look(registry);
    let samples = exposed.get(name).into_iter().flat_map(|family| &family.samples);
    samples.map(|(labels, value)| format!("{labels} {value}")).collect()
}

/// What is scraped.
pub(crate) fn text(registry: &Registry) -> String {
    TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
}
