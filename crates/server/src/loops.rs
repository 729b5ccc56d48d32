//! What the server does by itself, without being asked.

mod aggregation;
mod cluster_ips;
mod collector;
mod definitions;
mod endings;
mod namespaces;

pub(crate) use aggregation::store_aggregated;
pub(crate) use cluster_ips::{repair, repair_addresses};
pub(crate) use collector::collect_garbage;
pub(crate) use definitions::establish_definitions;
pub(crate) use namespaces::end_namespaces;
