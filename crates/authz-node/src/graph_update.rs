//! Changing the graph when an object is added, updated or deleted.

use std::collections::HashSet;
use std::sync::Arc;

use authz::Namespace;

use crate::graph::{BoundPersistentVolume, Graph, NodeBoundObject, PersistentVolumeClaimRelations};
use crate::graph_object::{GraphObject, NodeNamingObject, PersistentVolume, Pod};
use crate::object_name::{AsObjectName, ObjectKind, ObjectName, OwnedObjectName};

/// Changes that an added, updated or deleted object makes.
impl Graph {
    /// Adds an object. An object of the same kind and name is deleted first, with its references, so
    /// only the newest object counts.
    pub fn add_object(&mut self, object: &GraphObject) {
        self.delete_object(object);
        match object {
            GraphObject::Pod(pod) => self.add_pod(pod),
            GraphObject::PersistentVolume(volume) => self.add_persistent_volume(volume),
            GraphObject::VolumeAttachment(assignment)
            | GraphObject::ResourceSlice(assignment)
            | GraphObject::PodCertificateRequest(assignment) => {
                self.add_node_naming_object(name_of_graph_object(object), assignment);
            }
        }
    }

    /// Updates an object. Most updates of a pod change only its status. The reduced objects are then equal, and
    /// the graph does not change. Any other update removes the references that the new object lacks, even if
    /// Kubernetes treats the field as immutable.
    pub fn update_object(&mut self, old: &GraphObject, new: &GraphObject) {
        if old != new {
            self.delete_object(old);
            self.add_object(new);
        }
    }

    /// Deletes the object of this kind and name. The other fields are ignored.
    pub fn delete_object(&mut self, object: &GraphObject) {
        let name = OwnedObjectName::from(name_of_graph_object(object));
        match object {
            GraphObject::PersistentVolume(_) => self.delete_persistent_volume(&name),
            GraphObject::Pod(_)
            | GraphObject::VolumeAttachment(_)
            | GraphObject::ResourceSlice(_)
            | GraphObject::PodCertificateRequest(_) => self.unrelate_object_from_its_node(&name),
        }
    }

    fn add_pod(&mut self, pod: &Pod) {
        let namespace = Namespace::new(&pod.namespace);
        if pod.node_name.is_empty() {
            return;
        }
        let referenced_objects = [
            (ObjectKind::ServiceAccount, std::slice::from_ref(&pod.service_account_name)),
            (ObjectKind::Secret, pod.secret_names.as_slice()),
            (ObjectKind::ConfigMap, pod.config_map_names.as_slice()),
            (ObjectKind::PersistentVolumeClaim, pod.persistent_volume_claim_names.as_slice()),
            (ObjectKind::ResourceClaim, pod.resource_claim_names.as_slice()),
            (ObjectKind::ResourceClaim, pod.extended_resource_claim_name.as_slice()),
        ];
        let referenced_objects = referenced_objects
            .into_iter()
            .flat_map(|(kind, names)| names.iter().map(move |name| (kind, name)))
            .map(|(kind, name)| ObjectName { kind, namespace, name })
            .filter(|_| !pod.is_mirror_pod);
        let name = ObjectName { kind: ObjectKind::Pod, namespace, name: &pod.name };
        self.relate_object_to_its_node(name, &pod.node_name, distinct_names(referenced_objects));
    }

    fn add_node_naming_object(&mut self, name: ObjectName<'_>, assignment: &NodeNamingObject) {
        if !assignment.node_name.is_empty() {
            self.relate_object_to_its_node(name, &assignment.node_name, Arc::default());
        }
    }

    fn add_persistent_volume(&mut self, volume: &PersistentVolume) {
        let Some(claim) = &volume.claim_ref else { return };
        let secrets = volume.secret_refs.iter().map(|secret| {
            let namespace = Namespace::new(secret.namespace.as_ref().unwrap_or(&claim.namespace));
            ObjectName { kind: ObjectKind::Secret, namespace, name: &secret.name }
        });
        let secrets = distinct_names(secrets);
        let kind = ObjectKind::PersistentVolumeClaim;
        let claim =
            ObjectName { kind, namespace: Namespace::new(&claim.namespace), name: &claim.name };
        let claim = OwnedObjectName::from(claim);
        let kind = ObjectKind::PersistentVolume;
        let name = OwnedObjectName::from(ObjectName {
            kind,
            namespace: Namespace::CLUSTER_SCOPE,
            name: &volume.name,
        });
        let volume = BoundPersistentVolume {
            persistent_volume_claim_name: claim.clone(),
            secret_names: secrets,
        };
        let entry = self
            .persistent_volume_claim_relations
            .get_or_insert_with(claim, PersistentVolumeClaimRelations::default);
        entry.bound_persistent_volume_names.insert(name.clone(), ());
        let nodes: Vec<Arc<str>> =
            entry.nodes_of_pods_using_claim.iter().map(|(node, ())| Arc::clone(node)).collect();
        for node in nodes {
            self.add_persistent_volume_relations(&name, &volume, &node);
        }
        self.bound_persistent_volumes.insert(name, volume);
    }

    fn delete_persistent_volume(&mut self, name: &OwnedObjectName) {
        let Some(volume) = self.bound_persistent_volumes.remove(name) else { return };
        let Some(claim) =
            self.persistent_volume_claim_relations.get_mut(&volume.persistent_volume_claim_name)
        else {
            return;
        };
        claim.bound_persistent_volume_names.remove(name);
        let nodes: Vec<Arc<str>> =
            claim.nodes_of_pods_using_claim.iter().map(|(node, ())| Arc::clone(node)).collect();
        self.remove_volume_claim_if_unused(&volume.persistent_volume_claim_name);
        for node in nodes {
            self.remove_persistent_volume_relations(name, &volume, &node);
        }
    }
}

/// Changes of the relations between objects and nodes.
impl Graph {
    /// Relates an object and its references to the node that it names.
    fn relate_object_to_its_node(
        &mut self,
        object: ObjectName<'_>,
        node: &str,
        referenced_objects: Arc<[OwnedObjectName]>,
    ) {
        let object = OwnedObjectName::from(object);
        let node = Arc::<str>::from(node);
        self.increment_relation_count(&object, &node);
        for reference in referenced_objects.iter() {
            let is_first = self.increment_relation_count(reference, &node);
            if is_first && reference.as_object_name().kind == ObjectKind::PersistentVolumeClaim {
                self.add_persistent_volume_claim_relations(reference, &node);
            }
        }
        self.node_bound_objects
            .insert(object, NodeBoundObject { node_name: node, referenced_objects });
    }

    /// Removes the relations that [`Self::relate_object_to_its_node`] added for an object.
    fn unrelate_object_from_its_node(&mut self, object: &OwnedObjectName) {
        let Some(NodeBoundObject { node_name: node, referenced_objects }) =
            self.node_bound_objects.remove(object)
        else {
            return;
        };
        for reference in referenced_objects.iter() {
            let is_last = self.decrement_relation_count(reference, &node);
            if is_last && reference.as_object_name().kind == ObjectKind::PersistentVolumeClaim {
                self.remove_persistent_volume_claim_relations(reference, &node);
            }
        }
        self.decrement_relation_count(object, &node);
    }

    /// Relates the volumes of a claim to a node whose first pod refers to the claim.
    fn add_persistent_volume_claim_relations(&mut self, name: &OwnedObjectName, node: &Arc<str>) {
        let claim = self
            .persistent_volume_claim_relations
            .get_or_insert_with(name.clone(), PersistentVolumeClaimRelations::default);
        claim.nodes_of_pods_using_claim.insert(Arc::clone(node), ());
        for (volume_name, volume) in self.persistent_volumes_bound_to_claim(name) {
            self.add_persistent_volume_relations(&volume_name, &volume, node);
        }
    }

    /// Removes the relations that [`Self::add_persistent_volume_claim_relations`] added for a claim and a node.
    fn remove_persistent_volume_claim_relations(
        &mut self,
        name: &OwnedObjectName,
        node: &Arc<str>,
    ) {
        for (volume_name, volume) in self.persistent_volumes_bound_to_claim(name) {
            self.remove_persistent_volume_relations(&volume_name, &volume, node);
        }
        if let Some(claim) = self.persistent_volume_claim_relations.get_mut(name) {
            claim.nodes_of_pods_using_claim.remove(node.as_ref());
        }
        self.remove_volume_claim_if_unused(name);
    }

    fn persistent_volumes_bound_to_claim(
        &self,
        claim: &OwnedObjectName,
    ) -> Vec<(OwnedObjectName, BoundPersistentVolume)> {
        let names = self
            .persistent_volume_claim_relations
            .get(claim)
            .into_iter()
            .flat_map(|claim| claim.bound_persistent_volume_names.iter());
        names
            .filter_map(|(name, ())| {
                Some((name.clone(), self.bound_persistent_volumes.get(name)?.clone()))
            })
            .collect()
    }

    fn add_persistent_volume_relations(
        &mut self,
        name: &OwnedObjectName,
        volume: &BoundPersistentVolume,
        node: &Arc<str>,
    ) {
        self.increment_relation_count(name, node);
        for secret in volume.secret_names.iter() {
            self.increment_relation_count(secret, node);
        }
    }

    fn remove_persistent_volume_relations(
        &mut self,
        name: &OwnedObjectName,
        volume: &BoundPersistentVolume,
        node: &Arc<str>,
    ) {
        for secret in volume.secret_names.iter() {
            self.decrement_relation_count(secret, node);
        }
        self.decrement_relation_count(name, node);
    }

    /// Counts one more relation of an object to a node, and reports whether it is the first.
    fn increment_relation_count(&mut self, object: &OwnedObjectName, node: &Arc<str>) -> bool {
        let objects = self.objects_by_node.get_or_insert_with(Arc::clone(node), Default::default);
        let n_relations = objects.get_or_insert_with(object.clone(), || 0);
        *n_relations += 1;
        *n_relations == 1
    }

    /// Counts one less relation of an object to a node, and reports whether it was the last.
    fn decrement_relation_count(&mut self, object: &OwnedObjectName, node: &Arc<str>) -> bool {
        let Some(objects) = self.objects_by_node.get_mut(node.as_ref()) else { return false };
        let Some(n_relations) = objects.get_mut(object) else { return false };
        *n_relations -= 1;
        if *n_relations > 0 {
            return false;
        }
        objects.remove(object);
        if objects.is_empty() {
            self.objects_by_node.remove(node.as_ref());
        }
        true
    }

    fn remove_volume_claim_if_unused(&mut self, name: &OwnedObjectName) {
        let claim = self.persistent_volume_claim_relations.get(name);
        if claim.is_some_and(|claim| {
            claim.bound_persistent_volume_names.is_empty()
                && claim.nodes_of_pods_using_claim.is_empty()
        }) {
            self.persistent_volume_claim_relations.remove(name);
        }
    }
}

/// Returns the names that are not empty, without duplicates.
fn distinct_names<'a>(names: impl Iterator<Item = ObjectName<'a>>) -> Arc<[OwnedObjectName]> {
    let mut seen_names = HashSet::new();
    let named = names.filter(|object| !object.name.is_empty());
    named.filter(|object| seen_names.insert(*object)).map(OwnedObjectName::from).collect()
}

fn name_of_graph_object(object: &GraphObject) -> ObjectName<'_> {
    let (kind, namespace, name) = match object {
        GraphObject::Pod(pod) => (ObjectKind::Pod, Namespace::new(&pod.namespace), &pod.name),
        GraphObject::PersistentVolume(volume) => {
            (ObjectKind::PersistentVolume, Namespace::CLUSTER_SCOPE, &volume.name)
        }
        GraphObject::VolumeAttachment(assignment) => {
            (ObjectKind::VolumeAttachment, Namespace::CLUSTER_SCOPE, &assignment.name)
        }
        GraphObject::ResourceSlice(assignment) => {
            (ObjectKind::ResourceSlice, Namespace::CLUSTER_SCOPE, &assignment.name)
        }
        GraphObject::PodCertificateRequest(assignment) => (
            ObjectKind::PodCertificateRequest,
            Namespace::new(&assignment.namespace),
            &assignment.name,
        ),
    };
    ObjectName { kind, namespace, name }
}
