//! The files under `docs/monitoring` speak only of what is exported.

use monitoring_lint::{ExportedMetrics, lint_alerts, lint_dashboard, lint_tables};

use crate::everything;
use crate::exposed;

fn read(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring/");
    std::fs::read_to_string(format!("{folder}{name}")).unwrap()
}

fn exported() -> ExportedMetrics {
    let (registry, _metrics, _kept) = everything::happened();
    exposed::look(&registry)
}

#[test]
fn the_dashboard_uses_what_is_exported() {
    let faults = lint_dashboard(&exported(), &read("grafana-dashboard.json"));
    assert_eq!(faults, [""; 0]);
}

#[test]
fn the_alerts_use_what_is_exported_and_are_explained() {
    let faults = lint_alerts(&exported(), &read("alerts.yaml"), &read("README.md"));
    assert_eq!(faults, [""; 0]);
}

#[test]
fn the_tables_list_what_is_exported() {
    assert_eq!(lint_tables(&exported(), &read("README.md")), [""; 0]);
}
