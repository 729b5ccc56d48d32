//! The proof of admission, and the object that it belongs to.
//!
//! INVARIANT: the functions of this file make every [`AdmittedObject`], after the validating hooks allowed the
//! very object inside it, its Scale if that alone changes, or the action that changes it. Nothing replaces that object
//! later; the one change
//! that is possible afterwards is the deletion mark of an object whose deletion was admitted.

use admission::InitializersOrigin;
use api_object::{Status, Tree};
use api_resources::Resource;
use jiff::Timestamp;
use store::KeyGroupRevisionAction;

use super::admission_config_freshness::{AdmissionConfigFreshness, is_admission_configuration};
use super::admission_config_revision::{AdmissionConfigCondition, AdmissionConfigRevisionError};
use super::admission_phases::run_validating_phase;
use super::{CheckedObject, WriteAttempt, WriteRequest};
use crate::error_status::IntoStatus;
use crate::rest::RequestContext;

/// An object that admission allows to be stored, or whose removal it allows.
pub struct AdmittedObject {
    object_tree: Tree,
    namespace_uid: Option<String>,
    initializers_origin: InitializersOrigin,
    admission_config_condition: AdmissionConfigCondition,
}

/// An object whose deletion was admitted.
pub(crate) struct AdmittedDeletion(AdmittedObject);

/// The proof that admission allowed an action on a stored pod, a Binding or an Eviction. Like in Kubernetes, the
/// hooks review the action and not the change of the pod that follows from it.
pub(crate) struct AdmittedPodAction(());

/// The next step of an admitted deletion.
pub(crate) enum RemovableOrPendingDeletion {
    /// The object has no finalizers, so it can be removed.
    Removable(AdmittedObject),
    /// The object has finalizers, so it is only marked for deletion.
    Pending {
        /// The object with its deletion mark.
        marked: AdmittedObject,
        /// The object without the deletion mark.
        before: Tree,
        /// Whether the mark changes the object.
        is_changed: bool,
    },
}

/// Calls the validating hooks about an object that passed the built-in checks.
///
/// # Errors
/// The refusal of a hook, or 403 if the definition of a custom resource is terminating.
pub(crate) async fn admit_object(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    checked: CheckedObject,
    old: Option<&Tree>,
) -> Result<AdmittedObject, Status> {
    run_validating_phase(ctx, attempt, write, checked.object_tree(), old).await?;
    let (tree, checked_config_revision) = checked.into_tree_and_config_revision();
    let config_revision = match is_admission_configuration(ctx.resource) {
        true => AdmissionConfigCondition::Move(checked_config_revision),
        false => condition_on_assumed_admission_config(attempt),
    };
    Ok(AdmittedObject::new(tree, attempt, config_revision))
}

/// Calls the validating hooks about the Scale of an object that passed the built-in checks. As in Kubernetes, hooks on
/// `scale` see no other part of the object, and no other part has changed.
///
/// # Errors
/// The refusal of a hook.
pub(crate) async fn admit_scaled_object(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    checked: CheckedObject,
    old: &Tree,
) -> Result<AdmittedObject, Status> {
    let scale = |object: &Tree| {
        api_resources::scale_of_object(ctx.resource, object)
            .map(|scale| scale.scale_tree)
            .map_err(IntoStatus::into_status)
    };
    let (new_scale, old_scale) = (scale(checked.object_tree())?, scale(old)?);
    run_validating_phase(ctx, attempt, write, &new_scale, Some(&old_scale)).await?;
    let (tree, _) = checked.into_tree_and_config_revision();
    Ok(AdmittedObject::new(tree, attempt, condition_on_assumed_admission_config(attempt)))
}

/// Calls the validating hooks about the deletion of an object.
///
/// # Errors
/// The refusal of a hook.
pub(crate) async fn admit_deletion(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    tree: Tree,
) -> Result<AdmittedDeletion, Status> {
    run_validating_phase(ctx, attempt, write, &tree, None).await?;
    let config_revision = match is_admission_configuration(ctx.resource) {
        true => AdmissionConfigCondition::Move(None),
        false => condition_on_assumed_admission_config(attempt),
    };
    Ok(AdmittedDeletion(AdmittedObject::new(tree, attempt, config_revision)))
}

/// Calls the validating hooks about an action on the stored object that the path names.
///
/// # Errors
/// The refusal of a hook.
pub(crate) async fn admit_pod_action(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    action: &Tree,
) -> Result<AdmittedPodAction, Status> {
    run_validating_phase(ctx, attempt, write, action, None).await?;
    Ok(AdmittedPodAction(()))
}

/// Calls the validating hooks about an object that is not stored, such as a TokenRequest. There is no
/// [`AdmittedObject`] of it.
///
/// # Errors
/// The refusal of a hook.
pub(crate) async fn admit_without_storing(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    tree: &Tree,
) -> Result<(), Status> {
    run_validating_phase(ctx, attempt, write, tree, None).await
}

fn condition_on_assumed_admission_config(attempt: &WriteAttempt) -> AdmissionConfigCondition {
    match &attempt.admission_config_freshness {
        Some(AdmissionConfigFreshness::Assumed(snapshot)) => {
            AdmissionConfigCondition::Unchanged(snapshot.admission_config_revision())
        }
        Some(AdmissionConfigFreshness::Confirmed(_) | AdmissionConfigFreshness::Exempt) | None => {
            AdmissionConfigCondition::Independent
        }
    }
}

impl AdmittedObject {
    fn new(tree: Tree, attempt: &WriteAttempt, config_revision: AdmissionConfigCondition) -> Self {
        let (namespace_uid, initializers_origin) =
            (attempt.namespace_uid.clone(), attempt.initializers_origin);
        Self {
            object_tree: tree,
            namespace_uid,
            initializers_origin,
            admission_config_condition: config_revision,
        }
    }

    /// The object as it may be stored.
    pub fn object_tree(&self) -> &Tree {
        &self.object_tree
    }

    /// Drops the proof of admission and returns the object, for the response.
    pub fn into_tree(self) -> Tree {
        self.object_tree
    }

    /// The uid of the namespace in which a new object was admitted.
    pub(crate) fn namespace_uid(&self) -> Option<&str> {
        self.namespace_uid.as_deref()
    }

    /// Whether the client or the configuration chose the initializers of a new object.
    pub(crate) fn initializers_origin(&self) -> InitializersOrigin {
        self.initializers_origin
    }

    /// The part of the transaction that concerns the config revision key.
    pub(crate) fn admission_config_revision_action(
        &self,
        prefix: &str,
    ) -> Result<Option<KeyGroupRevisionAction>, AdmissionConfigRevisionError> {
        self.admission_config_condition.into_key_group_revision_action(prefix)
    }
}

impl AdmittedPodAction {
    /// The pod as the action changes it.
    pub(crate) fn admit_pod_change(&self, attempt: &WriteAttempt, pod: Tree) -> AdmittedObject {
        AdmittedObject::new(pod, attempt, condition_on_assumed_admission_config(attempt))
    }

    /// The pod that the action deletes.
    pub(crate) fn admit_pod_deletion(&self, attempt: &WriteAttempt, pod: Tree) -> AdmittedDeletion {
        AdmittedDeletion(self.admit_pod_change(attempt, pod))
    }
}

impl AdmittedDeletion {
    /// The object as it is stored.
    pub(crate) fn object_tree(&self) -> &Tree {
        &self.0.object_tree
    }

    /// Drops the proof of admission and returns the object, for the response.
    pub(crate) fn into_tree(self) -> Tree {
        self.0.object_tree
    }

    /// Marks a pod for deletion after a grace period. Returns the marked pod, and the pod as it was before.
    pub(crate) fn mark_for_graceful_deletion(
        self,
        ends: Timestamp,
        seconds: i64,
    ) -> (AdmittedObject, Tree) {
        let mut admitted = self.0;
        let before = admitted.object_tree.clone();
        let metadata = api_object::metadata_mut(&mut admitted.object_tree);
        metadata.insert("deletionTimestamp".to_owned(), api_object::format_rfc3339(ends).into());
        metadata.insert("deletionGracePeriodSeconds".to_owned(), seconds.into());
        (admitted, before)
    }

    /// Decides whether the object can be removed now, and marks it for deletion if not. `is_forced` ignores
    /// finalizers.
    pub(crate) fn into_removable_or_pending_deletion(
        self,
        resource: &Resource,
        mut finalizers: Vec<String>,
        is_forced: bool,
        now: Timestamp,
    ) -> RemovableOrPendingDeletion {
        let mut next = self.0.object_tree.clone();
        api_resources::prepare_delete(resource, &mut next, &mut finalizers, now);
        if is_forced {
            finalizers.clear();
        }
        if finalizers.is_empty() && !api_resources::blocks_removal(resource, &next) {
            return RemovableOrPendingDeletion::Removable(self.0);
        }
        let now = api_object::format_rfc3339(now);
        let is_marked = api_object::mark_for_deletion(&mut next, &finalizers, &now);
        let is_changed = is_marked | (next != self.0.object_tree);
        let mut marked = self.0;
        let before = std::mem::replace(&mut marked.object_tree, next);
        RemovableOrPendingDeletion::Pending { marked, before, is_changed }
    }
}
