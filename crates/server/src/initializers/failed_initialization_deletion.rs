//! The deletion of objects that an initializer marked as failed.

use std::sync::Arc;

use admission::Initializers;
use api_object::Tree;
use authz::RequestInfo;
use store::{At, Key, Revision, WriteError};
use tokio::sync::oneshot;

use super::object_initialization_tracker::ObjectInitializationJob;
use crate::rest::{RequestContext, VersionedObject};
use crate::server_state::ServerState;

/// The number of tries to delete an object. The object stays hidden if they all fail.
const TRIES_MAX: usize = 60;

/// An object that an initializer marked as failed and that has to be deleted.
#[derive(Debug)]
pub(crate) struct FailedInitializationDeletion {
    key: Key,
    object_tree: Tree,
    revision: Revision,
    /// The request of the audit event of the deletion; `None` if the deletion is part of a recorded request.
    audit_request_info: Option<RequestInfo>,
    deletion_done_sender: oneshot::Sender<()>,
}

/// The audit annotation of a deletion that this server completes for another one.
const COMPLETED_DELETION: &str = "initialization.portcullis.io/failed";

impl FailedInitializationDeletion {
    /// An object whose server died before it deleted the object. No request waits for the deletion.
    pub(super) fn left_by_dead_server(
        key: Key,
        tree: Tree,
        revision: Revision,
        audit_request_info: Option<RequestInfo>,
    ) -> Self {
        let (deletion_done_sender, _) = oneshot::channel();
        Self { key, object_tree: tree, revision, audit_request_info, deletion_done_sender }
    }
}

/// Deletes a stored object that an initializer marked as failed, whatever finalizers it has. The deletion
/// goes on if the client does not wait for it.
pub(crate) async fn delete_after_failed_initialization(
    ctx: &RequestContext<'_>,
    key: &Key,
    stored: &VersionedObject,
) {
    let (deletion_done_sender, is_deleted) = oneshot::channel();
    let (key, tree) = (key.clone(), stored.object_tree.clone());
    let revision = stored.revision.unwrap_or(Revision::ZERO);
    let failed = FailedInitializationDeletion {
        key,
        object_tree: tree,
        revision,
        audit_request_info: None,
        deletion_done_sender,
    };
    ctx.server
        .object_initialization_tracker
        .enqueue_initialization_job(ObjectInitializationJob::DeleteFailed(Box::new(failed)))
        .await;
    // A deletion that does not succeed is logged.
    let _ = is_deleted.await;
}

/// Whether an initializer marked an object as failed.
pub(crate) fn has_failed_initialization(tree: &Tree) -> bool {
    Initializers::from_object(tree).failure_written_by_initializer.is_some()
}

pub(super) async fn retry_delete_after_failed_initialization(
    server: Arc<ServerState>,
    failed: FailedInitializationDeletion,
) {
    let FailedInitializationDeletion {
        key,
        mut object_tree,
        mut revision,
        audit_request_info,
        deletion_done_sender,
    } = failed;
    let uid = api_object::uid(&object_tree).to_owned();
    for _ in 0..TRIES_MAX {
        let current = match server.delete_uninitialized_object(&key, &object_tree, revision).await {
            Ok(()) => {
                if let Some(request) = &audit_request_info {
                    let why = "an initializer gave up on the object before its server ended";
                    server.audit_loopback_write(request, COMPLETED_DELETION.to_owned(), why);
                }
                None
            }
            Err(WriteError::Conflict { current }) => current,
            Err(error) => {
                server.log.warn(
                    "an object whose initialization failed cannot be deleted yet",
                    &[("key", &key), ("why", &error)],
                );
                let again = server
                    .clock
                    .elapsed()
                    .saturating_add(server.initializer_options.stale_configuration_retry_interval);
                server.clock.wait_until_elapsed(again).await;
                match server.store.get(&key, At::Newest).await {
                    Ok(got) => got.entry,
                    Err(_) => continue,
                }
            }
        };
        // Another writer may have changed the object, but the failure is final. An object of the same name with
        // another uid is not deleted.
        let next: Option<Result<Tree, _>> =
            current.as_ref().map(|entry| codec::decode_stored_object(&entry.value));
        match (current, next) {
            (Some(entry), Some(Ok(next)))
                if api_object::uid(&next) == uid && has_failed_initialization(&next) =>
            {
                (object_tree, revision) = (next, entry.mod_rev);
            }
            _ => {
                let _ = deletion_done_sender.send(());
                return;
            }
        }
    }
    server.log.error(
        "an object whose initialization failed is not deleted and stays hidden",
        &[("key", &key)],
    );
}
