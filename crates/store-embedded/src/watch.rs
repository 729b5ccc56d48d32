//! A watch: a place in the history and a bell.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use store::{Batch, Prefix, Revision, Unavailable, Watch, WatchError};
use tokio::sync::watch;

use crate::engine::{Core, closed, run_blocking};
use crate::history::Found;
use crate::state::{State, unreadable};

/// How many watches a store serves at once. Each takes a few hundred bytes, whatever it watches.
pub const WATCHES_MAX: usize = 100_000;
/// A batch has about so many events, so that one call does not hold on to too much memory.
const BATCH_EVENTS_MAX: usize = 256;
/// After so many steps of other prefixes a search lets other tasks run.
const SEARCH_STEPS_MAX: usize = 8 * 1024;

/// A running watch of the embedded store. It holds no events: a slow reader costs nothing until
/// compaction overtakes it.
pub struct EmbeddedWatch {
    core: Arc<Core>,
    prefix: Prefix,
    /// Everything up to here has been told or looked at.
    after: Revision,
    bell: watch::Receiver<Revision>,
    /// Whether there may be more to tell without waiting for the bell.
    is_behind: bool,
    _place: Place,
}

/// Tells where it is, not what it has still to tell.
impl fmt::Debug for EmbeddedWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedWatch")
            .field("prefix", &self.prefix)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

/// One of the [`WATCHES_MAX`] places.
#[derive(Debug)]
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl EmbeddedWatch {
    pub(crate) fn start(
        core: Arc<Core>,
        prefix: Prefix,
        after: Revision,
    ) -> Result<Self, WatchError> {
        let n_watches = core.n_watches.fetch_add(1, Ordering::Relaxed);
        let place = Place(core.n_watches.clone());
        if n_watches >= WATCHES_MAX {
            let reason = format!("{WATCHES_MAX} watches are open, which is the most").into();
            return Err(Unavailable { reason }.into());
        }
        let bell = core.wakers.subscribe(prefix.as_str()).ok_or_else(closed)?;
        let watch = Self { core, prefix, after, bell, is_behind: true, _place: place };
        watch.check(&watch.core.state.load())?;
        Ok(watch)
    }

    fn check(&self, state: &State) -> Result<(), WatchError> {
        // Before the first revision there was no event, so nothing is missed by starting there.
        if self.after.max(Revision::FIRST) < state.floor {
            return Err(WatchError::Compacted { after: self.after, floor: state.floor });
        }
        Ok(())
    }

    /// Looks for events in a state. What was found counts as told only when this returns.
    async fn search(&mut self, state: &Arc<State>) -> Result<Found, WatchError> {
        let (prefix, after) = (&self.prefix, self.after);
        let found = if state.history.is_paged_after(after) {
            let (state, prefix) = (state.clone(), prefix.clone());
            run_blocking(move || {
                state.history.events(&prefix, after, BATCH_EVENTS_MAX, SEARCH_STEPS_MAX)
            })
            .await?
        } else {
            state.history.events(prefix, after, BATCH_EVENTS_MAX, SEARCH_STEPS_MAX)
        };
        Ok(found.map_err(unreadable)?)
    }
}

impl Watch for EmbeddedWatch {
    async fn next(&mut self) -> Result<Batch, WatchError> {
        loop {
            if !self.is_behind {
                self.bell.changed().await.map_err(|_| closed())?;
                self.is_behind = true;
            }
            if self.core.is_closed() {
                return Err(closed().into());
            }
            // The bell is quiet from before the state is read, so that no write is missed.
            self.bell.mark_unchanged();
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
    }
}
