//! The graph: which objects are related to which nodes?

use std::sync::Arc;

use persistent::Map;

use crate::object_name::{AsObjectName, ObjectKind, ObjectName, OwnedObjectName};

/// The objects that are related to each node.
///
/// A pod, and any other object that names its node, is related to that node. So are the objects to which
/// such a pod refers, the volume that is bound to a claim of the pod, and the secrets of that volume.
///
/// Each node has a map of its objects, so a decision makes two lookups, and a change of a pod changes the
/// map of one node, however many nodes share a secret. A change of a volume changes the maps of all nodes
/// that use its claim. A clone shares memory with the original and does not see later changes.
///
/// INVARIANT: a node without objects, and a claim without volumes and nodes, has no entry.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// The objects of each node, by its name.
    pub(crate) objects_by_node: Map<Arc<str>, NodeObjects>,
    /// The pods and other objects that name a node.
    pub(crate) node_bound_objects: Map<OwnedObjectName, NodeBoundObject>,
    /// The persistent volumes that are bound to a claim.
    pub(crate) bound_persistent_volumes: Map<OwnedObjectName, BoundPersistentVolume>,
    /// The persistent volume claims to which a volume is bound or a pod refers.
    pub(crate) persistent_volume_claim_relations:
        Map<OwnedObjectName, PersistentVolumeClaimRelations>,
}

/// The objects of one node, each with the number of objects through which it is related to the node: the
/// object itself if it names the node, pods that refer to it, and volumes.
pub(crate) type NodeObjects = Map<OwnedObjectName, u32>;

/// An object that names its node.
#[derive(Debug, Clone)]
pub(crate) struct NodeBoundObject {
    pub(crate) node_name: Arc<str>,
    /// The objects to which it refers, without duplicates. Only pods refer to objects.
    pub(crate) referenced_objects: Arc<[OwnedObjectName]>,
}

/// A persistent volume that is bound to a claim.
#[derive(Debug, Clone)]
pub(crate) struct BoundPersistentVolume {
    pub(crate) persistent_volume_claim_name: OwnedObjectName,
    /// The secrets to which it refers, without duplicates.
    pub(crate) secret_names: Arc<[OwnedObjectName]>,
}

/// The volumes and the nodes to which one persistent volume claim is related.
#[derive(Debug, Clone, Default)]
pub(crate) struct PersistentVolumeClaimRelations {
    /// The volumes that are bound to it. Kubernetes binds one.
    pub(crate) bound_persistent_volume_names: Map<OwnedObjectName, ()>,
    /// The nodes with a pod that refers to it.
    pub(crate) nodes_of_pods_using_claim: Map<Arc<str>, ()>,
}

/// Queries of the relations between objects and nodes.
impl Graph {
    /// Reports whether an object is related to a node.
    #[inline]
    pub(crate) fn is_related_to_node(&self, object: ObjectName<'_>, node: &str) -> bool {
        self.objects_by_node.get(node).is_some_and(|objects| is_object_of_node(objects, object))
    }

    /// Reports whether some object is related to the node.
    pub(crate) fn has_node(&self, node: &str) -> bool {
        self.objects_by_node.contains_key(node)
    }

    /// Lists the nodes to which an object is related, in order. This reads all nodes.
    pub(crate) fn nodes_of_object(&self, object: ObjectName<'_>) -> Vec<&str> {
        let nodes =
            self.objects_by_node.iter().filter(|(_, objects)| is_object_of_node(objects, object));
        let mut nodes: Vec<&str> = nodes.map(|(node, _)| node.as_ref()).collect();
        nodes.sort_unstable();
        nodes
    }

    /// Reports whether some volume has this name, is bound to this claim or refers to this secret. For a secret
    /// this reads all volumes.
    pub(crate) fn is_persistent_volume_or_used_by_one(&self, object: ObjectName<'_>) -> bool {
        let key: &dyn AsObjectName = &object;
        let mut volumes = self.bound_persistent_volumes.values();
        self.bound_persistent_volumes.contains_key(key)
            || self.persistent_volume_claim_relations.contains_key(key)
            || (object.kind == ObjectKind::Secret
                && volumes.any(|volume| volume.refers_to_secret(object)))
    }

    /// Finds the path from an object to a node. The path begins with the object and continues with the objects
    /// through which it is related to the node. This reads all objects of the node.
    pub(crate) fn path_to_node<'g>(
        &'g self,
        object: ObjectName<'g>,
        node: &str,
    ) -> Vec<ObjectName<'g>> {
        std::iter::successors(Some(object), |object| self.next_object_on_path(*object, node))
            .collect()
    }

    /// The next object on the path: a pod that refers to the object, the claim of a volume, or a volume
    /// with this secret. If there are several, the first by name. `None` if the object names the node.
    fn next_object_on_path(&self, object: ObjectName<'_>, node: &str) -> Option<ObjectName<'_>> {
        let key: &dyn AsObjectName = &object;
        if self.node_bound_objects.contains_key(key) {
            return None;
        }
        if let Some(volume) = self.bound_persistent_volumes.get(key) {
            return Some(volume.persistent_volume_claim_name.as_object_name());
        }
        let objects =
            || self.objects_by_node.get(node).into_iter().flat_map(|objects| objects.iter());
        let pods = objects().filter(|(candidate, _)| {
            let bound_object = self.node_bound_objects.get(*candidate);
            bound_object
                .is_some_and(|bound_object| contains(&bound_object.referenced_objects, object))
        });
        let volumes = objects().filter(|(candidate, _)| {
            self.bound_persistent_volumes
                .get(*candidate)
                .is_some_and(|volume| volume.refers_to_secret(object))
        });
        let first_pod = pods.map(|(pod, _)| pod.as_object_name()).min();
        first_pod.or_else(|| volumes.map(|(volume, _)| volume.as_object_name()).min())
    }

    /// The number of relations: between nodes and objects, between objects and the objects that they refer to, and
    /// between volumes and claims. It is zero if and only if the graph has no object.
    pub fn n_relations(&self) -> usize {
        let n_objects: usize = self.objects_by_node.values().map(Map::len).sum();
        let n_references: usize = self
            .node_bound_objects
            .values()
            .map(|bound_object| 1 + bound_object.referenced_objects.len())
            .sum();
        let n_secrets: usize = self
            .bound_persistent_volumes
            .values()
            .map(|volume| 1 + volume.secret_names.len())
            .sum();
        let n_of_claims: usize = self
            .persistent_volume_claim_relations
            .values()
            .map(|claim| {
                1 + claim.bound_persistent_volume_names.len()
                    + claim.nodes_of_pods_using_claim.len()
            })
            .sum();
        self.objects_by_node.len() + n_objects + n_references + n_secrets + n_of_claims
    }
}

impl BoundPersistentVolume {
    fn refers_to_secret(&self, secret: ObjectName<'_>) -> bool {
        contains(&self.secret_names, secret)
    }
}

#[inline]
fn is_object_of_node(objects: &NodeObjects, object: ObjectName<'_>) -> bool {
    let key: &dyn AsObjectName = &object;
    objects.contains_key(key)
}

fn contains(names: &[OwnedObjectName], object: ObjectName<'_>) -> bool {
    names.iter().any(|name| name.as_object_name() == object)
}
