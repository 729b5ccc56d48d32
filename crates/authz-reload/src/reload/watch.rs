//! Reports of changes from the file system.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch::{Receiver, Sender};

use super::watched_paths::WatchedPaths;

/// The time without a change after which files are read. A program that writes a file in several steps has
/// then probably finished.
const QUIET_PERIOD: Duration = Duration::from_millis(50);

/// The longest wait for a quiet period. After it, files that keep changing are read all the same.
const QUIET_WAIT_MAX: Duration = Duration::from_millis(300);

/// Counts reported changes and wakes its subscribers.
#[derive(Debug)]
pub(super) struct ChangeCounter {
    count: Sender<u64>,
    /// A watched folder was removed or replaced, or reports were lost, so the watch has to be made anew.
    is_stale: AtomicBool,
}

impl ChangeCounter {
    pub(super) fn new() -> Self {
        Self { count: Sender::new(0), is_stale: AtomicBool::new(false) }
    }

    /// A receiver of changes from now on.
    pub(super) fn subscribe(&self) -> Receiver<u64> {
        self.count.subscribe()
    }

    /// Increments the counter, which wakes all subscribers.
    pub(super) fn increment(&self) {
        self.count.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Counts an event of the file system if it concerns a watched path.
    fn handle_event(&self, watched: &WatchedPaths, event: notify::Result<Event>) {
        let Ok(event) = event else {
            self.is_stale.store(true, Ordering::Release);
            return self.increment();
        };
        if !is_change(&event.kind) && !event.need_rescan() {
            return;
        }
        let is_folder = event.paths.iter().any(|path| watched.folders.contains(path));
        if is_folder || event.need_rescan() {
            self.is_stale.store(true, Ordering::Release);
        }
        let is_entry = event.paths.iter().any(|path| watched.entries.contains(path));
        if is_entry || is_folder || event.need_rescan() {
            self.increment();
        }
    }
}

/// Reports whether an event can mean a change; reading a file is an event too.
fn is_change(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(kind) => *kind == AccessKind::Close(AccessMode::Write),
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

/// Waits for a change, and then for a quiet period.
pub(super) async fn wait_for_change(changes: &mut Receiver<u64>) {
    if changes.changed().await.is_err() {
        // The counter is gone, so no change will be reported.
        return std::future::pending().await;
    }
    let quiet =
        async { while tokio::time::timeout(QUIET_PERIOD, changes.changed()).await.is_ok() {} };
    // The time limit is not an error: the files are read then.
    let _ = tokio::time::timeout(QUIET_WAIT_MAX, quiet).await;
}

/// A watch of folders; dropping it ends the watch.
pub(super) struct FolderWatch {
    watched: Arc<WatchedPaths>,
    /// Folders that are not watched yet, or that the system does not let this server watch.
    unwatched: BTreeSet<PathBuf>,
    watcher: RecommendedWatcher,
}

impl FolderWatch {
    fn new(watched: WatchedPaths, changes: &Arc<ChangeCounter>) -> notify::Result<Self> {
        let watched = Arc::new(watched);
        let (paths, counter) = (Arc::clone(&watched), Arc::clone(changes));
        let watcher =
            notify::recommended_watcher(move |event| counter.handle_event(&paths, event))?;
        let unwatched = watched.folders.clone();
        Ok(Self { watched, unwatched, watcher })
    }

    /// Watches the folders that are not watched yet. Returns whether another folder is watched now, and the
    /// last error.
    fn watch_remaining(&mut self) -> (bool, notify::Result<()>) {
        let mut result = Ok(());
        let n_before = self.unwatched.len();
        let watcher = &mut self.watcher;
        self.unwatched.retain(|folder| match watcher.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => false,
            Err(error) => {
                result = Err(error);
                true
            }
        });
        (self.unwatched.len() < n_before, result)
    }
}

/// Returns a watch of exactly these paths: the old one if it still fits, else a new one. A folder that was not
/// watched before may have changed unreported, so a new folder counts as a change.
///
/// The error is about a folder that can not be watched; the others are watched all the same.
pub(super) fn renew_watch(
    old: Option<FolderWatch>,
    watched: WatchedPaths,
    changes: &Arc<ChangeCounter>,
) -> (Option<FolderWatch>, notify::Result<()>) {
    let is_stale = changes.is_stale.swap(false, Ordering::AcqRel);
    let fitting = old.filter(|old| !is_stale && *old.watched == watched);
    let mut watch = match fitting.map_or_else(|| FolderWatch::new(watched, changes), Ok) {
        Ok(watch) => watch,
        Err(error) => return (None, Err(error)),
    };
    let (has_more, result) = watch.watch_remaining();
    if has_more {
        changes.increment();
    }
    (Some(watch), result)
}

#[cfg(test)]
mod tests {
    use super::*;

    use notify::event::{CreateKind, Flag, RemoveKind};

    /// Whether subscribers are woken, and whether the watch is stale.
    fn handled(kind: EventKind, path: &str) -> (bool, bool) {
        let watched = WatchedPaths {
            folders: [PathBuf::from("/folder")].into(),
            entries: [PathBuf::from("/folder/file")].into(),
        };
        let changes = ChangeCounter::new();
        let listener = changes.subscribe();
        changes.handle_event(&watched, Ok(Event::new(kind).add_path(PathBuf::from(path))));
        let is_woken = listener.has_changed().unwrap();
        (is_woken, changes.is_stale.load(Ordering::Acquire))
    }

    #[test]
    fn reading_is_no_change() {
        let access = |kind| handled(EventKind::Access(kind), "/folder/file");
        assert_eq!(access(AccessKind::Open(AccessMode::Any)), (false, false));
        assert_eq!(access(AccessKind::Close(AccessMode::Read)), (false, false));
        assert_eq!(access(AccessKind::Close(AccessMode::Write)), (true, false));
    }

    #[test]
    fn neighbours_do_not_matter() {
        let create = EventKind::Create(CreateKind::File);
        assert_eq!(handled(create, "/folder/other"), (false, false));
        assert_eq!(handled(create, "/folder/file"), (true, false));
    }

    #[test]
    fn a_folder_that_is_gone_has_to_be_watched_again() {
        assert_eq!(handled(EventKind::Remove(RemoveKind::Folder), "/folder"), (true, true));
    }

    #[test]
    fn lost_events_may_have_been_anything() {
        let changes = ChangeCounter::new();
        let listener = changes.subscribe();
        let lost = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        changes.handle_event(&WatchedPaths::default(), Ok(lost));
        assert!(listener.has_changed().unwrap() && changes.is_stale.load(Ordering::Acquire));
    }
}
