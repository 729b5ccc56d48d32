//! The permissions that changing `metadata.ownerReferences` needs, as in the admission plugin
//! OwnerReferencesPermissionEnforcement of Kubernetes.
//!
//! The garbage collector deletes an object whose owners are gone, and keeps an owner that is deleted in
//! the foreground until its blocking dependents are gone. It does both with permissions of its own, so
//! the user who writes the references needs them.

use std::collections::HashSet;

use api_object::{GroupVersion, Status, Tree};
use authz::{Decision, Namespace, Resource as Target, Verb};
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use crate::authorize::authorize_other_target;
use crate::rest::RequestContext;

/// The maximum number of owners whose deletion one write may newly block. Each needs one decision of the
/// authorizers.
const NEWLY_BLOCKED_MAX: usize = 64;

/// Checks that the user may change the owner references of an object:
///
/// 1. A write that leaves `metadata.ownerReferences` unchanged passes, and so does a bootstrap write of the
///    server.
/// 2. An update needs the permission to `delete` the object. The check names the
///    object itself even if the request writes a subresource, because the collector deletes the object.
/// 3. A reference that newly has `blockOwnerDeletion` needs the permission to `update` the
///    `finalizers` of that owner. Each owner is checked once.
///
/// # Errors
/// 403 without a permission, 422 for too many owners; 429, 503 or 504 if the server failed to check.
pub(super) async fn check_may_change_owner_references(
    ctx: &RequestContext<'_>,
    new: &Tree,
    old: Option<&Tree>,
) -> Result<(), Status> {
    let before = old.map_or(&[][..], api_object::owner_references);
    let after = api_object::owner_references(new);
    if after == before || ctx.is_exempt_from_hooks {
        return Ok(());
    }
    let name = api_object::name(new);
    if old.is_some() {
        let target = Target {
            api_group: &ctx.resource.group,
            api_version: &ctx.resource.version,
            namespace: authorized_namespace(ctx),
            resource: &ctx.resource.plural,
            name: ctx.name,
            ..Target::default()
        };
        if let Err(decision) = authorize_other_target(ctx, Verb::DELETE, &target).await? {
            let why = "cannot set an ownerRef on a resource you can't delete";
            return Err(owner_references_forbidden_status(ctx, name, why, &decision));
        }
    }
    let blocked = newly_blocked_owners(after, before);
    if blocked.len() > NEWLY_BLOCKED_MAX {
        let metadata = FieldPath::root("metadata");
        let mut errors = FieldErrors::new();
        let path = metadata.child("ownerReferences");
        errors.push(path.too_many(blocked.len(), NEWLY_BLOCKED_MAX));
        return Err(Status::invalid_object(&ctx.resource.group_kind(), name, &errors));
    }
    for owner in blocked {
        check_may_block_owner_deletion(ctx, name, &owner).await?;
    }
    Ok(())
}

/// Checks that the user may keep an owner from being deleted. A kind may be served as several
/// resources; the permission is needed for all of them.
async fn check_may_block_owner_deletion(
    ctx: &RequestContext<'_>,
    name: &str,
    owner: &OwnerKey<'_>,
) -> Result<(), Status> {
    let OwnerKey { api_version, kind, name: owner_name } = *owner;
    let cluster = ctx.server.snapshot_cache.snapshot();
    let version = GroupVersion::parse_api_version(api_version);
    let resources = cluster.resource_registry.resources().filter(|resource| {
        resource.kind == kind && version.as_ref() == Some(&resource.group_version())
    });
    let mut is_known = false;
    for resource in resources {
        is_known = true;
        let namespace = match resource.is_namespaced() {
            true => authorized_namespace(ctx),
            false => Namespace::CLUSTER_SCOPE,
        };
        let target = Target {
            api_group: &resource.group,
            api_version: &resource.version,
            namespace,
            resource: &resource.plural,
            subresource: "finalizers",
            name: owner_name,
            ..Target::default()
        };
        if let Err(decision) = authorize_other_target(ctx, Verb::UPDATE, &target).await? {
            let why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource \
                           you can't set finalizers on";
            return Err(owner_references_forbidden_status(ctx, name, why, &decision));
        }
    }
    if is_known {
        return Ok(());
    }
    let why = format!(
        "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for \
             APIVersion {api_version} Kind {kind}: no matches for kind {} in version {}",
        go_compat::quote(kind),
        go_compat::quote(api_version),
    );
    Err(Status::forbidden(&ctx.resource.group_resource(), name, &why))
}

/// The namespace that authorizers see. The namespace of a Namespace object is its own name.
fn authorized_namespace<'a>(ctx: &RequestContext<'a>) -> Namespace<'a> {
    Namespace::from(
        ctx.authorization_proof.target_resource().map(|target| target.namespace.as_str()),
    )
}

fn owner_references_forbidden_status(
    ctx: &RequestContext<'_>,
    name: &str,
    why: &str,
    decision: &Decision,
) -> Status {
    let error = decision.error.as_ref().map_or("<nil>".to_owned(), ToString::to_string);
    let why = format!("{why}: {}, {error}", decision.reason);
    Status::forbidden(&ctx.resource.group_resource(), name, &why)
}

/// An owner that a reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct OwnerKey<'t> {
    api_version: &'t str,
    kind: &'t str,
    name: &'t str,
}

fn blocks_owner_deletion(reference: &Value) -> bool {
    reference["blockOwnerDeletion"] == Value::Bool(true)
}

/// The owners whose deletion the new references block and the old ones did not, each once. An old reference with
/// the same uid but another kind or name does not count, because an earlier check was about that other kind or
/// name.
fn newly_blocked_owners<'t>(after: &'t [Value], before: &[Value]) -> Vec<OwnerKey<'t>> {
    let blocked_before: HashSet<(OwnerKey<'_>, &Value)> = before
        .iter()
        .filter(|own| blocks_owner_deletion(own))
        .map(|own| (owner_key_of_reference(own), &own["uid"]))
        .collect();
    let mut seen = HashSet::new();
    let newly = after.iter().filter(|own| {
        blocks_owner_deletion(own)
            && !blocked_before.contains(&(owner_key_of_reference(own), &own["uid"]))
    });
    newly.map(owner_key_of_reference).filter(|owner| seen.insert(*owner)).collect()
}

fn owner_key_of_reference(reference: &Value) -> OwnerKey<'_> {
    let text = |member: &str| reference[member].as_str().unwrap_or_default();
    OwnerKey { api_version: text("apiVersion"), kind: text("kind"), name: text("name") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_owners_that_were_not_blocked_count_and_each_once() {
        let owner = |name: &str, uid: &str, is_blocking: bool| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid,
                "blockOwnerDeletion": is_blocking})
        };
        let names = |after: &[Value], before: &[Value]| -> Vec<String> {
            newly_blocked_owners(after, before).iter().map(|owner| owner.name.to_owned()).collect()
        };
        let (a, b) = (owner("a", "1", true), owner("b", "2", true));
        let free = owner("a", "1", false);
        for (after, before, want) in [
            (vec![a.clone(), b.clone()], vec![], vec!["a", "b"]),
            (vec![a.clone(), b.clone()], vec![a.clone()], vec!["b"]),
            (vec![a.clone()], vec![free.clone()], vec!["a"]),
            (vec![free.clone()], vec![a.clone()], vec![]),
            (vec![a.clone(), owner("a", "3", true)], vec![], vec!["a"]),
            // The other kind was checked.
            (
                vec![a.clone()],
                vec![json!({"apiVersion": "v1", "kind": "Secret", "name": "a", "uid": "1",
                    "blockOwnerDeletion": true})],
                vec!["a"],
            ),
            // Another object may have had the name.
            (vec![owner("a", "3", true)], vec![a], vec!["a"]),
            (vec![json!({"blockOwnerDeletion": "true"})], vec![], vec![]),
        ] {
            assert_eq!(names(&after, &before), want, "{after:?}");
        }
    }
}
