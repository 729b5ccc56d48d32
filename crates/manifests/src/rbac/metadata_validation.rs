//! The validation rules of object metadata.

use std::collections::BTreeMap;

use authz_rbac::Metadata;
use field_errors::{
    BadValue, FieldError, FieldErrors, FieldPath, dns1123_label_faults, label_key_faults,
    label_value_faults, path_segment_faults,
};

use super::decode_rbac::Kind;
use super::wire;

/// The maximum total size of all annotations of an object, in bytes.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

pub(super) const METADATA: FieldPath<'static> = FieldPath::root("metadata");

/// Finalizers that exclude each other, in the order in which a message names them.
const EXCLUSIVE_FINALIZERS: [&str; 2] = ["orphan", "foregroundDeletion"];

/// Owner references and finalizers, which control when an object is deleted.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnersAndFinalizers {
    owner_references: Vec<wire::OwnerReference>,
    finalizers: Vec<String>,
}

impl OwnersAndFinalizers {
    pub(super) fn take_from_metadata(metadata: &mut wire::ObjectMeta) -> Self {
        Self {
            owner_references: std::mem::take(&mut metadata.owner_references),
            finalizers: std::mem::take(&mut metadata.finalizers),
        }
    }
}

pub(super) fn validate_metadata(
    kind: Kind,
    metadata: &Metadata,
    ownership: &OwnersAndFinalizers,
    faults: &mut FieldErrors,
) {
    let name = METADATA.child("name");
    if metadata.name.is_empty() {
        faults.push(name.required("name or generateName is required"));
    }
    faults.extend(invalid_value_errors(&name, &metadata.name, path_segment_faults(&metadata.name)));
    validate_namespace(kind, &metadata.namespace, faults);
    validate_labels(&METADATA.child("labels"), &metadata.labels, faults);
    let annotations = METADATA.child("annotations");
    for key in metadata.annotations.keys() {
        faults.extend(invalid_value_errors(
            &annotations,
            key,
            label_key_faults(&key.to_ascii_lowercase()),
        ));
    }
    let n_bytes: usize = metadata.annotations.iter().map(|(k, v)| k.len() + v.len()).sum();
    if n_bytes > ANNOTATIONS_BYTES_MAX {
        faults.push(annotations.too_long(ANNOTATIONS_BYTES_MAX));
    }
    validate_ownership(ownership, faults);
}

fn validate_ownership(ownership: &OwnersAndFinalizers, faults: &mut FieldErrors) {
    let at = METADATA.child("ownerReferences");
    for (idx, owner) in ownership.owner_references.iter().enumerate() {
        let at = at.index(idx);
        let wire::OwnerReference { api_version, kind, name, uid } = owner;
        for (field, value) in
            [("apiVersion", api_version), ("kind", kind), ("name", name), ("uid", uid)]
        {
            if value.is_empty() {
                faults.push(at.child(field).required("must not be empty"));
            }
        }
    }
    let (at, finalizers) = (METADATA.child("finalizers"), &ownership.finalizers);
    for finalizer in finalizers {
        faults.extend(invalid_value_errors(&at, finalizer, label_key_faults(finalizer)));
    }
    if EXCLUSIVE_FINALIZERS.iter().all(|it| finalizers.iter().any(|own| own == it)) {
        let [first, second] = EXCLUSIVE_FINALIZERS;
        let value = BadValue::Json(serde_json::Value::from(finalizers.as_slice()).to_string());
        let detail = format!("finalizer {first} and {second} cannot be both set");
        faults.push(at.invalid(value, &detail));
    }
}

fn validate_namespace(kind: Kind, namespace: &str, faults: &mut FieldErrors) {
    let at = METADATA.child("namespace");
    match (kind.is_namespaced(), namespace) {
        (true, "") => faults.push(at.required("")),
        (true, namespace) => {
            faults.extend(invalid_value_errors(&at, namespace, dns1123_label_faults(namespace)));
        }
        (false, "") => {}
        (false, _) => faults.push(at.forbidden("not allowed on this type")),
    }
}

pub(super) fn validate_labels(
    at: &FieldPath<'_>,
    labels: &BTreeMap<String, String>,
    faults: &mut FieldErrors,
) {
    for (key, value) in labels {
        faults.extend(invalid_value_errors(at, key, label_key_faults(key)));
        faults.extend(invalid_value_errors(at, value, label_value_faults(value)));
    }
}

/// Returns one error for each message about a value.
pub(super) fn invalid_value_errors(
    at: &FieldPath<'_>,
    value: &str,
    messages: Vec<String>,
) -> impl Iterator<Item = FieldError> {
    messages.into_iter().map(move |message| at.invalid(value, &message))
}
