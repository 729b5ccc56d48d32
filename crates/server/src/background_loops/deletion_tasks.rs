//! The tasks that delete terminating namespaces and definitions. Each object has a task of its own, because
//! admission hooks are called for the deletion of its contents: slow hooks of one tenant do not delay the
//! deletion of another tenant's namespace.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use api_object::{Status, Tree};
use component_base::Log;
use tokio::task::{Id, JoinSet};

const TASKS_MAX: usize = 256;

/// The delay between two attempts. It doubles, up to the maximum, while the number of objects does not
/// change.
const RETRY: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// The running tasks, each with the name of the object that it deletes.
#[derive(Default)]
pub(super) struct DeletionTasks {
    running_tasks: JoinSet<()>,
    names_by_task: HashMap<Id, Arc<str>>,
    names_being_deleted: HashSet<Arc<str>>,
}

impl DeletionTasks {
    /// Starts a task, unless one of that name runs or [`TASKS_MAX`] is reached.
    pub(super) fn start<T>(&mut self, name: &str, task: impl FnOnce() -> T)
    where
        T: Future<Output = ()> + Send + 'static,
    {
        if self.names_being_deleted.len() < TASKS_MAX && !self.names_being_deleted.contains(name) {
            let name: Arc<str> = Arc::from(name);
            let task = self.running_tasks.spawn(task());
            self.names_by_task.insert(task.id(), Arc::clone(&name));
            self.names_being_deleted.insert(name);
        }
    }

    /// Waits until a task ends; forever if none runs. Further tasks that have ended are removed too.
    pub(super) async fn wait_for_any_deletion_task(&mut self) {
        let mut ended = match self.running_tasks.join_next_with_id().await {
            Some(ended) => Some(ended),
            None => std::future::pending().await,
        };
        while let Some(task) = ended {
            let id = task.map_or_else(|error| error.id(), |(id, ())| id);
            if let Some(name) = self.names_by_task.remove(&id) {
                self.names_being_deleted.remove(&name);
            }
            ended = self.running_tasks.try_join_next_with_id();
        }
    }
}

/// Repeats an attempt to delete an object until nothing more is to be done. An attempt returns how many
/// objects it still found inside, or `None` if nothing more is to be done.
pub(super) async fn retry_until_deleted<T>(
    log: Log,
    failure_message: &str,
    name: &str,
    mut attempt: impl FnMut() -> T,
) where
    T: Future<Output = Result<Option<usize>, Status>>,
{
    let (mut n_before, mut delay) = (usize::MAX, RETRY);
    loop {
        let n_left = match attempt().await {
            Ok(Some(n_left)) => n_left,
            Ok(None) => return,
            Err(status) if status.is_status_from_this_server() && status.code == 404 => return,
            Err(status) if status.is_status_from_this_server() && status.code == 409 => n_before,
            Err(status) => {
                log.warn(failure_message, &[("name", &name), ("why", &status.message)]);
                n_before
            }
        };
        delay = match n_left == n_before {
            true => delay.saturating_mul(2).min(RETRY_MAX),
            false => RETRY,
        };
        n_before = n_left;
        tokio::time::sleep(delay).await;
    }
}

/// The stored object if it has a deletion timestamp, so that deleting it again does nothing.
pub(super) fn decode_if_terminating(value: &[u8]) -> Option<Tree> {
    memchr::memmem::find(value, b"\"deletionTimestamp\"")?;
    codec::decode_stored_object(value).ok().filter(api_object::is_terminating)
}

/// Whether a stored object has a deletion timestamp, so that deleting it again does nothing.
pub(super) fn is_stored_as_terminating(value: &[u8]) -> bool {
    decode_if_terminating(value).is_some()
}
