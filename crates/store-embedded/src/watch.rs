//! A watch of the embedded store: a position in the history and a wake-up channel.

use std::fmt;
use std::sync::Arc;

use store::{
    Prefix, Revision, RevisionSignal, StoreFuture, Unavailable, WakeOrder, Watch, WatchBatch,
    WatchError, WatchSlot,
};

use crate::engine::{SharedState, run_blocking};
use crate::history::{EventSearchLimits, HistoryEvents};
use crate::store_state::{StoreState, unreadable_history_error};

/// Limits of one batch. The limits of events and bytes bound the memory of a slow watch, whose reader may
/// hold a batch for long. The limit of changes makes a long search yield to other tasks.
const BATCH_LIMITS: EventSearchLimits = EventSearchLimits {
    events_max: 256,
    event_bytes_max: 1024 * 1024,
    searched_changes_max: 8 * 1024,
};

/// A running watch of the embedded store. It holds no events: a slow reader costs nothing until
/// compaction overtakes it.
pub(crate) struct EmbeddedWatch {
    shared_state: Arc<SharedState>,
    prefix: Prefix,
    /// Everything up to this revision was delivered or is not under the prefix.
    delivered_through_revision: Revision,
    revision_signal: RevisionSignal,
    /// Whether more events may be available without waiting.
    has_undelivered_events: bool,
    _slot: WatchSlot,
}

/// Prints the position, not pending events.
impl fmt::Debug for EmbeddedWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedWatch")
            .field("prefix", &self.prefix)
            .field("after", &self.delivered_through_revision)
            .finish_non_exhaustive()
    }
}

impl EmbeddedWatch {
    pub(crate) fn start(
        shared_state: Arc<SharedState>,
        prefix: Prefix,
        after: Revision,
        order: WakeOrder,
    ) -> Result<Self, WatchError> {
        let slot = shared_state.watch_notifier.reserve_watch_slot()?;
        let revision_changed = shared_state
            .watch_notifier
            .subscribe_to_prefix(prefix.as_str(), order)
            .ok_or_else(Unavailable::store_closed)?;
        let watch = Self {
            shared_state,
            prefix,
            delivered_through_revision: after,
            revision_signal: revision_changed,
            has_undelivered_events: true,
            _slot: slot,
        };
        watch.check_not_compacted(&watch.shared_state.published_state.load())?;
        Ok(watch)
    }

    fn check_not_compacted(&self, state: &StoreState) -> Result<(), WatchError> {
        // Before the first revision there was no event, so nothing is missed by starting there.
        if self.delivered_through_revision.max(Revision::FIRST) < state.compaction_floor {
            return Err(WatchError::Compacted {
                after: self.delivered_through_revision,
                floor: state.compaction_floor,
            });
        }
        Ok(())
    }

    /// Searches a state for events. The position advances only after this returns.
    async fn find_next_events(
        &mut self,
        state: &Arc<StoreState>,
    ) -> Result<HistoryEvents, WatchError> {
        let (prefix, after) = (&self.prefix, self.delivered_through_revision);
        let found = if state.history.needs_file_reads_after(after) {
            let (state, prefix) = (state.clone(), prefix.clone());
            run_blocking(move || state.history.find_events_after(&prefix, after, BATCH_LIMITS))
                .await?
        } else {
            state.history.find_events_after(prefix, after, BATCH_LIMITS)
        };
        Ok(found.map_err(unreadable_history_error)?)
    }
}

impl Watch for EmbeddedWatch {
    fn next(&mut self) -> StoreFuture<'_, Result<WatchBatch, WatchError>> {
        Box::pin(async move {
            loop {
                if !self.has_undelivered_events {
                    self.revision_signal.wait_for_newer_revision().await?;
                    self.has_undelivered_events = true;
                }
                if self.shared_state.is_closed() {
                    return Err(Unavailable::store_closed().into());
                }
                // Reset the channel before reading the state, so that no write is missed.
                self.revision_signal.mark_current_revision_seen();
                let state = self.shared_state.published_state.load_full();
                self.check_not_compacted(&state)?;
                if state.revision <= self.delivered_through_revision {
                    self.has_undelivered_events = false;
                    continue;
                }
                let found = self.find_next_events(&state).await?;
                self.has_undelivered_events = found.stopped_at_revision.is_some();
                self.delivered_through_revision =
                    found.stopped_at_revision.unwrap_or(state.revision);
                if found.events.is_empty() && self.has_undelivered_events {
                    tokio::task::yield_now().await;
                    continue;
                }
                return Ok(WatchBatch {
                    events: found.events,
                    complete_through_revision: self.delivered_through_revision,
                });
            }
        })
    }
}
