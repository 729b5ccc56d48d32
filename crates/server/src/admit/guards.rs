//! The checks that the server itself makes of the next state of an object, before validating hooks see it.

use std::sync::Arc;

use api_object::{Status, Tree};
use authz::Resource as Target;
use store::Store;

use crate::rest::Call;

const SIGNERS: (&str, &str) = ("certificates.k8s.io", "signers");

impl<S: Store> Call<'_, S> {
    /// Checks the next state of an object, which is valid by itself:
    ///
    /// 1. Owner references are changed by those who may delete the object, and block the deletion of
    ///    owners whose finalizers their author may change.
    /// 2. Roles and bindings grant nothing that their author does not hold.
    /// 3. Requests for certificates are approved and signed by those who may do that for the signer, and
    ///    nobody requests the group of superusers of the signer for clients.
    /// 4. The author of an object that asks for something that nobody enforces is told so, or refused.
    pub(crate) async fn guard(&mut self, new: &Tree, old: Option<&Tree>) -> Result<(), Status> {
        self.check_owners(new, old).await?;
        self.guard_grants(new, old).await?;
        self.guard_certificates(new, old).await?;
        self.guard_unenforced(new, old)
    }

    fn guard_unenforced(&mut self, new: &Tree, old: Option<&Tree>) -> Result<(), Status> {
        // The server asks nothing of itself.
        if Arc::ptr_eq(self.authorized.user(), &self.server.own_user) {
            return Ok(());
        }
        let Some(found) = api_resources::find_unenforced(self.resource, new, old) else {
            return Ok(());
        };
        if self.server.options.refuses_unenforced && !found.errors.is_empty() {
            let kind = self.resource.group_kind();
            return Err(Status::invalid(&kind, api_object::name(new), &found.errors));
        }
        self.warnings.push(found.warning);
        Ok(())
    }

    async fn guard_certificates(&self, new: &Tree, old: Option<&Tree>) -> Result<(), Status> {
        let forbidden = |why: &str| {
            Status::forbidden(&self.resource.group_resource(), api_object::name(new), why)
        };
        if old.is_none()
            && let Some(why) = api_resources::forbidden_subject(self.resource, new)
        {
            return Err(forbidden(&why));
        }
        let demand =
            api_resources::required_signer_permission(self.resource, new, old, self.subresource);
        let Some(demand) = demand else { return Ok(()) };
        let (verb, signer) = (demand.verb, demand.signer_name);
        let domain = signer.split_once('/').map_or(signer, |(domain, _)| domain);
        for name in [signer, &format!("{domain}/*")] {
            let (api_group, resource) = SIGNERS;
            let target =
                Target { api_group, api_version: "*", resource, name, ..Target::default() };
            if self.authorize_target(verb, &target).await?.is_some() {
                return Ok(());
            }
        }
        let signer = go_compat::quote(signer);
        let what = if verb == "attest" { "for" } else { "requests with" };
        Err(forbidden(&format!("user not permitted to {verb} {what} signerName {signer}")))
    }
}
