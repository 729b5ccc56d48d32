//! Changing the graph when an object is added, updated or deleted.

use std::collections::HashSet;
use std::sync::Arc;

use authz::Namespace;

use crate::graph::{BoundVolume, ClaimRelations, Graph, NodeBoundObject};
use crate::graph_object::{GraphObject, NodeAssignment, PersistentVolume, Pod};
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
                self.add_node_assignment(name_of_graph_object(object), assignment);
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
            | GraphObject::PodCertificateRequest(_) => self.unbind_from_node(&name),
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
        self.bind_to_node(name, &pod.node_name, distinct_names(referenced_objects));
    }

    fn add_node_assignment(&mut self, name: ObjectName<'_>, assignment: &NodeAssignment) {
        if !assignment.node_name.is_empty() {
            self.bind_to_node(name, &assignment.node_name, Arc::default());
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
        let volume = BoundVolume { claim_name: claim.clone(), secret_names: secrets };
        let entry = self.claim_relations.get_or_insert_with(claim, ClaimRelations::default);
        entry.bound_volume_names.insert(name.clone(), ());
        let nodes: Vec<Arc<str>> =
            entry.node_names.iter().map(|(node, ())| Arc::clone(node)).collect();
        for node in nodes {
            self.add_volume_relations(&name, &volume, &node);
        }
        self.bound_volumes.insert(name, volume);
    }

    fn delete_persistent_volume(&mut self, name: &OwnedObjectName) {
        let Some(volume) = self.bound_volumes.remove(name) else { return };
        let Some(claim) = self.claim_relations.get_mut(&volume.claim_name) else { return };
        claim.bound_volume_names.remove(name);
        let nodes: Vec<Arc<str>> =
            claim.node_names.iter().map(|(node, ())| Arc::clone(node)).collect();
        self.remove_claim_if_unused(&volume.claim_name);
        for node in nodes {
            self.remove_volume_relations(name, &volume, &node);
        }
    }
}

/// Changes of the relations between objects and nodes.
impl Graph {
    /// Relates an object and its references to the node that it names.
    fn bind_to_node(
        &mut self,
        object: ObjectName<'_>,
        node: &str,
        referenced_objects: Arc<[OwnedObjectName]>,
    ) {
        let object = OwnedObjectName::from(object);
        let node = Arc::<str>::from(node);
        self.add_relation(&object, &node);
        for reference in referenced_objects.iter() {
            let is_first = self.add_relation(reference, &node);
            if is_first && reference.as_object_name().kind == ObjectKind::PersistentVolumeClaim {
                self.add_claim_relations(reference, &node);
            }
        }
        self.node_bound_objects
            .insert(object, NodeBoundObject { node_name: node, referenced_objects });
    }

    /// Removes the relations that [`Self::bind_to_node`] added for an object.
    fn unbind_from_node(&mut self, object: &OwnedObjectName) {
        let Some(NodeBoundObject { node_name: node, referenced_objects }) =
            self.node_bound_objects.remove(object)
        else {
            return;
        };
        for reference in referenced_objects.iter() {
            let is_last = self.remove_relation(reference, &node);
            if is_last && reference.as_object_name().kind == ObjectKind::PersistentVolumeClaim {
                self.remove_claim_relations(reference, &node);
            }
        }
        self.remove_relation(object, &node);
    }

    /// Relates the volumes of a claim to a node whose first pod refers to the claim.
    fn add_claim_relations(&mut self, name: &OwnedObjectName, node: &Arc<str>) {
        let claim = self.claim_relations.get_or_insert_with(name.clone(), ClaimRelations::default);
        claim.node_names.insert(Arc::clone(node), ());
        for (volume_name, volume) in self.volumes_of_claim(name) {
            self.add_volume_relations(&volume_name, &volume, node);
        }
    }

    /// Removes the relations that [`Self::add_claim_relations`] added for a claim and a node.
    fn remove_claim_relations(&mut self, name: &OwnedObjectName, node: &Arc<str>) {
        for (volume_name, volume) in self.volumes_of_claim(name) {
            self.remove_volume_relations(&volume_name, &volume, node);
        }
        if let Some(claim) = self.claim_relations.get_mut(name) {
            claim.node_names.remove(node.as_ref());
        }
        self.remove_claim_if_unused(name);
    }

    fn volumes_of_claim(&self, claim: &OwnedObjectName) -> Vec<(OwnedObjectName, BoundVolume)> {
        let names = self
            .claim_relations
            .get(claim)
            .into_iter()
            .flat_map(|claim| claim.bound_volume_names.iter());
        names
            .filter_map(|(name, ())| Some((name.clone(), self.bound_volumes.get(name)?.clone())))
            .collect()
    }

    fn add_volume_relations(
        &mut self,
        name: &OwnedObjectName,
        volume: &BoundVolume,
        node: &Arc<str>,
    ) {
        self.add_relation(name, node);
        for secret in volume.secret_names.iter() {
            self.add_relation(secret, node);
        }
    }

    fn remove_volume_relations(
        &mut self,
        name: &OwnedObjectName,
        volume: &BoundVolume,
        node: &Arc<str>,
    ) {
        for secret in volume.secret_names.iter() {
            self.remove_relation(secret, node);
        }
        self.remove_relation(name, node);
    }

    /// Counts one more relation of an object to a node, and reports whether it is the first.
    fn add_relation(&mut self, object: &OwnedObjectName, node: &Arc<str>) -> bool {
        let objects = self.objects_by_node.get_or_insert_with(Arc::clone(node), Default::default);
        let n_relations = objects.get_or_insert_with(object.clone(), || 0);
        *n_relations += 1;
        *n_relations == 1
    }

    /// Counts one less relation of an object to a node, and reports whether it was the last.
    fn remove_relation(&mut self, object: &OwnedObjectName, node: &Arc<str>) -> bool {
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

    fn remove_claim_if_unused(&mut self, name: &OwnedObjectName) {
        let claim = self.claim_relations.get(name);
        if claim
            .is_some_and(|claim| claim.bound_volume_names.is_empty() && claim.node_names.is_empty())
        {
            self.claim_relations.remove(name);
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
