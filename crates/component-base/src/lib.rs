//! The parts that every listening program of this repository has: the log, health checks, `/metrics`, audit backends, and
//! the reload of client authorities. The name and the purpose are those of Kubernetes' `k8s.io/component-base`.
//!
//! Owns: log lines, the texts of health endpoints, the metrics of connections and of audit backends, audit ids, the audit
//! webhook, and the periodic read of CA files.
//! Must not know: flags, what a program serves, how requests are authorized, stores.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod audit_id;
mod audit_losses;
mod audit_metrics;
mod audit_webhook;
mod ca_files;
mod connection_faults;
mod connection_metrics;
mod health;
mod log;
mod metrics_response;

pub use audit_id::{AUDIT_ID, AuditId, AuditIdGenerator};
pub use audit_losses::{flush_audit_events, log_audit_losses};
pub use audit_metrics::AuditMetrics;
pub use audit_webhook::{AUDIT_WEBHOOK_BACKEND, AuditWebhook};
pub use ca_files::{CaFiles, CaReload, reload_ca_files_periodically};
pub use connection_faults::connection_fault_reporter;
pub use connection_metrics::ConnectionMetrics;
pub use health::{
    HealthCheckResult, HealthEndpoint, HealthQuery, TextResponse, render_health_response,
};
pub use log::{Log, LogField, LogFormat, LogLevel};
pub use metrics_response::metrics_response;
