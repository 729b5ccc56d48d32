//! Checkpoints: list requests with `limit=1`, whose responses contain the newest revision of the cluster.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{Message, WatchIntervals, WatchedResource};
use crate::api_error::ClusterError;
use crate::client::ClusterClient;
use crate::watch_stream::revision_of;

/// Every change that the cluster stored before `sent_at` has a revision of at most `revision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checkpoint {
    /// The time at which the list was sent.
    pub(super) sent_at: Instant,
    /// The revision of the list.
    pub(super) revision: u64,
    /// The revision that the cache had at `sent_at`. A list of a later time cannot have a lower one, unless the history
    /// of the cluster was replaced.
    pub(super) cache_revision: u64,
}

/// Sends a list of one object at each interval, the first one at once.
pub(super) async fn send_checkpoints(
    client: &ClusterClient,
    resource: &WatchedResource,
    intervals: WatchIntervals,
    cache_revision: &AtomicU64,
    sender: &Sender<Message>,
) -> Infallible {
    let mut ticks = interval(intervals.checkpoint_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let cache_revision = cache_revision.load(Ordering::Relaxed);
        let sent_at = Instant::now();
        // A list that takes longer would prove less than the next one.
        let listed = timeout(intervals.checkpoint_interval, list_one_object(client, resource));
        let message = match listed.await {
            Err(_) => continue,
            Ok(Err(error)) => Message::Failed(error),
            Ok(Ok(revision)) => {
                Message::Checkpoint(Checkpoint { sent_at, revision, cache_revision })
            }
        };
        // The receiver lives as long as this future.
        let _ = sender.send(message).await;
    }
}

/// Lists one object at the newest revision, and returns the revision.
async fn list_one_object(
    client: &ClusterClient,
    resource: &WatchedResource,
) -> Result<u64, ClusterError> {
    let path = format!("{}?limit=1", resource.path);
    let list = client.get_json(&path, "").await?;
    revision_of(&list, &resource.path)
}
