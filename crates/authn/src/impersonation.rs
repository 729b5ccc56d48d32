//! Impersonation: acting as another user.
//!
//! The impersonating user needs permissions. There are five modes, each with its own verbs. Four
//! modes are constrained: besides the permission to impersonate the user they need the permission
//! to perform the current request while impersonating. The fifth is the unconstrained verb
//! `impersonate`.

mod headers;
mod impersonation_error;
mod impersonation_mode;
mod last_impersonation_mode_cache;
mod permission_checks;

use authz::{Attributes, Authorizer, User};
use http::HeaderMap;

use last_impersonation_mode_cache::LastImpersonationModeCache;
use permission_checks::{ImpersonationCheckError, ImpersonationChecks};

pub use headers::{has_impersonation_headers, strip_impersonation_headers};
pub use impersonation_error::{ImpersonationError, MissingPermission};
pub use impersonation_mode::ImpersonationMode;

/// Decides which users may impersonate which others.
#[derive(Debug, Default)]
pub struct Impersonator {
    last_impersonation_mode_cache: LastImpersonationModeCache,
}

/// The user that a request impersonates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImpersonatedUser {
    /// The user that replaces the authenticated one.
    pub user: User,
    /// The mode that allowed it.
    pub impersonation_mode: ImpersonationMode,
    /// The authenticated user, as the authorizer sees it in this mode.
    pub requestor: User,
}

impl Impersonator {
    /// The user that the headers request to impersonate, if that is allowed; `None` if they request
    /// none. `attributes` are those of the request itself.
    ///
    /// 1. The mode that last succeeded for this user is tried first, then the others in order;
    ///    modes that do not apply are skipped.
    /// 2. The first mode whose checks all pass wins.
    /// 3. If no mode passes, the first missing permission is returned.
    ///
    /// Authorizer decisions are not cached, so a revoked permission takes effect at once. The
    /// headers stay; see [`strip_impersonation_headers`].
    ///
    /// # Errors
    /// The headers are malformed or name no user, a permission is missing, the request has no
    /// authenticated user, or the authorizer could not decide.
    pub async fn impersonate(
        &self,
        headers: &HeaderMap,
        attributes: &Attributes<'_>,
        authorizer: &dyn Authorizer,
    ) -> Result<Option<ImpersonatedUser>, ImpersonationError> {
        let Some(requested) = headers::requested_impersonated_user(headers)? else {
            return Ok(None);
        };
        let Some(requestor) = attributes.user else {
            return Err(ImpersonationError::NoRequestor);
        };
        let remembered =
            self.last_impersonation_mode_cache.last_successful_impersonation_mode(&requestor.name);
        let others = ImpersonationMode::ALL.into_iter().filter(|mode| Some(*mode) != remembered);
        let mut first_missing = None;
        for mode in remembered.into_iter().chain(others) {
            if !mode.is_applicable_to_users(&requested, requestor) {
                continue;
            }
            let checks = ImpersonationChecks::new(mode, attributes, requestor, authorizer);
            match checks.check_impersonation_permissions(&requested).await {
                Ok(user) => {
                    self.last_impersonation_mode_cache
                        .record_successful_impersonation_mode(&requestor.name, mode);
                    return Ok(Some(ImpersonatedUser {
                        user,
                        impersonation_mode: mode,
                        requestor: checks.into_requestor(),
                    }));
                }
                Err(ImpersonationCheckError::Missing(missing)) => {
                    first_missing.get_or_insert(missing);
                }
                // If the authorizer failed for one mode, no other mode may succeed instead.
                Err(ImpersonationCheckError::Undecided(why)) => {
                    return Err(ImpersonationError::Undecided(why));
                }
            }
        }
        // INVARIANT: the last mode always applies, so a permission is missing.
        Err(first_missing.map_or(ImpersonationError::NoModeApplies, ImpersonationError::Forbidden))
    }
}

#[cfg(test)]
mod tests;
