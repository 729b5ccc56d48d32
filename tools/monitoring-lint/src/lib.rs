//! Whether the files under `docs/monitoring` speak of what is exported, of all of it, and of nothing
//! else.
//!
//! A dashboard that asks for a series nobody exports shows an empty panel, and an alert never fires;
//! neither is noticed until it is needed. So the tests of whoever exports families let everything
//! happen once, [`gather_exported_metrics`] at the registry, and compare: the queries of a dashboard and of alerting
//! rules, and the tables that explain them.
//!
//! Owns: reading queries, dashboards, rules and tables as far as that takes.
//! Must not know: which families there are, or who exports them.

mod alerts;
mod dashboard;
mod exported_metrics;
mod promql;
mod query;
mod tables;

pub use alerts::lint_alerts;
pub use dashboard::lint_dashboard;
pub use exported_metrics::{ExportedMetrics, Family, gather_exported_metrics, samples, text};
pub use query::check_query;
pub use tables::lint_tables;
