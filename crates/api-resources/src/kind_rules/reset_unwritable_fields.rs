//! The fields that a write to one path of an object cannot change.
//!
//! A write to the main path keeps the status of kinds with a status subresource. A write to the
//! status keeps everything else, except for metadata that Kubernetes lets it change, which differs
//! by kind. `resourceVersion`, `uid` and timestamps follow the rules for all metadata.

use api_object::Tree;

use crate::resource::Resource;

/// The members of metadata that a write to the status changes unless its kind keeps them.
const STATUS_METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// The members of [`STATUS_METADATA`] that a write to the status keeps, by group and plural.
const KEPT_BY_STATUS: [(&str, &str, &[&str]); 8] = [
    // The garbage collector deletes a pod with its owners, and a writer of the status needs no permission to
    // delete the pod.
    ("", "pods", &["ownerReferences"]),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", &STATUS_METADATA),
    ("apps", "deployments", &["labels"]),
    ("certificates.k8s.io", "podcertificaterequests", &STATUS_METADATA),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", &STATUS_METADATA),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", &STATUS_METADATA),
    ("resource.k8s.io", "resourceclaims", &STATUS_METADATA),
    ("storage.k8s.io", "volumeattachments", &STATUS_METADATA),
];

/// Resets to their old values the fields that a write to this subresource, or to the object itself if there is none,
/// cannot change. An unknown subresource changes nothing.
pub fn reset_unwritable_fields(
    resource: &Resource,
    new: &mut Tree,
    old: &Tree,
    subresource: Option<&str>,
) {
    match subresource {
        None if resource.has_status_subresource() => restore_old_member(new, old, "status"),
        None => {}
        Some("status" | "approval") => {
            let members: Vec<String> = new.keys().chain(old.keys()).cloned().collect();
            for member in members {
                match member.as_str() {
                    "status" => {}
                    "metadata" => restore_old_metadata(resource, new, old),
                    member => restore_old_member(new, old, member),
                }
            }
        }
        // The rules of namespaces apply the finalizers of the spec and nothing else.
        Some("finalize") => {}
        Some(_) => new.clone_from(old),
    }
}

fn restore_old_metadata(resource: &Resource, new: &mut Tree, old: &Tree) {
    if resource.is_custom_resource() {
        return restore_old_member(new, old, "metadata");
    }
    let matches_resource =
        |group: &str, plural: &str| resource.group == group && resource.plural == plural;
    let row = KEPT_BY_STATUS.iter().find(|(group, plural, _)| matches_resource(group, plural));
    let (new, old) = (api_object::metadata_mut(new), api_object::metadata(old));
    for member in row.map_or(&[][..], |(_, _, members)| members) {
        restore_old_member(new, old, member);
    }
}

fn restore_old_member(new: &mut Tree, old: &Tree, member: &str) {
    match old.get(member) {
        Some(value) => drop(new.insert(member.to_owned(), value.clone())),
        None => drop(new.shift_remove(member)),
    }
}
