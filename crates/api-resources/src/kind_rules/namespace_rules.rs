//! The defaults and validation rules of Namespaces.

use api_object::{Tree, metadata_mut, object_member_mut};
use field_errors::{FieldErrors, FieldPath, label_key_faults};
use serde_json::{Value, json};

use crate::json_members::{list_member, string_list_member, string_member, value_at_path};

/// The finalizer that keeps a namespace until its objects are deleted.
const KUBERNETES: &str = "kubernetes";
/// The label with the name of the namespace, for selectors.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// Finalizers without a domain.
const STANDARD: [&str; 3] = [KUBERNETES, "foregroundDeletion", "orphan"];

pub(super) fn prepare_namespace_create(tree: &mut Tree) {
    let spec = object_member_mut(tree, "spec");
    let mut finalizers = string_list_member(spec, "finalizers");
    if !finalizers.iter().any(|it| it == KUBERNETES) {
        finalizers.push(KUBERNETES.to_owned());
    }
    spec.insert("finalizers".to_owned(), finalizers.into());
    tree.insert("status".to_owned(), json!({ "phase": "Active" }));
    set_namespace_name_label(tree);
}

/// The subresource `finalize` changes the finalizers of the spec and nothing else; other paths do not
/// change them.
pub(super) fn prepare_namespace_update(new: &mut Tree, old: &Tree, subresource: Option<&str>) {
    match subresource {
        None => {
            let finalizers = value_at_path(old, &["spec", "finalizers"]).clone();
            set_namespace_finalizers(new, finalizers);
        }
        Some("finalize") => {
            let finalizers = value_at_path(new, &["spec", "finalizers"]).clone();
            new.clone_from(old);
            set_namespace_finalizers(new, finalizers);
        }
        Some(_) => {}
    }
    set_namespace_name_label(new);
}

fn set_namespace_finalizers(tree: &mut Tree, finalizers: Value) {
    let spec = object_member_mut(tree, "spec");
    match finalizers.as_array().is_none_or(Vec::is_empty) {
        true => spec.shift_remove("finalizers"),
        false => spec.insert("finalizers".to_owned(), finalizers),
    };
}

/// Sets the label `kubernetes.io/metadata.name`, which only the server sets. As long as the name is not generated, the
/// label is removed, so that a client cannot set it to the name of another namespace.
fn set_namespace_name_label(tree: &mut Tree) {
    let name = api_object::name(tree).to_owned();
    let metadata = metadata_mut(tree);
    if !name.is_empty() {
        object_member_mut(metadata, "labels").insert(NAME_LABEL.to_owned(), name.into());
    } else if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
        labels.shift_remove(NAME_LABEL);
    }
}

pub(super) fn prepare_namespace_delete(tree: &mut Tree) {
    object_member_mut(tree, "status").insert("phase".to_owned(), "Terminating".into());
}

/// Reports whether the spec has finalizers.
pub(super) fn has_namespace_finalizers(tree: &Tree) -> bool {
    !list_member(value_at_path(tree, &["spec"]), "finalizers").is_empty()
}

pub(super) fn validate_namespace_finalizers(tree: &Tree, errors: &mut FieldErrors) {
    let spec = FieldPath::root("spec");
    let path = spec.child("finalizers");
    for finalizer in string_list_member(value_at_path(tree, &["spec"]), "finalizers") {
        for fault in label_key_faults(&finalizer) {
            errors.push(path.invalid(finalizer.as_str(), &fault));
        }
        if !finalizer.contains('/') && !STANDARD.contains(&finalizer.as_str()) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(path.invalid(finalizer.as_str(), detail));
        }
    }
}

/// Validates that the phase matches the deletion timestamp. The upper case in `Phase` is that of
/// Kubernetes.
pub(super) fn validate_namespace_status(tree: &Tree, errors: &mut FieldErrors) {
    let phase = string_member(value_at_path(tree, &["status"]), "phase");
    let (want, detail) = match api_object::is_terminating(tree) {
        false => ("Active", "may only be 'Active' if `deletionTimestamp` is empty"),
        true => ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"),
    };
    if phase != want {
        errors.push(FieldPath::root("status").child("Phase").invalid(phase, detail));
    }
}
