//! The escalation check of roles and bindings: a user grants only permissions that the user holds, unless
//! the user may `escalate` or `bind`.

use std::sync::Arc;

use api_object::{Status, Tree};
use authz::Verb;
use authz_rbac::{
    CHECK_STEPS_MAX, EscalationRefusal, QUICK_CHECK_STEPS_MAX, Snapshot, bind_check_target,
    escalate_check_target,
};
use field_errors::{FieldErrors, FieldPath, path_segment_faults};
use manifests::rbac::RbacObject;

use crate::authorize::authorize_other_target;
use crate::rest::RequestContext;

/// The proof that the escalation check ran on an object. Only [`check_rbac_escalation`] makes it.
#[derive(Clone, Copy)]
pub(super) struct EscalationProof(());

/// Checks that the user may grant the permissions of a role or a binding; other objects pass.
///
/// 1. Superusers may grant every permission.
/// 2. A user who is allowed `escalate` on the role that the request names may write it. A request
///    that creates names none, so a rule with `resourceNames` does not count for it.
/// 3. A user who is allowed `bind` on the role of a binding may bind it.
/// 4. Every other user must hold each permission that the object grants. A check that takes long runs in a
///    turn of the user.
pub(super) async fn check_rbac_escalation(
    ctx: &RequestContext<'_>,
    new: &Tree,
    old: Option<&Tree>,
) -> Result<EscalationProof, Status> {
    if ctx.resource.group != authz_rbac::GROUP || ctx.resource.is_custom_resource() {
        return Ok(EscalationProof(()));
    }
    let user = ctx.authorization_proof.user();
    if authz_rbac::is_superuser(user) {
        return Ok(EscalationProof(()));
    }
    let object = decode_rbac_object(ctx, new)?;
    let authorized = match &object {
        RbacObject::Role(role) => {
            authorize_other_target(
                ctx,
                Verb::new("escalate"),
                &escalate_check_target(role, ctx.name),
            )
            .await?
        }
        RbacObject::Binding(binding) => {
            authorize_other_target(ctx, Verb::new("bind"), &bind_check_target(binding)).await?
        }
    };
    if authorized.is_ok() {
        return Ok(EscalationProof(()));
    }
    let old = old.map(|old| decode_rbac_object(ctx, old)).transpose()?;
    let rbac = Arc::clone(&ctx.server.snapshot_cache.snapshot().rbac_snapshot);
    let check =
        |steps_max: u64| check_user_holds_grants(&rbac, user, &object, old.as_ref(), steps_max);
    let outcome = match check(QUICK_CHECK_STEPS_MAX) {
        Err(EscalationRefusal::TooManySteps) => {
            ctx.wait_for_processor_turn().await;
            check(CHECK_STEPS_MAX)
        }
        outcome => outcome,
    };
    outcome.map_err(|refusal| escalation_refusal_status(ctx, api_object::name(new), refusal))?;
    Ok(EscalationProof(()))
}

/// Checks the permissions that an invalid role or binding grants. A user who may not grant them gets that refusal
/// instead of the validation errors. Nothing is stored in either case.
///
/// # Errors
/// The refusal of the escalation check.
pub(crate) async fn check_grants_of_invalid_object(
    ctx: &RequestContext<'_>,
    new: &Tree,
    old: Option<&Tree>,
) -> Result<(), Status> {
    match check_rbac_escalation(ctx, new, old).await {
        // The caller reports all validation errors.
        Err(status) if status.code == 422 => Ok(()),
        other => other.map(drop),
    }
}

fn decode_rbac_object(ctx: &RequestContext<'_>, tree: &Tree) -> Result<RbacObject, Status> {
    let value = serde_json::Value::Object(tree.clone());
    let manifest = manifests::rbac::decode_unvalidated_rbac_object(&value)
        .map_err(|e| Status::bad_request(e.to_string()))?;
    manifest.into_object_unvalidated().map_err(|errors| {
        Status::invalid_object(&ctx.resource.group_kind(), api_object::name(tree), &errors)
    })
}

fn escalation_refusal_status(
    ctx: &RequestContext<'_>,
    name: &str,
    refusal: EscalationRefusal,
) -> Status {
    match refusal {
        // Like Kubernetes, the status names the resource of the request and not that of the role.
        EscalationRefusal::RoleNotFound { name, .. } if name.is_empty() => {
            Status::bad_request("Name parameter required.")
        }
        EscalationRefusal::RoleNotFound { name, .. } if !path_segment_faults(&name).is_empty() => {
            let faults = path_segment_faults(&name).join(";");
            Status::bad_request(format!(
                "Name parameter invalid: {}: {faults}",
                go_compat::quote(&name)
            ))
        }
        EscalationRefusal::RoleNotFound { name, .. } => {
            Status::not_found(&ctx.resource.group_resource(), &name)
        }
        EscalationRefusal::UnsupportedKind(error) => {
            Status::error_without_reason(error.to_string())
        }
        EscalationRefusal::TooManyCombinations(_) | EscalationRefusal::TooManySteps => {
            let is_binding = ctx.resource.kind.ends_with("Binding");
            let at = FieldPath::root(if is_binding { "roleRef" } else { "rules" });
            let mut errors = FieldErrors::new();
            errors.push(at.forbidden(&refusal.to_string()));
            Status::invalid_object(&ctx.resource.group_kind(), name, &errors)
        }
        EscalationRefusal::NotHeld(missing) => {
            let why = missing.refusal_message_for_write(&ctx.resource.plural);
            Status::forbidden(&ctx.resource.group_resource(), name, &why)
        }
        EscalationRefusal::Aggregation => {
            Status::forbidden(&ctx.resource.group_resource(), name, &refusal.to_string())
        }
    }
}

fn check_user_holds_grants(
    rbac: &Snapshot,
    user: &authz::User,
    new: &RbacObject,
    old: Option<&RbacObject>,
    steps_max: u64,
) -> Result<(), EscalationRefusal> {
    match (new, old) {
        (RbacObject::Role(role), Some(RbacObject::Role(old))) => {
            rbac.check_role_write(user, role, Some(old), steps_max)
        }
        (RbacObject::Role(role), _) => rbac.check_role_write(user, role, None, steps_max),
        (RbacObject::Binding(binding), Some(RbacObject::Binding(old))) => {
            rbac.check_binding_write(user, binding, Some(old), steps_max)
        }
        (RbacObject::Binding(binding), _) => {
            rbac.check_binding_write(user, binding, None, steps_max)
        }
    }
}
