//! Restricts what a node may write, as the admission plugin NodeRestriction of Kubernetes does.
//!
//! An authorizer knows the name of the object that a node writes; this plugin knows its content. Both together
//! keep a node to its own Node, its own pods, and what these pods refer to. The plugin decides about users
//! `system:node:NAME` in the group `system:nodes`, whatever chain of authorizers allowed the request.
//!
//! The rules run three times. First they see the stored object alone, so that a node learns nothing about an object
//! that it may not write. Then they see what the client sent, before the server resets the fields that the path
//! of the request cannot change and before any hook. At last they see the object after the mutating hooks, as it
//! will be stored. Pods, nodes and the other objects that a rule needs are read from the store, never from a
//! snapshot that may be older.
//!
//! Three rules are stricter than those of Kubernetes: a node sets no owner references when it creates its Node,
//! updates only ResourceSlices of its own, and binds no pods through `bindings` either.

mod node_label_restriction;
mod node_pod_rules;
mod node_restriction_lookups;
mod node_token_audiences;
mod node_token_requests;
mod object_references_of_pod;
mod own_node_rules;
mod pod_certificate_requests;
#[cfg(test)]
mod tests;
mod value_equality;
mod volume_claim_status_rules;

use admission::Operation;
use api_object::{GroupResource, Status, Tree};
use authz_node::NodeIdentity;
use serde_json::Value;

use self::node_restriction_lookups::NodeRestrictionLookups;
use super::admission_plugins::AdmissionPlugin;
use crate::rest::RequestContext;

/// The namespace of the leases of nodes.
const NODE_LEASES: &str = "kube-node-lease";

/// A write of a node: the parts of the request that the rules read.
#[derive(Debug, Clone, Copy)]
struct NodeWrite<'a> {
    /// The name of the node that writes.
    node_name: &'a str,
    operation: Operation,
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    /// Empty for the resource itself.
    subresource: &'a str,
    /// Empty for cluster-scoped resources.
    namespace: &'a str,
    /// The name of the object that is written.
    name: &'a str,
    /// The object that the request carries: the next state, or for example an Eviction. `None` for a deletion.
    object: Option<&'a Tree>,
    /// The stored object; `None` for a create.
    old_object: Option<&'a Tree>,
}

/// Why a write of a node is refused.
#[derive(Debug)]
enum NodeWriteRefusal {
    /// 403 with this reason.
    Forbidden(String),
    /// Any other status: an object that the rule needs does not exist, or the server failed to read it.
    Status(Status),
}

impl From<Status> for NodeWriteRefusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// The outcome of a rule.
type NodeRuleResult = Result<(), NodeWriteRefusal>;

fn forbid_node_write<T>(why: impl Into<String>) -> Result<T, NodeWriteRefusal> {
    Err(NodeWriteRefusal::Forbidden(why.into()))
}

/// The proof that the rules of NodeRestriction ran on an object. Only [`check_node_restriction`] makes it.
#[derive(Clone, Copy)]
pub(super) struct NodeRestrictionProof(());

/// Checks a write of a node; writes of other users pass. `object` is the object that the request carries, or
/// `None` for a deletion, and `old` the stored object that the write changes or deletes.
///
/// # Errors
/// 403 if a node may not write this, 404 if an object that the rule reads does not exist; 429, 500, 503 or 504 if
/// the server failed to read or to authorize.
pub(super) async fn check_node_restriction(
    ctx: &RequestContext<'_>,
    operation: Operation,
    object: Option<&Tree>,
    old: Option<&Tree>,
) -> Result<NodeRestrictionProof, Status> {
    let proof = NodeRestrictionProof(());
    let user = ctx.authorization_proof.user();
    let identity = NodeIdentity::from_user(Some(user));
    let is_restricted = identity != NodeIdentity::NotANode
        && ctx.server.admission_plugins.is_plugin_enabled(AdmissionPlugin::NodeRestriction)
        && !ctx.resource.is_custom_resource();
    if !is_restricted {
        return Ok(proof);
    }
    let subresource = ctx.subresource.unwrap_or_default();
    // A create names its object in the body, unless it creates a subresource of the object in the path.
    let name = match (operation, object) {
        (Operation::Create, Some(object)) if subresource.is_empty() => api_object::name(object),
        _ => ctx.name,
    };
    let NodeIdentity::Node(node_name) = identity else {
        let user = go_compat::quote(&user.name);
        let refusal =
            NodeWriteRefusal::Forbidden(format!("could not determine node from user {user}"));
        return Err(node_write_refusal_status(ctx, name, object, refusal));
    };
    let write = NodeWrite {
        node_name,
        operation,
        group: &ctx.resource.group,
        version: &ctx.resource.version,
        resource: &ctx.resource.plural,
        subresource,
        namespace: ctx.namespace.unwrap_or_default(),
        name,
        object,
        old_object: old,
    };
    match check_node_write(&write, ctx).await {
        Ok(()) => Ok(proof),
        Err(refusal) => Err(node_write_refusal_status(ctx, name, object, refusal)),
    }
}

/// Checks that a node may change or delete the stored object at all, before the server applies a patch or compares
/// preconditions. The answers to both show parts of the object, which the node might not be allowed to read.
///
/// An update that changes nothing keeps every rule about the content, so only the rules about the target can refuse
/// it.
///
/// # Errors
/// As [`check_node_restriction`].
pub(crate) async fn check_target_of_node_write(
    ctx: &RequestContext<'_>,
    operation: Operation,
    stored: &Tree,
) -> Result<(), Status> {
    let object = (operation != Operation::Delete).then_some(stored);
    check_node_restriction(ctx, operation, object, Some(stored)).await.map(drop)
}

/// Checks an update as the client sent it, before the server resets the fields that the path of the request
/// cannot change. Kubernetes refuses a request of a node that tries to change them.
///
/// # Errors
/// As [`check_node_restriction`].
pub(crate) async fn check_object_sent_by_node(
    ctx: &RequestContext<'_>,
    sent: &Tree,
    old: &Tree,
) -> Result<(), Status> {
    check_node_restriction(ctx, Operation::Update, Some(sent), Some(old)).await.map(drop)
}

/// Checks that a node may evict or otherwise act on a pod as it is stored now. An action reads the pod again when
/// another writer changed it, and the pod may then be another one.
///
/// # Errors
/// 403 if the pod is bound to another node.
pub(crate) fn check_pod_is_on_own_node(ctx: &RequestContext<'_>, pod: &Tree) -> Result<(), Status> {
    let identity = NodeIdentity::from_user(Some(ctx.authorization_proof.user()));
    let is_enabled =
        ctx.server.admission_plugins.is_plugin_enabled(AdmissionPlugin::NodeRestriction);
    match identity {
        NodeIdentity::Node(node_name) if is_enabled => {
            node_pod_rules::check_node_may_evict_pod(node_name, pod)
                .map_err(|refusal| node_write_refusal_status(ctx, ctx.name, None, refusal))
        }
        NodeIdentity::Node(_) | NodeIdentity::Unnamed | NodeIdentity::NotANode => Ok(()),
    }
}

fn node_write_refusal_status(
    ctx: &RequestContext<'_>,
    name: &str,
    object: Option<&Tree>,
    refusal: NodeWriteRefusal,
) -> Status {
    let why = match refusal {
        NodeWriteRefusal::Status(status) => return status,
        NodeWriteRefusal::Forbidden(why) => why,
    };
    let prefix = object.map_or("", |object| {
        api_object::string_member(api_object::metadata(object), "generateName")
    });
    let shown = [name, prefix, "Unknown"].into_iter().find(|own| !own.is_empty());
    Status::forbidden(&ctx.resource.group_resource(), shown.unwrap_or_default(), &why)
}

/// Applies the rules of the resource that is written.
async fn check_node_write(
    write: &NodeWrite<'_>,
    lookups: &impl NodeRestrictionLookups,
) -> NodeRuleResult {
    match (write.group, write.resource) {
        ("", "pods") => match write.subresource {
            "" => node_pod_rules::check_pod_write_by_node(write, lookups).await,
            "status" => node_pod_rules::check_pod_status_by_node(write),
            "eviction" => node_pod_rules::check_eviction_by_node(write, lookups).await,
            other => node_pod_rules::refuse_pod_subresource(other),
        },
        ("", "bindings") => node_pod_rules::refuse_pod_subresource("binding"),
        ("", "nodes") => own_node_rules::check_own_node_write(write),
        ("", "persistentvolumeclaims") => match write.subresource {
            "status" => volume_claim_status_rules::check_volume_claim_status_by_node(write),
            _ => forbid_node_write("may only update PVC status"),
        },
        ("", "serviceaccounts") => {
            node_token_requests::check_token_request_by_node(write, lookups).await
        }
        ("certificates.k8s.io", "podcertificaterequests") => {
            pod_certificate_requests::check_pod_certificate_request(write, lookups).await
        }
        ("certificates.k8s.io", "certificatesigningrequests") => {
            check_node_certificate_request(write)
        }
        ("coordination.k8s.io", "leases") => check_own_lease(write),
        ("storage.k8s.io", "csinodes") => check_own_csi_node(write),
        ("resource.k8s.io", "resourceslices") => check_own_resource_slice(write),
        (_, _) => Ok(()),
    }
}

/// Checks that a node writes only its own Lease, in the namespace `kube-node-lease`.
fn check_own_lease(write: &NodeWrite<'_>) -> NodeRuleResult {
    if write.namespace != NODE_LEASES {
        let namespace = go_compat::quote(NODE_LEASES);
        return forbid_node_write(format!(
            "can only access leases in the {namespace} system namespace"
        ));
    }
    match write.name == write.node_name {
        true => Ok(()),
        false => forbid_node_write(
            "can only access node lease with the same name as the requesting node",
        ),
    }
}

fn check_own_csi_node(write: &NodeWrite<'_>) -> NodeRuleResult {
    match write.name == write.node_name {
        true => Ok(()),
        false => {
            forbid_node_write("can only access CSINode with the same name as the requesting node")
        }
    }
}

/// Checks that a node writes only ResourceSlices of its own devices. The node name in a slice is immutable, so the
/// stored slice decides about updates and deletions.
fn check_own_resource_slice(write: &NodeWrite<'_>) -> NodeRuleResult {
    let verb = match write.operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Connect => return Ok(()),
    };
    let is_own =
        |slice: Option<&Tree>| slice.is_some_and(|own| spec_node_name(own) == write.node_name);
    // The stored slice decides about updates and deletions, and an update must not name another node.
    let is_allowed = match write.operation {
        Operation::Create => is_own(write.object),
        Operation::Update => is_own(write.old_object) && is_own(write.object),
        Operation::Delete | Operation::Connect => is_own(write.old_object),
    };
    match is_allowed {
        true => Ok(()),
        false => forbid_node_write(format!(
            "can only {verb} ResourceSlice with the same NodeName as the requesting node"
        )),
    }
}

/// Checks that a node requests node certificates only for itself.
fn check_node_certificate_request(write: &NodeWrite<'_>) -> NodeRuleResult {
    let (Operation::Create, Some(request)) = (write.operation, write.object) else { return Ok(()) };
    match api_resources::forbidden_node_certificate_reason(request, write.node_name) {
        Some(why) => forbid_node_write(why),
        None => Ok(()),
    }
}

/// The node that an object names in its spec; empty if it names none.
fn spec_node_name(object: &Tree) -> &str {
    spec(object).get("nodeName").and_then(Value::as_str).unwrap_or_default()
}

/// The spec of an object; null if it has none.
fn spec(object: &Tree) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

/// A string member of a value, or the empty string.
fn string_member<'v>(value: &'v Value, member: &str) -> &'v str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list member, or none.
fn items<'v>(value: &'v Value, member: &str) -> &'v [Value] {
    value.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The value of a member that is neither absent nor null.
fn non_null_member<'v>(value: &'v Value, member: &str) -> Option<&'v Value> {
    value.get(member).filter(|own| !own.is_null())
}

/// Reads an object that a rule needs.
///
/// # Errors
/// 404 if it does not exist, or the error of the read.
async fn read_required_object(
    lookups: &impl NodeRestrictionLookups,
    group: &str,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<Tree, NodeWriteRefusal> {
    let found = lookups.find_stored_object(group, resource, namespace, name).await?;
    found.ok_or_else(|| Status::not_found(&GroupResource::new(group, resource), name).into())
}
