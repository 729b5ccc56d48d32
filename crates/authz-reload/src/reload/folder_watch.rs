//! Watches folders and counts the changes that the system reports.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch::{Receiver, Sender};

use super::watched_paths::WatchedPaths;

/// The time without a change after which the reloader reads the files. A program that writes a file in several steps
/// has probably finished by then.
const QUIET_PERIOD: Duration = Duration::from_millis(50);

/// The maximum wait for a quiet period. After it the reloader reads even files that keep changing.
const QUIET_WAIT_MAX: Duration = Duration::from_millis(300);

/// Counts reported changes and wakes its subscribers.
#[derive(Debug)]
pub(super) struct FileChangeCounter {
    count: Sender<u64>,
    /// A watched folder was removed or replaced, or reports were lost, so the reloader must create a new watch.
    is_watch_stale: AtomicBool,
}

impl FileChangeCounter {
    pub(super) fn new() -> Self {
        Self { count: Sender::new(0), is_watch_stale: AtomicBool::new(false) }
    }

    /// Returns a receiver of changes from now on.
    pub(super) fn subscribe_to_changes(&self) -> Receiver<u64> {
        self.count.subscribe()
    }

    /// Increments the counter, which wakes all subscribers.
    pub(super) fn increment_and_notify(&self) {
        self.count.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Counts an event of the file system if it concerns a watched path.
    fn handle_file_event(&self, watched_paths: &WatchedPaths, event: notify::Result<Event>) {
        let Ok(event) = event else {
            self.is_watch_stale.store(true, Ordering::Release);
            return self.increment_and_notify();
        };
        if !is_change_event(&event.kind) && !event.need_rescan() {
            return;
        }
        let is_folder = event.paths.iter().any(|path| watched_paths.watched_folders.contains(path));
        if is_folder || event.need_rescan() {
            self.is_watch_stale.store(true, Ordering::Release);
        }
        let is_entry = event.paths.iter().any(|path| watched_paths.watched_entries.contains(path));
        if is_entry || is_folder || event.need_rescan() {
            self.increment_and_notify();
        }
    }
}

/// Reports whether an event can mean a change. Reading a file is also an event, but not a change.
fn is_change_event(kind: &EventKind) -> bool {
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
        // The counter was dropped, so no further change will be reported.
        return std::future::pending().await;
    }
    let quiet =
        async { while tokio::time::timeout(QUIET_PERIOD, changes.changed()).await.is_ok() {} };
    // Reaching the time limit is not an error: the caller reads the files in both cases.
    let _ = tokio::time::timeout(QUIET_WAIT_MAX, quiet).await;
}

/// A watch of folders; dropping it ends the watch.
pub(super) struct FolderWatch {
    watched_paths: Arc<WatchedPaths>,
    /// Folders that are not watched yet, or that this server is not allowed to watch.
    unwatched_folders: BTreeSet<PathBuf>,
    watcher: RecommendedWatcher,
}

impl FolderWatch {
    fn new(watched_paths: WatchedPaths, changes: &Arc<FileChangeCounter>) -> notify::Result<Self> {
        let watched_paths = Arc::new(watched_paths);
        let (paths, counter) = (Arc::clone(&watched_paths), Arc::clone(changes));
        let watcher =
            notify::recommended_watcher(move |event| counter.handle_file_event(&paths, event))?;
        let unwatched_folders = watched_paths.watched_folders.clone();
        Ok(Self { watched_paths, unwatched_folders, watcher })
    }

    /// Watches the folders that are not watched yet. Returns whether it watches an additional folder now, and the
    /// last error.
    fn watch_remaining_folders(&mut self) -> (bool, notify::Result<()>) {
        let mut result = Ok(());
        let n_before = self.unwatched_folders.len();
        let watcher = &mut self.watcher;
        self.unwatched_folders.retain(|folder| {
            match watcher.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => false,
                Err(error) => {
                    result = Err(error);
                    true
                }
            }
        });
        (self.unwatched_folders.len() < n_before, result)
    }
}

/// Returns a watch of exactly these paths: the old one if it still covers them, otherwise a new one. The system does
/// not report changes of a folder from before its watch, so each new folder counts as a change.
///
/// The error is about a folder that cannot be watched. The watch covers the other folders even then.
pub(super) fn renew_folder_watch(
    old: Option<FolderWatch>,
    watched_paths: WatchedPaths,
    changes: &Arc<FileChangeCounter>,
) -> (Option<FolderWatch>, notify::Result<()>) {
    let is_stale = changes.is_watch_stale.swap(false, Ordering::AcqRel);
    let reusable = old.filter(|old| !is_stale && *old.watched_paths == watched_paths);
    let mut watch = match reusable.map_or_else(|| FolderWatch::new(watched_paths, changes), Ok) {
        Ok(watch) => watch,
        Err(error) => return (None, Err(error)),
    };
    let (has_more, result) = watch.watch_remaining_folders();
    if has_more {
        changes.increment_and_notify();
    }
    (Some(watch), result)
}

#[cfg(test)]
mod tests {
    use super::*;

    use notify::event::{CreateKind, Flag, RemoveKind};

    /// Reports whether subscribers are woken, and whether the watch is stale.
    fn handled(kind: EventKind, path: &str) -> (bool, bool) {
        let watched_paths = WatchedPaths {
            watched_folders: [PathBuf::from("/folder")].into(),
            watched_entries: [PathBuf::from("/folder/file")].into(),
        };
        let changes = FileChangeCounter::new();
        let listener = changes.subscribe_to_changes();
        changes
            .handle_file_event(&watched_paths, Ok(Event::new(kind).add_path(PathBuf::from(path))));
        let is_woken = listener.has_changed().unwrap();
        (is_woken, changes.is_watch_stale.load(Ordering::Acquire))
    }

    #[test]
    fn reading_a_file_is_not_a_change() {
        let access = |kind| handled(EventKind::Access(kind), "/folder/file");
        assert_eq!(access(AccessKind::Open(AccessMode::Any)), (false, false));
        assert_eq!(access(AccessKind::Close(AccessMode::Read)), (false, false));
        assert_eq!(access(AccessKind::Close(AccessMode::Write)), (true, false));
    }

    #[test]
    fn other_files_of_the_folder_are_ignored() {
        let create = EventKind::Create(CreateKind::File);
        assert_eq!(handled(create, "/folder/other"), (false, false));
        assert_eq!(handled(create, "/folder/file"), (true, false));
    }

    #[test]
    fn a_removed_folder_makes_the_watch_stale() {
        assert_eq!(handled(EventKind::Remove(RemoveKind::Folder), "/folder"), (true, true));
    }

    #[test]
    fn lost_events_make_the_watch_stale() {
        let changes = FileChangeCounter::new();
        let listener = changes.subscribe_to_changes();
        let lost = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        changes.handle_file_event(&WatchedPaths::default(), Ok(lost));
        assert!(listener.has_changed().unwrap() && changes.is_watch_stale.load(Ordering::Acquire));
    }
}
