//! Which objects lead to which node, by looking at all of them.

use authz_node::{Object, PersistentVolume, Pod};

/// The objects that count, in no order. At most one of a kind and name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Objects(Vec<Object>);

impl Objects {
    /// Objects of which no two are of one kind and name.
    pub(crate) fn new(mut objects: Vec<Object>) -> Self {
        objects.retain(|object| !is_unbound(object));
        Self(objects)
    }

    pub(crate) fn as_slice(&self) -> &[Object] {
        &self.0
    }

    pub(crate) fn add(&mut self, object: &Object) {
        self.delete(object);
        if !is_unbound(object) {
            self.0.push(object.clone());
        }
    }

    pub(crate) fn update(&mut self, old: &Object, new: &Object) {
        self.delete(old);
        self.add(new);
    }

    pub(crate) fn delete(&mut self, object: &Object) {
        self.0.retain(|own| identity(own) != identity(object));
    }

    /// Reports whether the object of this resource and name leads to the node.
    pub(crate) fn lead(&self, resource: &str, namespace: &str, name: &str, node: &str) -> bool {
        let is_named =
            |own_namespace: &str, own_name: &str| own_namespace == namespace && own_name == name;
        let pods = self.pods_on(node);
        let is_used = |names: fn(&Pod) -> &[String]| {
            pods.iter().any(|pod| uses(pod, names(pod), namespace, name))
        };
        match resource {
            "pods" => pods.iter().any(|pod| is_named(&pod.namespace, &pod.name)),
            "configmaps" => is_used(|pod| &pod.config_maps),
            "serviceaccounts" => is_used(|pod| std::slice::from_ref(&pod.service_account_name)),
            "persistentvolumeclaims" => is_used(|pod| &pod.persistent_volume_claims),
            "resourceclaims" => {
                is_used(|pod| &pod.resource_claims)
                    || is_used(|pod| pod.extended_resource_claim.as_slice())
            }
            "persistentvolumes" => self.volumes_of(&pods).any(|volume| is_named("", &volume.name)),
            "secrets" => {
                is_used(|pod| &pod.secrets)
                    || self.volumes_of(&pods).any(|volume| needs(volume, namespace, name))
            }
            _ => self.0.iter().any(|object| match (resource, object) {
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

    fn pods_on(&self, node: &str) -> Vec<&Pod> {
        let pods = self.0.iter().filter_map(|object| match object {
            Object::Pod(pod) if pod.node_name == node => Some(pod.as_ref()),
            _ => None,
        });
        pods.collect()
    }

    /// The volumes whose claim some of the pods use.
    fn volumes_of(&self, pods: &[&Pod]) -> impl Iterator<Item = &PersistentVolume> {
        self.0.iter().filter_map(|object| match object {
            Object::PersistentVolume(volume) => {
                let claim = volume.claim.as_ref()?;
                let is_used = pods.iter().any(|pod| {
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

/// Reports whether a volume needs the secret; one of no namespace is in that of the claim.
fn needs(volume: &PersistentVolume, namespace: &str, name: &str) -> bool {
    let claim = volume.claim.as_ref().map(|claim| claim.namespace.as_str());
    volume.secrets.iter().any(|secret| {
        secret.namespace.as_deref().or(claim) == Some(namespace) && secret.name == name
    })
}

/// A pod without a node counts for nothing.
fn is_unbound(object: &Object) -> bool {
    matches!(object, Object::Pod(pod) if pod.node_name.is_empty())
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
