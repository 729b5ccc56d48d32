//! Authorization of nodes: a kubelet may touch what the pods bound to its node need, and no more.
//!
//! A [`Graph`] records which objects lead to which nodes: a secret to the pods that mount it, a
//! pod to its node. A [`Policy`] is the graph together with the rules that hold for every node. It
//! is a snapshot: cloning one costs next to nothing, and a clone that is changed shares with its
//! origin whatever the change did not touch. So a writer clones, changes and publishes, and
//! decisions read what is published without a lock.
//!
//! Owns: who is a node, what nodes may ask for, the graph and how objects change it.
//! Must not know: HTTP, serde, the other authorizers, where objects come from, admission.

mod decide;
mod demand;
mod explain;
mod graph;
mod identity;
mod name;
mod names;
mod nodes;
mod object;
mod policy;
mod populate;
mod rules;
mod set;
mod slab;
mod subjects;
mod table;

pub use explain::NEAR_MISSES_MAX;
pub use graph::Graph;
pub use identity::{NODE_USER_PREFIX, NODES_GROUP, NodeIdentity};
pub use object::{Assignment, Object, PersistentVolume, Pod, SecretReference, VolumeClaim};
pub use policy::{Gates, Policy};
pub use rules::NodeRules;
