//! Pods and the names they refer to.

use authz_node::Pod;
use serde_json::Value;

use super::{array_items, first_object_member, text_or_empty};

/// The annotation of a mirror pod, which a kubelet creates to show a static pod.
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// Kinds of volumes that may name a secret, in Kubernetes' order.
const SECRET_VOLUMES: [&str; 11] = [
    "azureFile",
    "cephfs",
    "cinder",
    "flexVolume",
    "projected",
    "rbd",
    "secret",
    "scaleIO",
    "iscsi",
    "storageos",
    "csi",
];

pub(super) fn parse_pod(object: &Value) -> Pod {
    let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    let extended = &status["extendedResourceClaimStatus"]["resourceClaimName"];
    let mut pod = Pod {
        namespace: text_or_empty(&metadata["namespace"]),
        name: text_or_empty(&metadata["name"]),
        node_name: text_or_empty(&spec["nodeName"]),
        is_mirror_pod: metadata["annotations"].get(MIRROR_ANNOTATION).is_some(),
        service_account_name: text_or_empty(&spec["serviceAccountName"]),
        secret_names: array_items(&spec["imagePullSecrets"])
            .map(|own| text_or_empty(&own["name"]))
            .collect(),
        resource_claim_names: array_items(&spec["resourceClaims"])
            .filter_map(|claim| find_resource_claim_name(claim, &status["resourceClaimStatuses"]))
            .collect(),
        extended_resource_claim_name: extended.as_str().map(str::to_owned),
        ..Pod::default()
    };
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        array_items(&spec[list])
            .for_each(|container| read_container_references(&mut pod, container));
    }
    array_items(&spec["volumes"]).for_each(|volume| read_volume_references(&mut pod, volume));
    pod
}

/// Returns the name of the resource claim that an entry refers to. Returns `None` if the claim comes from a
/// template and does not exist yet.
fn find_resource_claim_name(entry: &Value, statuses: &Value) -> Option<String> {
    if let Some(name) = entry["resourceClaimName"].as_str() {
        return Some(name.to_owned());
    }
    entry["resourceClaimTemplateName"].as_str()?;
    let name = entry["name"].as_str()?;
    let status = array_items(statuses).find(|status| status["name"] == name)?;
    status["resourceClaimName"].as_str().map(str::to_owned)
}

fn read_container_references(pod: &mut Pod, container: &Value) {
    let whole =
        array_items(&container["envFrom"]).map(|from| (&from["secretRef"], &from["configMapRef"]));
    let single = array_items(&container["env"]).map(|variable| {
        let from = &variable["valueFrom"];
        (&from["secretKeyRef"], &from["configMapKeyRef"])
    });
    for (secret, config_map) in whole.chain(single) {
        push_non_empty_name(&mut pod.secret_names, &secret["name"]);
        push_non_empty_name(&mut pod.config_map_names, &config_map["name"]);
    }
}

fn read_volume_references(pod: &mut Pod, volume: &Value) {
    match first_object_member(volume, &SECRET_VOLUMES) {
        Some(("azureFile" | "secret", source)) => {
            push_non_empty_name(&mut pod.secret_names, &source["secretName"]);
        }
        Some(("projected", source)) => {
            array_items(&source["sources"]).for_each(|source| {
                push_non_empty_name(&mut pod.secret_names, &source["secret"]["name"])
            });
        }
        Some(("csi", source)) => {
            push_non_empty_name(&mut pod.secret_names, &source["nodePublishSecretRef"]["name"]);
        }
        Some((_, source)) => {
            push_non_empty_name(&mut pod.secret_names, &source["secretRef"]["name"])
        }
        None => {}
    }
    match first_object_member(volume, &["projected", "configMap"]) {
        Some(("projected", source)) => {
            array_items(&source["sources"]).for_each(|source| {
                push_non_empty_name(&mut pod.config_map_names, &source["configMap"]["name"])
            });
        }
        Some((_, source)) => push_non_empty_name(&mut pod.config_map_names, &source["name"]),
        None => {}
    }
    match first_object_member(volume, &["persistentVolumeClaim", "ephemeral"]) {
        Some(("ephemeral", _)) => {
            let claim = format!("{}-{}", pod.name, text_or_empty(&volume["name"]));
            pod.persistent_volume_claim_names.push(claim);
        }
        Some((_, source)) => {
            push_non_empty_name(&mut pod.persistent_volume_claim_names, &source["claimName"])
        }
        None => {}
    }
}

fn push_non_empty_name(names: &mut Vec<String>, name: &Value) {
    names.extend(name.as_str().filter(|name| !name.is_empty()).map(str::to_owned));
}
