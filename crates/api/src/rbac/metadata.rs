//! The rules for the metadata of objects.

use std::collections::BTreeMap;

use authz_rbac::Metadata;
use field::{
    FieldError, FieldErrors, FieldPath, dns1123_label_faults, label_key_faults, label_value_faults,
    path_segment_faults,
};

use super::decode::Kind;

/// The most bytes that all annotations of an object take together.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

pub(super) const METADATA: FieldPath<'static> = FieldPath::root("metadata");

pub(super) fn validate_metadata(kind: Kind, metadata: &Metadata, faults: &mut FieldErrors) {
    let name = METADATA.child("name");
    if metadata.name.is_empty() {
        faults.push(name.required("name or generateName is required"));
    }
    faults.extend(each(&name, &metadata.name, path_segment_faults(&metadata.name)));
    validate_namespace(kind, &metadata.namespace, faults);
    validate_labels(&METADATA.child("labels"), &metadata.labels, faults);
    let annotations = METADATA.child("annotations");
    for key in metadata.annotations.keys() {
        faults.extend(each(&annotations, key, label_key_faults(&key.to_ascii_lowercase())));
    }
    let n_bytes: usize = metadata.annotations.iter().map(|(k, v)| k.len() + v.len()).sum();
    if n_bytes > ANNOTATIONS_BYTES_MAX {
        faults.push(annotations.too_long(ANNOTATIONS_BYTES_MAX));
    }
}

fn validate_namespace(kind: Kind, namespace: &str, faults: &mut FieldErrors) {
    let at = METADATA.child("namespace");
    match (kind.is_namespaced(), namespace) {
        (true, "") => faults.push(at.required("")),
        (true, namespace) => {
            faults.extend(each(&at, namespace, dns1123_label_faults(namespace)));
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
        faults.extend(each(at, key, label_key_faults(key)));
        faults.extend(each(at, value, label_value_faults(value)));
    }
}

/// One fault for each message about a value.
pub(super) fn each(
    at: &FieldPath<'_>,
    value: &str,
    messages: Vec<String>,
) -> impl Iterator<Item = FieldError> {
    messages.into_iter().map(move |message| at.invalid(value, &message))
}
