//! The numbers of the authorization chain that operators see.
//!
//! [`Metrics`] makes the observers that the chain and its webhooks report to, and shows what they
//! were told in a Prometheus registry: under the names of Kubernetes where it has one, under
//! `portcullis_authorization_` otherwise. The families are listed in `docs/monitoring/README.md`,
//! next to a dashboard and alerting rules that use them.
//!
//! The numbers are plain atomics, and a series is made when somebody collects. So an observation
//! looks nothing up, a series appears with its first event, and it is gone when nobody can report to
//! it any more.
//!
//! Owns: the families, their labels and classes of durations, how they are counted.
//! Must not know: HTTP, how a decision is made, when a configuration is loaded.

mod authorizer;
mod certificate;
mod family;
mod metrics;
mod names;
mod reload;
mod request;
mod samples;
mod stripes;
mod webhook;

pub use metrics::Metrics;
