//! A watch: a place in the history and a bell.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use store::{Batch, Event, Prefix, Revision, Watch, WatchError, WatchSlot};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::client::closed;
use crate::engine::Core;
use crate::event_stream::{self, EventStream, EventStreamError};
use crate::event_window::{BATCH_EVENTS_MAX, WindowEvents};
use crate::shared_watch::WindowSearch;

/// How many watches read from etcd at once because they are behind the window; others wait for them.
pub(crate) const CATCH_UPS_MAX: usize = 16;
/// A member that tells nothing for so long, although it is known to have something, is given up. It may
/// have to read a long history from disk first.
const SILENCE_MAX: Duration = Duration::from_secs(16);
/// How long to wait before trying another member.
const PAUSE: Duration = Duration::from_millis(200);

/// A running watch of the store on etcd. It has no connection of its own: it looks into the newest
/// events that the process keeps, and when it is further behind, it reads from etcd until it is not.
pub struct EtcdWatch {
    core: Arc<Core>,
    prefix: Prefix,
    /// Everything up to here has been told, is in `found`, or is not under the prefix.
    after: Revision,
    /// What was read from etcd and not told yet, because the future that read it was dropped.
    found: Vec<Event>,
    revision_changed: watch::Receiver<Revision>,
    /// Why it has ended.
    end: Option<WatchError>,
    _slot: WatchSlot,
}

/// Tells where it is, not what it has still to tell.
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
            found: Vec::new(),
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
            if !self.found.is_empty() {
                return Ok(self.batch());
            }
            // The bell is quiet from before the window is read, so that no event is missed.
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
                    // What was found before the end is told first.
                    Err(_) if !self.found.is_empty() => return Ok(self.batch()),
                    Err(EventStreamError::Compacted { floor }) => {
                        return Err(self.compacted(floor).await);
                    }
                    Err(EventStreamError::Broken(_)) => sleep(PAUSE).await,
                },
            }
        }
    }

    fn batch(&mut self) -> Batch {
        Batch { events: std::mem::take(&mut self.found), through: self.after }
    }

    /// Reads from etcd until there is a batch or the window goes on.
    async fn catch_up(&mut self) -> Result<(), EventStreamError> {
        let core = self.core.clone();
        let _turn = core.catch_ups.acquire().await.map_err(|_| closed())?;
        let mut events = EventStream::open(&core.client, self.after).await?;
        while self.found.len() < BATCH_EVENTS_MAX && !core.shared_watch.has_all_after(self.after) {
            let Ok(step) = timeout(SILENCE_MAX, events.next()).await else {
                return Err(events.give_up());
            };
            let step = step?;
            self.after = step.through;
            self.found.extend(step.events.into_iter().filter(|e| self.prefix.covers(&e.key)));
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
    async fn next(&mut self) -> Result<Batch, WatchError> {
        if let Some(end) = &self.end {
            return Err(end.clone());
        }
        let result = self.search().await;
        self.end = result.as_ref().err().cloned();
        result
    }
}
