//! The one watch of this process, from which all its watches are served.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::{Prefix, Revision, WatchNotifier};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::client::Client;
use crate::event_stream::{EventBatch, EventStream, EventStreamError};
use crate::event_window::{EventWindow, WindowEvents};
use crate::read;

/// How often idle watches are told how far the cluster is. Well below what the contract allows, so that
/// a change of the member in between does not matter.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// A member that is silent for so long, although answers told of newer revisions before, is given up.
/// Who waits for an event that is known to be there waits for this and a little more.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// If that does not help, the next one gets twice the time, up to this: a long history is read from disk
/// before the first event of it is told.
const SILENCE_MAX: Duration = Duration::from_secs(16);
/// How often to look for silence.
const SILENCE_EVERY: Duration = Duration::from_millis(250);
/// How long to wait before trying again, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A server that starts looks so far back, so that clients who were connected to its predecessor go on
/// from memory instead of all reading from etcd at once.
const REVISIONS_BACK: u64 = 1000;

/// What the watches share.
pub(crate) struct SharedWatch {
    /// Absent until the cluster has told where it is.
    window: Mutex<Option<EventWindow>>,
    pub(crate) notifier: WatchNotifier,
}

/// What a search in the window comes to.
pub(crate) enum WindowSearch {
    Events(WindowEvents),
    /// The events begin later; earlier ones must be read from etcd.
    Behind,
    /// Nothing is known yet.
    NotReady,
}

impl SharedWatch {
    pub(crate) fn new() -> Self {
        Self { window: Mutex::new(None), notifier: WatchNotifier::default() }
    }

    fn window(&self) -> MutexGuard<'_, Option<EventWindow>> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn search(&self, prefix: &Prefix, after: Revision) -> WindowSearch {
        match &*self.window() {
            Some(window) => {
                window.search(prefix, after).map_or(WindowSearch::Behind, WindowSearch::Events)
            }
            None => WindowSearch::NotReady,
        }
    }

    /// Whether the window has everything after a revision.
    pub(crate) fn has_all_after(&self, revision: Revision) -> bool {
        self.window().as_ref().is_some_and(|window| window.start() <= revision)
    }

    /// How far it is.
    pub(crate) fn through(&self) -> Option<Revision> {
        self.window().as_ref().map(EventWindow::through)
    }

    /// The states before this one are gone, so watches that need them must not go on.
    pub(crate) fn forget(&self, floor: Revision) {
        if let Some(window) = self.window().as_mut() {
            window.forget(floor);
        }
    }

    fn push(&self, step: EventBatch) {
        let EventBatch { events, through } = step;
        let mut window = self.window();
        if let Some(window) = window.as_mut() {
            // Clones share their bytes; they are needed because watches are notified after the window is unlocked.
            window.push(events.clone(), through);
        }
        drop(window);
        self.notifier.notify(events.iter().map(|event| (&event.key, event.revision)));
    }

    /// Begins anew after a revision. Watches that are further behind find out when they read from etcd.
    fn restart_after(&self, after: Revision) {
        *self.window() = Some(EventWindow::at(after));
        self.notifier.notify_all(after);
    }

    /// Follows the cluster until the task is stopped:
    /// 1. At first it looks a little back from the newest revision.
    /// 2. A watch that breaks is opened again, at another member if there is one, after the last revision
    ///    that is known. So nothing is left out and nothing told twice.
    /// 3. When the next events are compacted, it begins anew where history does.
    pub(crate) async fn run(&self, client: &Client) {
        let mut pause = PAUSE_MIN;
        let mut patience = SILENCE_MIN;
        loop {
            let before = self.through();
            match self.follow_events(client, &mut patience).await {
                EventStreamError::Compacted { floor } => self.restart_after(floor),
                EventStreamError::Broken(_) if client.is_closed() => return,
                // Why is told by the requests that fail at the same time.
                EventStreamError::Broken(_) => {}
            }
            pause = if self.through() > before { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
            sleep(pause).await;
        }
    }

    /// Follows until something is wrong. `patience` is how long a member may be silent.
    async fn follow_events(&self, client: &Client, patience: &mut Duration) -> EventStreamError {
        let after = match self.through() {
            Some(through) => through,
            None => match read::current_revision(client).await {
                Ok(current) => {
                    let back = current.number().saturating_sub(REVISIONS_BACK);
                    let after = Revision::new(back).max(Revision::FIRST);
                    self.restart_after(after);
                    after
                }
                Err(error) => return broken(&error.to_string()),
            },
        };
        let mut events = match EventStream::open(client, after).await {
            Ok(events) => events,
            Err(error) => return error,
        };
        let mut progress = interval(PROGRESS_EVERY);
        progress.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silence = interval(SILENCE_EVERY);
        silence.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut behind_since: Option<Instant> = None;
        loop {
            tokio::select! {
                step = events.next() => match step {
                    Ok(step) => {
                        behind_since = None;
                        *patience = SILENCE_MIN;
                        client.note_revision(step.through);
                        self.push(step);
                    }
                    Err(error) => return error,
                },
                _ = progress.tick() => self.notifier.notify_all(self.through().unwrap_or_default()),
                _ = silence.tick() => {
                    if client.newest_revision() <= self.through().unwrap_or_default() {
                        behind_since = None;
                    } else if behind_since.get_or_insert_with(Instant::now).elapsed() > *patience {
                        *patience = (*patience * 2).min(SILENCE_MAX);
                        return events.give_up();
                    }
                }
            }
        }
    }
}

fn broken(reason: &str) -> EventStreamError {
    EventStreamError::Broken(store::Unavailable { reason: reason.into() })
}
