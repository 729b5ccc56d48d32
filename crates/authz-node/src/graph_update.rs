//! Changing the graph when an object is added, updated or deleted.

use std::collections::HashSet;
use std::sync::Arc;

use crate::graph::{BoundObject, BoundVolume, Claim, Graph};
use crate::object::{NodeAssignment, Object, PersistentVolume, Pod};
use crate::object_name::{AsObjectName, Kind, ObjectName, OwnedObjectName};

/// Changes by objects.
impl Graph {
    /// Adds an object. An object of the same kind and name is deleted first, with its references, so
    /// only the newest object counts.
    pub fn add(&mut self, object: &Object) {
        self.delete(object);
        match object {
            Object::Pod(pod) => self.add_pod(pod),
            Object::PersistentVolume(volume) => self.add_volume(volume),
            Object::VolumeAttachment(assignment)
            | Object::ResourceSlice(assignment)
            | Object::PodCertificateRequest(assignment) => {
                self.add_assignment(name_of(object), assignment);
            }
        }
    }

    /// Updates an object. Most updates of pods change only the status, which relates nothing: then both
    /// objects are equal, and the graph does not change. Every other difference counts, also in fields that
    /// Kubernetes does not let change: a reference that the new object lacks is removed.
    pub fn update(&mut self, old: &Object, new: &Object) {
        if old != new {
            self.delete(old);
            self.add(new);
        }
    }

    /// Deletes the object of this kind and name. The other fields are ignored.
    pub fn delete(&mut self, object: &Object) {
        let name = OwnedObjectName::from(name_of(object));
        match object {
            Object::PersistentVolume(_) => self.delete_volume(&name),
            Object::Pod(_)
            | Object::VolumeAttachment(_)
            | Object::ResourceSlice(_)
            | Object::PodCertificateRequest(_) => self.unbind(&name),
        }
    }

    fn add_pod(&mut self, pod: &Pod) {
        let namespace = pod.namespace.as_str();
        if pod.node_name.is_empty() {
            return;
        }
        let references = [
            (Kind::ServiceAccount, std::slice::from_ref(&pod.service_account_name)),
            (Kind::Secret, pod.secrets.as_slice()),
            (Kind::ConfigMap, pod.config_maps.as_slice()),
            (Kind::PersistentVolumeClaim, pod.persistent_volume_claims.as_slice()),
            (Kind::ResourceClaim, pod.resource_claims.as_slice()),
            (Kind::ResourceClaim, pod.extended_resource_claim.as_slice()),
        ];
        let references = references
            .into_iter()
            .flat_map(|(kind, names)| names.iter().map(move |name| (kind, name)))
            .map(|(kind, name)| ObjectName { kind, namespace, name })
            .filter(|_| !pod.is_mirror);
        let name = ObjectName { kind: Kind::Pod, namespace, name: &pod.name };
        self.bind(name, &pod.node_name, without_duplicates(references));
    }

    fn add_assignment(&mut self, name: ObjectName<'_>, assignment: &NodeAssignment) {
        if !assignment.node_name.is_empty() {
            self.bind(name, &assignment.node_name, Arc::default());
        }
    }

    fn add_volume(&mut self, volume: &PersistentVolume) {
        let Some(claim) = &volume.claim else { return };
        let secrets = volume.secrets.iter().map(|secret| {
            let namespace = secret.namespace.as_ref().unwrap_or(&claim.namespace);
            ObjectName { kind: Kind::Secret, namespace, name: &secret.name }
        });
        let secrets = without_duplicates(secrets);
        let kind = Kind::PersistentVolumeClaim;
        let claim = ObjectName { kind, namespace: &claim.namespace, name: &claim.name };
        let claim = OwnedObjectName::from(claim);
        let kind = Kind::PersistentVolume;
        let name = OwnedObjectName::from(ObjectName { kind, namespace: "", name: &volume.name });
        let volume = BoundVolume { claim: claim.clone(), secrets };
        let entry = self.claims.get_or_insert_with(claim, Claim::default);
        entry.volumes.insert(name.clone(), ());
        let nodes: Vec<Arc<str>> = entry.nodes.iter().map(|(node, ())| Arc::clone(node)).collect();
        for node in nodes {
            self.relate_volume(&name, &volume, &node);
        }
        self.volumes.insert(name, volume);
    }

    fn delete_volume(&mut self, name: &OwnedObjectName) {
        let Some(volume) = self.volumes.remove(name) else { return };
        let Some(claim) = self.claims.get_mut(&volume.claim) else { return };
        claim.volumes.remove(name);
        let nodes: Vec<Arc<str>> = claim.nodes.iter().map(|(node, ())| Arc::clone(node)).collect();
        self.remove_claim_if_unused(&volume.claim);
        for node in nodes {
            self.unrelate_volume(name, &volume, &node);
        }
    }
}

/// Changes of relations.
impl Graph {
    /// Relates an object and its references to the node that it names.
    fn bind(&mut self, object: ObjectName<'_>, node: &str, references: Arc<[OwnedObjectName]>) {
        let object = OwnedObjectName::from(object);
        let node = Arc::<str>::from(node);
        self.relate(&object, &node);
        for reference in references.iter() {
            let is_first = self.relate(reference, &node);
            if is_first && reference.as_object_name().kind == Kind::PersistentVolumeClaim {
                self.relate_claim(reference, &node);
            }
        }
        self.bound_objects.insert(object, BoundObject { node, references });
    }

    /// The reverse of [`Self::bind`].
    fn unbind(&mut self, object: &OwnedObjectName) {
        let Some(BoundObject { node, references }) = self.bound_objects.remove(object) else {
            return;
        };
        for reference in references.iter() {
            let is_last = self.unrelate(reference, &node);
            if is_last && reference.as_object_name().kind == Kind::PersistentVolumeClaim {
                self.unrelate_claim(reference, &node);
            }
        }
        self.unrelate(object, &node);
    }

    /// Relates the volumes of a claim to a node whose first pod refers to the claim.
    fn relate_claim(&mut self, name: &OwnedObjectName, node: &Arc<str>) {
        let claim = self.claims.get_or_insert_with(name.clone(), Claim::default);
        claim.nodes.insert(Arc::clone(node), ());
        for (volume_name, volume) in self.volumes_of_claim(name) {
            self.relate_volume(&volume_name, &volume, node);
        }
    }

    /// The reverse of [`Self::relate_claim`].
    fn unrelate_claim(&mut self, name: &OwnedObjectName, node: &Arc<str>) {
        for (volume_name, volume) in self.volumes_of_claim(name) {
            self.unrelate_volume(&volume_name, &volume, node);
        }
        if let Some(claim) = self.claims.get_mut(name) {
            claim.nodes.remove(node.as_ref());
        }
        self.remove_claim_if_unused(name);
    }

    fn volumes_of_claim(&self, claim: &OwnedObjectName) -> Vec<(OwnedObjectName, BoundVolume)> {
        let names = self.claims.get(claim).into_iter().flat_map(|claim| claim.volumes.iter());
        names
            .filter_map(|(name, ())| Some((name.clone(), self.volumes.get(name)?.clone())))
            .collect()
    }

    fn relate_volume(&mut self, name: &OwnedObjectName, volume: &BoundVolume, node: &Arc<str>) {
        self.relate(name, node);
        for secret in volume.secrets.iter() {
            self.relate(secret, node);
        }
    }

    fn unrelate_volume(&mut self, name: &OwnedObjectName, volume: &BoundVolume, node: &Arc<str>) {
        for secret in volume.secrets.iter() {
            self.unrelate(secret, node);
        }
        self.unrelate(name, node);
    }

    /// Counts one more relation of an object to a node, and reports whether it is the first.
    fn relate(&mut self, object: &OwnedObjectName, node: &Arc<str>) -> bool {
        let objects = self.nodes.get_or_insert_with(Arc::clone(node), Default::default);
        let n_relations = objects.get_or_insert_with(object.clone(), || 0);
        *n_relations += 1;
        *n_relations == 1
    }

    /// Counts one less relation of an object to a node, and reports whether it was the last.
    fn unrelate(&mut self, object: &OwnedObjectName, node: &Arc<str>) -> bool {
        let Some(objects) = self.nodes.get_mut(node.as_ref()) else { return false };
        let Some(n_relations) = objects.get_mut(object) else { return false };
        *n_relations -= 1;
        if *n_relations > 0 {
            return false;
        }
        objects.remove(object);
        if objects.is_empty() {
            self.nodes.remove(node.as_ref());
        }
        true
    }

    fn remove_claim_if_unused(&mut self, name: &OwnedObjectName) {
        let claim = self.claims.get(name);
        if claim.is_some_and(|claim| claim.volumes.is_empty() && claim.nodes.is_empty()) {
            self.claims.remove(name);
        }
    }
}

/// The names that are not empty, each once.
fn without_duplicates<'a>(names: impl Iterator<Item = ObjectName<'a>>) -> Arc<[OwnedObjectName]> {
    let mut distinct_names = HashSet::new();
    let named = names.filter(|object| !object.name.is_empty());
    named.filter(|object| distinct_names.insert(*object)).map(OwnedObjectName::from).collect()
}

fn name_of(object: &Object) -> ObjectName<'_> {
    let (kind, namespace, name) = match object {
        Object::Pod(pod) => (Kind::Pod, pod.namespace.as_str(), &pod.name),
        Object::PersistentVolume(volume) => (Kind::PersistentVolume, "", &volume.name),
        Object::VolumeAttachment(assignment) => (Kind::VolumeAttachment, "", &assignment.name),
        Object::ResourceSlice(assignment) => (Kind::ResourceSlice, "", &assignment.name),
        Object::PodCertificateRequest(assignment) => {
            (Kind::PodCertificateRequest, assignment.namespace.as_str(), &assignment.name)
        }
    };
    ObjectName { kind, namespace, name }
}
