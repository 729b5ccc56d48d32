//! Samples of one family, as a registry collects them.

use prometheus::proto;

use crate::family::Family;
use crate::stripes::Distribution;

/// The samples of one family at one moment.
pub(crate) struct Samples {
    family: &'static Family,
    samples: Vec<proto::Metric>,
}

impl Samples {
    /// No samples yet.
    pub(crate) fn of(family: &'static Family) -> Self {
        Self { family, samples: Vec::new() }
    }

    /// Shows a count, unless it is zero and Kubernetes would not show it.
    pub(crate) fn counter(&mut self, values: &[&str], count: u64) {
        if self.shows(count) {
            let mut counter = proto::Counter::default();
            counter.set_value(count as f64);
            self.add(values, |sample| sample.set_counter(counter));
        }
    }

    /// Shows a value.
    pub(crate) fn gauge(&mut self, values: &[&str], value: f64) {
        let mut gauge = proto::Gauge::default();
        gauge.set_value(value);
        self.add(values, |sample| sample.set_gauge(gauge));
    }

    /// Shows a distribution, unless it is empty and Kubernetes would not show it.
    pub(crate) fn histogram(&mut self, values: &[&str], distribution: Distribution) {
        if self.shows(distribution.n_all) {
            self.add(values, |sample| sample.set_histogram(distribution.into()));
        }
    }

    /// The family with its samples.
    pub(crate) fn finish(self) -> proto::MetricFamily {
        let mut family = proto::MetricFamily::default();
        family.set_name(self.family.name.to_owned());
        family.set_help(self.family.help.to_owned());
        family.set_field_type(self.family.kind);
        family.set_metric(self.samples);
        family
    }

    /// Kubernetes shows a series with labels from its first event on, and whoever counts its series
    /// relies on that. Ours are there from the start, so that the first event is an increase.
    fn shows(&self, count: u64) -> bool {
        count > 0 || self.family.labels.is_empty() || self.family.is_ours()
    }

    /// `values` are those of the labels of the family, in their order.
    fn add(&mut self, values: &[&str], set: impl FnOnce(&mut proto::Metric)) {
        debug_assert_eq!(values.len(), self.family.labels.len(), "{}", self.family.name);
        let labels = self.family.labels.iter().zip(values).map(|(name, value)| {
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
