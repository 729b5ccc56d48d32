//! Acting as somebody else.
//!
//! Who impersonates needs permissions for it. There are five modes, each with permissions of its
//! own. Four are constrained: beside the right to be somebody they need the right to do the thing
//! at hand as somebody. The fifth is the one that has always existed.

mod checks;
mod memory;
mod mode;
mod wanted;

use api_object::Status;
use authz::{Attributes, Authorizer, Reason, User};
use http::HeaderMap;

use checks::Checks;
use memory::ModeMemory;

pub use mode::ImpersonationMode;
pub use wanted::strip_impersonation;

/// Makes the 403 for a question that was not allowed, and the reason.
pub type Forbid = fn(&Attributes<'_>, &Reason) -> Status;

/// Decides who may act as whom.
#[derive(Debug)]
pub struct Impersonator {
    forbid: Forbid,
    memory: ModeMemory,
}

/// Whom a request is done as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonated {
    /// The user that takes the place of the one who asks.
    pub user: User,
    /// The mode that allowed it.
    pub mode: ImpersonationMode,
}

impl Impersonator {
    /// One that refuses in these words.
    pub fn new(forbid: Forbid) -> Self {
        Self { forbid, memory: ModeMemory::default() }
    }

    /// Whom the headers want the request to be done as, if that is allowed; `None` if they want
    /// nobody. The attributes are those of the request itself.
    ///
    /// The modes are tried in turn, but first the one that last succeeded for the same user. The
    /// first that succeeds wins. If none does, the first refusal is the answer. Nothing is kept of
    /// the answers of the authorizer, so a permission that is taken away is gone at once.
    ///
    /// The headers stay; see [`strip_impersonation`].
    ///
    /// # Errors
    /// 400 if the headers name no user, 403 if it is not allowed, 500 if nobody asks.
    pub async fn impersonate(
        &self,
        headers: &HeaderMap,
        attributes: &Attributes<'_>,
        authorizer: &dyn Authorizer,
    ) -> Result<Option<Impersonated>, Status> {
        let Some(wanted) = wanted::from_headers(headers)? else { return Ok(None) };
        let Some(requestor) = attributes.user else {
            return Err(Status::internal("no User found in the context"));
        };
        let remembered = self.memory.recall(&requestor.name);
        let others = ImpersonationMode::ALL.into_iter().filter(|mode| Some(*mode) != remembered);
        let mut refusal = None;
        for mode in remembered.into_iter().chain(others) {
            if !mode.applies(&wanted, requestor) {
                continue;
            }
            let checks = Checks::new(mode, attributes, requestor, authorizer, self.forbid);
            match checks.run(&wanted).await {
                Ok(user) => {
                    self.memory.remember(&requestor.name, mode);
                    return Ok(Some(Impersonated { user, mode }));
                }
                // No mode takes the place of one that this server failed to ask about.
                Err(status) if status.code != 403 => return Err(status),
                Err(status) => {
                    refusal.get_or_insert(status);
                }
            }
        }
        // INVARIANT: the last mode applies always, so there is a refusal.
        Err(refusal.unwrap_or_else(|| Status::unexpected("all impersonation modes failed")))
    }
}

#[cfg(test)]
mod tests;
