//! The Prometheus metrics of authorization and of dynamic admission.
//!
//! [`AuthorizationMetrics`] creates the observers that the authorizer chain and its webhooks report to.
//! [`AdmissionMetrics`] observes admission hooks and records phases, configuration freshness and initializers.
//! Metrics that Kubernetes has too have its names, labels and buckets, so that dashboards and alerts made for it
//! work here; all others begin with `portcullis_`. `docs/monitoring` lists the families, next to dashboards and
//! alerting rules that use them.
//!
//! There are two ways to count. An authorization decision takes microseconds, so its counters are striped atomics
//! (`striped_counters`) that a collector reads; a series appears with its first event and disappears when no
//! authorizer can report to it any more. A call of an admission hook takes a network round trip, so its metrics are
//! vectors of the `prometheus` crate (`register_metrics`) that are looked up by label.
//!
//! Owns: metric families, their labels and buckets, and how many series there can be.
//! Must not know: HTTP servers, stores, how a decision is made, when a configuration is loaded.

mod admission;
mod authorization;

mod bounded_names;
mod family_samples;
mod register_metrics;
mod series_by_name;
mod striped_counters;

pub use admission::{AdmissionMetrics, InitializerTimeoutAction, StaleConfigRefusal};
pub use authorization::AuthorizationMetrics;
pub use bounded_names::{NAMES_MAX, OTHER_NAMES};
