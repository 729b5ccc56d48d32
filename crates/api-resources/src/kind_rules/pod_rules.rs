//! Pods. This server does not run them, so it sets and validates only the fields that other parts of the
//! server read, and those that could harm a node (`pod_safety_rules`).

use std::collections::HashSet;

use api_object::{Tree, object_member_mut};
use field_errors::{FieldErrors, FieldPath};
use serde_json::json;

use super::pod_template_defaults::sync_service_account_names;
use super::pod_update::MIRROR_ANNOTATION;
use crate::json_members::{
    list_member, object_items_mut, set_default_member, string_member, value_at_path,
};

pub(super) fn prepare_pod_create(tree: &mut Tree) {
    tree.insert("status".to_owned(), json!({ "phase": "Pending" }));
    // A mirror pod refers to no other objects, so it has no service account either.
    let is_mirror_pod =
        !value_at_path(tree, &["metadata", "annotations", MIRROR_ANNOTATION]).is_null();
    let spec = object_member_mut(tree, "spec");
    if string_member(spec, "serviceAccount").is_empty() && !is_mirror_pod {
        set_default_member(spec, "serviceAccountName", "default");
    }
    prepare_pod_update(tree);
}

pub(super) fn prepare_pod_update(tree: &mut Tree) {
    let spec = object_member_mut(tree, "spec");
    set_default_member(spec, "restartPolicy", "Always");
    set_default_member(spec, "terminationGracePeriodSeconds", 30);
    set_default_member(spec, "dnsPolicy", "ClusterFirst");
    set_default_member(spec, "schedulerName", "default-scheduler");
    sync_service_account_names(spec);
    for list in ["containers", "initContainers"] {
        for container in object_items_mut(spec, list) {
            let policy = default_pull_policy(string_member(container, "image"));
            set_default_member(container, "imagePullPolicy", policy);
            set_default_member(container, "terminationMessagePath", "/dev/termination-log");
            set_default_member(container, "terminationMessagePolicy", "File");
        }
    }
}

/// The default pull policy: an image with a mutable tag is pulled each time.
pub(super) fn default_pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        _ if image.contains('@') => "IfNotPresent",
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// Validates a new pod: a mirror pod must name its node, because it represents a static pod of that node.
pub(super) fn validate_pod_create(tree: &Tree, errors: &mut FieldErrors) {
    let Some(mirror) = value_at_path(tree, &["metadata", "annotations"]).get(MIRROR_ANNOTATION)
    else {
        return;
    };
    if string_member(value_at_path(tree, &["spec"]), "nodeName").is_empty() {
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
    let containers = list_member(value_at_path(tree, &["spec"]), "containers");
    if containers.is_empty() {
        errors.push(path.required(""));
    }
    let mut names = HashSet::new();
    for (idx, container) in containers.iter().enumerate() {
        let path = path.index(idx);
        let name = string_member(container, "name");
        for key in ["name", "image"] {
            if string_member(container, key).is_empty() {
                errors.push(path.child(key).required(""));
            }
        }
        if !name.is_empty() && !names.insert(name) {
            errors.push(path.child("name").duplicate(name));
        }
    }
}
