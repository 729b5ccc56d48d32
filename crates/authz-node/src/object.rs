//! The objects that relate other objects to nodes, reduced to what relates them.
//!
//! Names that are empty say nothing and are passed over wherever they occur.

/// An object that the graph learns from. How many there are, and how large each may be, is for the
/// store to limit; the graph grows in proportion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// A pod.
    Pod(Box<Pod>),
    /// A persistent volume.
    PersistentVolume(PersistentVolume),
    /// A volume attachment.
    VolumeAttachment(Assignment),
    /// A resource slice.
    ResourceSlice(Assignment),
    /// A pod certificate request.
    PodCertificateRequest(Assignment),
}

/// A pod and the names it refers to, all in its own namespace. Names may repeat.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pod {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The node it is bound to; empty before it is.
    pub node_name: String,
    /// It mirrors a static pod of its node. Nodes create these, so they relate nothing to the node
    /// but themselves.
    pub is_mirror: bool,
    /// The service account.
    pub service_account_name: String,
    /// Secrets of containers, volumes and image pulls.
    pub secrets: Vec<String>,
    /// Config maps of containers and volumes.
    pub config_maps: Vec<String>,
    /// Claims of volumes, those made for ephemeral volumes included.
    pub persistent_volume_claims: Vec<String>,
    /// Resource claims that exist, whether named in the pod or made from a template for it.
    pub resource_claims: Vec<String>,
    /// The resource claim made for extended resources.
    pub extended_resource_claim: Option<String>,
}

/// A persistent volume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistentVolume {
    /// The name.
    pub name: String,
    /// The claim it is bound to. An unbound volume relates nothing.
    pub claim: Option<VolumeClaim>,
    /// The secrets that a kubelet needs to mount it.
    pub secrets: Vec<SecretReference>,
}

/// The claim that a volume is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VolumeClaim {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// A secret that a volume names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretReference {
    /// The namespace; `None` means that of the claim.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// An object that names its node directly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assignment {
    /// The namespace; empty for kinds without.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The node; empty if there is none.
    pub node_name: String,
}
