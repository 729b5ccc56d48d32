//! What a node may write, as in the admission plugin NodeRestriction of Kubernetes.
//!
//! An authorizer knows the name of the object that a node writes; this plugin knows its content. Both together
//! keep a node to its own Node, its own pods, and what these pods refer to. The plugin decides about users
//! `system:node:NAME` in the group `system:nodes`, whatever chain of authorizers allowed the request.
//!
//! The rules run twice. First they see what the client sent, before the server resets the fields that the path
//! of the request can not change and before any hook. Then they see the object after the mutating hooks, as it
//! will be stored. Pods, nodes and the other objects that a rule needs are read from the store, never from a
//! snapshot that may be older.
//!
//! Three rules are stricter than those of Kubernetes: a node sets no owner references when it creates its Node,
//! updates only ResourceSlices of its own, and binds no pods through `bindings` either.

mod audiences;
mod node_labels;
mod node_lookups;
mod own_node;
mod pod_certificates;
mod pod_references;
mod pods;
mod same_value;
#[cfg(test)]
mod tests;
mod token_requests;
mod volume_claims;

use admission::Operation;
use api_object::{GroupResource, Status, Tree};
use authz_node::NodeIdentity;
use serde_json::Value;

use self::node_lookups::NodeLookups;
use super::plugins::AdmissionPlugin;
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
    old: Option<&'a Tree>,
}

/// Why a write of a node is refused.
#[derive(Debug)]
enum NodeRefusal {
    /// 403 with this reason.
    Forbidden(String),
    /// Any other status: an object that the rule needs does not exist, or the server failed to read it.
    Status(Status),
}

impl From<Status> for NodeRefusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// The outcome of a rule.
type RuleResult = Result<(), NodeRefusal>;

fn forbid<T>(why: impl Into<String>) -> Result<T, NodeRefusal> {
    Err(NodeRefusal::Forbidden(why.into()))
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
    let user = ctx.authorized.user();
    let identity = NodeIdentity::from_user(Some(user));
    let is_restricted = identity != NodeIdentity::NotANode
        && ctx.server.admission_plugins.is_enabled(AdmissionPlugin::NodeRestriction)
        && !ctx.resource.is_custom();
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
        let refusal = NodeRefusal::Forbidden(format!("could not determine node from user {user}"));
        return Err(into_status(ctx, name, object, refusal));
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
        old,
    };
    match check_write(&write, ctx).await {
        Ok(()) => Ok(proof),
        Err(refusal) => Err(into_status(ctx, name, object, refusal)),
    }
}

/// Checks an update as the client sent it, before the server resets the fields that the path of the request can
/// not change. Kubernetes refuses a request of a node that tries to change them.
///
/// # Errors
/// As [`check_node_restriction`].
pub(crate) async fn check_sent_object(
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
    let identity = NodeIdentity::from_user(Some(ctx.authorized.user()));
    let is_enabled = ctx.server.admission_plugins.is_enabled(AdmissionPlugin::NodeRestriction);
    match identity {
        NodeIdentity::Node(node_name) if is_enabled => pods::check_evicted_pod(node_name, pod)
            .map_err(|refusal| into_status(ctx, ctx.name, None, refusal)),
        NodeIdentity::Node(_) | NodeIdentity::Unnamed | NodeIdentity::NotANode => Ok(()),
    }
}

fn into_status(
    ctx: &RequestContext<'_>,
    name: &str,
    object: Option<&Tree>,
    refusal: NodeRefusal,
) -> Status {
    let why = match refusal {
        NodeRefusal::Status(status) => return status,
        NodeRefusal::Forbidden(why) => why,
    };
    let prefix = object.map_or("", |object| {
        api_object::string_member(api_object::metadata(object), "generateName")
    });
    let shown = [name, prefix, "Unknown"].into_iter().find(|own| !own.is_empty());
    Status::forbidden(&ctx.resource.group_resource(), shown.unwrap_or_default(), &why)
}

/// Applies the rules of the resource that is written.
async fn check_write(write: &NodeWrite<'_>, lookups: &impl NodeLookups) -> RuleResult {
    match (write.group, write.resource) {
        ("", "pods") => match write.subresource {
            "" => pods::check_pod(write, lookups).await,
            "status" => pods::check_status(write),
            "eviction" => pods::check_eviction(write, lookups).await,
            other => pods::refuse_subresource(other),
        },
        ("", "bindings") => pods::refuse_subresource("binding"),
        ("", "nodes") => own_node::check_node(write),
        ("", "persistentvolumeclaims") => match write.subresource {
            "status" => volume_claims::check_status(write),
            _ => forbid("may only update PVC status"),
        },
        ("", "serviceaccounts") => token_requests::check_token_request(write, lookups).await,
        ("certificates.k8s.io", "podcertificaterequests") => {
            pod_certificates::check_request(write, lookups).await
        }
        ("certificates.k8s.io", "certificatesigningrequests") => check_node_certificate(write),
        ("coordination.k8s.io", "leases") => check_lease(write),
        ("storage.k8s.io", "csinodes") => check_csi_node(write),
        ("resource.k8s.io", "resourceslices") => check_resource_slice(write),
        (_, _) => Ok(()),
    }
}

/// A node renews its own lease, in the namespace of such leases.
fn check_lease(write: &NodeWrite<'_>) -> RuleResult {
    if write.namespace != NODE_LEASES {
        let namespace = go_compat::quote(NODE_LEASES);
        return forbid(format!("can only access leases in the {namespace} system namespace"));
    }
    match write.name == write.node_name {
        true => Ok(()),
        false => forbid("can only access node lease with the same name as the requesting node"),
    }
}

fn check_csi_node(write: &NodeWrite<'_>) -> RuleResult {
    match write.name == write.node_name {
        true => Ok(()),
        false => forbid("can only access CSINode with the same name as the requesting node"),
    }
}

/// A node announces devices of its own. The name of the node in a slice is immutable, so the stored slice tells
/// whose it is.
fn check_resource_slice(write: &NodeWrite<'_>) -> RuleResult {
    let verb = match write.operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Connect => return Ok(()),
    };
    let is_own = |slice: Option<&Tree>| slice.is_some_and(|own| node_of(own) == write.node_name);
    // The old slice decides about updates and deletions, and the new one must not become another node's.
    let is_allowed = match write.operation {
        Operation::Create => is_own(write.object),
        Operation::Update => is_own(write.old) && is_own(write.object),
        Operation::Delete | Operation::Connect => is_own(write.old),
    };
    match is_allowed {
        true => Ok(()),
        false => forbid(format!(
            "can only {verb} ResourceSlice with the same NodeName as the requesting node"
        )),
    }
}

/// A node requests certificates of nodes for itself only.
fn check_node_certificate(write: &NodeWrite<'_>) -> RuleResult {
    let (Operation::Create, Some(request)) = (write.operation, write.object) else { return Ok(()) };
    match api_resources::forbidden_node_certificate_reason(request, write.node_name) {
        Some(why) => forbid(why),
        None => Ok(()),
    }
}

/// The node that an object names in its spec; empty if it names none.
fn node_of(object: &Tree) -> &str {
    spec(object).get("nodeName").and_then(Value::as_str).unwrap_or_default()
}

/// The spec of an object; null if it has none.
fn spec(object: &Tree) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

/// A string member of a value, or the empty string.
fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list member, or none.
fn items<'v>(value: &'v Value, member: &str) -> &'v [Value] {
    value.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The value of a member that is neither absent nor null.
fn set_member<'v>(value: &'v Value, member: &str) -> Option<&'v Value> {
    value.get(member).filter(|own| !own.is_null())
}

/// Reads an object that a rule needs.
///
/// # Errors
/// 404 if it does not exist, or the error of the read.
async fn require_object(
    lookups: &impl NodeLookups,
    group: &str,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<Tree, NodeRefusal> {
    let found = lookups.find(group, resource, namespace, name).await?;
    found.ok_or_else(|| Status::not_found(&GroupResource::new(group, resource), name).into())
}
