//! `update` and `patch`: both read the object, compute the next state, and store it if no other writer
//! changed the object in the meantime.

use admission::{Initializers, Operation, has_pending_initializers};
use api_object::{GroupKind, Status, Tree};
use api_resources::Verb;
use field_errors::{FieldErrors, FieldPath};
use store::{Entry, ExpectedKeyState, Revision};

use crate::admission::{
    AdmissionFreshnessRequirement, CheckedObject, FinalOrRetry, WriteAttempt, WriteRequest,
    admit_mutating, admit_object, admit_scaled_object, check_grants_of_invalid_object,
    check_object_sent_by_node, check_target_of_node_write, establish_admission_config_freshness,
    run_built_in_checks,
};
use crate::authorize::authorize_other_verb;
use crate::cluster_ips::ClusterIpChange;
use crate::error_status::IntoStatus;
use crate::initializers::{delete_after_failed_initialization, has_failed_initialization};
use crate::rest::create::{WriteResult, create_with_attempt};
use crate::rest::get::read_newest_entry_unless_known;
use crate::rest::object_metadata::{
    check_names_match_url, dedup_owner_references, normalize_metadata, set_authorized_name,
    validate_metadata,
};
use crate::rest::patch::{PatchRequest, apply_patch};
use crate::rest::persist::{persist, remove_admitted_object};
use crate::rest::query::parse_resource_version;
use crate::rest::scale::{SCALE, attempt_scale};
use crate::rest::{
    RequestContext, VersionedObject, WarningsAndHookReports, WriteFailure, WriteOptions,
};

/// The request body: a replacement of the object, or a patch.
#[derive(Clone, Copy)]
pub(super) enum ReplaceOrPatch<'c> {
    Replace(&'c Tree),
    Patch(&'c PatchRequest),
}

/// Replaces the authorized object, or the part of it that the subresource names. It creates the object if
/// the resource allows that.
pub(crate) async fn update(
    ctx: &RequestContext<'_>,
    tree: &Tree,
    options: WriteOptions,
    report: &mut WarningsAndHookReports,
) -> Result<WriteResult, Status> {
    update_or_patch(ctx, ReplaceOrPatch::Replace(tree), options, report).await
}

/// Patches the authorized object, or the part of it that the subresource names.
pub(crate) async fn patch(
    ctx: &RequestContext<'_>,
    patch: &PatchRequest,
    options: WriteOptions,
    report: &mut WarningsAndHookReports,
) -> Result<WriteResult, Status> {
    update_or_patch(ctx, ReplaceOrPatch::Patch(patch), options, report).await
}

/// Changes an object:
///
/// 0. Check that a replacement names the authorized object.
/// 1. Read the object, unless a failed transaction returned it.
/// 2. If it does not exist, create it where the resource allows that.
/// 3. Attempt to admit and store the next state.
/// 4. Repeat the attempt if its result is not final, see [`WriteAttempt::conclude_attempt`].
async fn update_or_patch(
    ctx: &RequestContext<'_>,
    change: ReplaceOrPatch<'_>,
    options: WriteOptions,
    report: &mut WarningsAndHookReports,
) -> Result<WriteResult, Status> {
    let key = ctx.key(ctx.name)?;
    if let ReplaceOrPatch::Replace(tree) = change {
        check_update_names_target(ctx, tree)?;
    }
    let mut attempt = WriteAttempt::new(AdmissionFreshnessRequirement::MayAssume);
    let mut known: Option<Option<Entry>> = None;
    loop {
        let current = read_newest_entry_unless_known(ctx, &key, known.take(), "update").await?;
        let Some(entry) = current else {
            return create_on_update(ctx, change, options, attempt, report).await;
        };
        let result = match ctx.subresource {
            Some(SCALE) => {
                Box::pin(attempt_scale(ctx, &mut attempt, change, options, &entry)).await
            }
            _ => attempt_update(ctx, &mut attempt, change, options, &entry).await,
        };
        match attempt.conclude_attempt(ctx, Operation::Update, result, report).await {
            FinalOrRetry::Final(result) => return result,
            FinalOrRetry::Retry { next, current } => (attempt, known) = (*next, current),
        }
    }
}

/// Checks that a replacement names the authorized object, whether that exists or not.
fn check_update_names_target(ctx: &RequestContext<'_>, tree: &Tree) -> Result<(), Status> {
    let mut names = Tree::new();
    if let Some(metadata) = tree.get("metadata") {
        names.insert("metadata".to_owned(), metadata.clone());
    }
    normalize_metadata(ctx, &mut names)?;
    check_names_match_url(ctx, &mut names)
}

/// Creates the object that an update names, if the resource allows that and the user may `create` it.
async fn create_on_update(
    ctx: &RequestContext<'_>,
    change: ReplaceOrPatch<'_>,
    options: WriteOptions,
    attempt: WriteAttempt,
    report: &mut WarningsAndHookReports,
) -> Result<WriteResult, Status> {
    let ReplaceOrPatch::Replace(tree) = change else { return Err(ctx.not_found_status(ctx.name)) };
    if !ctx.resource.allows_create_on_update || ctx.subresource.is_some() {
        return Err(ctx.not_found_status(ctx.name));
    }
    // An object with the uid that the client expects does not exist.
    check_uid_precondition(ctx, tree, &Tree::new())?;
    let authorized = authorize_other_verb(ctx, Verb::Create).await?;
    let mut tree = tree.clone();
    normalize_metadata(ctx, &mut tree)?;
    set_authorized_name(ctx, &mut tree)?;
    let version = api_object::metadata_mut(&mut tree).shift_remove("resourceVersion");
    match version.as_ref().and_then(|own| own.as_str()) {
        None | Some("") => {}
        Some(version) => drop(parse_resource_version(version)?),
    }
    create_with_attempt(&ctx.with_authorization(&authorized), tree, options, attempt, report).await
}

/// Attempts to change an object:
///
/// 1. Check that a node may write the stored object, then compute the next state and complete it. Hooks select and
///    review it as it will be stored.
/// 2. Establish which configuration admits the write.
/// 3. Run the mutating phase, and check again what hooks may have changed.
/// 4. Validate the next state, and run the built-in checks.
/// 5. Assign a cluster IP to a service that needs one. If another service takes the IP first, assign the
///    next one.
/// 6. Run the validating phase, which sees the object as it is stored, and store the object.
async fn attempt_update(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    change: ReplaceOrPatch<'_>,
    options: WriteOptions,
    entry: &Entry,
) -> Result<WriteResult, WriteFailure> {
    let (subresource, namespace) = (ctx.subresource, ctx.namespace.unwrap_or_default());
    let old = ctx.decode_authorized_entry(entry)?;
    check_target_of_node_write(ctx, Operation::Update, &old).await?;
    let (mut new, is_patch) = match change {
        ReplaceOrPatch::Replace(tree) => (tree.clone(), false),
        ReplaceOrPatch::Patch(patch) => {
            let (kind, warnings) = (ctx.written_kind(), &mut attempt.warnings);
            (apply_patch(&kind, patch, &old, entry.mod_rev, warnings)?, true)
        }
    };
    normalize_metadata(ctx, &mut new)?;
    check_names_match_url(ctx, &mut new)?;
    dedup_owner_references(&mut new, &mut attempt.warnings);
    if !is_patch {
        check_uid_precondition(ctx, &new, &old)?;
    }
    check_object_sent_by_node(ctx, &new, &old).await?;
    api_resources::complete_updated_object(ctx.resource, &mut new, &old, subresource)
        .map_err(IntoStatus::into_status)?;
    let write = WriteRequest::for_update(subresource, options, ctx.query)
        .with_stored_revision(entry.mod_rev);
    establish_admission_config_freshness(ctx, attempt, &write, &new).await?;
    let mut new = admit_mutating(ctx, attempt, &write, new, Some(&old)).await?;
    // The object is stored under the authorized name. If a hook changes the name in the object, the validation below
    // refuses it, because the stored object has the authorized name.
    api_object::check_and_set_namespace(&mut new, namespace)?;
    dedup_owner_references(&mut new, &mut attempt.warnings);
    take_and_check_resource_version(ctx, &mut new, entry.mod_rev, is_patch)?;
    api_resources::set_condition_times(ctx.resource, &mut new, &old, ctx.now);
    let mut errors = validate_metadata(ctx, &new);
    errors.append(api_object::validate_metadata_update(&new, &old));
    errors.append(validate_content_update(ctx, &new, &old));
    if !errors.is_empty() {
        check_grants_of_invalid_object(ctx, &new, Some(&old)).await?;
        return Err(Status::invalid_object(&ctx.group_kind(), ctx.name, &errors).into());
    }
    let mut checked = run_built_in_checks(ctx, new, Some(&old), &mut attempt.warnings).await?;
    let without_ip = (ctx.is_service_resource() && subresource.is_none()).then(|| checked.clone());
    loop {
        let addresses = match subresource {
            None => checked.assign_cluster_ip(ctx, Some(&old), options.is_dry_run).await?,
            Some(_) => ClusterIpChange::default(),
        };
        let revision = entry.mod_rev;
        let stored = store_updated_object(
            ctx, attempt, &write, checked, &old, options, revision, &addresses,
        );
        match (stored.await, &without_ip) {
            (Err(WriteFailure::AddressTaken), Some(without_ip)) => checked = without_ip.clone(),
            (result, _) => return result,
        }
        ctx.check_deadline()?;
    }
}

pub(super) async fn store_updated_object(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    checked: CheckedObject,
    old: &Tree,
    options: WriteOptions,
    revision: Revision,
    addresses: &ClusterIpChange,
) -> Result<WriteResult, WriteFailure> {
    let admitted = match ctx.subresource {
        Some(SCALE) => admit_scaled_object(ctx, attempt, write, checked, old).await?,
        _ => admit_object(ctx, attempt, write, checked, Some(old)).await?,
    };
    let written = |shown: VersionedObject| {
        Ok(WriteResult { object: shown, code: 200, object_initialization_wait: None })
    };
    let unchanged = |tree: Tree| VersionedObject { object_tree: tree, revision: Some(revision) };
    if options.is_dry_run {
        return written(unchanged(admitted.into_tree()));
    }
    let key = ctx.key(ctx.name)?;
    let expect = ExpectedKeyState::At(revision);
    if is_deletion_complete(ctx, admitted.object_tree()) {
        let tree = remove_admitted_object(ctx, attempt, &key, admitted, Some(old), expect).await?;
        return written(unchanged(tree));
    }
    // Objects that differ only in the order of their members are equal.
    let shown = match admitted.object_tree() == old {
        true => unchanged(admitted.into_tree()),
        false => persist(ctx, attempt, key.clone(), admitted, expect, addresses, Some(old)).await?,
    };
    if has_failed_initialization(&shown.object_tree) {
        delete_after_failed_initialization(ctx, &key, &shown).await;
    }
    written(shown)
}

/// The errors in the next state of an object, except in its metadata. Initializers may change fields that
/// are immutable later, because no client relies on an uninitialized object.
pub(super) fn validate_content_update(
    ctx: &RequestContext<'_>,
    new: &Tree,
    old: &Tree,
) -> FieldErrors {
    let mut errors = match ctx.subresource.is_none() && has_pending_initializers(old) {
        true => api_resources::validate_create(ctx.resource, new),
        false => api_resources::validate_update(ctx.resource, new, old, ctx.subresource),
    };
    let pending_max = ctx.server.initializer_options.pending_initializers_max;
    let (new, old) = (Initializers::from_object(new), Initializers::from_object(old));
    errors.append(new.validate_on_update(&old, pending_max));
    errors
}

pub(super) fn check_uid_precondition(
    ctx: &RequestContext<'_>,
    new: &Tree,
    old: &Tree,
) -> Result<(), Status> {
    let (own, stored) = (api_object::uid(new), api_object::uid(old));
    if own.is_empty() || own == stored {
        return Ok(());
    }
    let why =
        format!("Precondition failed: UID in precondition: {own}, UID in object meta: {stored}");
    Err(Status::conflict(&ctx.resource.group_resource(), ctx.name, &why))
}

/// Removes the resourceVersion from an object, and checks that it is that of the stored object.
pub(super) fn take_and_check_resource_version(
    ctx: &RequestContext<'_>,
    new: &mut Tree,
    revision: Revision,
    is_patch: bool,
) -> Result<(), Status> {
    let version = api_object::metadata_mut(new).shift_remove("resourceVersion");
    let version = version.as_ref().and_then(|own| own.as_str()).unwrap_or_default();
    if version.is_empty() || version == "0" {
        if is_patch || !ctx.resource.is_resource_version_required {
            return Ok(());
        }
        let mut errors = FieldErrors::new();
        let path = FieldPath::root("metadata");
        let path = path.child("resourceVersion");
        errors.push(path.invalid(0, "must be specified for an update"));
        // Kubernetes has the resource in place of the kind here.
        let resource = GroupKind::new(&ctx.resource.group, &ctx.resource.plural);
        return Err(Status::invalid_object(&resource, ctx.name, &errors));
    }
    if parse_resource_version(version)? == revision.as_u64() {
        return Ok(());
    }
    let why = "the object has been modified; please apply your changes to the latest version \
               and try again";
    Err(Status::conflict(&ctx.resource.group_resource(), ctx.name, why))
}

/// Whether an object is marked for deletion and has neither finalizers nor a grace period left.
fn is_deletion_complete(ctx: &RequestContext<'_>, tree: &Tree) -> bool {
    api_object::is_ready_for_removal(tree) && !api_resources::blocks_removal(ctx.resource, tree)
}
