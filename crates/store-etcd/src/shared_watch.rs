//! The one etcd watch of this process, which serves all watches of the store.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::{Prefix, Revision, WatchNotifier};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::client::Client;
use crate::event_stream::{EventBatch, EventStream, EventStreamError};
use crate::event_window::{EventWindow, WindowEvents};
use crate::read;

/// Interval of progress notifications for idle watches. It is well below the contract's limit, so that a
/// fail-over in between does not matter.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// A member that sends no events for this long, although newer revisions are known, is abandoned.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// Maximum of the allowed silence, which doubles with each attempt: a member may have to read a long
/// history from disk first.
const SILENCE_MAX: Duration = Duration::from_secs(16);
/// Interval of the check for silence.
const SILENCE_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// First and maximum pause before a retry.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(50);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Number of revisions that a starting server reads back, so that clients of its predecessor continue from
/// memory instead of reading from etcd all at once.
const STARTUP_HISTORY_REVISIONS: u64 = 1000;

/// The newest events in memory and the notifier of watches.
pub(crate) struct SharedWatch {
    /// `None` until the newest revision of the cluster is known.
    event_window: Mutex<Option<EventWindow>>,
    pub(crate) watch_notifier: WatchNotifier,
}

/// The result of a search in the window.
pub(crate) enum WindowSearchResult {
    Events(WindowEvents),
    /// The window starts later; earlier events must be read from etcd.
    Behind,
    /// The window does not exist yet.
    NotReady,
}

impl SharedWatch {
    pub(crate) fn new() -> Self {
        Self { event_window: Mutex::new(None), watch_notifier: WatchNotifier::default() }
    }

    fn lock_window(&self) -> MutexGuard<'_, Option<EventWindow>> {
        self.event_window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find_events_after(&self, prefix: &Prefix, after: Revision) -> WindowSearchResult {
        match &*self.lock_window() {
            Some(window) => window
                .find_events_after(prefix, after)
                .map_or(WindowSearchResult::Behind, WindowSearchResult::Events),
            None => WindowSearchResult::NotReady,
        }
    }

    /// Reports whether the window holds all events after a revision.
    pub(crate) fn has_all_events_after(&self, revision: Revision) -> bool {
        self.lock_window().as_ref().is_some_and(|window| window.start() <= revision)
    }

    /// The last revision in the window.
    pub(crate) fn complete_through_revision(&self) -> Option<Revision> {
        self.lock_window().as_ref().map(EventWindow::complete_through_revision)
    }

    /// Drops events before a compaction floor, so that watches that need them end.
    pub(crate) fn drop_events_up_to(&self, floor: Revision) {
        if let Some(window) = self.lock_window().as_mut() {
            window.drop_events_up_to(floor);
        }
    }

    fn push(&self, step: EventBatch) {
        let EventBatch { events, complete_through_revision: complete_through } = step;
        let mut window = self.lock_window();
        if let Some(window) = window.as_mut() {
            // Clones share their bytes; they are needed because watches are notified after the window is unlocked.
            window.push(events.clone(), complete_through);
        }
        drop(window);
        self.watch_notifier
            .notify_watches_of_keys(events.iter().map(|event| (&event.key, event.revision)));
    }

    /// Restarts the window after a revision. Watches further behind notice when they read from etcd.
    fn restart_window_after(&self, after: Revision) {
        *self.lock_window() = Some(EventWindow::empty_window_at(after));
        self.watch_notifier.notify_all_watches(after);
    }

    /// Follows the cluster until the task is aborted:
    /// 1. Start slightly before the newest revision.
    /// 2. If the watch breaks, open it again, at another member if possible, after the last known revision.
    ///    So no event is lost or repeated.
    /// 3. If the next events are compacted, restart at the compaction floor.
    pub(crate) async fn run(&self, client: &Client) {
        let mut retry_pause = RETRY_PAUSE_MIN;
        let mut silence_max = SILENCE_MIN;
        loop {
            let before = self.complete_through_revision();
            match self.follow_events(client, &mut silence_max).await {
                EventStreamError::Compacted { floor } => self.restart_window_after(floor),
                EventStreamError::Broken(_) if client.is_closed() => return,
                // This task does not log the cause, because requests that fail at the same time report it.
                EventStreamError::Broken(_) => {}
            }
            retry_pause = if self.complete_through_revision() > before {
                RETRY_PAUSE_MIN
            } else {
                (retry_pause * 2).min(RETRY_PAUSE_MAX)
            };
            sleep(retry_pause).await;
        }
    }

    /// Adds the events of the cluster to the window until an error. `silence_max` is the time that a member
    /// may be silent.
    async fn follow_events(&self, client: &Client, silence_max: &mut Duration) -> EventStreamError {
        let after = match self.complete_through_revision() {
            Some(complete_through) => complete_through,
            None => match read::read_current_revision(client).await {
                Ok(current) => {
                    let back = current.as_u64().saturating_sub(STARTUP_HISTORY_REVISIONS);
                    let after = Revision::new(back).max(Revision::FIRST);
                    self.restart_window_after(after);
                    after
                }
                Err(error) => return broken_stream_error(&error.to_string()),
            },
        };
        let mut events = match EventStream::open(client, after).await {
            Ok(events) => events,
            Err(error) => return error,
        };
        let mut progress = interval(PROGRESS_INTERVAL);
        progress.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silence = interval(SILENCE_CHECK_INTERVAL);
        silence.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut behind_since: Option<Instant> = None;
        loop {
            tokio::select! {
                step = events.next() => match step {
                    Ok(step) => {
                        behind_since = None;
                        *silence_max = SILENCE_MIN;
                        client.record_revision(step.complete_through_revision);
                        self.push(step);
                    }
                    Err(error) => return error,
                },
                _ = progress.tick() => self.watch_notifier.notify_all_watches(self.complete_through_revision().unwrap_or_default()),
                _ = silence.tick() => {
                    if client.newest_revision() <= self.complete_through_revision().unwrap_or_default() {
                        behind_since = None;
                    } else if behind_since.get_or_insert_with(Instant::now).elapsed() > *silence_max {
                        *silence_max = (*silence_max * 2).min(SILENCE_MAX);
                        return events.abandon_member();
                    }
                }
            }
        }
    }
}

fn broken_stream_error(reason: &str) -> EventStreamError {
    EventStreamError::Broken(store::Unavailable { reason: reason.into() })
}
