//! Hearing of changes of files.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch::{Receiver, Sender};

use super::follow::Followed;

/// How long files have to be quiet before they are read: whoever writes one in several steps is
/// then likely to be done.
const QUIET: Duration = Duration::from_millis(50);

/// How long files that are never quiet are waited for.
const QUIET_WAIT_MAX: Duration = Duration::from_millis(300);

/// Where changes are told. The number only says that there was one.
#[derive(Debug)]
pub(super) struct Changes {
    count: Sender<u64>,
    /// A watched folder is not what it was, so it has to be watched again.
    is_stale: AtomicBool,
}

impl Changes {
    pub(super) fn new() -> Self {
        Self { count: Sender::new(0), is_stale: AtomicBool::new(false) }
    }

    /// Somebody who hears of changes from now on.
    pub(super) fn listen(&self) -> Receiver<u64> {
        self.count.subscribe()
    }

    /// Tells everybody to look again.
    pub(super) fn tell(&self) {
        self.count.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn hear(&self, followed: &Followed, event: notify::Result<Event>) {
        let Ok(event) = event else {
            self.is_stale.store(true, Ordering::Release);
            return self.tell();
        };
        if !is_change(&event.kind) && !event.need_rescan() {
            return;
        }
        let is_folder = event.paths.iter().any(|path| followed.folders.contains(path));
        if is_folder || event.need_rescan() {
            self.is_stale.store(true, Ordering::Release);
        }
        let is_entry = event.paths.iter().any(|path| followed.entries.contains(path));
        if is_entry || is_folder || event.need_rescan() {
            self.tell();
        }
    }
}

/// Reading a file is an event too, and not a change.
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

/// Waits for a change, and then for a moment without one.
pub(super) async fn changed(changes: &mut Receiver<u64>) {
    if changes.changed().await.is_err() {
        // Nobody is left to tell of changes.
        return std::future::pending().await;
    }
    let settle = async { while tokio::time::timeout(QUIET, changes.changed()).await.is_ok() {} };
    // Files that are never quiet are read nevertheless.
    let _ = tokio::time::timeout(QUIET_WAIT_MAX, settle).await;
}

/// Folders under watch; dropping it ends the watch.
pub(super) struct Watch {
    followed: Arc<Followed>,
    /// Folders that can not be watched, perhaps because they must not be read.
    unwatched: BTreeSet<PathBuf>,
    watcher: RecommendedWatcher,
}

impl Watch {
    fn new(followed: Followed, changes: &Arc<Changes>) -> notify::Result<Self> {
        let followed = Arc::new(followed);
        let (hearing, telling) = (Arc::clone(&followed), Arc::clone(changes));
        let watcher = notify::recommended_watcher(move |event| telling.hear(&hearing, event))?;
        let unwatched = followed.folders.clone();
        Ok(Self { followed, unwatched, watcher })
    }

    /// Watches the folders that are not watched yet; whether there was any success.
    fn extend(&mut self) -> (bool, notify::Result<()>) {
        let mut trouble = Ok(());
        let n_before = self.unwatched.len();
        let watcher = &mut self.watcher;
        self.unwatched.retain(|folder| match watcher.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => false,
            Err(error) => {
                trouble = Err(error);
                true
            }
        });
        (self.unwatched.len() < n_before, trouble)
    }
}

/// The watch of exactly what is to be followed: the old one if it still fits, else a new one. What
/// was not watched before may have changed unheard, so everybody is told to look again.
///
/// The result says what can not be watched. What is left is watched nevertheless.
pub(super) fn renew(
    old: Option<Watch>,
    followed: Followed,
    changes: &Arc<Changes>,
) -> (Option<Watch>, notify::Result<()>) {
    let is_stale = changes.is_stale.swap(false, Ordering::AcqRel);
    let fitting = old.filter(|old| !is_stale && *old.followed == followed);
    let mut watch = match fitting.map_or_else(|| Watch::new(followed, changes), Ok) {
        Ok(watch) => watch,
        Err(error) => return (None, Err(error)),
    };
    let (has_more, trouble) = watch.extend();
    if has_more {
        changes.tell();
    }
    (Some(watch), trouble)
}

#[cfg(test)]
mod tests {
    use super::*;

    use notify::event::{CreateKind, Flag, RemoveKind};

    /// Whether somebody is told, and whether the watch is stale.
    fn heard(kind: EventKind, path: &str) -> (bool, bool) {
        let followed = Followed {
            folders: [PathBuf::from("/folder")].into(),
            entries: [PathBuf::from("/folder/file")].into(),
        };
        let changes = Changes::new();
        let listener = changes.listen();
        changes.hear(&followed, Ok(Event::new(kind).add_path(PathBuf::from(path))));
        let is_told = listener.has_changed().unwrap();
        (is_told, changes.is_stale.load(Ordering::Acquire))
    }

    #[test]
    fn reading_is_no_change() {
        let access = |kind| heard(EventKind::Access(kind), "/folder/file");
        assert_eq!(access(AccessKind::Open(AccessMode::Any)), (false, false));
        assert_eq!(access(AccessKind::Close(AccessMode::Read)), (false, false));
        assert_eq!(access(AccessKind::Close(AccessMode::Write)), (true, false));
    }

    #[test]
    fn neighbours_do_not_matter() {
        let create = EventKind::Create(CreateKind::File);
        assert_eq!(heard(create, "/folder/other"), (false, false));
        assert_eq!(heard(create, "/folder/file"), (true, false));
    }

    #[test]
    fn a_folder_that_is_gone_has_to_be_watched_again() {
        assert_eq!(heard(EventKind::Remove(RemoveKind::Folder), "/folder"), (true, true));
    }

    #[test]
    fn lost_events_may_have_been_anything() {
        let changes = Changes::new();
        let listener = changes.listen();
        let lost = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        changes.hear(&Followed::default(), Ok(lost));
        assert!(listener.has_changed().unwrap() && changes.is_stale.load(Ordering::Acquire));
    }
}
