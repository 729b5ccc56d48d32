//! The checks that the server itself makes of an object, after mutating and before validating hooks.

use std::sync::Arc;

use admission::Operation;
use api_object::{Status, Tree};
use authz::{Resource as Target, Verb};
use store::ExpectedKeyState;

use super::admission_config_checks::check_admission_configuration;
use super::admission_plugins::AdmissionPlugin;
use super::device_admin_access::check_device_admin_access;
use super::node_restriction::{NodeRestrictionProof, check_node_restriction};
use super::owner_references::check_may_change_owner_references;
use super::rbac_escalation::{EscalationProof, check_rbac_escalation};
use crate::authorize::authorize_other_target;
use crate::cluster_ips::ClusterIpChange;
use crate::rest::RequestContext;

const SIGNERS: (&str, &str) = ("certificates.k8s.io", "signers");

/// An object that passed all built-in checks.
///
/// INVARIANT: [`run_built_in_checks`] makes every value of this type, and it needs the proofs of the
/// escalation check and of NodeRestriction for that. Admission stores nothing but checked objects.
#[derive(Clone)]
pub(crate) struct CheckedObject {
    object_tree: Tree,
    /// The config revision at which an admission configuration was checked against the others.
    checked_config_revision: Option<ExpectedKeyState>,
    _escalation_proof: EscalationProof,
    _node_restriction_proof: NodeRestrictionProof,
}

impl CheckedObject {
    pub(crate) fn object_tree(&self) -> &Tree {
        &self.object_tree
    }

    pub(super) fn into_tree_and_config_revision(self) -> (Tree, Option<ExpectedKeyState>) {
        (self.object_tree, self.checked_config_revision)
    }

    /// Assigns a cluster IP to a service that needs one. No check depends on the IP, so the object stays
    /// checked. Other objects stay as they are.
    ///
    /// # Errors
    /// 422 if the service cannot have the IP that it asks for, 500 if none is free.
    pub(crate) async fn assign_cluster_ip(
        &mut self,
        ctx: &RequestContext<'_>,
        old: Option<&Tree>,
        is_dry_run: bool,
    ) -> Result<ClusterIpChange, Status> {
        ctx.allocate_cluster_ip(&mut self.object_tree, old, is_dry_run).await
    }
}

/// Checks the next state of an object, which is valid by itself:
///
/// 1. A node writes only what NodeRestriction allows. The mutating hooks may have changed the object.
/// 2. The user may delete the object if the user changes its owner references, and may change the
///    finalizers of owners whose deletion the references block.
/// 3. The user holds every permission that a role or a binding grants.
/// 4. The user may approve or sign a certificate request for its signer, and no certificate request asks for
///    the group of superusers.
/// 5. A claim has administrative access to devices only in a namespace that allows it.
/// 6. An object that asks for something that the server does not enforce is refused, or the user is warned.
/// 7. An admission configuration does not contradict the other ones.
///
/// # Errors
/// 403 or 422 if a check fails; 429, 500, 503 or 504 if the server failed to check.
pub(crate) async fn run_built_in_checks(
    ctx: &RequestContext<'_>,
    tree: Tree,
    old: Option<&Tree>,
    warnings: &mut Vec<String>,
) -> Result<CheckedObject, Status> {
    let operation = if old.is_none() { Operation::Create } else { Operation::Update };
    let restricted = check_node_restriction(ctx, operation, Some(&tree), old).await?;
    let plugins = ctx.server.admission_plugins;
    if plugins.is_plugin_enabled(AdmissionPlugin::OwnerReferencesPermissionEnforcement) {
        check_may_change_owner_references(ctx, &tree, old).await?;
    }
    let grants = check_rbac_escalation(ctx, &tree, old).await?;
    check_certificate_request(ctx, &tree, old).await?;
    check_device_admin_access(ctx, &tree, old).await?;
    warnings.extend(check_unenforced_features(ctx, &tree, old)?);
    let checked_config_revision = check_admission_configuration(ctx, &tree, old, warnings).await?;
    Ok(CheckedObject {
        object_tree: tree,
        checked_config_revision,
        _escalation_proof: grants,
        _node_restriction_proof: restricted,
    })
}

/// Refuses an object that asks for something that the server does not enforce, or returns a warning.
fn check_unenforced_features(
    ctx: &RequestContext<'_>,
    new: &Tree,
    old: Option<&Tree>,
) -> Result<Option<String>, Status> {
    // The server writes no such object on its own behalf.
    if Arc::ptr_eq(ctx.authorization_proof.user(), &ctx.server.loopback_user) {
        return Ok(None);
    }
    let Some(unenforced) = api_resources::find_unenforced_rule(ctx.resource, new, old) else {
        return Ok(None);
    };
    if ctx.server.api_settings.refuses_unenforced_features
        && !unenforced.unenforced_rule_errors.is_empty()
    {
        let kind = ctx.resource.group_kind();
        return Err(Status::invalid_object(
            &kind,
            api_object::name(new),
            &unenforced.unenforced_rule_errors,
        ));
    }
    Ok(Some(unenforced.unenforced_rule_warning))
}

async fn check_certificate_request(
    ctx: &RequestContext<'_>,
    new: &Tree,
    old: Option<&Tree>,
) -> Result<(), Status> {
    let forbidden =
        |why: &str| Status::forbidden(&ctx.resource.group_resource(), api_object::name(new), why);
    let plugins = ctx.server.admission_plugins;
    if old.is_none()
        && plugins.is_plugin_enabled(AdmissionPlugin::CertificateSubjectRestriction)
        && let Some(why) = api_resources::forbidden_subject_reason(ctx.resource, new)
    {
        return Err(forbidden(&why));
    }
    let demand = api_resources::required_signer_permission(ctx.resource, new, old, ctx.subresource);
    let Some(demand) = demand else { return Ok(()) };
    let (verb, signer) = (demand.verb, demand.signer_name);
    let plugin = match verb {
        "approve" => AdmissionPlugin::CertificateApproval,
        "attest" => AdmissionPlugin::ClusterTrustBundleAttest,
        _ => AdmissionPlugin::CertificateSigning,
    };
    if !plugins.is_plugin_enabled(plugin) {
        return Ok(());
    }
    let domain = signer.split_once('/').map_or(signer, |(domain, _)| domain);
    for name in [signer, &format!("{domain}/*")] {
        let (api_group, resource) = SIGNERS;
        let target = Target { api_group, api_version: "*", resource, name, ..Target::default() };
        if authorize_other_target(ctx, Verb::new(verb), &target).await?.is_ok() {
            return Ok(());
        }
    }
    let signer = go_compat::quote(signer);
    let what = if verb == "attest" { "for" } else { "requests with" };
    Err(forbidden(&format!("user not permitted to {verb} {what} signerName {signer}")))
}
