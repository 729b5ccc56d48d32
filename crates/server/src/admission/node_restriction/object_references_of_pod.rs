//! The other objects that a pod refers to. A pod that a node creates may refer to none.
//!
//! This server does not validate the volumes of pods, so a volume may name several sources. Every source that
//! refers to an object counts, and a source that is not known counts as one that might.

use api_object::Tree;
use authz_node::GraphObject;
use serde_json::Value;

use super::node_pod_rules::pod_volumes;
use super::{non_null_member, spec, string_member};

/// Sources of volumes that refer to objects, and what messages call these.
const REFERRING_SOURCES: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];

/// Sources of projected volumes that refer to objects.
const REFERRING_PROJECTIONS: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// Sources of volumes that refer to no object of the API.
const OTHER_SOURCES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// A volume might refer to an object.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PodObjectReferenceError {
    /// The volume of this name has no known source.
    #[error("unknown volume type for volume  {}", go_compat::quote(.0))]
    UnknownVolume(String),
    /// The projected volume of this name has a source that is not known.
    #[error("unknown source for projected volume {}", go_compat::quote(.0))]
    UnknownSource(String),
}

/// The first reference to another object; `None` if there is none.
pub(super) fn find_object_reference_of_pod(
    pod: &Tree,
) -> Result<Option<&'static str>, PodObjectReferenceError> {
    let spec = spec(pod);
    // `serviceAccount` is the former name of the field, which the server copies.
    let accounts = ["serviceAccountName", "serviceAccount"];
    if accounts.into_iter().any(|member| is_non_empty_member(spec, member)) {
        return Ok(Some("serviceaccounts"));
    }
    if let Some(GraphObject::Pod(named)) =
        manifests::parse_node_authorizer_object(&with_pod_type_meta(pod))
    {
        for (names, what) in
            [(&named.secret_names, "secrets"), (&named.config_map_names, "configmaps")]
        {
            if names.iter().any(|name| !name.is_empty()) {
                return Ok(Some(what));
            }
        }
    }
    if is_non_empty_member(spec, "resourceClaims") {
        return Ok(Some("resourceclaims"));
    }
    // Another component might interpret a value that is not a list, so it is refused.
    if non_null_member(spec, "volumes").is_some_and(|own| !own.is_array()) {
        return Err(PodObjectReferenceError::UnknownVolume(String::new()));
    }
    for volume in pod_volumes(pod) {
        if let Some(what) = find_object_reference_of_volume(volume)? {
            return Ok(Some(what));
        }
    }
    Ok(None)
}

fn find_object_reference_of_volume(
    volume: &Value,
) -> Result<Option<&'static str>, PodObjectReferenceError> {
    let name = || string_member(volume, "name").to_owned();
    if let Some((_, what)) = find_non_null_member(volume, &REFERRING_SOURCES) {
        return Ok(Some(what));
    }
    if let Some(projected) = non_null_member(volume, "projected") {
        let sources = projected.get("sources").unwrap_or(&Value::Null);
        let sources = match sources {
            Value::Null => &[][..],
            Value::Array(sources) => sources,
            _ => return Err(PodObjectReferenceError::UnknownSource(name())),
        };
        for source in sources {
            if let Some((_, what)) = find_non_null_member(source, &REFERRING_PROJECTIONS) {
                return Ok(Some(what));
            }
            let members = source.as_object().into_iter().flatten();
            let mut set_members = members.filter(|(_, value)| !value.is_null()).peekable();
            let is_known = set_members.peek().is_some()
                && set_members.all(|(member, _)| member == "downwardAPI");
            if !is_known {
                return Err(PodObjectReferenceError::UnknownSource(name()));
            }
        }
    }
    // A volume with a known source may have a second, unknown one, so every member is checked.
    let is_source = |member: &str| member == "projected" || OTHER_SOURCES.contains(&member);
    let mut set_members = volume
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(member, value)| *member != "name" && !value.is_null())
        .map(|(member, _)| member.as_str())
        .peekable();
    match set_members.peek().is_some() && set_members.all(is_source) {
        true => Ok(None),
        false => Err(PodObjectReferenceError::UnknownVolume(name())),
    }
}

fn find_non_null_member(
    value: &Value,
    members: &[(&'static str, &'static str)],
) -> Option<(&'static str, &'static str)> {
    members.iter().copied().find(|(member, _)| non_null_member(value, member).is_some())
}

/// Whether a member has a value other than the empty string and the empty list.
fn is_non_empty_member(value: &Value, member: &str) -> bool {
    match non_null_member(value, member) {
        None => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}

/// Returns the pod with `apiVersion` and `kind`, which the decoder of references expects.
fn with_pod_type_meta(pod: &Tree) -> Value {
    let mut pod = pod.clone();
    pod.insert("apiVersion".to_owned(), "v1".into());
    pod.insert("kind".to_owned(), "Pod".into());
    Value::Object(pod)
}
