//! How objects change the graph.

use crate::graph::Graph;
use crate::name::{Kind, Name};
use crate::object::{Assignment, Object, PersistentVolume, Pod};
use crate::slab::Id;

impl Graph {
    /// Takes in an object, new or changed. One of the same kind and name is forgotten first, with the
    /// references it had, so that nothing outlives what the newest object says.
    pub fn add(&mut self, object: &Object) {
        self.delete(object);
        match object {
            Object::Pod(pod) => self.add_pod(pod),
            Object::PersistentVolume(volume) => self.add_volume(volume),
            Object::VolumeAttachment(assignment)
            | Object::ResourceSlice(assignment)
            | Object::PodCertificateRequest(assignment) => {
                self.assign(name_of(object), assignment);
            }
        }
    }

    /// Takes in a change of an object. Most updates of pods report their status, which relates
    /// nothing: then both objects are equal, and the graph is left alone. Any other difference counts,
    /// whether or not Kubernetes lets the field change: a reference that the new object lacks is gone.
    pub fn update(&mut self, old: &Object, new: &Object) {
        if old != new {
            self.delete(old);
            self.add(new);
        }
    }

    /// Forgets the object of this kind and name, whatever else the caller knows of it.
    pub fn delete(&mut self, object: &Object) {
        self.remove(name_of(object));
    }

    fn add_pod(&mut self, pod: &Pod) {
        let namespace = pod.namespace.as_str();
        if pod.node_name.is_empty() {
            return;
        }
        let own = Name { kind: Kind::Pod, namespace, name: &pod.name };
        let Some(own) = self.bind(own, &pod.node_name) else { return };
        if pod.is_mirror {
            return;
        }
        for (kind, names) in [
            (Kind::ServiceAccount, std::slice::from_ref(&pod.service_account_name)),
            (Kind::Secret, pod.secrets.as_slice()),
            (Kind::ConfigMap, pod.config_maps.as_slice()),
            (Kind::PersistentVolumeClaim, pod.persistent_volume_claims.as_slice()),
            (Kind::ResourceClaim, pod.resource_claims.as_slice()),
            (Kind::ResourceClaim, pod.extended_resource_claim.as_slice()),
        ] {
            for name in names {
                self.refer(Name { kind, namespace, name }, own);
            }
        }
    }

    fn add_volume(&mut self, volume: &PersistentVolume) {
        let own = Name { kind: Kind::PersistentVolume, namespace: "", name: &volume.name };
        let Some(claim) = &volume.claim else { return };
        let kind = Kind::PersistentVolumeClaim;
        let bound = Name { kind, namespace: &claim.namespace, name: &claim.name };
        let Some(own) = self.connect(own, bound) else { return };
        for secret in &volume.secrets {
            let namespace = secret.namespace.as_ref().unwrap_or(&claim.namespace);
            self.refer(Name { kind: Kind::Secret, namespace, name: &secret.name }, own);
        }
    }

    fn assign(&mut self, own: Name<'_>, assignment: &Assignment) {
        if !assignment.node_name.is_empty() {
            self.bind(own, &assignment.node_name);
        }
    }

    fn refer(&mut self, from: Name<'_>, to: Id) {
        if !from.name.is_empty() {
            self.connect_to(from, to);
        }
    }
}

fn name_of(object: &Object) -> Name<'_> {
    let (kind, namespace, name) = match object {
        Object::Pod(pod) => (Kind::Pod, pod.namespace.as_str(), &pod.name),
        Object::PersistentVolume(volume) => (Kind::PersistentVolume, "", &volume.name),
        Object::VolumeAttachment(own) => (Kind::VolumeAttachment, "", &own.name),
        Object::ResourceSlice(own) => (Kind::ResourceSlice, "", &own.name),
        Object::PodCertificateRequest(own) => {
            (Kind::PodCertificateRequest, own.namespace.as_str(), &own.name)
        }
    };
    Name { kind, namespace, name }
}
