//! The audiences for which a node may request tokens: those that its pods use, and those that it has a permission
//! for.

use std::collections::HashSet;

use api_object::Tree;
use serde_json::Value;

use super::node_pod_rules::{pod_volumes, projected_sources};
use super::node_restriction_lookups::NodeRestrictionLookups;
use super::{
    NodeRuleResult, NodeWrite, NodeWriteRefusal, forbid_node_write, items, non_null_member,
    read_required_object, spec, string_member,
};

/// The verb of the permission to request tokens for an audience, which takes the place of the resource.
const VERB: &str = "request-serviceaccounts-token-audience";

/// Volumes of the API itself that CSI drivers provide by now, and these drivers.
const MIGRATED_VOLUMES: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

/// Checks that the pod uses the requested audience, or that the node is allowed to request tokens for it.
pub(super) async fn check_token_audiences(
    write: &NodeWrite<'_>,
    request: &Value,
    pod: &Tree,
    lookups: &impl NodeRestrictionLookups,
) -> NodeRuleResult {
    let audience = match non_null_member(request, "audiences") {
        None => "",
        Some(Value::Array(audiences)) => match audiences.as_slice() {
            [] => "",
            [Value::String(audience)] => audience.as_str(),
            _ => return forbid_node_write("node may only request 0 or 1 audiences"),
        },
        Some(_) => return forbid_node_write("node may only request 0 or 1 audiences"),
    };
    let quoted = go_compat::quote(audience);
    match pod_uses_audience(write, pod, audience, lookups).await {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(NodeWriteRefusal::Forbidden(why)) => {
            return forbid_node_write(format!("error validating audience {quoted}: {why}"));
        }
        Err(other) => return Err(other),
    }
    if lookups.is_node_allowed(write, VERB, audience, write.name).await? {
        return Ok(());
    }
    let user = format!("{}{}", authz_node::NODE_USER_PREFIX, write.node_name);
    forbid_node_write(format!("{user} is not authorized to request tokens for audience {quoted}"))
}

/// Whether a volume of the pod is a token for the audience, or belongs to a CSI driver that gets one. An object
/// that does not exist is reported only if no volume has the audience.
async fn pod_uses_audience(
    write: &NodeWrite<'_>,
    pod: &Tree,
    audience: &str,
    lookups: &impl NodeRestrictionLookups,
) -> Result<bool, NodeWriteRefusal> {
    let has_token = |source: &Value| {
        non_null_member(source, "serviceAccountToken")
            .is_some_and(|own| string_member(own, "audience") == audience)
    };
    if pod_volumes(pod).iter().flat_map(projected_sources).any(has_token) {
        return Ok(true);
    }
    let (mut missing, mut seen) = (Vec::new(), HashSet::new());
    for volume in pod_volumes(pod) {
        let found = match csi_driver_of_volume(write, pod, volume, lookups).await {
            Ok(driver) if driver.is_empty() || !seen.insert(driver.clone()) => continue,
            Ok(driver) => csi_driver_has_audience(&driver, audience, lookups).await,
            Err(refusal) => Err(refusal),
        };
        match found {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(NodeWriteRefusal::Status(status)) if status.code == 404 => {
                missing.push(status.message)
            }
            Err(other) => return Err(other),
        }
    }
    match missing.as_slice() {
        [] => Ok(false),
        [one] => forbid_node_write(one.as_str()),
        several => forbid_node_write(format!("[{}]", several.join(", "))),
    }
}

/// The CSI driver of a volume; empty if it has none.
async fn csi_driver_of_volume(
    write: &NodeWrite<'_>,
    pod: &Tree,
    volume: &Value,
    lookups: &impl NodeRestrictionLookups,
) -> Result<String, NodeWriteRefusal> {
    let template =
        volume.get("ephemeral").and_then(|own| non_null_member(own, "volumeClaimTemplate"));
    if template.is_some() {
        let claim = format!("{}-{}", api_object::name(pod), string_member(volume, "name"));
        return csi_driver_of_volume_claim(write.namespace, &claim, lookups).await;
    }
    if let Some(claim) = non_null_member(volume, "persistentVolumeClaim") {
        return csi_driver_of_volume_claim(
            write.namespace,
            string_member(claim, "claimName"),
            lookups,
        )
        .await;
    }
    Ok(csi_driver_of_volume_source(volume).to_owned())
}

async fn csi_driver_of_volume_claim(
    namespace: &str,
    name: &str,
    lookups: &impl NodeRestrictionLookups,
) -> Result<String, NodeWriteRefusal> {
    let claims = "persistentvolumeclaims";
    let claim = read_required_object(lookups, "", claims, namespace, name).await?;
    let volume_name = string_member(spec(&claim), "volumeName");
    let volume = read_required_object(lookups, "", "persistentvolumes", "", volume_name).await?;
    Ok(csi_driver_of_volume_source(spec(&volume)).to_owned())
}

fn csi_driver_of_volume_source(source: &Value) -> &str {
    if let Some(csi) = non_null_member(source, "csi") {
        return string_member(csi, "driver");
    }
    let migrated = MIGRATED_VOLUMES.iter().find(|(own, _)| non_null_member(source, own).is_some());
    migrated.map_or("", |(_, driver)| driver)
}

async fn csi_driver_has_audience(
    name: &str,
    audience: &str,
    lookups: &impl NodeRestrictionLookups,
) -> Result<bool, NodeWriteRefusal> {
    let group = "storage.k8s.io";
    let driver = read_required_object(lookups, group, "csidrivers", "", name).await?;
    Ok(items(spec(&driver), "tokenRequests")
        .iter()
        .any(|own| string_member(own, "audience") == audience))
}
