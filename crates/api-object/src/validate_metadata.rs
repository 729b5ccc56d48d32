//! Validates the metadata of objects of all kinds.

use std::collections::HashSet;

use field_errors::{
    FieldErrors, FieldPath, dns1123_label_faults, label_key_faults, label_value_faults,
};
use serde_json::Value;

use crate::group_version::GroupVersion;
use crate::object_tree::{
    Tree, finalizers, integer_member, is_terminating, metadata, string_member,
};

/// Upper bound on the bytes of all annotation keys and values together.
pub const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// The finalizer of an object until its dependents are orphaned.
pub const ORPHAN_FINALIZER: &str = "orphan";
/// The finalizer of an object until its dependents are deleted.
pub const FOREGROUND_FINALIZER: &str = "foregroundDeletion";

/// The finalizer that a Namespace has until the server has deleted its contents.
const KUBERNETES_FINALIZER: &str = "kubernetes";
/// Upper bound on the errors about a second controller.
const CONTROLLER_FAULTS_MAX: usize = 8;

const METADATA: FieldPath<'static> = FieldPath::root("metadata");

/// Members that updates cannot change.
const IMMUTABLE: [&str; 6] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Validates the metadata of an object with [normalized](crate::normalize_metadata) metadata.
///
/// `name_faults` returns the faults of a name, or of a name prefix.
pub fn validate_metadata(
    tree: &Tree,
    is_namespaced: bool,
    name_faults: impl Fn(&str, bool) -> Vec<String>,
) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let metadata = metadata(tree);
    let (name, prefix) = (string_member(metadata, "name"), string_member(metadata, "generateName"));
    if !prefix.is_empty() {
        let path = METADATA.child("generateName");
        name_faults(prefix, true).iter().for_each(|fault| errors.push(path.invalid(prefix, fault)));
    }
    let path = METADATA.child("name");
    if name.is_empty() {
        errors.push(path.required("name or generateName is required"));
    } else {
        name_faults(name, false).iter().for_each(|fault| errors.push(path.invalid(name, fault)));
    }
    validate_namespace(string_member(metadata, "namespace"), is_namespaced, &mut errors);
    let generation = integer_member(metadata, "generation");
    if generation < 0 {
        let path = METADATA.child("generation");
        errors.push(path.invalid(generation, "must be greater than or equal to 0"));
    }
    validate_labels(metadata, &mut errors);
    validate_annotations(metadata, &mut errors);
    validate_owners(metadata, &mut errors);
    validate_finalizers(tree, &mut errors);
    errors
}

/// Validates a change of metadata.
pub fn validate_metadata_update(new: &Tree, old: &Tree) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (metadata, former) = (metadata(new), metadata(old));
    if is_terminating(old) {
        let known: HashSet<&str> = finalizers(old).into_iter().collect();
        let mut added: Vec<&str> = finalizers(new);
        added.retain(|finalizer| !known.contains(finalizer));
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let added: Vec<String> = added.into_iter().map(go_compat::quote).collect();
            errors.push(METADATA.child("finalizers").forbidden(&format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                added.join(", ")
            )));
        }
    }
    if integer_member(metadata, "generation") < integer_member(former, "generation") {
        let path = METADATA.child("generation");
        errors
            .push(path.invalid(integer_member(metadata, "generation"), "must not be decremented"));
    }
    for member in IMMUTABLE {
        let (value, before) = (metadata.get(member), former.get(member));
        if value != before {
            let shown = match value {
                Some(Value::String(text)) => text.as_str().into(),
                Some(other) => field_errors::BadValue::Json(other.to_string()),
                None => field_errors::BadValue::Json("null".to_owned()),
            };
            errors.push(METADATA.child(member).invalid(shown, "field is immutable"));
        }
    }
    errors
}

fn validate_namespace(namespace: &str, is_namespaced: bool, errors: &mut FieldErrors) {
    let path = METADATA.child("namespace");
    match (is_namespaced, namespace) {
        (true, "") => errors.push(path.required("")),
        (true, _) => dns1123_label_faults(namespace)
            .iter()
            .for_each(|fault| errors.push(path.invalid(namespace, fault))),
        (false, "") => {}
        (false, _) => errors.push(path.forbidden("not allowed on this type")),
    }
}

fn string_map_entries<'t>(metadata: &'t Tree, member: &str) -> Vec<(&'t str, &'t str)> {
    let map = metadata.get(member).and_then(Value::as_object);
    let entries = map.into_iter().flatten();
    let mut entries: Vec<(&str, &str)> =
        entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
    entries.sort_unstable();
    entries
}

fn validate_labels(metadata: &Tree, errors: &mut FieldErrors) {
    let path = METADATA.child("labels");
    for (key, value) in string_map_entries(metadata, "labels") {
        label_key_faults(key).iter().for_each(|fault| errors.push(path.invalid(key, fault)));
        label_value_faults(value).iter().for_each(|fault| errors.push(path.invalid(value, fault)));
    }
}

fn validate_annotations(metadata: &Tree, errors: &mut FieldErrors) {
    let path = METADATA.child("annotations");
    let annotations = string_map_entries(metadata, "annotations");
    for (key, _) in &annotations {
        let faults = label_key_faults(&key.to_lowercase());
        faults.iter().for_each(|fault| errors.push(path.invalid(*key, fault)));
    }
    let n_bytes: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if n_bytes > ANNOTATION_BYTES_MAX {
        errors.push(path.too_long(ANNOTATION_BYTES_MAX));
    }
}

fn validate_owners(metadata: &Tree, errors: &mut FieldErrors) {
    let list = METADATA.child("ownerReferences");
    let owners = metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let mut controller: Option<String> = None;
    let mut n_more_controllers = 0_usize;
    for (idx, owner) in owners.filter_map(Value::as_object).enumerate() {
        let path = list.index(idx);
        let (api_version, kind, name) = (
            string_member(owner, "apiVersion"),
            string_member(owner, "kind"),
            string_member(owner, "name"),
        );
        let group_version = GroupVersion::parse_api_version(api_version)
            .filter(|metadata| !metadata.version.is_empty());
        if !api_version.is_empty() && group_version.is_none() {
            let detail = "must be <group>/<version> or <version>";
            errors.push(path.child("apiVersion").invalid(api_version, detail));
        }
        for member in ["apiVersion", "kind", "name", "uid"] {
            if string_member(owner, member).is_empty() {
                errors.push(path.child(member).required("must not be empty"));
            }
        }
        if (api_version, kind) == ("v1", "Event") {
            let shown = field_errors::BadValue::Json(Value::Object(owner.clone()).to_string());
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(path.invalid(shown, detail));
        }
        if owner.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let current = format!("{kind}/{name}");
        match &controller {
            None => controller = Some(current),
            // Each of these errors quotes all owners.
            Some(_) if n_more_controllers >= CONTROLLER_FAULTS_MAX => {}
            Some(first) => {
                n_more_controllers += 1;
                let owners =
                    metadata.get("ownerReferences").map(Value::to_string).unwrap_or_default();
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {current}"
                );
                errors.push(list.invalid(field_errors::BadValue::Json(owners), &detail));
            }
        }
    }
}

/// Checks that each finalizer contains a `/` or is one that Kubernetes itself uses. Most built-in kinds have this rule.
pub fn validate_qualified_finalizers(tree: &Tree) -> FieldErrors {
    let list = METADATA.child("finalizers");
    let mut errors = FieldErrors::new();
    for (idx, finalizer) in finalizers(tree).into_iter().enumerate() {
        let is_standard = [KUBERNETES_FINALIZER, ORPHAN_FINALIZER, FOREGROUND_FINALIZER];
        if !finalizer.contains('/') && !is_standard.contains(&finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(list.index(idx).invalid(finalizer, detail));
        }
    }
    errors
}

fn validate_finalizers(tree: &Tree, errors: &mut FieldErrors) {
    let path = METADATA.child("finalizers");
    let metadata = finalizers(tree);
    for finalizer in &metadata {
        let faults = label_key_faults(finalizer);
        faults.iter().for_each(|fault| errors.push(path.invalid(*finalizer, fault)));
    }
    if metadata.contains(&ORPHAN_FINALIZER) && metadata.contains(&FOREGROUND_FINALIZER) {
        let shown = field_errors::BadValue::Json(Value::from(metadata).to_string());
        let detail =
            format!("finalizer {ORPHAN_FINALIZER} and {FOREGROUND_FINALIZER} cannot be both set");
        errors.push(path.invalid(shown, &detail));
    }
}

#[cfg(test)]
mod tests {
    use field_errors::dns1123_subdomain_faults;
    use serde_json::json;

    use super::*;

    fn tree(metadata: Value) -> Tree {
        let mut tree = Tree::new();
        tree.insert("metadata".to_owned(), metadata);
        tree
    }

    fn errors(metadata: Value) -> Vec<String> {
        let faults = |name: &str, _: bool| dns1123_subdomain_faults(name);
        let errors = validate_metadata(&tree(metadata), true, faults);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rows_of_the_specification() {
        for (row, metadata, want) in [
            (
                "invalid name",
                json!({"name": "A_B", "namespace": "n"}),
                vec!["metadata.name: Invalid"],
            ),
            (
                "invalid prefix",
                json!({"namespace": "n"}),
                vec!["metadata.name: Required value: name or generateName is required"],
            ),
            (
                "invalid labels",
                json!({"name": "a", "namespace": "n", "labels": {"-bad": "x y"}}),
                vec![
                    "metadata.labels: Invalid value: \"-bad\": name part",
                    "metadata.labels: Invalid value: \"x y\": a valid label",
                ],
            ),
            (
                "annotations too long",
                json!({"name": "a", "namespace": "n", "annotations": {"k": "x".repeat(262_144)}}),
                vec!["metadata.annotations: Too long: may not be more than 262144 bytes"],
            ),
            (
                "contradicting finalizers",
                json!({"name": "a", "namespace": "n", "finalizers": ["orphan", "foregroundDeletion"]}),
                vec![
                    "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer",
                ],
            ),
            ("missing namespace", json!({"name": "a"}), vec!["metadata.namespace: Required value"]),
        ] {
            let errors = errors(metadata);
            assert_eq!(errors.len(), want.len(), "{row} {errors:?}");
            for (error, want) in errors.iter().zip(want) {
                assert!(error.starts_with(want), "{row} {error}");
            }
        }
    }

    #[test]
    fn only_one_owner_is_the_controller() {
        let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": true});
        let found = errors(
            json!({"name": "a", "namespace": "n", "ownerReferences": [owner("a"), owner("b")]}),
        );
        assert!(found[0].ends_with("references for Pod/a and Pod/b"), "{found:?}");
        let found = errors(json!({"name": "a", "namespace": "n", "ownerReferences": [{}]}));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn some_members_never_change() {
        let old =
            tree(json!({"name": "a", "uid": "x", "deletionTimestamp": "t", "finalizers": ["a/b"]}));
        let new =
            tree(json!({"name": "a", "uid": "z", "deletionTimestamp": "t", "finalizers": ["c/d"]}));
        let errors = validate_metadata_update(&new, &old);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
                 being deleted, found new finalizers []string{\"c/d\"}",
                "metadata.uid: Invalid value: \"z\": field is immutable",
            ]
        );
        assert!(validate_metadata_update(&old, &old).is_empty());
    }
}
