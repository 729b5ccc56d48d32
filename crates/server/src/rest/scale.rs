//! The subresource `scale`.
//!
//! A client reads and writes a Scale, and hooks review the Scale. The server stores the object with the replicas of the
//! Scale, and checks that object as in an update of the object itself.

use api_object::{GroupResource, Status, Tree};
use api_resources::{ObjectScale, scale_of_object, scale_resource, set_replicas};
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::Value;
use store::Entry;

use crate::admission::{
    WriteAttempt, WriteRequest, admit_mutating, establish_admission_config_freshness,
    run_built_in_checks,
};
use crate::cluster_ips::ClusterIpChange;
use crate::error_status::IntoStatus;
use crate::rest::create::WriteResult;
use crate::rest::object_metadata::{check_names_match_url, normalize_metadata, validate_metadata};
use crate::rest::patch::apply_patch;
use crate::rest::update::{
    ReplaceOrPatch, check_uid_precondition, store_updated_object, take_and_check_resource_version,
    validate_content_update,
};
use crate::rest::{RequestContext, VersionedObject, WriteFailure, WriteOptions};

/// The name of the subresource.
pub(crate) const SCALE: &str = "scale";

/// The Scale of an object that a client reads.
///
/// # Errors
/// 500 if a custom object has no replicas, or has something else in their place.
pub(crate) fn read_scale(
    ctx: &RequestContext<'_>,
    object: VersionedObject,
) -> Result<VersionedObject, Status> {
    let scale =
        scale_of_object(ctx.resource, &object.object_tree).map_err(IntoStatus::into_status)?;
    match scale.missing_replicas_path {
        None => Ok(VersionedObject { object_tree: scale.scale_tree, revision: object.revision }),
        Some(path) => {
            let path = go_compat::quote(&path);
            Err(Status::internal_error(&format!("the spec replicas field {path} does not exist")))
        }
    }
}

/// Attempts to change the replicas of an object:
///
/// 1. Compute the next Scale from the Scale of the stored object.
/// 2. Establish which configuration admits the write.
/// 3. Run the mutating phase about the Scale.
/// 4. Validate the Scale, and compute and validate the object with its replicas.
/// 5. Run the built-in checks about the object, and the validating phase about its Scale, and store the object.
pub(super) async fn attempt_scale(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    change: ReplaceOrPatch<'_>,
    options: WriteOptions,
    entry: &Entry,
) -> Result<WriteResult, WriteFailure> {
    let old = ctx.decode_authorized_entry(entry)?;
    let old_scale = scale_of_object(ctx.resource, &old).map_err(IntoStatus::into_status)?;
    let (mut scale, is_patch) = match change {
        ReplaceOrPatch::Replace(tree) => (tree.clone(), false),
        ReplaceOrPatch::Patch(patch) => {
            let (kind, warnings) = (ctx.written_kind(), &mut attempt.warnings);
            (apply_patch(&kind, patch, &old_scale.scale_tree, entry.mod_rev, warnings)?, true)
        }
    };
    normalize_metadata(ctx, &mut scale)?;
    check_names_match_url(ctx, &mut scale)?;
    if !is_patch {
        check_uid_precondition(ctx, &scale, &old)?;
    }
    let write = WriteRequest::for_update(ctx.subresource, options, ctx.query)
        .with_stored_revision(entry.mod_rev);
    establish_admission_config_freshness(ctx, attempt, &write, &scale).await?;
    let mut scale =
        admit_mutating(ctx, attempt, &write, scale, Some(&old_scale.scale_tree)).await?;
    let replicas = valid_replicas(ctx, &scale, &old_scale, is_patch)?;
    check_scale_uid(ctx, &scale, &old)?;
    // A Scale without a resourceVersion changes the newest object, as a patch does.
    take_and_check_resource_version(ctx, &mut scale, entry.mod_rev, true)?;
    let mut new = old.clone();
    set_replicas(ctx.resource, &mut new, replicas);
    api_resources::complete_updated_object(ctx.resource, &mut new, &old, None)
        .map_err(IntoStatus::into_status)?;
    let object_ctx = RequestContext { subresource: None, ..*ctx };
    let mut errors = validate_metadata(&object_ctx, &new);
    errors.append(api_object::validate_metadata_update(&new, &old));
    errors.append(validate_content_update(&object_ctx, &new, &old));
    if !errors.is_empty() {
        return Err(Status::invalid_object(&ctx.group_kind(), ctx.name, &errors).into());
    }
    let checked = run_built_in_checks(&object_ctx, new, Some(&old), &mut attempt.warnings).await?;
    let (addresses, revision) = (ClusterIpChange::default(), entry.mod_rev);
    let written =
        store_updated_object(ctx, attempt, &write, checked, &old, options, revision, &addresses)
            .await?;
    let scale = scale_of_object(ctx.resource, &written.object.object_tree)
        .map_err(IntoStatus::into_status)?;
    let object =
        VersionedObject { object_tree: scale.scale_tree, revision: written.object.revision };
    Ok(WriteResult { object, ..written })
}

/// The replicas of a Scale. A replacement that has none asks for 0.
fn valid_replicas(
    ctx: &RequestContext<'_>,
    scale: &Tree,
    old_scale: &ObjectScale,
    is_patch: bool,
) -> Result<i64, Status> {
    let replicas = scale.get("spec").and_then(|spec| spec.get("replicas"));
    let replicas = replicas.filter(|own| !own.is_null());
    if let (None, Some(path), true) = (replicas, &old_scale.missing_replicas_path, is_patch) {
        let path = go_compat::quote(path);
        return Err(Status::bad_request(format!("the spec replicas field {path} cannot be empty")));
    }
    let replicas = replicas.and_then(Value::as_i64).unwrap_or_default();
    if replicas >= 0 {
        return Ok(replicas);
    }
    let mut errors = FieldErrors::new();
    let path = FieldPath::root("spec");
    let value = BadValue::Json(replicas.to_string());
    let detail = "must be greater than or equal to 0";
    errors.push(path.child("replicas").invalid(value, detail));
    Err(Status::invalid_object(&scale_resource().group_kind(), ctx.name, &errors))
}

/// Checks the uid of the Scale of a built-in workload, which a patch or a hook may have changed.
fn check_scale_uid(ctx: &RequestContext<'_>, scale: &Tree, old: &Tree) -> Result<(), Status> {
    let (own, stored) = (api_object::uid(scale), api_object::uid(old));
    if ctx.resource.is_custom_resource() || own.is_empty() || own == stored {
        return Ok(());
    }
    let why =
        format!("Precondition failed: UID in precondition: {own}, UID in object meta: {stored}");
    let resource =
        GroupResource::new(&ctx.resource.group, &format!("{}/{SCALE}", ctx.resource.plural));
    Err(Status::conflict(&resource, ctx.name, &why))
}
