//! The verb `delete`: removes an object, or marks it for deletion.

use admission::Operation;
use api_object::{DeleteOptions, Status, Tree};
use api_resources::Resource;
use jiff::SignedDuration;
use serde_json::{Value, json};
use store::{Entry, ExpectedKeyState};

use crate::admission::{
    AdmissionFreshnessRequirement, AdmittedDeletion, FinalOrRetry, RemovableOrPendingDeletion,
    WriteAttempt, WriteRequest, admit_deletion, admit_mutating, check_target_of_node_write,
    establish_admission_config_freshness,
};
use crate::cluster_ips::ClusterIpChange;
use crate::rest::get::read_newest_entry_unless_known;
use crate::rest::persist::{persist, remove_admitted_object};
use crate::rest::{RequestContext, VersionedObject, WarningsAndHookReports, WriteFailure};
use crate::undecodable_objects;

/// The result of a delete.
#[derive(Debug)]
pub(crate) enum DeleteResult {
    /// The object was removed.
    Removed(VersionedObject),
    /// The object is marked for deletion; its finalizers or its grace period delay the removal.
    Terminating(VersionedObject),
}

/// Deletes the authorized object, or marks it for deletion if it has finalizers or a grace period.
///
/// 1. Read the object, unless a failed transaction returned it.
/// 2. Attempt to admit the deletion and to remove or mark the object.
/// 3. Repeat the attempt if its result is not final, see [`WriteAttempt::conclude_attempt`].
pub(crate) async fn delete(
    ctx: &RequestContext<'_>,
    options: &DeleteOptions,
    report: &mut WarningsAndHookReports,
) -> Result<DeleteResult, Status> {
    let key = ctx.key(ctx.name)?;
    let mut attempt = WriteAttempt::new(AdmissionFreshnessRequirement::MayAssume);
    let mut known: Option<Option<Entry>> = None;
    loop {
        let current = read_newest_entry_unless_known(ctx, &key, known.take(), "delete").await?;
        let entry = current.ok_or_else(|| ctx.not_found_status(ctx.name))?;
        let result = attempt_delete(ctx, &mut attempt, options, &entry).await;
        match attempt.conclude_attempt(ctx, Operation::Delete, result, report).await {
            FinalOrRetry::Final(result) => return result,
            FinalOrRetry::Retry { next, current } => (attempt, known) = (*next, current),
        }
    }
}

/// Attempts to delete an object:
///
/// 1. Decode the object. One that cannot be decoded is deleted by a placeholder. If the client expects that it cannot be
///    decoded, another one is a conflict.
/// 2. Check that a node may delete the stored object, then the preconditions of the client.
/// 3. Establish which configuration admits the deletion, and run both phases.
/// 4. Mark a running pod for deletion after its grace period.
/// 5. Otherwise remove the object, or mark it for deletion if it has finalizers.
async fn attempt_delete(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    options: &DeleteOptions,
    entry: &Entry,
) -> Result<DeleteResult, WriteFailure> {
    // No later write could repair metadata of wrong types, so the object would never be removed.
    let stored = ctx.decode_authorized_entry(entry).and_then(|mut tree| {
        let shaped = api_object::normalize_metadata(&mut tree);
        shaped.map_err(|error| undecodable_objects::undecodable_status(&error.to_string()))?;
        Ok(tree)
    });
    let (old, is_placeholder) = match stored {
        Ok(_) if options.ignores_read_error => {
            let why = "unsafe deletion is not allowed because the object is decodable from storage";
            let resource = ctx.resource.group_resource();
            return Err(Status::conflict(&resource, ctx.name, why).into());
        }
        Ok(old) => (old, false),
        Err(status) => {
            let (namespace, name) = (ctx.namespace, ctx.name);
            let (resource, stored) = (ctx.resource, &entry.value);
            (
                undecodable_objects::placeholder_for_deletion(
                    resource,
                    namespace,
                    name,
                    stored,
                    &status.message,
                ),
                true,
            )
        }
    };
    check_target_of_node_write(ctx, Operation::Delete, &old).await?;
    options.check_preconditions(&ctx.group_kind(), ctx.name, &old, entry.mod_rev.as_u64())?;
    let write = WriteRequest::for_delete(options, ctx.is_delete_collection_member)
        .with_stored_revision(entry.mod_rev);
    establish_admission_config_freshness(ctx, attempt, &write, &old).await?;
    let old = admit_mutating(ctx, attempt, &write, old, None).await?;
    let admitted = admit_deletion(ctx, attempt, &write, old).await?;
    delete_admitted_object(ctx, attempt, options, admitted, entry, is_placeholder).await
}

/// Removes an object whose deletion was admitted, or marks it for deletion. `entry` is its stored form; another
/// writer who changes the object in the meantime causes a conflict.
pub(crate) async fn delete_admitted_object(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    options: &DeleteOptions,
    admitted: AdmittedDeletion,
    entry: &Entry,
    is_placeholder: bool,
) -> Result<DeleteResult, WriteFailure> {
    let key = ctx.key(ctx.name)?;
    let finalizers = match ctx.server.api_settings.has_garbage_collector {
        true => {
            options.finalizers(admitted.object_tree(), ctx.resource.orphans_dependents_by_default)
        }
        false => {
            api_object::finalizers(admitted.object_tree()).into_iter().map(str::to_owned).collect()
        }
    };
    if is_placeholder && !options.is_dry_run {
        ctx.server.log.warn("an object that cannot be decoded is deleted", &[("key", &key)]);
    }
    if let Some(seconds) = grace_period_seconds(ctx, options, admitted.object_tree()) {
        return delete_pod_gracefully(ctx, attempt, options, admitted, entry, seconds).await;
    }
    let (expect, revision) = (ExpectedKeyState::At(entry.mod_rev), Some(entry.mod_rev));
    // No controller can process the finalizers of an object that cannot be decoded: not even the resource that a
    // definition defines is known. Its objects are deleted before the next definition with the same name is served.
    let is_forced = is_placeholder;
    match admitted.into_removable_or_pending_deletion(ctx.resource, finalizers, is_forced, ctx.now)
    {
        RemovableOrPendingDeletion::Removable(admitted) => {
            let tree = match options.is_dry_run {
                true => admitted.into_tree(),
                false => remove_admitted_object(ctx, attempt, &key, admitted, None, expect).await?,
            };
            Ok(DeleteResult::Removed(VersionedObject { object_tree: tree, revision }))
        }
        RemovableOrPendingDeletion::Pending { marked, is_changed, .. }
            if !is_changed || options.is_dry_run =>
        {
            Ok(DeleteResult::Terminating(VersionedObject {
                object_tree: marked.into_tree(),
                revision,
            }))
        }
        RemovableOrPendingDeletion::Pending { marked, before, .. } => {
            let none = ClusterIpChange::default();
            let shown = persist(ctx, attempt, key, marked, expect, &none, Some(&before)).await?;
            Ok(DeleteResult::Terminating(shown))
        }
    }
}

/// The grace period of a pod that runs on a node; `None` if the object is removed at once.
fn grace_period_seconds(
    ctx: &RequestContext<'_>,
    options: &DeleteOptions,
    old: &Tree,
) -> Option<i64> {
    if !ctx.server.api_settings.has_pod_grace_periods || !is_running_pod(ctx.resource, old) {
        return None;
    }
    let seconds = match options.grace_period_seconds {
        Some(seconds) if seconds < 0 => 1,
        Some(seconds) => seconds,
        None => pod_grace_seconds(old),
    };
    (seconds != 0).then_some(seconds)
}

/// Marks a pod for deletion after a grace period. It stays until a delete without grace period.
async fn delete_pod_gracefully(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    options: &DeleteOptions,
    admitted: AdmittedDeletion,
    entry: &Entry,
    seconds: i64,
) -> Result<DeleteResult, WriteFailure> {
    let old = admitted.object_tree();
    let earlier =
        api_object::integer_member(api_object::metadata(old), "deletionGracePeriodSeconds");
    let revision = Some(entry.mod_rev);
    if api_object::is_terminating(old) && earlier <= seconds {
        return Ok(DeleteResult::Terminating(VersionedObject {
            object_tree: admitted.into_tree(),
            revision,
        }));
    }
    let ends = ctx.now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(ctx.now);
    let (marked, before) = admitted.mark_for_graceful_deletion(ends, seconds);
    if options.is_dry_run {
        return Ok(DeleteResult::Terminating(VersionedObject {
            object_tree: marked.into_tree(),
            revision,
        }));
    }
    let (key, expect) = (ctx.key(ctx.name)?, ExpectedKeyState::At(entry.mod_rev));
    let none = ClusterIpChange::default();
    let shown = persist(ctx, attempt, key, marked, expect, &none, Some(&before)).await?;
    Ok(DeleteResult::Terminating(shown))
}

/// The `Status` in the response to a delete that removed an object.
pub(crate) fn deletion_success_status(resource: &Resource, tree: &Tree) -> Tree {
    let mut details = json!({
        "name": api_object::name(tree),
        "kind": resource.plural,
        "uid": api_object::uid(tree),
    });
    if let (false, Value::Object(members)) = (resource.group.is_empty(), &mut details) {
        members.insert("group".to_owned(), resource.group.as_str().into());
    }
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    });
    status.as_object().cloned().unwrap_or_default()
}

/// The grace period of a pod that does not specify one.
const GRACE_SECONDS: i64 = 30;

fn is_running_pod(resource: &Resource, tree: &Tree) -> bool {
    let member = |part: &str, member: &str| {
        tree.get(part).and_then(|part| part.get(member)).and_then(Value::as_str).unwrap_or_default()
    };
    resource.group.is_empty()
        && resource.kind == "Pod"
        && !member("spec", "nodeName").is_empty()
        && !matches!(member("status", "phase"), "Succeeded" | "Failed")
}

fn pod_grace_seconds(pod: &Tree) -> i64 {
    let own = pod.get("spec").and_then(|spec| spec.get("terminationGracePeriodSeconds"));
    own.and_then(Value::as_i64).unwrap_or(GRACE_SECONDS).max(0)
}
