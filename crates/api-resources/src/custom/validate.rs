//! Validates CustomResourceDefinitions.

mod names;
mod version;

use std::collections::HashSet;

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath, dns1123_subdomain_faults};
use serde_json::Value;

use crate::tree::{at, flag, items, text, texts};

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];
/// Objects of several versions differ only in the name of the version, so far.
const STRATEGIES: [&str; 1] = ["None"];
const APPROVAL: &str = "api-approved.kubernetes.io";
const APPROVAL_SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

pub(crate) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    let spec = at(new, &["spec"]);
    validate_object_name(new, spec, errors);
    validate_spec(spec, errors);
    if let Some(old) = old {
        validate_unchanged(spec, old, errors);
    }
    validate_stored_versions(new, spec, errors);
    validate_approval(new, spec, old, errors);
}

fn validate_object_name(tree: &Tree, spec: &Value, errors: &mut FieldErrors) {
    let name = api_object::name(tree);
    let want = format!("{}.{}", text(at(spec, &["names"]), "plural"), text(spec, "group"));
    if name != want {
        let metadata = FieldPath::root("metadata");
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(metadata.child("name").invalid(name, detail));
    }
}

fn validate_spec(spec: &Value, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    let (group, at_group) = (text(spec, "group"), path.child("group"));
    let faults = dns1123_subdomain_faults(group);
    if group.is_empty() {
        errors.push(at_group.required(""));
    } else if !faults.is_empty() {
        errors.push(at_group.invalid(group, &faults.join(",")));
    } else if !group.contains('.') {
        errors.push(at_group.invalid(group, "should be a domain with at least one dot"));
    }
    one_of(&path.child("scope"), text(spec, "scope"), &SCOPES, errors);
    version::validate_versions(spec, errors);
    names::validate_names(at(spec, &["names"]), errors);
    if flag(spec, "preserveUnknownFields") {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(path.child("preserveUnknownFields").invalid(true, detail));
    }
    let conversion = path.child("conversion");
    let strategy = text(at(spec, &["conversion"]), "strategy");
    one_of(&conversion.child("strategy"), strategy, &STRATEGIES, errors);
}

/// A value of a closed set that must be given.
fn one_of(path: &FieldPath<'_>, value: &str, supported: &[&str], errors: &mut FieldErrors) {
    if value.is_empty() {
        errors.push(path.required(""));
    } else if !supported.contains(&value) {
        errors.push(path.not_supported(value, supported));
    }
}

/// The key of objects in the store depends on group and plural; what they are, on scope and kind,
/// once there may be some.
fn validate_unchanged(spec: &Value, old: &Tree, errors: &mut FieldErrors) {
    let conditions = items(at(old, &["status"]), "conditions").iter();
    let mut established = conditions.filter(|it| text(*it, "type") == "Established");
    let is_established = established.any(|it| text(it, "status") == "True");
    let old = at(old, &["spec"]);
    let root = FieldPath::root("spec");
    let names = root.child("names");
    let mut unchanged = |path: FieldPath<'_>, new: &str, old: &str| {
        if new != old {
            errors.push(path.invalid(new, "field is immutable"));
        }
    };
    let name = |spec, key| text(at(spec, &["names"]), key);
    if is_established {
        unchanged(root.child("scope"), text(spec, "scope"), text(old, "scope"));
        unchanged(names.child("kind"), name(spec, "kind"), name(old, "kind"));
    }
    unchanged(root.child("group"), text(spec, "group"), text(old, "group"));
    unchanged(names.child("plural"), name(spec, "plural"), name(old, "plural"));
}

fn validate_stored_versions(tree: &Tree, spec: &Value, errors: &mut FieldErrors) {
    let status = FieldPath::root("status");
    let path = status.child("storedVersions");
    let stored = texts(at(tree, &["status"]), "storedVersions");
    let defined: HashSet<&str> =
        items(spec, "versions").iter().map(|version| text(version, "name")).collect();
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

/// Groups of the Kubernetes community are theirs: who uses one says by whose leave.
fn validate_approval(tree: &Tree, spec: &Value, old: Option<&Tree>, errors: &mut FieldErrors) {
    let group = text(spec, "group");
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let annotations = at(tree, &["metadata", "annotations"]);
    let approval = text(annotations, APPROVAL);
    let is_new =
        old.is_none_or(|old| text(at(old, &["metadata", "annotations"]), APPROVAL) != approval);
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

/// Has a scheme and a host.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !host.is_empty()
}
