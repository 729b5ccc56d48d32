//! A watch of the store on etcd: a position and a wake-up channel.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use store::{Batch, Event, Prefix, Revision, StoreFuture, Watch, WatchError, WatchSlot};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::client::closed;
use crate::engine::Core;
use crate::event_stream::{self, EventStream, EventStreamError};
use crate::event_window::{BATCH_EVENTS_MAX, WindowEvents};
use crate::shared_watch::WindowSearch;

/// Maximum watches that read from etcd at a time because they are behind the window; others wait.
pub(crate) const CATCH_UPS_MAX: usize = 16;
/// A member that sends nothing for this long, although it has events, is abandoned. It may have to read a
/// long history from disk first.
const SILENCE_MAX: Duration = Duration::from_secs(16);
/// Pause before trying another member.
const PAUSE: Duration = Duration::from_millis(200);

/// A running watch. It has no connection of its own: it reads the newest events from the shared window, and
/// reads from etcd only while it is further behind.
pub(crate) struct EtcdWatch {
    core: Arc<Core>,
    prefix: Prefix,
    /// Everything up to this revision was delivered, is in `pending`, or is not under the prefix.
    after: Revision,
    /// Events read from etcd but not delivered, because the caller dropped the future.
    pending: Vec<Event>,
    revision_changed: watch::Receiver<Revision>,
    /// The error that ended the watch.
    end: Option<WatchError>,
    _slot: WatchSlot,
}

/// Prints the position, not pending events.
impl fmt::Debug for EtcdWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdWatch")
            .field("prefix", &self.prefix)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

impl EtcdWatch {
    pub(crate) fn start(
        core: Arc<Core>,
        prefix: Prefix,
        after: Revision,
    ) -> Result<Self, WatchError> {
        let slot = core.shared_watch.notifier.reserve_slot()?;
        let revision_changed =
            core.shared_watch.notifier.subscribe(prefix.as_str()).ok_or_else(closed)?;
        // Before the first revision there was no event, so nothing is missed by starting there.
        let after = after.max(Revision::FIRST);
        Ok(Self {
            core,
            prefix,
            after,
            pending: Vec::new(),
            revision_changed,
            end: None,
            _slot: slot,
        })
    }

    async fn search(&mut self) -> Result<Batch, WatchError> {
        loop {
            if self.core.client.is_closed() {
                return Err(closed().into());
            }
            if !self.pending.is_empty() {
                return Ok(self.batch());
            }
            // Reset the channel before reading the window, so that no event is missed.
            self.revision_changed.mark_unchanged();
            match self.core.shared_watch.search(&self.prefix, self.after) {
                WindowSearch::Events(WindowEvents { events, through, is_truncated })
                    if through > self.after =>
                {
                    self.after = through;
                    if events.is_empty() && is_truncated {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    return Ok(Batch { events, through });
                }
                WindowSearch::Events(_) | WindowSearch::NotReady => {
                    self.revision_changed.changed().await.map_err(|_| closed())?;
                }
                WindowSearch::Behind => match self.catch_up().await {
                    Ok(()) => return Ok(self.batch()),
                    // Deliver the events before the error first.
                    Err(_) if !self.pending.is_empty() => return Ok(self.batch()),
                    Err(EventStreamError::Compacted { floor }) => {
                        return Err(self.compacted(floor).await);
                    }
                    Err(EventStreamError::Broken(_)) => sleep(PAUSE).await,
                },
            }
        }
    }

    fn batch(&mut self) -> Batch {
        Batch { events: std::mem::take(&mut self.pending), through: self.after }
    }

    /// Reads from etcd until a batch is full or the window continues.
    async fn catch_up(&mut self) -> Result<(), EventStreamError> {
        let core = self.core.clone();
        let _turn = core.catch_ups.acquire().await.map_err(|_| closed())?;
        let mut events = EventStream::open(&core.client, self.after).await?;
        while self.pending.len() < BATCH_EVENTS_MAX && !core.shared_watch.has_all_after(self.after)
        {
            let Ok(step) = timeout(SILENCE_MAX, events.next()).await else {
                return Err(events.give_up());
            };
            let step = step?;
            self.after = step.through;
            self.pending.extend(step.events.into_iter().filter(|e| self.prefix.covers(&e.key)));
        }
        Ok(())
    }

    /// The end of a watch whose next events are gone. `known` is where they can go on at the earliest.
    async fn compacted(&self, known: Revision) -> WatchError {
        let floor = event_stream::compaction_floor(&self.core.client)
            .await
            .unwrap_or(known)
            .max(self.after.next());
        WatchError::Compacted { after: self.after, floor }
    }
}

impl Watch for EtcdWatch {
    fn next(&mut self) -> StoreFuture<'_, Result<Batch, WatchError>> {
        Box::pin(async move {
            if let Some(end) = &self.end {
                return Err(end.clone());
            }
            let result = self.search().await;
            self.end = result.as_ref().err().cloned();
            result
        })
    }
}
