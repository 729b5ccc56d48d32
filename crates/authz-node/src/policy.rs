//! What decisions are made from.

use std::sync::Arc;

use crate::graph::Graph;
use crate::rules::NodeRules;

/// Everything that decides about the requests of nodes. A snapshot: see the crate's description.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Which objects lead to which nodes.
    pub graph: Graph,
    /// What every node may do with resources that are not decided by relation.
    pub rules: Arc<NodeRules>,
    /// Which features are on.
    pub gates: Gates,
}

/// The feature gates of Kubernetes that matter to nodes. The default is Kubernetes' default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gates {
    /// `KubeletServiceAccountTokenForCredentialProviders`: nodes read the service accounts of
    /// their pods.
    pub service_account_token_for_credential_providers: bool,
    /// `PodCertificateRequest`: nodes request certificates for their pods, for which they read
    /// service accounts too.
    pub pod_certificate_request: bool,
    /// `CSIVolumeHealth`: nodes report the health of volumes in the status of their CSINode.
    pub csi_volume_health: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            service_account_token_for_credential_providers: true,
            pod_certificate_request: true,
            csi_volume_health: false,
        }
    }
}
