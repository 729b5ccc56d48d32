//! The end of objects that an initializer has given up on (admission §6.3, B3).

use std::sync::Arc;

use admission::Initializers;
use api_object::Tree;
use authz::RequestInfo;
use store::{At, Key, Revision, Store, WriteError};
use tokio::sync::oneshot;

use super::tracker::Job;
use crate::rest::Call;
use crate::server_state::ServerState;

/// How often it is tried to delete an object. It stays hidden if that does not succeed.
const TRIES_MAX: usize = 60;

/// An object that goes.
#[derive(Debug)]
pub(crate) struct Failed {
    key: Key,
    tree: Tree,
    revision: Revision,
    /// How its deletion stands in the audit log; `None` if it is part of a request that does.
    request: Option<RequestInfo>,
    ended: oneshot::Sender<()>,
}

/// The audit annotation of a deletion that a request began and this server completes.
const LEFT_BEHIND: &str = "initialization.portcullis.io/failed";

impl Failed {
    /// An object whose server died before it was deleted. Nobody waits for its end.
    pub(super) fn left_behind(
        key: Key,
        tree: Tree,
        revision: Revision,
        request: Option<RequestInfo>,
    ) -> Self {
        let (ended, _) = oneshot::channel();
        Self { key, tree, revision, request, ended }
    }
}

impl<S: Store> Call<'_, S> {
    /// Ends an object that was stored with a result, whatever finalizers it has. That goes on if the
    /// client does not wait for it.
    pub(crate) async fn end_failed(&self, key: &Key, tree: &Tree, revision: Revision) {
        let (ended, end) = oneshot::channel();
        let (key, tree) = (key.clone(), tree.clone());
        let failed = Failed { key, tree, revision, request: None, ended };
        self.server.initialization_tracker.begin(Job::End(Box::new(failed))).await;
        // What did not come to an end was logged.
        let _ = end.await;
    }
}

/// Whether somebody has given up on an object.
pub(crate) fn has_failed(tree: &Tree) -> bool {
    Initializers::from_object(tree).result.is_some()
}

pub(super) async fn end_failed<S: Store>(server: Arc<ServerState<S>>, failed: Failed) {
    let Failed { key, mut tree, mut revision, request, ended } = failed;
    let uid = api_object::uid(&tree).to_owned();
    for _ in 0..TRIES_MAX {
        let current = match server.delete_own(&key, &tree, revision).await {
            Ok(()) => {
                if let Some(request) = &request {
                    let why = "an initializer gave up on the object before its server ended";
                    server.audit_loopback_write(request, LEFT_BEHIND.to_owned(), why);
                }
                None
            }
            Err(WriteError::Conflict { current }) => current,
            Err(error) => {
                server.log.warn(
                    "an object that failed can not be deleted",
                    &[("key", &key), ("why", &error)],
                );
                let again =
                    server.clock.elapsed().saturating_add(server.initialization.stale_retry);
                server.clock.sleep_until(again).await;
                match server.store.get(&key, At::Newest).await {
                    Ok(got) => got.entry,
                    Err(_) => continue,
                }
            }
        };
        // Somebody may have changed it since, but not that it failed; another one of its name stays.
        let next: Option<Result<Tree, _>> =
            current.as_ref().map(|entry| codec::from_stored(&entry.value));
        match (current, next) {
            (Some(entry), Some(Ok(next))) if api_object::uid(&next) == uid && has_failed(&next) => {
                (tree, revision) = (next, entry.mod_rev);
            }
            _ => {
                let _ = ended.send(());
                return;
            }
        }
    }
    server.log.error("an object that failed stays", &[("key", &key)]);
}
