//! The rules for a node's writes to pods: it creates its mirror pods, and deletes, evicts and updates the status of
//! pods that are bound to it.

use admission::Operation;
use api_object::Tree;
use serde_json::Value;

use super::node_restriction_lookups::NodeRestrictionLookups;
use super::object_references_of_pod::{PodObjectReferenceError, find_object_reference_of_pod};
use super::value_equality::is_same_or_both_empty;
use super::{
    NodeRuleResult, NodeWrite, forbid_node_write, items, read_required_object, spec_node_name,
    string_member,
};

/// The annotation of a mirror pod, which a kubelet creates to show a static pod.
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// The lists in the status of a pod that name resource claims, which the Node authorizer lets the node read, and
/// what messages call them.
const CLAIM_STATUSES: [(&str, &str); 3] = [
    ("resourceClaimStatuses", "resource claim statues"),
    ("extendedResourceClaimStatus", "extended resource claim status"),
    ("nodeAllocatableResourceClaimStatuses", "node allocatable resource claim statuses"),
];

pub(super) async fn check_pod_write_by_node(
    write: &NodeWrite<'_>,
    lookups: &impl NodeRestrictionLookups,
) -> NodeRuleResult {
    let node = go_compat::quote(write.node_name);
    match (write.operation, write.object, write.old_object) {
        (Operation::Create, Some(pod), _) => check_pod_create_by_node(write, pod, lookups).await,
        (Operation::Delete, _, Some(pod)) if spec_node_name(pod) == write.node_name => Ok(()),
        (Operation::Delete, _, _) => forbid_node_write(format!(
            "node {node} can only delete pods with spec.nodeName set to itself"
        )),
        (operation, _, _) => forbid_node_write(format!(
            "unexpected operation {}, node {node} can only create and delete mirror pods",
            go_compat::quote(operation.name())
        )),
    }
}

/// Checks a new pod of a node:
///
/// 1. It is a mirror pod and bound to the node.
/// 2. Its only owner is the Node, and the reference does not block the deletion of the Node.
/// 3. It refers to no other object, because the node could read what a pod on it refers to.
async fn check_pod_create_by_node(
    write: &NodeWrite<'_>,
    pod: &Tree,
    lookups: &impl NodeRestrictionLookups,
) -> NodeRuleResult {
    let (node_name, node) = (write.node_name, go_compat::quote(write.node_name));
    let annotations = api_object::metadata(pod).get("annotations");
    if annotations.and_then(|own| own.get(MIRROR_ANNOTATION)).is_none() {
        let annotation = go_compat::quote(MIRROR_ANNOTATION);
        return forbid_node_write(format!(
            "pod does not have {annotation} annotation, node {node} can only create mirror pods"
        ));
    }
    if spec_node_name(pod) != node_name {
        return forbid_node_write(format!(
            "node {node} can only create pods with spec.nodeName set to itself"
        ));
    }
    let owner = match api_object::owner_references(pod) {
        [owner] => owner,
        [] => {
            return forbid_node_write(format!(
                "node {node} can only create pods with an owner reference set to itself"
            ));
        }
        [_, _, ..] => {
            return forbid_node_write(format!(
                "node {node} can only create pods with a single owner reference set to itself"
            ));
        }
    };
    if (
        string_member(owner, "apiVersion"),
        string_member(owner, "kind"),
        string_member(owner, "name"),
    ) != ("v1", "Node", node_name)
    {
        return forbid_node_write(format!(
            "node {node} can only create pods with an owner reference set to itself"
        ));
    }
    if owner.get("controller") != Some(&Value::Bool(true)) {
        return forbid_node_write(format!(
            "node {node} can only create pods with a controller owner reference set to itself"
        ));
    }
    if !matches!(owner.get("blockOwnerDeletion"), None | Some(Value::Null | Value::Bool(false))) {
        return forbid_node_write(format!(
            "node {node} must not set blockOwnerDeletion on an owner reference"
        ));
    }
    let stored = read_required_object(lookups, "", "nodes", "", node_name).await?;
    let (wanted, uid) = (string_member(owner, "uid"), api_object::uid(&stored));
    if wanted != uid {
        return forbid_node_write(format!(
            "node {node_name} UID mismatch: expected {wanted} got {uid}"
        ));
    }
    match find_object_reference_of_pod(pod) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => {
            forbid_node_write(format!("node {node} cannot create pods that reference {what}"))
        }
        Err(
            error @ (PodObjectReferenceError::UnknownVolume(_)
            | PodObjectReferenceError::UnknownSource(_)),
        ) => forbid_node_write(format!("error checking mirror pod for API references: {error}")),
    }
}

/// Checks that a node writes only the status of its own pods. It may not change labels, because services and
/// policies select pods by labels, and may not add resource claims.
pub(super) fn check_pod_status_by_node(write: &NodeWrite<'_>) -> NodeRuleResult {
    let node = go_compat::quote(write.node_name);
    let (Operation::Update, Some(pod), Some(old)) =
        (write.operation, write.object, write.old_object)
    else {
        let operation = go_compat::quote(write.operation.name());
        return forbid_node_write(format!("unexpected operation {operation}"));
    };
    if spec_node_name(old) != write.node_name {
        return forbid_node_write(format!(
            "node {node} can only update pod status for pods with spec.nodeName set to itself"
        ));
    }
    let labels = |tree| api_object::metadata(tree).get("labels");
    if !is_same_labels(labels(pod), labels(old)) {
        return forbid_node_write(format!("node {node} cannot update labels through pod status"));
    }
    for (member, what) in CLAIM_STATUSES {
        let value = |tree: &'_ Tree| tree.get("status").and_then(|own| own.get(member)).cloned();
        if !is_same_or_both_empty(value(pod).as_ref(), value(old).as_ref()) {
            return forbid_node_write(format!("node {node} cannot update {what}"));
        }
    }
    Ok(())
}

/// Whether two sets of labels are the same. A label with an empty value is a label.
fn is_same_labels(left: Option<&Value>, right: Option<&Value>) -> bool {
    let labels = |own: Option<&Value>| match own {
        None | Some(Value::Null) => Tree::new(),
        Some(Value::Object(own)) => own.clone(),
        Some(_) => Tree::from_iter([(String::new(), Value::Bool(true))]),
    };
    labels(left) == labels(right)
}

/// Checks that a node evicts only pods that are bound to it.
pub(super) async fn check_eviction_by_node(
    write: &NodeWrite<'_>,
    lookups: &impl NodeRestrictionLookups,
) -> NodeRuleResult {
    let (Operation::Create, Some(eviction)) = (write.operation, write.object) else {
        return forbid_node_write(format!("unexpected operation {}", write.operation.name()));
    };
    let name = match (write.name, api_object::name(eviction)) {
        ("", "") => return forbid_node_write("could not determine pod from request data"),
        ("", name) | (name, _) => name,
    };
    let pod = read_required_object(lookups, "", "pods", write.namespace, name).await?;
    check_node_may_evict_pod(write.node_name, &pod)
}

/// Checks that a pod is one that the node may evict.
pub(super) fn check_node_may_evict_pod(node_name: &str, pod: &Tree) -> NodeRuleResult {
    match spec_node_name(pod) == node_name {
        true => Ok(()),
        false => forbid_node_write(format!(
            "node {node_name} can only evict pods with spec.nodeName set to itself"
        )),
    }
}

pub(super) fn refuse_pod_subresource(subresource: &str) -> NodeRuleResult {
    let subresource = go_compat::quote(subresource);
    forbid_node_write(format!(
        "unexpected pod subresource {subresource}, only 'status' and 'eviction' are allowed"
    ))
}

/// Whether a stored pod is a mirror pod.
pub(super) fn is_mirror_pod(pod: &Tree) -> bool {
    api_object::metadata(pod)
        .get("annotations")
        .is_some_and(|own| own.get(MIRROR_ANNOTATION).is_some())
}

/// The volumes of a pod.
pub(super) fn pod_volumes(pod: &Tree) -> &[Value] {
    items(super::spec(pod), "volumes")
}

/// The projected sources of a volume.
pub(super) fn projected_sources(volume: &Value) -> &[Value] {
    volume.get("projected").map_or(&[], |own| items(own, "sources"))
}
