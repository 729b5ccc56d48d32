//! Decides which initializers a new object waits for.

use api_object::Tree;
use authz::User;

use super::initializer_options::InitializerOptions;
use super::initializers_field::{Initializers, has_initializers_field};
use crate::attributes::{Attributes, Operation};
use crate::initializer_order::{PendingInitializers, order_pending_initializers};
use crate::snapshot::Snapshot;

/// The annotation of mirror pods, which a kubelet creates for static pods.
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// The origin of the pending list of an object. Initializers that no configuration registers are treated by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InitializersOrigin {
    /// The server assigned the list by the configuration.
    Configuration,
    /// The client supplied the list.
    Client,
}

/// The value that `metadata.initializers` of a new object gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitializersOnCreate {
    /// The object waits for no initializer. The field is removed.
    Initialized,
    /// The object waits for the initializers that the configuration names.
    Assign(PendingInitializers),
    /// The object is a mirror pod, and the client is not its node. A client with the permission `initialize` could omit
    /// initializers anyway, so for such a client the pod waits for none; for others it waits for the initializers that
    /// the configuration names.
    AssignUnlessPermitted(PendingInitializers),
    /// The client supplies the list, which may be empty. It needs the permission `initialize`; without it, the error is
    /// [`InitializeDenied`](crate::InitializeDenied).
    NeedsPermission(Initializers),
}

/// Decides about a new object, once per request and before any hook is called. Otherwise the second round of
/// mutating hooks would take a list that the server assigned for one that the client supplied.
///
/// 1. If initializers are disabled, the resource is exempt or a subresource is written, there are none.
/// 2. If the client supplies the field, it needs permission, and the configuration does not apply.
/// 3. A mirror pod waits for no initializer if its node creates it. The annotation alone does not make a mirror pod;
///    `spec.nodeName` must be set too.
/// 4. Otherwise the configuration decides; see [`InitializersOnCreate::AssignUnlessPermitted`] for mirror pods of other clients.
///
/// The list of the client is validated later, with the object.
#[must_use]
pub fn decide_initializers_on_create(
    options: &InitializerOptions,
    attributes: &Attributes<'_>,
    snapshot: &Snapshot,
) -> InitializersOnCreate {
    let Some(tree) = attributes.object else { return InitializersOnCreate::Initialized };
    let can_have_initializers = options.are_initializers_enabled
        && attributes.operation == Operation::Create
        && attributes.subresource.is_empty()
        && attributes.exemption().is_none();
    if !can_have_initializers {
        return InitializersOnCreate::Initialized;
    }
    if has_initializers_field(tree) {
        return InitializersOnCreate::NeedsPermission(Initializers::from_object(tree));
    }
    let node_name = mirror_pod_node(attributes, tree);
    if let (Some(node_name), Some(user)) = (node_name, attributes.user)
        && is_node_user(user, node_name)
    {
        return InitializersOnCreate::Initialized;
    }
    match (snapshot.match_initializers(attributes).as_slice(), node_name) {
        ([], _) => InitializersOnCreate::Initialized,
        (matched, None) => InitializersOnCreate::Assign(order_pending_initializers(matched)),
        (matched, Some(_)) => {
            InitializersOnCreate::AssignUnlessPermitted(order_pending_initializers(matched))
        }
    }
}

/// Returns the node of a mirror pod; `None` for all other objects.
fn mirror_pod_node<'t>(attributes: &Attributes<'_>, tree: &'t Tree) -> Option<&'t str> {
    let annotations = api_object::metadata(tree).get("annotations")?;
    annotations.get(MIRROR_ANNOTATION)?;
    let is_pod = attributes.kind.group.is_empty() && attributes.kind.kind == "Pod";
    let node_name = tree.get("spec")?.get("nodeName")?.as_str()?;
    (is_pod && !node_name.is_empty()).then_some(node_name)
}

/// Reports whether a user is the kubelet of this node.
fn is_node_user(user: &User, node_name: &str) -> bool {
    user.name.strip_prefix("system:node:") == Some(node_name)
        && user.groups.iter().any(|group| group == "system:nodes")
}
