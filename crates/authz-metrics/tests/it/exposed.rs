//! What a registry shows.

use monitoring_lint::Exposed;
use prometheus::Registry;

/// What the registry shows now.
pub(crate) fn look(registry: &Registry) -> Exposed {
    monitoring_lint::look(registry).unwrap()
}

/// The samples of one family, as `labels value`, sorted.
pub(crate) fn samples(registry: &Registry, name: &str) -> Vec<String> {
    monitoring_lint::samples(registry, name).unwrap()
}
