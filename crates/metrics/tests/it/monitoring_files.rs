//! The files under `docs/monitoring` name only metrics that are exported.

use monitoring_lint::{ExportedMetrics, lint_alerts, lint_dashboard, lint_tables};

use crate::{admission, authorization};

/// The documentation, the dashboard and the alerts of a set of metrics.
struct MonitoringFiles {
    exported: ExportedMetrics,
    page: &'static str,
    dashboard: &'static str,
    alerts: &'static str,
}

fn all_files() -> [MonitoringFiles; 2] {
    let (registry, _metrics, _kept) = authorization::everything::happened();
    let (admission_registry, _admission_metrics) = admission::everything::happened();
    [
        MonitoringFiles {
            exported: monitoring_lint::gather_exported_metrics(&registry).unwrap(),
            page: "README.md",
            dashboard: "grafana-dashboard.json",
            alerts: "alerts.yaml",
        },
        MonitoringFiles {
            exported: monitoring_lint::gather_exported_metrics(&admission_registry).unwrap(),
            page: "admission.md",
            dashboard: "admission-dashboard.json",
            alerts: "admission-alerts.yaml",
        },
    ]
}

fn read(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring/");
    std::fs::read_to_string(format!("{folder}{name}")).unwrap()
}

#[test]
fn the_dashboards_use_what_is_exported() {
    for files in all_files() {
        assert_eq!(lint_dashboard(&files.exported, &read(files.dashboard)), [""; 0]);
    }
}

#[test]
fn the_alerts_use_what_is_exported_and_are_explained() {
    for files in all_files() {
        let (alerts, page) = (read(files.alerts), read(files.page));
        assert_eq!(lint_alerts(&files.exported, &alerts, &page), [""; 0]);
    }
}

#[test]
fn the_tables_list_what_is_exported() {
    for files in all_files() {
        assert_eq!(lint_tables(&files.exported, &read(files.page)), [""; 0]);
    }
}

/// The page states how many names have series of their own.
#[test]
fn the_limit_is_the_documented_one() {
    let sentence = format!("The server distinguishes at most {} names", metrics::NAMES_MAX);
    assert!(read("admission.md").contains(&sentence));
}
