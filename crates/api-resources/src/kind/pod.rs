//! Pods. They are stored and not run, so only what other parts read is completed and checked.

use std::collections::HashSet;

use api_object::{Tree, object_mut};
use field_errors::{FieldErrors, FieldPath};
use serde_json::json;

use super::pod_update::MIRROR_ANNOTATION;
use crate::tree::{at, default, items, objects_mut, text};

pub(super) fn prepare_create(tree: &mut Tree) {
    tree.insert("status".to_owned(), json!({ "phase": "Pending" }));
    let spec = object_mut(tree, "spec");
    if text(spec, "serviceAccount").is_empty() {
        default(spec, "serviceAccountName", "default");
    }
    prepare_update(tree);
}

pub(super) fn prepare_update(tree: &mut Tree) {
    let spec = object_mut(tree, "spec");
    default(spec, "restartPolicy", "Always");
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "schedulerName", "default-scheduler");
    // The first is the former name of the second, which counts if both are there.
    let account = match (text(spec, "serviceAccount"), text(spec, "serviceAccountName")) {
        (former, "") => former.to_owned(),
        (_, name) => name.to_owned(),
    };
    if !account.is_empty() {
        spec.insert("serviceAccountName".to_owned(), account.as_str().into());
        spec.insert("serviceAccount".to_owned(), account.into());
    }
    for list in ["containers", "initContainers"] {
        for container in objects_mut(spec, list) {
            let policy = pull_policy(text(container, "image"));
            default(container, "imagePullPolicy", policy);
            default(container, "terminationMessagePath", "/dev/termination-log");
            default(container, "terminationMessagePolicy", "File");
        }
    }
}

/// An image that may change under its name is pulled each time.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        _ if image.contains('@') => "IfNotPresent",
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// The faults of a new pod alone: a mirror pod is the image of one that runs on a node already.
pub(super) fn validate_create(tree: &Tree, errors: &mut FieldErrors) {
    let Some(mirror) = at(tree, &["metadata", "annotations"]).get(MIRROR_ANNOTATION) else {
        return;
    };
    if text(at(tree, &["spec"]), "nodeName").is_empty() {
        let metadata = FieldPath::root("metadata");
        let path = metadata.child("annotations");
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        let mirror = mirror.as_str().unwrap_or_default();
        errors.push(path.key(MIRROR_ANNOTATION).invalid(mirror, detail));
    }
}

pub(super) fn validate(tree: &Tree, errors: &mut FieldErrors) {
    let spec = FieldPath::root("spec");
    let path = spec.child("containers");
    let containers = items(at(tree, &["spec"]), "containers");
    if containers.is_empty() {
        errors.push(path.required(""));
    }
    let mut names = HashSet::new();
    for (idx, container) in containers.iter().enumerate() {
        let path = path.index(idx);
        let name = text(container, "name");
        for key in ["name", "image"] {
            if text(container, key).is_empty() {
                errors.push(path.child(key).required(""));
            }
        }
        if !name.is_empty() && !names.insert(name) {
            errors.push(path.child("name").duplicate(name));
        }
    }
}
