//! Namespaces.

use api_object::{Tree, metadata_mut, object_mut};
use field_errors::{FieldErrors, FieldPath, label_key_faults};
use serde_json::{Value, json};

use crate::tree::{at, items, text, texts};

/// The finalizer that stands for the removal of what is in a namespace.
const KUBERNETES: &str = "kubernetes";
/// The label by which selectors find a namespace by its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// Finalizers that need no domain.
const STANDARD: [&str; 3] = [KUBERNETES, "foregroundDeletion", "orphan"];

pub(super) fn prepare_create(tree: &mut Tree) {
    let spec = object_mut(tree, "spec");
    let mut finalizers = texts(spec, "finalizers");
    if !finalizers.iter().any(|it| it == KUBERNETES) {
        finalizers.push(KUBERNETES.to_owned());
    }
    spec.insert("finalizers".to_owned(), finalizers.into());
    tree.insert("status".to_owned(), json!({ "phase": "Active" }));
    label(tree);
}

/// The finalizers change on their own path only, and nothing else does there.
pub(super) fn prepare_update(new: &mut Tree, old: &Tree, subresource: Option<&str>) {
    match subresource {
        None => {
            let finalizers = at(old, &["spec", "finalizers"]).clone();
            set_finalizers(new, finalizers);
        }
        Some("finalize") => {
            let finalizers = at(new, &["spec", "finalizers"]).clone();
            new.clone_from(old);
            set_finalizers(new, finalizers);
        }
        Some(_) => {}
    }
    label(new);
}

fn set_finalizers(tree: &mut Tree, finalizers: Value) {
    let spec = object_mut(tree, "spec");
    match finalizers.as_array().is_none_or(Vec::is_empty) {
        true => spec.shift_remove("finalizers"),
        false => spec.insert("finalizers".to_owned(), finalizers),
    };
}

/// Only the server says under which name selectors find a namespace. One whose name is still to be
/// generated has none, so that it can not borrow the name of another.
fn label(tree: &mut Tree) {
    let name = api_object::name(tree).to_owned();
    let metadata = metadata_mut(tree);
    if !name.is_empty() {
        object_mut(metadata, "labels").insert(NAME_LABEL.to_owned(), name.into());
    } else if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
        labels.shift_remove(NAME_LABEL);
    }
}

pub(super) fn prepare_delete(tree: &mut Tree) {
    object_mut(tree, "status").insert("phase".to_owned(), "Terminating".into());
}

/// Something still has to be removed from it.
pub(super) fn blocks_removal(tree: &Tree) -> bool {
    !items(at(tree, &["spec"]), "finalizers").is_empty()
}

pub(super) fn validate_finalizers(tree: &Tree, errors: &mut FieldErrors) {
    let spec = FieldPath::root("spec");
    let path = spec.child("finalizers");
    for finalizer in texts(at(tree, &["spec"]), "finalizers") {
        for fault in label_key_faults(&finalizer) {
            errors.push(path.invalid(finalizer.as_str(), &fault));
        }
        if !finalizer.contains('/') && !STANDARD.contains(&finalizer.as_str()) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(path.invalid(finalizer.as_str(), detail));
        }
    }
}

/// The phase follows from whether deletion has begun; the upper case is that of Kubernetes.
pub(super) fn validate_status(tree: &Tree, errors: &mut FieldErrors) {
    let phase = text(at(tree, &["status"]), "phase");
    let (want, detail) = match api_object::is_terminating(tree) {
        false => ("Active", "may only be 'Active' if `deletionTimestamp` is empty"),
        true => ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"),
    };
    if phase != want {
        errors.push(FieldPath::root("status").child("Phase").invalid(phase, detail));
    }
}
