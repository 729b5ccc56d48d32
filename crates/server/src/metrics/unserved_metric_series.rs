//! Removes the metric series of resources that are no longer served.

use std::collections::{HashMap, HashSet};

use api_resources::Registry;
use prometheus::core::{Collector, MetricVec, MetricVecBuilder};

use super::ServerMetrics;

impl ServerMetrics {
    /// Removes the series of resources that the registry does not contain. Otherwise a user who may create
    /// and delete definitions could create any number of series.
    pub(crate) fn remove_unserved_series(&self, registry: &Registry) {
        let mut plurals = HashSet::new();
        let mut group_resources = HashSet::new();
        for resource in registry.resources() {
            plurals.insert(resource.plural.as_str());
            group_resources.insert(resource.group_resource().to_string());
        }
        let is_served = |labels: &HashMap<&str, &str>| {
            let text = |name: &str| labels.get(name).copied().unwrap_or_default();
            let resource = text("resource");
            resource.is_empty()
                || registry.resource(text("group"), text("version"), resource).is_some()
        };
        retain_metric_series(&self.request_counts, is_served);
        retain_metric_series(&self.request_durations, is_served);
        retain_metric_series(&self.long_running_requests, is_served);
        retain_metric_series(&self.sent_watch_events, is_served);
        retain_metric_series(&self.store_request_durations, |labels| {
            labels.get("type").is_none_or(|plural| plurals.contains(plural))
        });
        retain_metric_series(&self.stored_object_counts, |labels| {
            labels.get("resource").is_none_or(|name| group_resources.contains(*name))
        });
    }
}

/// Removes the series whose labels the predicate rejects.
fn retain_metric_series<B: MetricVecBuilder>(
    metrics: &MetricVec<B>,
    is_kept: impl Fn(&HashMap<&str, &str>) -> bool,
) {
    for family in metrics.collect() {
        for metric in family.get_metric() {
            let labels = metric.get_label().iter();
            let labels: HashMap<&str, &str> =
                labels.map(|label| (label.name(), label.value())).collect();
            if !is_kept(&labels) {
                // The series may have been removed in the meantime.
                let _ = metrics.remove(&labels);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::RequestMetricLabels;
    use super::*;

    #[test]
    fn series_of_resources_that_are_not_served_are_removed() {
        let controller = std::sync::Arc::new(flow_control::FlowController::new(1));
        let metrics = ServerMetrics::new(prometheus::Registry::new(), &controller).unwrap();
        for (group, resource) in [("", "pods"), ("example.com", "widgets"), ("", "")] {
            let labels = RequestMetricLabels {
                verb: "GET",
                group,
                version: "v1",
                resource,
                ..RequestMetricLabels::default()
            };
            metrics.count_request(&labels, 200, Duration::from_millis(3));
            metrics
                .long_running_requests
                .with_label_values(&["WATCH", group, "v1", resource])
                .inc();
            metrics.sent_watch_events.with_label_values(&[group, "v1", resource]).inc();
        }
        for plural in ["pods", "widgets"] {
            metrics.store_request_durations.with_label_values(&["get", plural]).observe(0.1);
        }
        metrics.stored_object_counts.with_label_values(&["widgets.example.com"]).set(1);
        metrics.stored_object_counts.with_label_values(&["pods"]).set(1);
        metrics.remove_unserved_series(&Registry::with_built_in_resources());
        let families = metrics.metrics_registry.gather();
        let text = prometheus::TextEncoder::new().encode_to_string(&families).unwrap();
        assert!(!text.contains("widgets"), "{text}");
        let n_pods = text.lines().filter(|line| line.contains("\"pods\"")).count();
        assert!(n_pods > 4, "{text}");
        assert!(text.contains("resource=\"\""), "{text}");
    }
}
