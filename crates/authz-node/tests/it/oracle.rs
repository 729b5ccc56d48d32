//! Deciding by looking at every object, every time.

use authz_node::{Object, PersistentVolume, Pod};

/// The objects that count, in no order. At most one of a kind and name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    objects: Vec<Object>,
}

impl Cluster {
    pub(crate) fn add(&mut self, object: &Object) {
        if let Object::Pod(pod) = object
            && pod.node_name.is_empty()
        {
            return;
        }
        self.objects.retain(|own| identity(own) != identity(object));
        self.objects.push(object.clone());
    }

    pub(crate) fn update(&mut self, old: &Object, new: &Object) {
        let is_unchanged = match (old, new) {
            (Object::Pod(old), Object::Pod(new)) => {
                (&old.node_name, &old.uid, &old.extended_resource_claim)
                    == (&new.node_name, &new.uid, &new.extended_resource_claim)
                    && old.resource_claim_statuses == new.resource_claim_statuses
                    && new.n_ephemeral_containers <= old.n_ephemeral_containers
            }
            (Object::VolumeAttachment(old), Object::VolumeAttachment(new)) => {
                old.node_name == new.node_name
            }
            (Object::PersistentVolume(_), _) => false,
            _ => true,
        };
        if !is_unchanged {
            self.add(new);
        }
    }

    pub(crate) fn delete(&mut self, object: &Object) {
        if let Object::Pod(pod) = object
            && pod.node_name.is_empty()
        {
            return;
        }
        self.objects.retain(|own| identity(own) != identity(object));
    }

    /// What counts, for building a graph anew.
    pub(crate) fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Whether the object of this resource and name leads to the node.
    pub(crate) fn is_related(&self, resource: &str, ns: &str, name: &str, node: &str) -> bool {
        let is_named = |own_ns: &str, own_name: &str| own_ns == ns && own_name == name;
        match resource {
            "pods" => self.pods_on(node).any(|pod| is_named(&pod.namespace, &pod.name)),
            "persistentvolumes" => {
                ns.is_empty() && self.volumes_on(node).any(|volume| volume.name == name)
            }
            "secrets" => {
                self.pods_on(node).any(|pod| uses(pod, &pod.secrets, ns, name))
                    || self.volumes_on(node).any(|volume| {
                        let claim = volume.claim.as_ref().map(|claim| claim.namespace.as_str());
                        volume.secrets.iter().any(|secret| {
                            let own_ns = secret.namespace.as_deref().or(claim);
                            own_ns == Some(ns) && secret.name == name
                        })
                    })
            }
            "configmaps" => self.pods_on(node).any(|pod| uses(pod, &pod.config_maps, ns, name)),
            "persistentvolumeclaims" => {
                self.pods_on(node).any(|pod| uses(pod, &pod.persistent_volume_claims, ns, name))
            }
            "resourceclaims" => self.pods_on(node).any(|pod| {
                uses(pod, &pod.resource_claims, ns, name)
                    || uses(pod, pod.extended_resource_claim.as_slice(), ns, name)
            }),
            "serviceaccounts" => self
                .pods_on(node)
                .any(|pod| uses(pod, std::slice::from_ref(&pod.service_account_name), ns, name)),
            _ => self.objects.iter().any(|object| match (resource, object) {
                ("volumeattachments", Object::VolumeAttachment(own))
                | ("resourceslices", Object::ResourceSlice(own)) => {
                    is_named("", &own.name) && own.node_name == node
                }
                ("podcertificaterequests", Object::PodCertificateRequest(own)) => {
                    is_named(&own.namespace, &own.name) && own.node_name == node
                }
                _ => false,
            }),
        }
    }

    fn pods_on(&self, node: &str) -> impl Iterator<Item = &Pod> {
        self.objects.iter().filter_map(move |object| match object {
            Object::Pod(pod) if pod.node_name == node => Some(pod.as_ref()),
            _ => None,
        })
    }

    /// The volumes whose claim a pod on the node uses.
    fn volumes_on(&self, node: &str) -> impl Iterator<Item = &PersistentVolume> {
        self.objects.iter().filter_map(move |object| match object {
            Object::PersistentVolume(volume) => {
                let claim = volume.claim.as_ref()?;
                let is_used = self.pods_on(node).any(|pod| {
                    uses(pod, &pod.persistent_volume_claims, &claim.namespace, &claim.name)
                });
                is_used.then_some(volume)
            }
            _ => None,
        })
    }
}

fn uses(pod: &Pod, names: &[String], namespace: &str, name: &str) -> bool {
    !pod.is_mirror && pod.namespace == namespace && names.iter().any(|own| own == name)
}

fn identity(object: &Object) -> (u8, &str, &str) {
    match object {
        Object::Pod(own) => (0, &own.namespace, &own.name),
        Object::PersistentVolume(own) => (1, "", &own.name),
        Object::VolumeAttachment(own) => (2, "", &own.name),
        Object::ResourceSlice(own) => (3, "", &own.name),
        Object::PodCertificateRequest(own) => (4, &own.namespace, &own.name),
    }
}
