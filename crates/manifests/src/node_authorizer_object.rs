//! Reads the objects that the node authorizer uses from JSON.

#![expect(
    clippy::indexing_slicing,
    reason = "INVARIANT: a `serde_json::Value` that is indexed by a name returns null if the member is absent"
)]

mod persistent_volume;
mod pod_references;

use authz_node::{GraphObject, NodeNamingObject};
use serde_json::Value;

/// The kinds that the node authorizer uses: group, kind, and whether they are namespaced.
pub(crate) const NODE_KINDS: [(&str, &str, bool); 5] = [
    ("", "Pod", true),
    ("", "PersistentVolume", false),
    ("storage.k8s.io", "VolumeAttachment", false),
    ("resource.k8s.io", "ResourceSlice", false),
    ("certificates.k8s.io", "PodCertificateRequest", true),
];

/// Reads the part of an object that the node authorizer uses; `None` for any other kind.
///
/// The object is not validated. A value of the wrong type counts as absent, so that the object
/// grants less access, never more.
///
/// ```
/// use authz_node::{GraphObject, NodeNamingObject};
///
/// let object = serde_json::json!({
///     "apiVersion": "storage.k8s.io/v1",
///     "kind": "VolumeAttachment",
///     "metadata": {"name": "va"},
///     "spec": {"nodeName": "n"},
/// });
/// let want = NodeNamingObject { name: "va".into(), node_name: "n".into(), ..NodeNamingObject::default() };
/// assert_eq!(manifests::parse_node_authorizer_object(&object), Some(GraphObject::VolumeAttachment(want)));
/// ```
pub fn parse_node_authorizer_object(object: &Value) -> Option<GraphObject> {
    let api_version = object["apiVersion"].as_str()?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, object["kind"].as_str()?) {
        ("", "Pod") => Some(GraphObject::Pod(Box::new(pod_references::parse_pod(object)))),
        ("", "PersistentVolume") => {
            Some(GraphObject::PersistentVolume(persistent_volume::parse_persistent_volume(object)))
        }
        ("storage.k8s.io", "VolumeAttachment") => {
            Some(GraphObject::VolumeAttachment(parse_node_assignment(object)))
        }
        ("resource.k8s.io", "ResourceSlice") => {
            Some(GraphObject::ResourceSlice(parse_node_assignment(object)))
        }
        ("certificates.k8s.io", "PodCertificateRequest") => {
            Some(GraphObject::PodCertificateRequest(parse_node_assignment(object)))
        }
        _ => None,
    }
}

fn parse_node_assignment(object: &Value) -> NodeNamingObject {
    NodeNamingObject {
        namespace: text_or_empty(&object["metadata"]["namespace"]),
        name: text_or_empty(&object["metadata"]["name"]),
        node_name: text_or_empty(&object["spec"]["nodeName"]),
    }
}

fn text_or_empty(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn array_items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Finds the first of these members that is an object. A union should have only one; of several,
/// Kubernetes uses the first in its own order.
fn first_object_member<'a>(
    union: &'a Value,
    members: &[&'static str],
) -> Option<(&'static str, &'a Value)> {
    members.iter().map(|member| (*member, &union[*member])).find(|(_, value)| value.is_object())
}

#[cfg(test)]
mod tests;
