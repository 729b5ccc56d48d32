//! Impersonation: acting as another user.
//!
//! The impersonating user needs permissions. There are five modes, each with its own verbs. Four
//! modes are constrained: besides the permission to impersonate the user they need the permission
//! to perform the current request while impersonating. The fifth is the unconstrained verb
//! `impersonate`.

mod headers;
mod last_mode;
mod mode;
mod permission_checks;

use api_object::Status;
use authz::{Attributes, Authorizer, Reason, User};
use http::HeaderMap;

use last_mode::LastModeCache;
use permission_checks::PermissionChecks;

pub use headers::strip_impersonation_headers;
pub use mode::ImpersonationMode;

/// Builds the 403 for attributes that were not allowed, with the authorizer's reason.
pub type MakeForbidden = fn(&Attributes<'_>, &Reason) -> Status;

/// Decides which users may impersonate which others.
#[derive(Debug)]
pub struct Impersonator {
    make_forbidden: MakeForbidden,
    last_modes: LastModeCache,
}

/// The user that a request impersonates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImpersonatedUser {
    /// The user that replaces the authenticated one.
    pub user: User,
    /// The mode that allowed it.
    pub mode: ImpersonationMode,
}

impl Impersonator {
    /// Takes the function that words refusals.
    pub fn new(make_forbidden: MakeForbidden) -> Self {
        Self { make_forbidden, last_modes: LastModeCache::default() }
    }

    /// The user that the headers request to impersonate, if that is allowed; `None` if they request
    /// none. `attributes` are those of the request itself.
    ///
    /// 1. The mode that last succeeded for this user is tried first, then the others in order;
    ///    modes that do not apply are skipped.
    /// 2. The first mode whose checks all pass wins.
    /// 3. If no mode passes, the first refusal is returned.
    ///
    /// Authorizer decisions are not cached, so a revoked permission takes effect at once. The
    /// headers stay; see [`strip_impersonation_headers`].
    ///
    /// # Errors
    /// 400 if the headers name no user, 403 if it is not allowed, 500 if the request has no
    /// authenticated user.
    pub async fn impersonate(
        &self,
        headers: &HeaderMap,
        attributes: &Attributes<'_>,
        authorizer: &dyn Authorizer,
    ) -> Result<Option<ImpersonatedUser>, Status> {
        let Some(requested) = headers::requested_user(headers)? else { return Ok(None) };
        let Some(requestor) = attributes.user else {
            return Err(Status::internal("no User found in the context"));
        };
        let remembered = self.last_modes.last_successful_mode(&requestor.name);
        let others = ImpersonationMode::ALL.into_iter().filter(|mode| Some(*mode) != remembered);
        let mut refusal = None;
        for mode in remembered.into_iter().chain(others) {
            if !mode.is_applicable(&requested, requestor) {
                continue;
            }
            let checks =
                PermissionChecks::new(mode, attributes, requestor, authorizer, self.make_forbidden);
            match checks.check_all(&requested).await {
                Ok(user) => {
                    self.last_modes.record_success(&requestor.name, mode);
                    return Ok(Some(ImpersonatedUser { user, mode }));
                }
                // If the authorizer failed for one mode, no other mode may succeed instead.
                Err(status) if status.code != 403 => return Err(status),
                Err(status) => {
                    refusal.get_or_insert(status);
                }
            }
        }
        // INVARIANT: the last mode always applies, so there is a refusal.
        Err(refusal.unwrap_or_else(|| Status::unexpected("all impersonation modes failed")))
    }
}

#[cfg(test)]
mod tests;
