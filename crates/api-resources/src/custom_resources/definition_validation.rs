//! Validates new and updated CustomResourceDefinitions.

mod definition_name_validation;
mod definition_version_validation;

use std::collections::HashSet;

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath, dns1123_subdomain_faults};
use serde_json::Value;

use crate::json_members::{
    bool_member, list_member, string_list_member, string_member, value_at_path,
};

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];
/// The supported conversion strategies. Objects of different versions differ only in `apiVersion`.
const STRATEGIES: [&str; 1] = ["None"];
const APPROVAL: &str = "api-approved.kubernetes.io";
const APPROVAL_SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

pub(crate) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    let spec = value_at_path(new, &["spec"]);
    validate_definition_object_name(new, spec, errors);
    validate_definition_spec(spec, errors);
    if let Some(old) = old {
        validate_definition_immutable_fields(spec, old, errors);
    }
    validate_stored_versions(new, spec, errors);
    validate_api_approval_annotation(new, spec, old, errors);
}

fn validate_definition_object_name(tree: &Tree, spec: &Value, errors: &mut FieldErrors) {
    let name = api_object::name(tree);
    let want = format!(
        "{}.{}",
        string_member(value_at_path(spec, &["names"]), "plural"),
        string_member(spec, "group")
    );
    if name != want {
        let metadata = FieldPath::root("metadata");
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(metadata.child("name").invalid(name, detail));
    }
}

fn validate_definition_spec(spec: &Value, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    let (group, at_group) = (string_member(spec, "group"), path.child("group"));
    let faults = dns1123_subdomain_faults(group);
    if group.is_empty() {
        errors.push(at_group.required(""));
    } else if !faults.is_empty() {
        errors.push(at_group.invalid(group, &faults.join(",")));
    } else if !group.contains('.') {
        errors.push(at_group.invalid(group, "should be a domain with at least one dot"));
    }
    validate_supported_value(&path.child("scope"), string_member(spec, "scope"), &SCOPES, errors);
    definition_version_validation::validate_definition_versions(spec, errors);
    definition_name_validation::validate_definition_names(value_at_path(spec, &["names"]), errors);
    if bool_member(spec, "preserveUnknownFields") {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(path.child("preserveUnknownFields").invalid(true, detail));
    }
    let conversion = path.child("conversion");
    let strategy = string_member(value_at_path(spec, &["conversion"]), "strategy");
    validate_supported_value(&conversion.child("strategy"), strategy, &STRATEGIES, errors);
}

/// Validates a required value of a closed set.
fn validate_supported_value(
    path: &FieldPath<'_>,
    value: &str,
    supported: &[&str],
    errors: &mut FieldErrors,
) {
    if value.is_empty() {
        errors.push(path.required(""));
    } else if !supported.contains(&value) {
        errors.push(path.not_supported(value, supported));
    }
}

/// Group and plural name are immutable, because the keys of objects depend on them. Scope and kind are
/// immutable once the definition is established, because objects may exist then.
fn validate_definition_immutable_fields(spec: &Value, old: &Tree, errors: &mut FieldErrors) {
    let conditions = list_member(value_at_path(old, &["status"]), "conditions").iter();
    let mut established = conditions.filter(|it| string_member(*it, "type") == "Established");
    let is_established = established.any(|it| string_member(it, "status") == "True");
    let old = value_at_path(old, &["spec"]);
    let root = FieldPath::root("spec");
    let names = root.child("names");
    let mut unchanged = |path: FieldPath<'_>, new: &str, old: &str| {
        if new != old {
            errors.push(path.invalid(new, "field is immutable"));
        }
    };
    let name = |spec, key| string_member(value_at_path(spec, &["names"]), key);
    if is_established {
        unchanged(root.child("scope"), string_member(spec, "scope"), string_member(old, "scope"));
        unchanged(names.child("kind"), name(spec, "kind"), name(old, "kind"));
    }
    unchanged(root.child("group"), string_member(spec, "group"), string_member(old, "group"));
    unchanged(names.child("plural"), name(spec, "plural"), name(old, "plural"));
}

fn validate_stored_versions(tree: &Tree, spec: &Value, errors: &mut FieldErrors) {
    let status = FieldPath::root("status");
    let path = status.child("storedVersions");
    let stored = string_list_member(value_at_path(tree, &["status"]), "storedVersions");
    let defined: HashSet<&str> = list_member(spec, "versions")
        .iter()
        .map(|version| string_member(version, "name"))
        .collect();
    for (idx, name) in
        stored.iter().enumerate().filter(|(_, name)| !defined.contains(name.as_str()))
    {
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain \
             in spec.versions until a storage migration ensures no data remains persisted in \
             {name} and removes {name} from status.storedVersions"
        );
        errors.push(path.index(idx).invalid(name.as_str(), &detail));
    }
}

/// A definition in a group of the Kubernetes community must have an annotation with its approval.
fn validate_api_approval_annotation(
    tree: &Tree,
    spec: &Value,
    old: Option<&Tree>,
    errors: &mut FieldErrors,
) {
    let group = string_member(spec, "group");
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let annotations = value_at_path(tree, &["metadata", "annotations"]);
    let approval = string_member(annotations, APPROVAL);
    let is_new = old.is_none_or(|old| {
        string_member(value_at_path(old, &["metadata", "annotations"]), APPROVAL) != approval
    });
    if !is_protected || !is_new {
        return;
    }
    let metadata = FieldPath::root("metadata");
    let path = metadata.child("annotations");
    let path = path.key(APPROVAL);
    if approval.is_empty() {
        let detail = format!(
            "protected groups must have approval annotation \"{APPROVAL}\", {APPROVAL_SEE}"
        );
        errors.push(path.required(&detail));
    } else if !approval.starts_with("unapproved") && !is_url(approval) {
        let detail = format!(
            "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a \
             reason starting with \"unapproved\", {APPROVAL_SEE}"
        );
        errors.push(path.invalid(approval, &detail));
    }
}

/// Reports whether a text has a scheme and a host.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !host.is_empty()
}
