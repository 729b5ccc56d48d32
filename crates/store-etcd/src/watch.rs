//! A watch of the store on etcd: a position and a wake-up channel.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use store::{
    Event, Prefix, Revision, RevisionSignal, StoreFuture, Unavailable, WakeOrder, Watch,
    WatchBatch, WatchError, WatchSlot,
};
use tokio::time::{sleep, timeout};

use crate::engine::SharedState;
use crate::event_stream::{self, EventStream, EventStreamError};
use crate::event_window::{BATCH_BYTES_MAX, BATCH_EVENTS_MAX, WindowEvents, event_bytes};
use crate::shared_watch::WindowSearchResult;

/// Maximum watches that read from etcd at a time because they are behind the window; others wait.
pub(crate) const CATCH_UPS_MAX: usize = 16;
/// A member that sends nothing for this long, although it has events, is abandoned. It may have to read a
/// long history from disk first.
const SILENCE_MAX: Duration = Duration::from_secs(16);
/// Pause before trying another member.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// A running watch. It has no connection of its own: it reads the newest events from the shared window, and
/// reads from etcd only while it is further behind.
pub(crate) struct EtcdWatch {
    shared_state: Arc<SharedState>,
    prefix: Prefix,
    /// Everything up to this revision was delivered, is in `pending_events`, or is not under the prefix.
    delivered_through_revision: Revision,
    /// Events read from etcd but not delivered, because the caller dropped the future.
    pending_events: Vec<Event>,
    revision_signal: RevisionSignal,
    /// The error that ended the watch.
    watch_end_error: Option<WatchError>,
    _slot: WatchSlot,
}

/// Prints the position, not pending events.
impl fmt::Debug for EtcdWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdWatch")
            .field("prefix", &self.prefix)
            .field("after", &self.delivered_through_revision)
            .finish_non_exhaustive()
    }
}

impl EtcdWatch {
    pub(crate) fn start(
        shared_state: Arc<SharedState>,
        prefix: Prefix,
        after: Revision,
        order: WakeOrder,
    ) -> Result<Self, WatchError> {
        let slot = shared_state.shared_watch.watch_notifier.reserve_watch_slot()?;
        let revision_changed = shared_state
            .shared_watch
            .watch_notifier
            .subscribe_to_prefix(prefix.as_str(), order)
            .ok_or_else(Unavailable::store_closed)?;
        // Before the first revision there was no event, so nothing is missed by starting there.
        let after = after.max(Revision::FIRST);
        Ok(Self {
            shared_state,
            prefix,
            delivered_through_revision: after,
            pending_events: Vec::new(),
            revision_signal: revision_changed,
            watch_end_error: None,
            _slot: slot,
        })
    }

    async fn next_batch(&mut self) -> Result<WatchBatch, WatchError> {
        loop {
            if self.shared_state.client.is_closed() {
                return Err(Unavailable::store_closed().into());
            }
            if !self.pending_events.is_empty() {
                return Ok(self.take_batch());
            }
            // Reset the channel before reading the window, so that no event is missed.
            self.revision_signal.mark_current_revision_seen();
            match self
                .shared_state
                .shared_watch
                .find_events_after(&self.prefix, self.delivered_through_revision)
            {
                WindowSearchResult::Events(WindowEvents {
                    events,
                    complete_through_revision: complete_through,
                    is_truncated,
                }) if complete_through > self.delivered_through_revision => {
                    self.delivered_through_revision = complete_through;
                    if events.is_empty() && is_truncated {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    return Ok(WatchBatch { events, complete_through_revision: complete_through });
                }
                WindowSearchResult::Events(_) | WindowSearchResult::NotReady => {
                    self.revision_signal.wait_for_newer_revision().await?;
                }
                WindowSearchResult::Behind => match self.catch_up_from_etcd().await {
                    Ok(()) => return Ok(self.take_batch()),
                    // Deliver the events before the error first.
                    Err(_) if !self.pending_events.is_empty() => return Ok(self.take_batch()),
                    Err(EventStreamError::Compacted { floor }) => {
                        return Err(self.compacted_error(floor).await);
                    }
                    Err(EventStreamError::Broken(_)) => sleep(RETRY_PAUSE).await,
                },
            }
        }
    }

    fn take_batch(&mut self) -> WatchBatch {
        WatchBatch {
            events: std::mem::take(&mut self.pending_events),
            complete_through_revision: self.delivered_through_revision,
        }
    }

    /// Reads from etcd until a batch is full or the window continues.
    async fn catch_up_from_etcd(&mut self) -> Result<(), EventStreamError> {
        let shared_state = self.shared_state.clone();
        let _turn = shared_state
            .catch_up_permits
            .acquire()
            .await
            .map_err(|_| Unavailable::store_closed())?;
        let mut events =
            EventStream::open(&shared_state.client, self.delivered_through_revision).await?;
        while self.pending_events.len() < BATCH_EVENTS_MAX
            && self.pending_events.iter().map(event_bytes).sum::<usize>() < BATCH_BYTES_MAX
            && !shared_state.shared_watch.has_all_events_after(self.delivered_through_revision)
        {
            let Ok(step) = timeout(SILENCE_MAX, events.next()).await else {
                return Err(events.abandon_member());
            };
            let step = step?;
            self.delivered_through_revision = step.complete_through_revision;
            self.pending_events
                .extend(step.events.into_iter().filter(|e| self.prefix.covers_key(&e.key)));
        }
        Ok(())
    }

    /// Makes the error of a watch whose next events are compacted. `known` is a lower bound of the floor.
    async fn compacted_error(&self, known: Revision) -> WatchError {
        let floor = event_stream::find_compaction_floor(&self.shared_state.client)
            .await
            .unwrap_or(known)
            .max(self.delivered_through_revision.next());
        WatchError::Compacted { after: self.delivered_through_revision, floor }
    }
}

impl Watch for EtcdWatch {
    fn next(&mut self) -> StoreFuture<'_, Result<WatchBatch, WatchError>> {
        Box::pin(async move {
            if let Some(end) = &self.watch_end_error {
                return Err(end.clone());
            }
            let result = self.next_batch().await;
            self.watch_end_error = result.as_ref().err().cloned();
            result
        })
    }
}
