//! A watch of the embedded store: a position in the history and a wake-up channel.

use std::fmt;
use std::sync::Arc;

use store::{Batch, Prefix, Revision, StoreFuture, Watch, WatchError, WatchSlot};
use tokio::sync::watch;

use crate::engine::{SharedState, closed, run_blocking};
use crate::history::HistoryEvents;
use crate::store_state::{StoreState, unreadable};

/// Maximum events of a batch, which bounds the memory of one call.
const BATCH_EVENTS_MAX: usize = 256;
/// Number of changes after which a search yields to other tasks.
const SEARCH_CHANGES_MAX: usize = 8 * 1024;

/// A running watch of the embedded store. It holds no events: a slow reader costs nothing until
/// compaction overtakes it.
pub(crate) struct EmbeddedWatch {
    core: Arc<SharedState>,
    prefix: Prefix,
    /// Everything up to this revision was delivered or is not under the prefix.
    after: Revision,
    revision_changed: watch::Receiver<Revision>,
    /// Whether more events may be available without waiting.
    is_behind: bool,
    _slot: WatchSlot,
}

/// Prints the position, not pending events.
impl fmt::Debug for EmbeddedWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedWatch")
            .field("prefix", &self.prefix)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

impl EmbeddedWatch {
    pub(crate) fn start(
        core: Arc<SharedState>,
        prefix: Prefix,
        after: Revision,
    ) -> Result<Self, WatchError> {
        let slot = core.watch_notifier.reserve_slot()?;
        let revision_changed = core.watch_notifier.subscribe(prefix.as_str()).ok_or_else(closed)?;
        let watch = Self { core, prefix, after, revision_changed, is_behind: true, _slot: slot };
        watch.check(&watch.core.state.load())?;
        Ok(watch)
    }

    fn check(&self, state: &StoreState) -> Result<(), WatchError> {
        // Before the first revision there was no event, so nothing is missed by starting there.
        if self.after.max(Revision::FIRST) < state.floor {
            return Err(WatchError::Compacted { after: self.after, floor: state.floor });
        }
        Ok(())
    }

    /// Searches a state for events. The position advances only after this returns.
    async fn search(&mut self, state: &Arc<StoreState>) -> Result<HistoryEvents, WatchError> {
        let (prefix, after) = (&self.prefix, self.after);
        let found = if state.history.is_on_disk_after(after) {
            let (state, prefix) = (state.clone(), prefix.clone());
            run_blocking(move || {
                state.history.events_after(&prefix, after, BATCH_EVENTS_MAX, SEARCH_CHANGES_MAX)
            })
            .await?
        } else {
            state.history.events_after(prefix, after, BATCH_EVENTS_MAX, SEARCH_CHANGES_MAX)
        };
        Ok(found.map_err(unreadable)?)
    }
}

impl Watch for EmbeddedWatch {
    fn next(&mut self) -> StoreFuture<'_, Result<Batch, WatchError>> {
        Box::pin(async move {
            loop {
                if !self.is_behind {
                    self.revision_changed.changed().await.map_err(|_| closed())?;
                    self.is_behind = true;
                }
                if self.core.is_closed() {
                    return Err(closed().into());
                }
                // Reset the channel before reading the state, so that no write is missed.
                self.revision_changed.mark_unchanged();
                let state = self.core.state.load_full();
                self.check(&state)?;
                if state.revision <= self.after {
                    self.is_behind = false;
                    continue;
                }
                let found = self.search(&state).await?;
                self.is_behind = found.stopped_at.is_some();
                self.after = found.stopped_at.unwrap_or(state.revision);
                if found.events.is_empty() && self.is_behind {
                    tokio::task::yield_now().await;
                    continue;
                }
                return Ok(Batch { events: found.events, through: self.after });
            }
        })
    }
}
