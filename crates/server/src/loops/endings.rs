//! The ends of namespaces and definitions. Each has a task of its own, because admission hooks are asked
//! about the deletion of what is in it: slow hooks of one tenant do not hold up the others.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use api_object::Status;
use tokio::task::{Id, JoinSet};

use crate::log::Log;

/// How many end at one time.
const TASKS_MAX: usize = 256;

/// When something that is not empty yet is looked at again; twice as late each time that nothing has
/// changed in it, up to the latest.
const RETRY: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// The tasks that are running, each with the name of what it ends.
#[derive(Default)]
pub(super) struct Endings {
    tasks: JoinSet<()>,
    running: HashMap<Id, String>,
}

impl Endings {
    /// Begins a task, unless there is one of that name or no room.
    pub(super) fn begin<T>(&mut self, name: &str, task: impl FnOnce() -> T)
    where
        T: Future<Output = ()> + Send + 'static,
    {
        if self.running.len() < TASKS_MAX && self.running.values().all(|own| own != name) {
            let task = self.tasks.spawn(task());
            self.running.insert(task.id(), name.to_owned());
        }
    }

    /// Waits until a task is over; for ever if there is none.
    pub(super) async fn next_ended(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(ended) => {
                let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                self.running.remove(&id);
            }
            None => std::future::pending().await,
        }
    }
}

/// Makes attempts until something has ended. An attempt returns how many objects there still are in it, or
/// `None` if there is nothing more to do.
pub(super) async fn end_by<T>(log: Log, what: &str, name: &str, mut attempt: impl FnMut() -> T)
where
    T: Future<Output = Result<Option<usize>, Status>>,
{
    let (mut n_before, mut delay) = (usize::MAX, RETRY);
    loop {
        let n_left = match attempt().await {
            Ok(Some(n_left)) => n_left,
            Ok(None) => return,
            Err(status) if status.is_from_this_server() && status.code == 404 => return,
            Err(status) if status.is_from_this_server() && status.code == 409 => n_before,
            Err(status) => {
                log.warn(what, &[("name", &name), ("why", &status.message)]);
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

/// Whether a stored object is marked for deletion already, so that deleting it once more does nothing.
pub(super) fn is_going(value: &[u8]) -> bool {
    memchr::memmem::find(value, b"\"deletionTimestamp\"").is_some()
        && codec::from_stored(value).is_ok_and(|tree| api_object::is_terminating(&tree))
}
