//! The background loops of the server: controllers that act on stored objects without a client's request.

mod aggregated_roles;
mod cluster_ip_repair;
mod crd_controller;
mod deletion_tasks;
mod flow_control_loop;
mod garbage_collector;
mod namespace_conditions;
mod store_alarms;
mod terminating_namespaces;

pub(crate) use aggregated_roles::store_aggregated_roles;
pub(crate) use cluster_ip_repair::{repair_cluster_ips_and_log, repair_cluster_ips_periodically};
pub(crate) use crd_controller::reconcile_crds;
pub(crate) use flow_control_loop::{maintain_flow_control, write_dangling_conditions};
pub(crate) use garbage_collector::collect_garbage;
pub(crate) use store_alarms::log_store_alarms;
pub(crate) use terminating_namespaces::delete_terminating_namespaces;
