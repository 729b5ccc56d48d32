//! The numbers of dynamic admission that operators see.
//!
//! [`Metrics`] is what hooks and connections report to, and what the server tells the rest: how long
//! phases took, how new the configuration is, what became of initializers. All of it is seen in a
//! Prometheus registry, under the names of Kubernetes where it has one, under `portcullis_`
//! otherwise. The families are listed in `docs/monitoring/admission.md`, next to a dashboard and alerting
//! rules that use them.
//!
//! Calls of hooks take a network's time, so the numbers are looked up by their labels each time.
//!
//! Owns: the families, their labels and classes of durations, how many series there may be.
//! Must not know: HTTP, stores, clocks, how a request is admitted.

mod metrics;

mod configuration;
mod hook;
mod initializer;
mod step;

mod family;
mod names;

pub use configuration::ConfigRefusal;
pub use initializer::TimeoutAction;
pub use metrics::Metrics;
pub use names::{NAMES_MAX, OTHER};
