//! What the server does by itself, without being asked.

mod addresses;
mod aggregation;
mod collector;
mod definitions;
mod endings;
mod namespaces;

pub(crate) use addresses::{repair, repair_addresses};
pub(crate) use aggregation::store_aggregated;
pub(crate) use collector::collect_garbage;
pub(crate) use definitions::establish_definitions;
pub(crate) use namespaces::end_namespaces;
