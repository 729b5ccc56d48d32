//! Persistent volumes and the secrets that a kubelet needs to mount them.

use authz_node::{PersistentVolume, SecretReference, VolumeClaim};
use serde_json::Value;

use super::{first_member, text};

/// Kinds of volumes that may name a secret, in Kubernetes' order.
const SECRET_VOLUMES: [&str; 9] =
    ["azureFile", "cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos", "csi"];

/// The secrets of a CSI volume that a kubelet reads. Those of the controller are not for nodes.
const CSI_NODE_SECRETS: [&str; 3] =
    ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"];

pub(super) fn read(object: &Value) -> PersistentVolume {
    let spec = &object["spec"];
    let claim = &spec["claimRef"];
    PersistentVolume {
        name: text(&object["metadata"]["name"]),
        claim: claim.is_object().then(|| VolumeClaim {
            namespace: text(&claim["namespace"]),
            name: text(&claim["name"]),
        }),
        secrets: secrets(spec),
    }
}

fn secrets(spec: &Value) -> Vec<SecretReference> {
    match first_member(spec, &SECRET_VOLUMES) {
        None => Vec::new(),
        Some(("azureFile", source)) => {
            let namespace = namespace_or_claims(&source["secretNamespace"]);
            vec![SecretReference { namespace, name: text(&source["secretName"]) }]
        }
        Some(("csi", source)) => {
            CSI_NODE_SECRETS.iter().filter_map(|member| as_written(&source[*member])).collect()
        }
        Some(("cinder" | "storageos", source)) => {
            as_written(&source["secretRef"]).into_iter().collect()
        }
        // Volumes stored before these references had a namespace mean that of the claim.
        Some((_, source)) => as_written(&source["secretRef"])
            .map(|secret| SecretReference {
                namespace: namespace_or_claims(&source["secretRef"]["namespace"]),
                ..secret
            })
            .into_iter()
            .collect(),
    }
}

fn as_written(reference: &Value) -> Option<SecretReference> {
    reference.is_object().then(|| SecretReference {
        namespace: Some(text(&reference["namespace"])),
        name: text(&reference["name"]),
    })
}

fn namespace_or_claims(namespace: &Value) -> Option<String> {
    Some(text(namespace)).filter(|namespace| !namespace.is_empty())
}
