//! The proof of admission, and the object that it belongs to.
//!
//! INVARIANT: the functions of this file make every [`Admitted`], after the validating hooks allowed the
//! very object inside it, its Scale if that alone changes, or the action that changes it. Nothing replaces that object later; the one change
//! that is possible afterwards is the deletion mark of an object whose deletion was admitted.

use admission::InitializersOrigin;
use api_object::{Status, Tree};
use api_resources::Resource;
use jiff::Timestamp;
use store::SharedRevision;

use super::config_revision::{ConfigRevisionCondition, ConfigRevisionError};
use super::freshness::{Freshness, is_admission_configuration};
use super::pipeline::run_validating_phase;
use super::{CheckedObject, WriteAttempt, WriteRequest};
use crate::error_status::IntoStatus;
use crate::rest::RequestContext;

/// An object that admission allows to be stored, or whose removal it allows.
pub struct Admitted {
    tree: Tree,
    namespace_uid: Option<String>,
    initializer_origin: InitializersOrigin,
    config_revision: ConfigRevisionCondition,
}

/// An object whose deletion was admitted.
pub(crate) struct AdmittedDeletion(Admitted);

/// The proof that admission allowed an action on a stored pod, a Binding or an Eviction. Like in Kubernetes, the
/// hooks review the action and not the change of the pod that follows from it.
pub(crate) struct AdmittedAction(());

/// The next step of an admitted deletion.
pub(crate) enum DeletionStep {
    /// Nothing holds the object back: it can be removed.
    Removable(Admitted),
    /// Finalizers hold the object back: it is marked for deletion.
    Pending {
        /// The object with its deletion mark.
        marked: Admitted,
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
) -> Result<Admitted, Status> {
    run_validating_phase(ctx, attempt, write, checked.tree(), old).await?;
    let (tree, checked_config_revision) = checked.into_parts();
    let config_revision = match is_admission_configuration(ctx.resource) {
        true => ConfigRevisionCondition::Move(checked_config_revision),
        false => require_unchanged_if_assumed(attempt),
    };
    Ok(Admitted::new(tree, attempt, config_revision))
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
) -> Result<Admitted, Status> {
    let scale = |object: &Tree| {
        api_resources::scale_of(ctx.resource, object)
            .map(|scale| scale.tree)
            .map_err(IntoStatus::into_status)
    };
    let (new_scale, old_scale) = (scale(checked.tree())?, scale(old)?);
    run_validating_phase(ctx, attempt, write, &new_scale, Some(&old_scale)).await?;
    let (tree, _) = checked.into_parts();
    Ok(Admitted::new(tree, attempt, require_unchanged_if_assumed(attempt)))
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
        true => ConfigRevisionCondition::Move(None),
        false => require_unchanged_if_assumed(attempt),
    };
    Ok(AdmittedDeletion(Admitted::new(tree, attempt, config_revision)))
}

/// Calls the validating hooks about an action on the stored object that the path names.
///
/// # Errors
/// The refusal of a hook.
pub(crate) async fn admit_action(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    action: &Tree,
) -> Result<AdmittedAction, Status> {
    run_validating_phase(ctx, attempt, write, action, None).await?;
    Ok(AdmittedAction(()))
}

/// Calls the validating hooks about an object that is not stored, such as a TokenRequest. There is no
/// [`Admitted`] of it.
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

fn require_unchanged_if_assumed(attempt: &WriteAttempt) -> ConfigRevisionCondition {
    match &attempt.freshness {
        Some(Freshness::Assumed(snapshot)) => {
            ConfigRevisionCondition::Unchanged(snapshot.config_revision())
        }
        Some(Freshness::Confirmed(_) | Freshness::Exempt) | None => {
            ConfigRevisionCondition::Independent
        }
    }
}

impl Admitted {
    fn new(tree: Tree, attempt: &WriteAttempt, config_revision: ConfigRevisionCondition) -> Self {
        let (namespace_uid, initializer_origin) =
            (attempt.namespace_uid.clone(), attempt.initializer_origin);
        Self { tree, namespace_uid, initializer_origin, config_revision }
    }

    /// The object as it may be stored.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Drops the proof of admission and returns the object, for the response.
    pub fn into_tree(self) -> Tree {
        self.tree
    }

    /// The uid of the namespace in which a new object was admitted.
    pub(crate) fn namespace_uid(&self) -> Option<&str> {
        self.namespace_uid.as_deref()
    }

    /// Whether the client or the configuration chose the initializers of a new object.
    pub(crate) fn initializer_origin(&self) -> InitializersOrigin {
        self.initializer_origin
    }

    /// The part of the transaction that concerns the config revision key.
    pub(crate) fn config_shared_revision(
        &self,
        prefix: &str,
    ) -> Result<Option<SharedRevision>, ConfigRevisionError> {
        self.config_revision.into_shared_revision(prefix)
    }
}

impl AdmittedAction {
    /// The pod as the action changes it.
    pub(crate) fn admit_change(&self, attempt: &WriteAttempt, pod: Tree) -> Admitted {
        Admitted::new(pod, attempt, require_unchanged_if_assumed(attempt))
    }

    /// The pod that the action deletes.
    pub(crate) fn admit_deletion(&self, attempt: &WriteAttempt, pod: Tree) -> AdmittedDeletion {
        AdmittedDeletion(self.admit_change(attempt, pod))
    }
}

impl AdmittedDeletion {
    /// The object as it is stored.
    pub(crate) fn tree(&self) -> &Tree {
        &self.0.tree
    }

    /// Drops the proof of admission and returns the object, for the response.
    pub(crate) fn into_tree(self) -> Tree {
        self.0.tree
    }

    /// Marks a pod for deletion after a grace period. Returns the marked pod, and the pod as it was before.
    pub(crate) fn mark_for_graceful_deletion(
        self,
        ends: Timestamp,
        seconds: i64,
    ) -> (Admitted, Tree) {
        let mut admitted = self.0;
        let before = admitted.tree.clone();
        let metadata = api_object::metadata_mut(&mut admitted.tree);
        metadata.insert("deletionTimestamp".to_owned(), api_object::format_rfc3339(ends).into());
        metadata.insert("deletionGracePeriodSeconds".to_owned(), seconds.into());
        (admitted, before)
    }

    /// Decides whether the object can be removed now, and marks it for deletion if not. `is_forced` ignores
    /// finalizers.
    pub(crate) fn into_deletion_step(
        self,
        resource: &Resource,
        mut finalizers: Vec<String>,
        is_forced: bool,
        now: Timestamp,
    ) -> DeletionStep {
        let mut next = self.0.tree.clone();
        api_resources::prepare_delete(resource, &mut next, &mut finalizers, now);
        if is_forced {
            finalizers.clear();
        }
        if finalizers.is_empty() && !api_resources::blocks_removal(resource, &next) {
            return DeletionStep::Removable(self.0);
        }
        let now = api_object::format_rfc3339(now);
        let is_marked = api_object::mark_for_deletion(&mut next, &finalizers, &now);
        let is_changed = is_marked | (next != self.0.tree);
        let mut marked = self.0;
        let before = std::mem::replace(&mut marked.tree, next);
        DeletionStep::Pending { marked, before, is_changed }
    }
}
