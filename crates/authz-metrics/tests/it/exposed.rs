//! What a registry shows.

use monitoring_lint::ExportedMetrics;
use prometheus::Registry;

/// What the registry shows now.
pub(crate) fn look(registry: &Registry) -> ExportedMetrics {
    monitoring_lint::gather_exported_metrics(registry).unwrap()
}

/// The samples of one family, as `labels value`, sorted.
pub(crate) fn samples(registry: &Registry, name: &str) -> Vec<String> {
    monitoring_lint::samples(registry, name).unwrap()
}
