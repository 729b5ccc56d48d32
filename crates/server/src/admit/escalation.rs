//! The check of roles and bindings: nobody grants what they do not hold, unless they may `escalate` or
//! `bind`.

use std::sync::Arc;

use api_object::{GroupResource, Status, Tree};
use authz_rbac::{
    CHECK_STEPS_MAX, QUICK_CHECK_STEPS_MAX, Refusal, Snapshot, bind_target, escalate_target,
};
use field_errors::{FieldErrors, FieldPath};
use manifests::rbac::Object;
use store::Store;

use crate::rest::Call;

impl<S: Store> Call<'_, S> {
    /// Checks that the user may grant what a role or a binding grants:
    ///
    /// 1. Superusers may grant everything.
    /// 2. A user who is allowed `escalate` on the role that the request names may write it. A request
    ///    that creates names none, so a rule with `resourceNames` does not count for it.
    /// 3. A user who is allowed `bind` on the role of a binding may bind it.
    /// 4. All others must hold what they grant. A check that takes long runs on a thread of its own.
    pub(super) async fn guard_grants(&self, new: &Tree, old: Option<&Tree>) -> Result<(), Status> {
        if self.resource.group != authz_rbac::GROUP || self.resource.is_custom() {
            return Ok(());
        }
        let user = self.authorized.user();
        if authz_rbac::is_superuser(user) {
            return Ok(());
        }
        let object = self.decode_rbac(new)?;
        let authorized = match &object {
            Object::Role(role) => {
                self.authorize_target("escalate", &escalate_target(role, self.name)).await?
            }
            Object::Binding(binding) => {
                self.authorize_target("bind", &bind_target(binding)).await?
            }
        };
        if authorized.is_some() {
            return Ok(());
        }
        let old = old.map(|old| self.decode_rbac(old)).transpose()?;
        let rbac = Arc::clone(&self.server.snapshot_cache.snapshot().rbac);
        let check = {
            let user = Arc::clone(user);
            move |steps_max: u64| confirm(&rbac, &user, &object, old.as_ref(), steps_max)
        };
        let outcome = match check(QUICK_CHECK_STEPS_MAX) {
            Err(Refusal::TooManySteps) => {
                let Ok(permit) =
                    self.server.escalation_checks.acquire(authz::user_limit_key(&user.name))
                else {
                    let why =
                        "too many roles and bindings are being checked, please try again later";
                    return Err(Status::too_many_requests(why, 1));
                };
                // The permit is given back when the check ends, also if nobody waits for it any more.
                let checking = tokio::task::spawn_blocking(move || {
                    let _permit = permit;
                    check(CHECK_STEPS_MAX)
                });
                checking.await.map_err(|error| Status::internal(&error.to_string()))?
            }
            outcome => outcome,
        };
        outcome.map_err(|refusal| self.refused(api_object::name(new), refusal))
    }

    fn decode_rbac(&self, tree: &Tree) -> Result<Object, Status> {
        let value = serde_json::Value::Object(tree.clone());
        let manifest =
            manifests::rbac::decode(&value).map_err(|e| Status::bad_request(e.to_string()))?;
        manifest.into_unchecked().map_err(|errors| {
            Status::invalid(&self.resource.group_kind(), api_object::name(tree), &errors)
        })
    }

    fn refused(&self, name: &str, refusal: Refusal) -> Status {
        match refusal {
            Refusal::RoleNotFound { resource, name } => {
                Status::not_found(&GroupResource::new(authz_rbac::GROUP, resource), &name)
            }
            Refusal::UnsupportedKind(error) => Status::unexpected(error.to_string()),
            Refusal::TooManyCombinations(_) | Refusal::TooManySteps => {
                let is_binding = self.resource.kind.ends_with("Binding");
                let at = FieldPath::root(if is_binding { "roleRef" } else { "rules" });
                let mut errors = FieldErrors::new();
                errors.push(at.forbidden(&refusal.to_string()));
                Status::invalid(&self.resource.group_kind(), name, &errors)
            }
            Refusal::NotHeld(_) | Refusal::Aggregation => {
                Status::forbidden(&self.resource.group_resource(), name, &refusal.to_string())
            }
        }
    }
}

fn confirm(
    rbac: &Snapshot,
    user: &authz::User,
    new: &Object,
    old: Option<&Object>,
    steps_max: u64,
) -> Result<(), Refusal> {
    match (new, old) {
        (Object::Role(role), Some(Object::Role(old))) => {
            rbac.confirm_role(user, role, Some(old), steps_max)
        }
        (Object::Role(role), _) => rbac.confirm_role(user, role, None, steps_max),
        (Object::Binding(binding), Some(Object::Binding(old))) => {
            rbac.confirm_binding(user, binding, Some(old), steps_max)
        }
        (Object::Binding(binding), _) => rbac.confirm_binding(user, binding, None, steps_max),
    }
}
