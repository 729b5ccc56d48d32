//! The objects that change the graph, reduced to the fields that relate objects to nodes.
//!
//! An empty name refers to nothing and is ignored.

/// An object that changes the graph. The store limits the number and the size of objects; the graph grows
/// in proportion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphObject {
    /// A pod. It relates its node to the objects to which the pod refers.
    Pod(Box<Pod>),
    /// A persistent volume. The nodes of its claim are related to the volume and its secrets.
    PersistentVolume(PersistentVolume),
    /// A volume attachment, related to the node to which the volume is attached.
    VolumeAttachment(NodeNamingObject),
    /// A resource slice, related to the node that has the resources.
    ResourceSlice(NodeNamingObject),
    /// A pod certificate request, related to the node of the pod.
    PodCertificateRequest(NodeNamingObject),
}

/// A pod and the names to which it refers, all in its namespace. Names may repeat.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pod {
    /// The namespace of the object.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The node to which it is bound; empty before the scheduler binds it.
    pub node_name: String,
    /// Whether the pod mirrors a static pod of its node. Nodes create mirror pods themselves, so a mirror pod adds only
    /// the relation between the pod and its node. The objects to which it refers are not related to the node.
    pub is_mirror_pod: bool,
    /// The name of the service account.
    pub service_account_name: String,
    /// The secrets of containers, volumes and image pulls.
    pub secret_names: Vec<String>,
    /// The config maps of containers and volumes.
    pub config_map_names: Vec<String>,
    /// The claims of volumes, including those that are created for ephemeral volumes.
    pub persistent_volume_claim_names: Vec<String>,
    /// The resource claims that exist, named in the pod or created for it from a template.
    pub resource_claim_names: Vec<String>,
    /// The resource claim that is created for extended resources.
    pub extended_resource_claim_name: Option<String>,
}

/// A persistent volume and the claim to which it is bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistentVolume {
    /// The name of the object.
    pub name: String,
    /// The claim to which it is bound. An unbound volume adds no relations.
    pub claim_ref: Option<PersistentVolumeClaimReference>,
    /// The secrets that a kubelet needs to mount it.
    pub secret_refs: Vec<VolumeSecretReference>,
}

/// The claim to which a volume is bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistentVolumeClaimReference {
    /// The namespace of the object.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
}

/// A secret to which a volume refers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeSecretReference {
    /// The namespace; `None` stands for the namespace of the claim.
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
}

/// An object that names its node and refers to no other object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeNamingObject {
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The name of the node; empty if the object names none.
    pub node_name: String,
}
