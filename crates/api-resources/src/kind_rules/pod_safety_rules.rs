//! The rules of pods that protect nodes. A kubelet makes files and folders with the names of containers and volumes, and
//! with paths of the pod, so a name or path with `..` could leave the folder of the pod.
//!
//! They apply to new pods only: a pod that an earlier version accepted must remain deletable.

use std::collections::HashSet;

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath, dns1123_label_faults};
use serde_json::Value;

use crate::json_members::{list_member, string_member, value_at_path};

/// Sources of volumes whose items name files.
const ITEM_SOURCES: [&str; 3] = ["configMap", "downwardAPI", "secret"];

pub(super) fn validate_pod_safety(tree: &Tree, errors: &mut FieldErrors) {
    let (spec, root) = (value_at_path(tree, &["spec"]), FieldPath::root("spec"));
    validate_volumes(list_member(spec, "volumes"), &root.child("volumes"), errors);
    validate_seccomp_profile(spec, &root, errors);
    let mut names = HashSet::new();
    for list in ["containers", "initContainers"] {
        let path = root.child(list);
        for (idx, container) in list_member(spec, list).iter().enumerate() {
            let path = path.index(idx);
            validate_container_name(list, container, &path, &mut names, errors);
            validate_volume_mounts(container, &path, errors);
            validate_seccomp_profile(container, &path, errors);
        }
    }
    if !list_member(spec, "ephemeralContainers").is_empty() {
        errors.push(root.child("ephemeralContainers").forbidden("cannot be set on create"));
    }
}

/// Checks that a name is a DNS label and differs from those of other containers. [`super::pod_rules`] reports absent and
/// duplicate names of regular containers.
fn validate_container_name<'t>(
    list: &str,
    container: &'t Value,
    path: &FieldPath<'_>,
    names: &mut HashSet<&'t str>,
    errors: &mut FieldErrors,
) {
    let name = string_member(container, "name");
    let path = path.child("name");
    let is_reported_here = list != "containers";
    if name.is_empty() {
        if is_reported_here {
            errors.push(path.required(""));
        }
        return;
    }
    push_label_faults(&path, name, errors);
    if !names.insert(name) && is_reported_here {
        errors.push(path.duplicate(name));
    }
}

fn validate_volumes(volumes: &[Value], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut names = HashSet::new();
    for (idx, volume) in volumes.iter().enumerate() {
        let path = path.index(idx);
        let (name, name_path) = (string_member(volume, "name"), path.child("name"));
        match name.is_empty() {
            true => errors.push(name_path.required("")),
            false => push_label_faults(&name_path, name, errors),
        }
        if !name.is_empty() && !names.insert(name) {
            errors.push(name_path.duplicate(name));
        }
        let host_path = path.child("hostPath");
        let target = string_member(value_at_path(volume, &["hostPath"]), "path");
        push_backstep_fault(&host_path.child("path"), target, errors);
        validate_source_items(volume, &path, errors);
        let (projected, sources) = (path.child("projected"), value_at_path(volume, &["projected"]));
        let sources_path = projected.child("sources");
        for (idx, source) in list_member(sources, "sources").iter().enumerate() {
            let path = sources_path.index(idx);
            validate_source_items(source, &path, errors);
            for token_source in ["serviceAccountToken", "clusterTrustBundle"] {
                let target = string_member(value_at_path(source, &[token_source]), "path");
                let path = path.child(token_source);
                push_reserved_path_faults(&path.child("path"), target, errors);
            }
        }
    }
}

/// Checks the file names of the items of a volume or of a projected source.
fn validate_source_items(source: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for kind in ITEM_SOURCES {
        let path = path.child(kind);
        let path = path.child("items");
        for (idx, item) in list_member(value_at_path(source, &[kind]), "items").iter().enumerate() {
            let path = path.index(idx);
            push_reserved_path_faults(&path.child("path"), string_member(item, "path"), errors);
        }
    }
}

/// Checks the paths within volumes. The errors name the list and not the mount, as those of Kubernetes do.
fn validate_volume_mounts(container: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let path = path.child("volumeMounts");
    for mount in list_member(container, "volumeMounts") {
        for member in ["subPath", "subPathExpr"] {
            push_relative_path_faults(&path.child(member), string_member(mount, member), errors);
        }
    }
}

/// Checks the seccomp profile of a pod or a container, which is a file below a folder of the kubelet.
fn validate_seccomp_profile(holder: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let profile = value_at_path(holder, &["securityContext", "seccompProfile"]);
    let path = path.child("securityContext");
    let path = path.child("seccompProfile");
    let file = string_member(profile, "localhostProfile");
    push_relative_path_faults(&path.child("localhostProfile"), file, errors);
}

fn push_label_faults(path: &FieldPath<'_>, name: &str, errors: &mut FieldErrors) {
    for fault in dns1123_label_faults(name) {
        errors.push(path.invalid(name, &fault));
    }
}

fn push_backstep_fault(path: &FieldPath<'_>, target: &str, errors: &mut FieldErrors) {
    if target.split('/').any(|part| part == "..") {
        errors.push(path.invalid(target, "must not contain '..'"));
    }
}

fn push_relative_path_faults(path: &FieldPath<'_>, target: &str, errors: &mut FieldErrors) {
    if target.starts_with('/') {
        errors.push(path.invalid(target, "must be a relative path"));
    }
    push_backstep_fault(path, target, errors);
}

/// Checks a file name in a volume. Names that begin with `..` belong to the kubelet.
fn push_reserved_path_faults(path: &FieldPath<'_>, target: &str, errors: &mut FieldErrors) {
    push_relative_path_faults(path, target, errors);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.push(path.invalid(target, "must not start with '..'"));
    }
}
