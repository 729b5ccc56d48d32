//! Authorization of nodes: a kubelet may access the objects that the pods of its node need, and no others.
//!
//! A [`Snapshot`] contains a [`Graph`] of the objects that are related to each node, and the rules that hold
//! for every node. A clone of a snapshot shares memory with the original. A writer clones the snapshot,
//! changes the clone and publishes it; decisions read the published snapshot without a lock.
//!
//! Owns: which users are nodes, what a node may request, the graph and how objects change it.
//! Must not know: HTTP, serde, the other authorizers, where objects come from, admission.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod graph_object;
mod policy;

mod graph;
mod graph_update;
mod object_name;
mod snapshot;

mod node_identity;
mod node_requirement;

mod decide;
mod explain;
mod rules;
mod who_can;

pub use explain::NEAR_MISSES_MAX;
pub use graph::Graph;
pub use graph_object::{
    GraphObject, NodeNamingObject, PersistentVolume, PersistentVolumeClaimReference, Pod,
    VolumeSecretReference,
};
pub use node_identity::{NODE_USER_PREFIX, NODES_GROUP, NodeIdentity};
pub use policy::{NodeFeatureGates, NodeRules};
pub use snapshot::Snapshot;
