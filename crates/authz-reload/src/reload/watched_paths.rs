//! The folders to watch so that the system reports every change of some files.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The maximum number of symbolic links on the path to one file. Linux has the same limit.
const LINKS_MAX: usize = 40;

/// The directory entries on the paths to some files.
///
/// A mounted volume changes files by replacing a link to a folder, and an editor by renaming a new file over the
/// old one. The system reports neither as an event of the file, so the reloader watches folders instead of files:
/// each folder that contains the file or a link on its path, or that would contain a missing entry.
///
/// INVARIANT: folders are free of links, so that none is watched under two names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct WatchedPaths {
    /// The folders whose changes the operating system must report.
    pub(super) watched_folders: BTreeSet<PathBuf>,
    /// The entries of these folders whose change matters.
    pub(super) watched_entries: BTreeSet<PathBuf>,
}

impl WatchedPaths {
    /// Resolves absolute paths in the file system.
    pub(super) fn resolve_watched_paths<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut watched = Self::default();
        for path in paths {
            watched.add_watched_path(path);
        }
        watched
    }

    /// Resolves a path as the system does, and adds each link on it and the file itself.
    fn add_watched_path(&mut self, path: &Path) {
        let mut folder = PathBuf::new();
        let mut rest: VecDeque<PathResolutionStep> = path_resolution_steps(path).collect();
        let mut n_links = 0;
        while let Some(step) = rest.pop_front() {
            let name = match step {
                PathResolutionStep::Root(root) => {
                    folder = root;
                    continue;
                }
                PathResolutionStep::Parent => {
                    folder.pop();
                    continue;
                }
                PathResolutionStep::Child(name) => name,
            };
            let entry = folder.join(&name);
            let metadata = std::fs::symlink_metadata(&entry);
            if metadata.as_ref().is_ok_and(|it| it.is_dir()) && !rest.is_empty() {
                folder = entry;
                continue;
            }
            self.watched_folders.insert(folder.clone());
            self.watched_entries.insert(entry.clone());
            n_links += 1;
            match std::fs::read_link(&entry) {
                Ok(target) if n_links <= LINKS_MAX => {
                    for step in path_resolution_steps(&target).collect::<Vec<_>>().into_iter().rev()
                    {
                        rest.push_front(step);
                    }
                }
                // This step is the file itself, or an entry that does not exist.
                Ok(_) | Err(_) => return,
            }
        }
    }
}

/// One step of the resolution of a path.
enum PathResolutionStep {
    Root(PathBuf),
    Parent,
    Child(OsString),
}

fn path_resolution_steps(path: &Path) -> impl Iterator<Item = PathResolutionStep> + '_ {
    path.components().filter_map(|component| match component {
        Component::Prefix(prefix) => {
            Some(PathResolutionStep::Root(PathBuf::from(prefix.as_os_str())))
        }
        Component::RootDir => Some(PathResolutionStep::Root(PathBuf::from(component.as_os_str()))),
        Component::CurDir => None,
        Component::ParentDir => Some(PathResolutionStep::Parent),
        Component::Normal(name) => Some(PathResolutionStep::Child(name.to_owned())),
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    use std::fs;
    use std::os::unix::fs::symlink;

    /// Folders and entries below a folder, as text.
    fn watched(root: &Path, path: &str) -> (Vec<String>, Vec<String>) {
        let watched = WatchedPaths::resolve_watched_paths([root.join(path).as_path()]);
        let texts = |paths: &BTreeSet<PathBuf>| {
            let below = paths.iter().filter_map(|path| path.strip_prefix(root).ok());
            below.map(|path| path.display().to_string()).collect()
        };
        (texts(&watched.watched_folders), texts(&watched.watched_entries))
    }

    #[test]
    fn a_mounted_file_is_reached_through_two_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("mount/..1")).unwrap();
        fs::write(root.join("mount/..1/config"), "").unwrap();
        symlink("..1", root.join("mount/..data")).unwrap();
        symlink("..data/config", root.join("mount/config")).unwrap();
        let (folders, entries) = watched(&root, "mount/config");
        assert_eq!(folders, ["mount", "mount/..1"]);
        assert_eq!(entries, ["mount/..1/config", "mount/..data", "mount/config"]);
    }

    #[test]
    fn a_missing_file_is_watched_where_it_would_be_created() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (folders, entries) = watched(&root, "a/b/c");
        assert_eq!((folders, entries), (vec![String::new()], vec!["a".to_owned()]));
        fs::create_dir(root.join("a")).unwrap();
        let (folders, entries) = watched(&root, "a/../a/./b/c");
        assert_eq!((folders, entries), (vec!["a".to_owned()], vec!["a/b".to_owned()]));
    }

    #[test]
    fn cyclic_links_terminate() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        let (_, entries) = watched(&root, "a");
        assert_eq!(entries, ["a", "b"]);
    }
}
