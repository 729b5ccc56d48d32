//! How objects change the graph.

use crate::graph::Graph;
use crate::name::{Kind, Name};
use crate::object::{Assignment, Object, PersistentVolume, Pod};
use crate::slab::Id;

impl Graph {
    /// Takes in an object that is new. One of the same kind and name is forgotten first, with the
    /// references it had.
    pub fn add(&mut self, object: &Object) {
        match object {
            Object::Pod(pod) if pod.node_name.is_empty() => {}
            Object::Pod(pod) => self.add_pod(pod),
            Object::PersistentVolume(volume) => self.add_volume(volume),
            Object::VolumeAttachment(assignment)
            | Object::ResourceSlice(assignment)
            | Object::PodCertificateRequest(assignment) => {
                self.assign(name_of(object), assignment);
            }
        }
    }

    /// Takes in a change of an object. Most updates of pods report their status and change nothing
    /// here, so what can not have changed is not looked at:
    ///
    /// 1. A pod counts again if it has a node and the node, the uid or the status of its resource
    ///    claims differs, or if it has more ephemeral containers than before.
    /// 2. A persistent volume counts again.
    /// 3. A volume attachment counts again if its node differs.
    /// 4. A resource slice or pod certificate request keeps its node for life.
    ///
    /// Two objects of different kinds are no update; the first is forgotten and the second added.
    pub fn update(&mut self, old: &Object, new: &Object) {
        let counts_again = match (old, new) {
            (Object::Pod(old), Object::Pod(new)) => has_new_references(old, new),
            (Object::PersistentVolume(_), Object::PersistentVolume(_)) => true,
            (Object::VolumeAttachment(old), Object::VolumeAttachment(new)) => {
                old.node_name != new.node_name
            }
            (Object::ResourceSlice(_), Object::ResourceSlice(_))
            | (Object::PodCertificateRequest(_), Object::PodCertificateRequest(_)) => false,
            _ => {
                self.delete(old);
                true
            }
        };
        if counts_again {
            self.add(new);
        }
    }

    /// Forgets an object that is gone. A pod that was never bound was never known.
    pub fn delete(&mut self, object: &Object) {
        match object {
            Object::Pod(pod) if pod.node_name.is_empty() => {}
            Object::Pod(_)
            | Object::PersistentVolume(_)
            | Object::VolumeAttachment(_)
            | Object::ResourceSlice(_)
            | Object::PodCertificateRequest(_) => self.remove(name_of(object)),
        }
    }

    fn add_pod(&mut self, pod: &Pod) {
        let namespace = pod.namespace.as_str();
        let own = Name { kind: Kind::Pod, namespace, name: &pod.name };
        self.remove(own);
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
        self.remove(own);
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
        self.remove(own);
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

fn has_new_references(old: &Pod, new: &Pod) -> bool {
    old.node_name != new.node_name
        || old.uid != new.uid
        || new.n_ephemeral_containers > old.n_ephemeral_containers
        || old.resource_claim_statuses != new.resource_claim_statuses
        || old.extended_resource_claim != new.extended_resource_claim
}
