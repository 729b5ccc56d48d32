//! The garbage collector: deletes dependents when their owners are gone.
//!
//! One watch over the whole store maintains a graph of objects and their owners; only objects that have owner
//! references are in it. Three events create work items: an owner is gone, an owner waits for its dependents to be
//! deleted or orphaned, and a new object names an owner that does not exist.

mod owner_graph;
mod process_garbage_collector_item;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use api_object::Status;
use store::{KeyError, ListRequest, Prefix, ReadError, Revision, WatchError};
use tokio::task::{Id, JoinSet};

use self::owner_graph::{GarbageCollectorWorkItem, SharedOwnerGraph};
use self::process_garbage_collector_item::process_garbage_collector_item;
use crate::server_state::ServerState;

/// The delay before failed work is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How many work items are processed at one time. Admission hooks are called for deletions, so some are
/// slow.
const WORKERS_MAX: usize = 64;
/// How many of them are in one namespace, so that slow hooks of one tenant leave workers for the others.
const WORKERS_PER_NAMESPACE_MAX: usize = 8;

/// The store cannot be watched.
#[derive(Debug, thiserror::Error)]
enum WatchStoreError {
    #[error(transparent)]
    Prefix(#[from] KeyError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Watch(#[from] WatchError),
}

/// The work items that are being processed.
#[derive(Default)]
struct GarbageCollectorWorkers {
    running_tasks: JoinSet<Result<(), Status>>,
    /// Each item with its namespace, or with the key prefix of a cluster-scoped resource.
    running_work_items: HashMap<Id, (GarbageCollectorWorkItem, String)>,
}

impl GarbageCollectorWorkers {
    fn has_free_worker_for(&self, item: &GarbageCollectorWorkItem, namespace: &str) -> bool {
        let in_namespace = self.running_work_items.values().filter(|(_, other)| other == namespace);
        self.running_work_items.len() < WORKERS_MAX
            && in_namespace.count() < WORKERS_PER_NAMESPACE_MAX
            && self
                .running_work_items
                .values()
                .all(|(running_work_items, _)| running_work_items != item)
    }

    /// Starts as many work items as there is room for and leaves the others in the queue.
    fn start_queued_work_items(
        &mut self,
        server: &Arc<ServerState>,
        graph: &SharedOwnerGraph,
        queue: &mut HashSet<GarbageCollectorWorkItem>,
    ) {
        queue.retain(|item| {
            let namespace = api_resources::tenant_of_key(&server.store_key_prefix, item.key());
            if !self.has_free_worker_for(item, namespace) {
                return true;
            }
            let (server, graph, task_item) = (Arc::clone(server), graph.clone(), item.clone());
            let task = self.running_tasks.spawn(async move {
                process_garbage_collector_item(&server, &graph, &task_item).await
            });
            self.running_work_items.insert(task.id(), (item.clone(), namespace.to_owned()));
            false
        });
    }

    /// Waits until an item was processed, and returns it if that failed.
    async fn wait_for_failed_item(
        &mut self,
        server: &ServerState,
    ) -> Option<GarbageCollectorWorkItem> {
        let (id, why) = match self.running_tasks.join_next_with_id().await? {
            Ok((id, Ok(()))) => (id, None),
            Ok((id, Err(status))) => (id, Some(status.message)),
            Err(error) => (error.id(), Some(error.to_string())),
        };
        let (item, _) = self.running_work_items.remove(&id)?;
        let why = why?;
        server.log.warn("garbage cannot be collected", &[("key", item.key()), ("why", &why)]);
        Some(item)
    }
}

/// Watches the store and processes work items until the task is dropped.
pub(crate) async fn collect_garbage(server: Arc<ServerState>) {
    loop {
        if let Err(error) = watch_and_collect_garbage(&server).await {
            let message = "the garbage collector cannot watch the store";
            server.log.warn(message, &[("why", &error)]);
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn watch_and_collect_garbage(server: &Arc<ServerState>) -> Result<(), WatchStoreError> {
    let prefix = Prefix::new(&format!("{}/", server.store_key_prefix))?;
    let graph = SharedOwnerGraph::default();
    let mut queue: HashSet<GarbageCollectorWorkItem> = HashSet::new();
    let revision = load_owner_graph(server, &graph, &prefix, &mut queue).await?;
    let mut watch = server.store.watch(prefix, revision).await?;
    let mut workers = GarbageCollectorWorkers::default();
    let mut failed: Vec<GarbageCollectorWorkItem> = Vec::new();
    let mut retry = tokio::time::interval(RETRY);
    loop {
        workers.start_queued_work_items(server, &graph, &mut queue);
        tokio::select! {
            batch = watch.next() => {
                let batch = batch?;
                let mut graph = graph.lock();
                for event in &batch.events {
                    graph.apply_store_event(event, &mut queue);
                }
            }
            item = workers.wait_for_failed_item(server), if !workers.running_work_items.is_empty() => {
                failed.extend(item);
            }
            // Failed work is retried even if the store does not change.
            _ = retry.tick(), if !failed.is_empty() => queue.extend(failed.drain(..)),
        }
    }
}

/// Fills the graph from one list of the store, and returns the revision of that list.
async fn load_owner_graph(
    server: &ServerState,
    graph: &SharedOwnerGraph,
    prefix: &Prefix,
    queue: &mut HashSet<GarbageCollectorWorkItem>,
) -> Result<Revision, ReadError> {
    let page = server.store.list(prefix, ListRequest::default()).await?;
    let mut graph = graph.lock();
    for item in &page.items {
        graph.insert(&item.key, &item.entry, queue);
    }
    Ok(page.revision)
}
