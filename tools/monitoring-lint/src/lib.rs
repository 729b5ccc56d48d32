//! Whether the files under `docs/monitoring` speak of what is exported, of all of it, and of nothing
//! else.
//!
//! A dashboard that asks for a series nobody exports shows an empty panel, and an alert never fires;
//! neither is noticed until it is needed. So the tests of whoever exports families let everything
//! happen once, [`look`] at the registry, and compare: the queries of a dashboard and of alerting
//! rules, and the tables that explain them.
//!
//! Owns: reading queries, dashboards, rules and tables as far as that takes.
//! Must not know: which families there are, or who exports them.

mod alerts;
mod dashboard;
mod exposed;
mod promql;
mod query;
mod tables;

pub use alerts::faults_of_alerts;
pub use dashboard::faults_of_dashboard;
pub use exposed::{Exposed, Family, look, samples, text};
pub use query::check_query;
pub use tables::faults_of_tables;
