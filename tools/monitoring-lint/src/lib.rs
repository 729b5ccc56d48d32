//! Checks that the files under `docs/monitoring` name all exported metrics and no others.
//!
//! A dashboard that queries a series that does not exist shows an empty panel, and such an alert never
//! fires; neither is noticed until it is needed. The tests of a crate that exports metrics therefore
//! make every series appear once, call [`gather_exported_metrics`] on the registry, and compare the
//! result with the dashboard's queries, the alerting rules and the tables that explain them.
//!
//! Owns: reading queries, dashboards, rules and tables as far as the comparison needs.
//! Must not know: the names of the families and the crates that export them.

mod alerts;
mod dashboard;
mod exported_metrics;
mod promql;
mod query;
mod tables;

pub use alerts::lint_alerts;
pub use dashboard::lint_dashboard;
pub use exported_metrics::{
    ExportedMetrics, Family, MetricsError, gather_exported_metrics, samples, text,
};
pub use promql::PromqlError;
pub use query::{QueryError, check_query};
pub use tables::lint_tables;
