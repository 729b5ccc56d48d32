//! The relations between objects and nodes, found by reading all objects.

use authz_node::{GraphObject, PersistentVolume, Pod};

/// The objects that may relate to a node, in no order. No two have the same kind and name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Objects(Vec<GraphObject>);

impl Objects {
    /// Makes the list from objects of which no two have the same kind and name.
    pub(crate) fn new(mut objects: Vec<GraphObject>) -> Self {
        objects.retain(|object| !is_unbound(object));
        Self(objects)
    }

    pub(crate) fn as_slice(&self) -> &[GraphObject] {
        &self.0
    }

    pub(crate) fn add(&mut self, object: &GraphObject) {
        self.delete(object);
        if !is_unbound(object) {
            self.0.push(object.clone());
        }
    }

    pub(crate) fn update(&mut self, old: &GraphObject, new: &GraphObject) {
        self.delete(old);
        self.add(new);
    }

    pub(crate) fn delete(&mut self, object: &GraphObject) {
        self.0.retain(|own| kind_and_name(own) != kind_and_name(object));
    }

    /// Reports whether the object of this resource and name is related to the node.
    pub(crate) fn is_related(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        node: &str,
    ) -> bool {
        let is_named =
            |own_namespace: &str, own_name: &str| own_namespace == namespace && own_name == name;
        let pods = self.pods_on_node(node);
        let is_used = |names: fn(&Pod) -> &[String]| {
            pods.iter().any(|pod| refers_to(pod, names(pod), namespace, name))
        };
        match resource {
            "pods" => pods.iter().any(|pod| is_named(&pod.namespace, &pod.name)),
            "configmaps" => is_used(|pod| &pod.config_map_names),
            "serviceaccounts" => is_used(|pod| std::slice::from_ref(&pod.service_account_name)),
            "persistentvolumeclaims" => is_used(|pod| &pod.persistent_volume_claim_names),
            "resourceclaims" => {
                is_used(|pod| &pod.resource_claim_names)
                    || is_used(|pod| pod.extended_resource_claim_name.as_slice())
            }
            "persistentvolumes" => {
                self.volumes_of_pods(&pods).any(|volume| is_named("", &volume.name))
            }
            "secrets" => {
                is_used(|pod| &pod.secret_names)
                    || self
                        .volumes_of_pods(&pods)
                        .any(|volume| mounts_secret(volume, namespace, name))
            }
            _ => self.0.iter().any(|object| match (resource, object) {
                ("volumeattachments", GraphObject::VolumeAttachment(own))
                | ("resourceslices", GraphObject::ResourceSlice(own)) => {
                    is_named("", &own.name) && own.node_name == node
                }
                ("podcertificaterequests", GraphObject::PodCertificateRequest(own)) => {
                    is_named(&own.namespace, &own.name) && own.node_name == node
                }
                _ => false,
            }),
        }
    }

    fn pods_on_node(&self, node: &str) -> Vec<&Pod> {
        let pods = self.0.iter().filter_map(|object| match object {
            GraphObject::Pod(pod) if pod.node_name == node => Some(pod.as_ref()),
            _ => None,
        });
        pods.collect()
    }

    /// The volumes whose claim some of the pods use.
    fn volumes_of_pods(&self, pods: &[&Pod]) -> impl Iterator<Item = &PersistentVolume> {
        self.0.iter().filter_map(|object| match object {
            GraphObject::PersistentVolume(volume) => {
                let claim = volume.claim_ref.as_ref()?;
                let is_used = pods.iter().any(|pod| {
                    refers_to(
                        pod,
                        &pod.persistent_volume_claim_names,
                        &claim.namespace,
                        &claim.name,
                    )
                });
                is_used.then_some(volume)
            }
            _ => None,
        })
    }
}

fn refers_to(pod: &Pod, names: &[String], namespace: &str, name: &str) -> bool {
    !pod.is_mirror_pod && pod.namespace == namespace && names.iter().any(|own| own == name)
}

/// Reports whether a volume refers to the secret. A reference without a namespace is in the namespace of the claim.
fn mounts_secret(volume: &PersistentVolume, namespace: &str, name: &str) -> bool {
    let claim = volume.claim_ref.as_ref().map(|claim| claim.namespace.as_str());
    volume.secret_refs.iter().any(|secret| {
        secret.namespace.as_deref().or(claim) == Some(namespace) && secret.name == name
    })
}

/// Reports whether the object is a pod without a node, which relates nothing.
fn is_unbound(object: &GraphObject) -> bool {
    matches!(object, GraphObject::Pod(pod) if pod.node_name.is_empty())
}

fn kind_and_name(object: &GraphObject) -> (u8, &str, &str) {
    match object {
        GraphObject::Pod(own) => (0, &own.namespace, &own.name),
        GraphObject::PersistentVolume(own) => (1, "", &own.name),
        GraphObject::VolumeAttachment(own) => (2, "", &own.name),
        GraphObject::ResourceSlice(own) => (3, "", &own.name),
        GraphObject::PodCertificateRequest(own) => (4, &own.namespace, &own.name),
    }
}
