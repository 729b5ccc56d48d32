//! Which folders have to be watched to hear of every change of some files.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The most symbolic links on the way to one file; the system permits as many.
const LINKS_MAX: usize = 40;

/// The entries on the way to some files that may change where it leads.
///
/// Mounted volumes change files by replacing a link to a folder, editors by renaming a new file over
/// the old one. Neither is an event of the file itself, so folders are watched and not files: each
/// folder that has the file, or a link on the way to it, or that would have what is missing.
///
/// INVARIANT: folders are free of links, so that none is watched under two names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Followed {
    /// The folders.
    pub(super) folders: BTreeSet<PathBuf>,
    /// The entries in them that count.
    pub(super) entries: BTreeSet<PathBuf>,
}

impl Followed {
    /// Looks at the file system. Paths have to be absolute.
    pub(super) fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut followed = Self::default();
        for path in paths {
            followed.add(path);
        }
        followed
    }

    /// Walks to the file as the system does, and notes each entry that decides where the walk goes.
    fn add(&mut self, path: &Path) {
        let mut folder = PathBuf::new();
        let mut rest: VecDeque<Step> = steps(path).collect();
        let mut n_links = 0;
        while let Some(step) = rest.pop_front() {
            let name = match step {
                Step::Root(root) => {
                    folder = root;
                    continue;
                }
                Step::Up => {
                    folder.pop();
                    continue;
                }
                Step::Down(name) => name,
            };
            let entry = folder.join(&name);
            let metadata = std::fs::symlink_metadata(&entry);
            if metadata.as_ref().is_ok_and(|it| it.is_dir()) && !rest.is_empty() {
                folder = entry;
                continue;
            }
            self.folders.insert(folder.clone());
            self.entries.insert(entry.clone());
            n_links += 1;
            match std::fs::read_link(&entry) {
                Ok(target) if n_links <= LINKS_MAX => {
                    for step in steps(&target).collect::<Vec<_>>().into_iter().rev() {
                        rest.push_front(step);
                    }
                }
                // The file itself, or nothing where something should be.
                Ok(_) | Err(_) => return,
            }
        }
    }
}

/// A part of a path.
enum Step {
    Root(PathBuf),
    Up,
    Down(OsString),
}

fn steps(path: &Path) -> impl Iterator<Item = Step> + '_ {
    path.components().filter_map(|component| match component {
        Component::Prefix(prefix) => Some(Step::Root(PathBuf::from(prefix.as_os_str()))),
        Component::RootDir => Some(Step::Root(PathBuf::from(component.as_os_str()))),
        Component::CurDir => None,
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    use std::fs;
    use std::os::unix::fs::symlink;

    /// Folders and entries below a folder, as text.
    fn followed(root: &Path, path: &str) -> (Vec<String>, Vec<String>) {
        let followed = Followed::of([root.join(path).as_path()]);
        let texts = |paths: &BTreeSet<PathBuf>| {
            let below = paths.iter().filter_map(|path| path.strip_prefix(root).ok());
            below.map(|path| path.display().to_string()).collect()
        };
        (texts(&followed.folders), texts(&followed.entries))
    }

    #[test]
    fn the_way_to_a_mounted_file_leads_over_two_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("mount/..1")).unwrap();
        fs::write(root.join("mount/..1/config"), "").unwrap();
        symlink("..1", root.join("mount/..data")).unwrap();
        symlink("..data/config", root.join("mount/config")).unwrap();
        let (folders, entries) = followed(&root, "mount/config");
        assert_eq!(folders, ["mount", "mount/..1"]);
        assert_eq!(entries, ["mount/..1/config", "mount/..data", "mount/config"]);
    }

    #[test]
    fn what_is_missing_is_awaited_where_it_would_appear() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (folders, entries) = followed(&root, "a/b/c");
        assert_eq!((folders, entries), (vec![String::new()], vec!["a".to_owned()]));
        fs::create_dir(root.join("a")).unwrap();
        let (folders, entries) = followed(&root, "a/../a/./b/c");
        assert_eq!((folders, entries), (vec!["a".to_owned()], vec!["a/b".to_owned()]));
    }

    #[test]
    fn links_in_a_circle_end() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        let (_, entries) = followed(&root, "a");
        assert_eq!(entries, ["a", "b"]);
    }
}
