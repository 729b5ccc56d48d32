//! Persistent volumes and the secrets that a kubelet needs to mount them.

use authz_node::{PersistentVolume, PersistentVolumeClaimReference, VolumeSecretReference};
use serde_json::Value;

use super::{first_object_member, text_or_empty};

/// Kinds of volumes that may name a secret, in Kubernetes' order.
const SECRET_VOLUMES: [&str; 9] =
    ["azureFile", "cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos", "csi"];

/// The secrets of a CSI volume that a kubelet reads. Those of the controller are not for nodes.
const CSI_NODE_SECRETS: [&str; 3] =
    ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"];

pub(super) fn parse_persistent_volume(object: &Value) -> PersistentVolume {
    let spec = &object["spec"];
    let claim = &spec["claimRef"];
    PersistentVolume {
        name: text_or_empty(&object["metadata"]["name"]),
        claim_ref: claim.is_object().then(|| PersistentVolumeClaimReference {
            namespace: text_or_empty(&claim["namespace"]),
            name: text_or_empty(&claim["name"]),
        }),
        secret_refs: read_secret_references(spec),
    }
}

fn read_secret_references(spec: &Value) -> Vec<VolumeSecretReference> {
    match first_object_member(spec, &SECRET_VOLUMES) {
        None => Vec::new(),
        Some(("azureFile", source)) => {
            let namespace = namespace_if_set(&source["secretNamespace"]);
            vec![VolumeSecretReference { namespace, name: text_or_empty(&source["secretName"]) }]
        }
        Some(("csi", source)) => CSI_NODE_SECRETS
            .iter()
            .filter_map(|member| parse_secret_reference(&source[*member]))
            .collect(),
        Some(("cinder" | "storageos", source)) => {
            parse_secret_reference(&source["secretRef"]).into_iter().collect()
        }
        // An older volume has no namespace here; then the secret is in the namespace of the claim.
        Some((_, source)) => parse_secret_reference(&source["secretRef"])
            .map(|secret| VolumeSecretReference {
                namespace: namespace_if_set(&source["secretRef"]["namespace"]),
                ..secret
            })
            .into_iter()
            .collect(),
    }
}

fn parse_secret_reference(reference: &Value) -> Option<VolumeSecretReference> {
    reference.is_object().then(|| VolumeSecretReference {
        namespace: Some(text_or_empty(&reference["namespace"])),
        name: text_or_empty(&reference["name"]),
    })
}

fn namespace_if_set(namespace: &Value) -> Option<String> {
    Some(text_or_empty(namespace)).filter(|namespace| !namespace.is_empty())
}
