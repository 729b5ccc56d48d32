//! The samples that a collector gives to a registry.

use prometheus::proto;

use crate::authorization::FamilyDefinition;
use crate::striped_counters::MergedHistogram;

/// The samples of one family at one moment.
pub(crate) struct FamilySamples {
    family_definition: &'static FamilyDefinition,
    samples: Vec<proto::Metric>,
}

impl FamilySamples {
    pub(crate) fn new(family: &'static FamilyDefinition) -> Self {
        Self { family_definition: family, samples: Vec::new() }
    }

    /// Adds a counter, unless it is zero and Kubernetes would not expose it.
    pub(crate) fn push_counter(&mut self, values: &[&str], count: u64) {
        if self.is_sample_exposed(count) {
            let mut counter = proto::Counter::default();
            counter.set_value(count as f64);
            self.push(values, |sample| sample.set_counter(counter));
        }
    }

    /// Adds a gauge sample.
    pub(crate) fn push_gauge(&mut self, values: &[&str], value: f64) {
        let mut gauge = proto::Gauge::default();
        gauge.set_value(value);
        self.push(values, |sample| sample.set_gauge(gauge));
    }

    /// Adds a histogram, unless it is empty and Kubernetes would not expose it.
    pub(crate) fn push_histogram(&mut self, values: &[&str], histogram: MergedHistogram) {
        if self.is_sample_exposed(histogram.n_observations) {
            self.push(values, |sample| sample.set_histogram(histogram.into()));
        }
    }

    /// Converts the samples to a metric family.
    pub(crate) fn into_metric_family(self) -> proto::MetricFamily {
        let mut family = proto::MetricFamily::default();
        family.set_name(self.family_definition.name.to_owned());
        family.set_help(self.family_definition.help_text.to_owned());
        family.set_field_type(self.family_definition.metric_type);
        family.set_metric(self.samples);
        family
    }

    /// Kubernetes exposes a series with labels from its first event on, and queries that count series rely on that.
    /// Families that only Portcullis has are exposed from the start, so that the first event is an increase.
    fn is_sample_exposed(&self, count: u64) -> bool {
        count > 0
            || self.family_definition.labels.is_empty()
            || self.family_definition.is_portcullis_only()
    }

    /// Adds one sample. `values` are the label values, in the order of the labels of the family.
    fn push(&mut self, values: &[&str], set: impl FnOnce(&mut proto::Metric)) {
        debug_assert_eq!(
            values.len(),
            self.family_definition.labels.len(),
            "{}",
            self.family_definition.name
        );
        let labels = self.family_definition.labels.iter().zip(values).map(|(name, value)| {
            let mut label = proto::LabelPair::default();
            label.set_name((*name).to_owned());
            label.set_value((*value).to_owned());
            label
        });
        let mut sample = proto::Metric::from_label(labels.collect());
        set(&mut sample);
        self.samples.push(sample);
    }
}
