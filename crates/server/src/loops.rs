//! The background loops of the server: controllers that act on stored objects without a client's request.

mod aggregated_roles;
mod audit_losses;
mod cluster_ip_repair;
mod definitions;
mod deletion_tasks;
mod flow_control;
mod garbage_collector;
mod namespace_conditions;
mod namespaces;
mod store_alarms;

pub(crate) use aggregated_roles::store_aggregated_roles;
pub(crate) use audit_losses::log_audit_losses;
pub(crate) use cluster_ip_repair::{repair_cluster_ips_and_log, repair_cluster_ips_periodically};
pub(crate) use definitions::reconcile_definitions;
pub(crate) use flow_control::{maintain_flow_control, write_dangling_conditions};
pub(crate) use garbage_collector::collect_garbage;
pub(crate) use namespaces::delete_terminating_namespaces;
pub(crate) use store_alarms::log_store_alarms;
