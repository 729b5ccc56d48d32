//! Validates updates of pods. The spec of a pod is immutable except for images and a few fields that
//! scheduling needs: kubelets rely on it, and the node authorizer derives permissions from it.

use std::collections::HashSet;

use api_object::Tree;
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::Value;

use super::semantic_equality::remove_empty_members;
use crate::json_members::{
    integer_member, is_member_set, list_member, member_entries, string_member, value_at_path,
};

/// The annotation of a mirror pod, with which a kubelet represents a static pod.
pub(super) const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// The updatable fields in the words of Kubernetes.
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
    `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Reports the faults of an update of a pod.
pub(super) fn validate(new: &Tree, old: &Tree, errors: &mut FieldErrors) {
    validate_mirror_annotation_unchanged(new, old, errors);
    let (new, old) = (value_at_path(new, &["spec"]), value_at_path(old, &["spec"]));
    let path = FieldPath::root("spec");
    for list in ["containers", "initContainers"] {
        if list_member(new, list).len() != list_member(old, list).len() {
            let detail = "pod updates may not add or remove containers";
            return errors.push(path.child(list).forbidden(detail));
        }
    }
    if !validate_active_deadline_change(new, old, errors) {
        return;
    }
    validate_tolerations_change(new, old, errors);
    validate_scheduling_gates_change(new, old, errors);
    let mut rest = new.clone();
    restore_updatable_fields(&mut rest, old);
    if !list_member(old, "schedulingGates").is_empty() {
        validate_gated_pod_change(&mut rest, old, errors);
    }
    let changed = changed_members(&rest, old);
    if !changed.is_empty() {
        let changed = changed.join("`, `spec.");
        let detail = format!(
            "pod updates may not change fields other than {UPDATABLE}\nchanged: `spec.{changed}`"
        );
        errors.push(path.forbidden(&detail));
    }
}

/// The mirror pod annotation is immutable: the node authorizer gives a node no permission for the objects
/// that a mirror pod names.
pub(super) fn validate_mirror_annotation_unchanged(
    new: &Tree,
    old: &Tree,
    errors: &mut FieldErrors,
) {
    let annotation =
        |tree| value_at_path(tree, &["metadata", "annotations"]).get(MIRROR_ANNOTATION).cloned();
    let detail = match (annotation(new), annotation(old)) {
        (new, old) if new == old => return,
        (_, None) => "may not add mirror pod annotation",
        (_, Some(_)) => "may not remove or update mirror pod annotation",
    };
    let metadata = FieldPath::root("metadata");
    errors.push(metadata.child("annotations").key(MIRROR_ANNOTATION).forbidden(detail));
}

/// Validates the deadline. Reports whether the validation of other fields should continue.
fn validate_active_deadline_change(new: &Value, old: &Value, errors: &mut FieldErrors) -> bool {
    let spec = FieldPath::root("spec");
    let path = spec.child("activeDeadlineSeconds");
    let seconds = |spec: &Value| spec.get("activeDeadlineSeconds").and_then(Value::as_i64);
    let (value, detail) = match (seconds(new), seconds(old)) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            (new.into(), "must be between 0 and 2147483647, inclusive")
        }
        (Some(new), Some(old)) if old < new => {
            (new.into(), "must be less than or equal to previous value")
        }
        (None, Some(_)) => {
            let null = BadValue::Json("null".to_owned());
            (null, "must not update from a positive integer to nil value")
        }
        (_, _) => return true,
    };
    errors.push(path.invalid(value, detail));
    seconds(new).is_none()
}

fn validate_tolerations_change(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let timeless = |toleration: &Value| {
        let mut toleration = toleration.clone();
        copy_or_remove_member(&mut toleration, "tolerationSeconds", None);
        remove_empty_members(&toleration)
    };
    let kept: HashSet<_> = list_member(new, "tolerations").iter().map(timeless).collect();
    if list_member(old, "tolerations").iter().any(|own| !kept.contains(&timeless(own))) {
        let detail = "existing toleration cannot be modified except its tolerationSeconds";
        errors.push(FieldPath::root("spec").child("tolerations").forbidden(detail));
    }
}

fn validate_scheduling_gates_change(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let former: HashSet<&str> = list_member(old, "schedulingGates")
        .iter()
        .map(|gate| string_member(gate, "name"))
        .collect();
    for (idx, gate) in list_member(new, "schedulingGates").iter().enumerate() {
        let name = string_member(gate, "name");
        if !former.contains(name) {
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            let spec = FieldPath::root("spec");
            let path = spec.child("schedulingGates");
            errors.push(path.index(idx).child("name").forbidden(&detail));
        }
    }
}

/// Resets the fields whose changes are allowed or validated elsewhere.
fn restore_updatable_fields(new: &mut Value, old: &Value) {
    for list in ["containers", "initContainers"] {
        let containers = new.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, former) in containers.zip(list_member(old, list)) {
            copy_or_remove_member(container, "image", former.get("image"));
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        copy_or_remove_member(new, key, old.get(key));
    }
    let grace = "terminationGracePeriodSeconds";
    if integer_member(old, grace) < 0 && integer_member(new, grace) == 1 {
        copy_or_remove_member(new, grace, old.get(grace));
    }
}

/// Validates the node selector and the node affinity of a pod with scheduling gates, which may only become
/// stricter, and resets the allowed changes.
fn validate_gated_pod_change(new: &mut Value, old: &Value, errors: &mut FieldErrors) {
    let spec = FieldPath::root("spec");
    let selector = |spec| value_at_path(spec, &["nodeSelector"]);
    if member_entries(old, "nodeSelector").any(|(key, value)| selector(new).get(key) != Some(value))
    {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(spec.child("nodeSelector").invalid(bad_json_value(selector(new)), detail));
    }
    copy_or_remove_member(new, "nodeSelector", old.get("nodeSelector"));
    let (affinity, required) = ("affinity", "requiredDuringSchedulingIgnoredDuringExecution");
    let terms = |spec| {
        list_member(value_at_path(spec, &[affinity, "nodeAffinity", required]), "nodeSelectorTerms")
    };
    let (wanted, former) = (terms(new), terms(old));
    let path = spec.child(affinity);
    let path = path.child("nodeAffinity");
    let path = path.child(required);
    let path = path.child("nodeSelectorTerms");
    if !former.is_empty() && former.len() != wanted.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(path.invalid(bad_json_value(&wanted.into()), detail));
    } else {
        for (idx, (term, own)) in wanted.iter().zip(former).enumerate() {
            if !has_only_additions(term, own) {
                let detail = "only additions are allowed (no mutations or deletions)";
                errors.push(path.index(idx).invalid(bad_json_value(term), detail));
            }
        }
    }
    let node_affinity = value_at_path(old, &[affinity, "nodeAffinity"]);
    let node_affinity = Some(node_affinity).filter(|own| !own.is_null()).cloned();
    if !is_member_set(new, affinity) {
        copy_or_remove_member(new, affinity, Some(&Value::Object(Tree::new())));
    }
    if let Some(own) = new.get_mut(affinity) {
        copy_or_remove_member(own, "nodeAffinity", node_affinity.as_ref());
    }
}

fn has_only_additions(new: &Value, old: &Value) -> bool {
    let lists = ["matchExpressions", "matchFields"];
    if lists.iter().all(|list| list_member(old, list).is_empty()) {
        return lists.iter().all(|list| list_member(new, list).is_empty());
    }
    lists.iter().all(|list| list_member(new, list).starts_with(list_member(old, list)))
}

/// The names of the members that differ; absent and empty members are equal.
fn changed_members<'v>(new: &'v Value, old: &'v Value) -> Vec<&'v str> {
    let members = |spec: &'v Value| spec.as_object().into_iter().flat_map(Tree::keys);
    let mut names: Vec<&str> = members(new).chain(members(old)).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let (new, old) = (remove_empty_members(new), remove_empty_members(old));
    names.retain(|name| new.get(name) != old.get(name));
    names
}

/// Sets a member to a copy of the given value, or removes it.
fn copy_or_remove_member(value: &mut Value, key: &str, member: Option<&Value>) {
    let Some(members) = value.as_object_mut() else { return };
    match member {
        Some(member) => drop(members.insert(key.to_owned(), member.clone())),
        None => drop(members.shift_remove(key)),
    }
}

fn bad_json_value(value: &Value) -> BadValue {
    BadValue::Json(value.to_string())
}
