//! From the JSON of an object to what the node authorizer learns from it.

mod persistent_volume;
mod pod;

use authz_node::{Assignment, Object};
use serde_json::Value;

/// The kinds that the node authorizer learns from: group, kind and whether they live in a
/// namespace.
pub(crate) const NODE_KINDS: [(&str, &str, bool); 5] = [
    ("", "Pod", true),
    ("", "PersistentVolume", false),
    ("storage.k8s.io", "VolumeAttachment", false),
    ("resource.k8s.io", "ResourceSlice", false),
    ("certificates.k8s.io", "PodCertificateRequest", true),
];

/// What the node authorizer learns from an object; `None` if it learns from no object of this kind.
///
/// The object is taken to be valid. Where it is not, what has the wrong type counts as absent, so
/// that it relates less, never more.
///
/// ```
/// use authz_node::{Assignment, Object};
///
/// let object = serde_json::json!({
///     "apiVersion": "storage.k8s.io/v1",
///     "kind": "VolumeAttachment",
///     "metadata": {"name": "va"},
///     "spec": {"nodeName": "n"},
/// });
/// let want = Assignment { name: "va".into(), node_name: "n".into(), ..Assignment::default() };
/// assert_eq!(manifests::node_object(&object), Some(Object::VolumeAttachment(want)));
/// ```
pub fn node_object(object: &Value) -> Option<Object> {
    let api_version = object["apiVersion"].as_str()?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, object["kind"].as_str()?) {
        ("", "Pod") => Some(Object::Pod(Box::new(pod::read(object)))),
        ("", "PersistentVolume") => Some(Object::PersistentVolume(persistent_volume::read(object))),
        ("storage.k8s.io", "VolumeAttachment") => {
            Some(Object::VolumeAttachment(assignment(object)))
        }
        ("resource.k8s.io", "ResourceSlice") => Some(Object::ResourceSlice(assignment(object))),
        ("certificates.k8s.io", "PodCertificateRequest") => {
            Some(Object::PodCertificateRequest(assignment(object)))
        }
        _ => None,
    }
}

fn assignment(object: &Value) -> Assignment {
    Assignment {
        namespace: text(&object["metadata"]["namespace"]),
        name: text(&object["metadata"]["name"]),
        node_name: text(&object["spec"]["nodeName"]),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The first of these members that is there. Of a union only one should be; where more are,
/// Kubernetes takes the first in its own order.
fn first_member<'a>(
    union: &'a Value,
    members: &[&'static str],
) -> Option<(&'static str, &'a Value)> {
    members.iter().map(|member| (*member, &union[*member])).find(|(_, value)| value.is_object())
}

#[cfg(test)]
mod tests;
