//! Stores and removes admitted objects.

use api_object::{Status, Tree};
use store::{Delete, Entry, ExpectedKeyState, Key, Put, Revision, VALUE_BYTES_MAX, WriteError};

use crate::admission::{AdmittedObject, WriteAttempt};
use crate::cluster_ips::{ClusterIpChange, is_ip_reservation_key};
use crate::cluster_snapshot::is_snapshot_key;
use crate::out_of_space;
use crate::rest::{CreatePreconditions, RequestContext, VersionedObject};

/// Why an attempt to write did not write.
pub(crate) enum WriteFailure {
    /// Another writer changed the object; this is the object as it is now.
    Conflict(Option<Entry>),
    /// The config revision key is not at the revision that the write requires.
    ConfigRevisionMoved,
    /// Another service took the cluster IP that the service was to have.
    AddressTaken,
    /// The response of the request. Nothing was written.
    Rejected(Status),
    /// The response of the request. It is unknown whether the store executed the write.
    OutcomeUnknown(Status),
}

impl From<Status> for WriteFailure {
    fn from(status: Status) -> Self {
        Self::Rejected(status)
    }
}

/// Stores an admitted object, in place of `stored` if it exists, and waits until the local snapshot contains
/// it.
///
/// The transaction requires that the stored object is as expected, that the config revision key is
/// unchanged if the configuration was assumed, and for a new object that its namespace and its definition
/// are those that were checked. It takes and frees cluster IPs in the same revision.
pub(crate) async fn persist(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    key: Key,
    admitted: AdmittedObject,
    expect: ExpectedKeyState,
    addresses: &ClusterIpChange,
    stored: Option<&Tree>,
) -> Result<VersionedObject, WriteFailure> {
    let value = codec::encode_stored_object(admitted.object_tree()).into();
    let is_snapshot_key = is_snapshot_key(&ctx.server.store_key_prefix, &key);
    let mark = admitted
        .admission_config_revision_action(&ctx.server.store_key_prefix)
        .map_err(Status::from)?;
    let put =
        Put { key, value, expected_state: expect, ttl: ctx.ttl(), key_group_revision_action: mark };
    let mut transaction = addresses.add_ip_reservations_to_transaction(put.into());
    if stored.is_some_and(|stored| is_step_of_object_deletion(admitted.object_tree(), stored)) {
        transaction = transaction.mark_as_step_of_object_deletion();
    }
    let (operation, mut preconditions) = match expect {
        ExpectedKeyState::Absent => {
            ("create", CreatePreconditions::check_namespace_and_crd(ctx, &admitted).await?)
        }
        ExpectedKeyState::At(_) => ("update", CreatePreconditions::default()),
    };
    ctx.write_begun_flag.mark_write_begun();
    let written = loop {
        let transaction = preconditions.add_preconditions_to_transaction(transaction.clone());
        let written = ctx.time_store_request(operation, ctx.server.store.write(transaction)).await;
        // INVARIANT of store::Transaction: conditions are checked in their order, and that on the config
        // revision key comes before the preconditions.
        if written.is_ok() || preconditions.has_failed_precondition(&written) {
            attempt.record_admission_config_verified();
        }
        if let Some(written) =
            preconditions.recheck_changed_precondition(ctx, written, &admitted)?
        {
            break written;
        }
    };
    let revision = await_write_visible(ctx, written, operation, is_snapshot_key).await?;
    Ok(VersionedObject { object_tree: admitted.into_tree(), revision: Some(revision) })
}

/// Removes an object whose removal was admitted, and waits until the local snapshot shows that. The cluster
/// IP of the stored object is freed in the same revision. `stored` is the stored object if the admitted one
/// is its next state.
pub(crate) async fn remove_admitted_object(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    key: &Key,
    admitted: AdmittedObject,
    stored: Option<&Tree>,
    expect: ExpectedKeyState,
) -> Result<Tree, WriteFailure> {
    let mark = admitted
        .admission_config_revision_action(&ctx.server.store_key_prefix)
        .map_err(Status::from)?;
    let delete =
        Delete { key: key.clone(), expected_state: expect, key_group_revision_action: mark };
    let stored = stored.unwrap_or(admitted.object_tree());
    ctx.write_begun_flag.mark_write_begun();
    loop {
        let held = ctx.server.find_owned_ip_reservation(stored).await;
        let held = held.map_err(|error| ctx.store_read_error_status("delete", &error))?;
        let transaction = ClusterIpChange::releasing_ip_reservation(held)
            .add_ip_reservations_to_transaction(delete.clone().into());
        let written = ctx.time_store_request("delete", ctx.server.store.write(transaction)).await;
        if written.is_ok() {
            attempt.record_admission_config_verified();
        }
        let is_snapshot_key = is_snapshot_key(&ctx.server.store_key_prefix, key);
        match await_write_visible(ctx, written, "delete", is_snapshot_key).await {
            Ok(_) => return Ok(admitted.into_tree()),
            Err(WriteFailure::AddressTaken) => ctx.check_deadline()?,
            Err(failure) => return Err(failure),
        }
    }
}

/// Waits until the local snapshot contains a write, or returns why the write failed.
pub(crate) async fn await_write_visible(
    ctx: &RequestContext<'_>,
    written: Result<Revision, WriteError>,
    operation: &str,
    is_snapshot_key: bool,
) -> Result<Revision, WriteFailure> {
    match written {
        Ok(revision) => {
            if is_snapshot_key {
                ctx.server.snapshot_cache.wait_for_revision(revision).await;
            }
            Ok(revision)
        }
        Err(WriteError::Conflict { current }) => Err(WriteFailure::Conflict(current)),
        Err(WriteError::ValueTooLarge { .. }) => Err(Status::too_large(VALUE_BYTES_MAX).into()),
        Err(WriteError::NoSpace { tenant }) => {
            Err(out_of_space::out_of_space_status(tenant.as_deref()).into())
        }
        Err(WriteError::Throttled { tenant, retry_after }) => {
            Err(out_of_space::write_throttled_status(&tenant, retry_after).into())
        }
        Err(WriteError::Timeout) => Err(WriteFailure::OutcomeUnknown(Status::timeout())),
        Err(WriteError::ConditionFailed { key, .. })
            if is_ip_reservation_key(&ctx.server.store_key_prefix, &key) =>
        {
            Err(WriteFailure::AddressTaken)
        }
        Err(WriteError::ConditionFailed { .. }) => Err(WriteFailure::ConfigRevisionMoved),
        Err(WriteError::Unavailable(why)) => {
            ctx.server.log.error("the store cannot be written", &[("why", &why)]);
            let resource = ctx.resource.group_resource();
            Err(WriteFailure::OutcomeUnknown(Status::store_unavailable(&resource, operation)))
        }
        Err(WriteError::DiskFull { reason }) => {
            ctx.server.log.error("the disk of the store is full", &[("why", &reason)]);
            Err(WriteFailure::OutcomeUnknown(out_of_space::disk_full_status()))
        }
    }
}

/// Whether an update leads to the removal of an object: it marks the object for deletion, or it removes a
/// finalizer of a marked object. A marked object gets no new finalizers, so an object has few such updates.
fn is_step_of_object_deletion(new: &Tree, stored: &Tree) -> bool {
    let n_finalizers = |tree: &Tree| {
        let own = tree.get("spec").and_then(|spec| spec.get("finalizers"));
        let own = own.and_then(serde_json::Value::as_array).map_or(0, Vec::len);
        api_object::finalizers(tree).len() + own
    };
    api_object::is_terminating(new)
        && (!api_object::is_terminating(stored) || n_finalizers(new) < n_finalizers(stored))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn few_updates_of_an_object_lead_to_its_removal() {
        let object = |is_going: bool, finalizers: &[&str], own: &[&str]| {
            let mut metadata = json!({"finalizers": finalizers});
            if is_going {
                metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            match json!({"metadata": metadata, "spec": {"finalizers": own}}) {
                Value::Object(tree) => tree,
                other => panic!("no object: {other}"),
            }
        };
        let (stays, goes) = (object(false, &["a"], &[]), object(true, &["a"], &[]));
        for (new, stored, want) in [
            (&goes, &stays, true),
            (&goes, &goes, false),
            (&stays, &stays, false),
            (&object(false, &[], &[]), &stays, false),
            (&object(true, &[], &[]), &goes, true),
            (&object(true, &["a"], &["b"]), &goes, false),
            (&object(true, &["a"], &[]), &object(true, &["a"], &["kubernetes"]), true),
        ] {
            assert_eq!(is_step_of_object_deletion(new, stored), want, "{new:?} {stored:?}");
        }
    }
}
