//! What a new object has to wait for.

use api_object::Tree;
use authz::User;

use super::initializers::{Initializers, is_supplied};
use super::options::InitializerOptions;
use crate::attributes::{Attributes, Operation};
use crate::order::{PendingList, pending};
use crate::snapshot::Snapshot;

/// Marks pods that a node made by itself and that the API only shows.
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// Who chose the initializers of an object. It decides what becomes of one that nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The configuration did.
    Configuration,
    /// The client did, who must know what they wait for.
    Client,
}

/// What becomes of a new object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateDecision {
    /// It waits for nobody. What it says about initializers is dropped.
    Initialized,
    /// It waits for those whom the configuration names.
    Assign(PendingList),
    /// It is a mirror pod that somebody else than its node creates. A client with the permission
    /// `initialize` could leave out initializers anyway, so the pod waits for nobody; for other
    /// clients it waits for those whom the configuration names.
    AssignUnlessPermitted(PendingList),
    /// The client says whom it waits for, perhaps nobody. That takes the permission `initialize`,
    /// without which the answer is [`create_denied`](crate::create_denied).
    NeedsPermission(Initializers),
}

/// Decides about a new object, once per request and before any hook: in the second round of mutating
/// hooks the list that was assigned must not be taken for one of the client's (admission §6.3, A1 to
/// A6).
///
/// 1. Without the feature, for exempt resources and for subresources there are no initializers.
/// 2. A client who says something about initializers needs permission, and the configuration is not
///    asked.
/// 3. A mirror pod waits for nobody if the node that it is bound to creates it. The annotation alone
///    makes no mirror pod: without `spec.nodeName` it says nothing.
/// 4. Otherwise the configuration decides; see [`CreateDecision::AssignUnlessPermitted`] for mirror
///    pods of other clients.
///
/// Faults of the client's list are found later, when the object is validated.
#[must_use]
pub fn decide_create(
    options: &InitializerOptions,
    attributes: &Attributes<'_>,
    snapshot: &Snapshot,
) -> CreateDecision {
    let Some(tree) = attributes.object else { return CreateDecision::Initialized };
    let is_concerned = options.is_enabled
        && attributes.operation == Operation::Create
        && attributes.subresource.is_empty()
        && attributes.exemption().is_none();
    if !is_concerned {
        return CreateDecision::Initialized;
    }
    if is_supplied(tree) {
        return CreateDecision::NeedsPermission(Initializers::of(tree));
    }
    let node_name = mirroring_node(attributes, tree);
    if let (Some(node_name), Some(user)) = (node_name, attributes.user)
        && is_node(user, node_name)
    {
        return CreateDecision::Initialized;
    }
    match (snapshot.initializers(attributes).as_slice(), node_name) {
        ([], _) => CreateDecision::Initialized,
        (matched, None) => CreateDecision::Assign(pending(matched)),
        (matched, Some(_)) => CreateDecision::AssignUnlessPermitted(pending(matched)),
    }
}

/// The node of a mirror pod; `None` for all other objects.
fn mirroring_node<'t>(attributes: &Attributes<'_>, tree: &'t Tree) -> Option<&'t str> {
    let annotations = api_object::metadata(tree).get("annotations")?;
    annotations.get(MIRROR_ANNOTATION)?;
    let is_pod = attributes.kind.group.is_empty() && attributes.kind.kind == "Pod";
    let node_name = tree.get("spec")?.get("nodeName")?.as_str()?;
    (is_pod && !node_name.is_empty()).then_some(node_name)
}

/// Whether a user is the node of this name, as kubelets authenticate.
fn is_node(user: &User, node_name: &str) -> bool {
    user.name.strip_prefix("system:node:") == Some(node_name)
        && user.groups.iter().any(|group| group == "system:nodes")
}
