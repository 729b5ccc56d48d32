//! The files under `docs/monitoring` speak only of what is exported.

use monitoring_lint::{ExportedMetrics, lint_alerts, lint_dashboard, lint_tables};

use crate::everything;

fn read(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring/");
    std::fs::read_to_string(format!("{folder}{name}")).unwrap()
}

fn exported() -> ExportedMetrics {
    let (registry, _metrics) = everything::happened();
    monitoring_lint::gather_exported_metrics(&registry).unwrap()
}

#[test]
fn the_dashboard_uses_what_is_exported() {
    let faults = lint_dashboard(&exported(), &read("admission-dashboard.json"));
    assert_eq!(faults, [""; 0]);
}

#[test]
fn the_alerts_use_what_is_exported_and_are_explained() {
    let alerts = read("admission-alerts.yaml");
    assert_eq!(lint_alerts(&exported(), &alerts, &read("admission.md")), [""; 0]);
}

#[test]
fn the_tables_list_what_is_exported() {
    assert_eq!(lint_tables(&exported(), &read("admission.md")), [""; 0]);
}

/// The page says how many names are told apart.
#[test]
fn the_limit_is_the_documented_one() {
    let sentence = format!("At most {} names are told apart", admission_metrics::NAMES_MAX);
    assert!(read("admission.md").contains(&sentence));
}
