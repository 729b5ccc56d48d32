//! The state of the files that a configuration refers to.

use std::path::Path;

use document::go_io_error_text;

/// The state of a file path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// A regular file, perhaps behind symbolic links.
    Regular,
    /// The path leads to something else than a file, such as a directory.
    Irregular,
    /// The path cannot be read.
    Unreadable {
        /// The message of the operating system.
        error: String,
    },
}

/// Reads the state of a path from the file system.
pub fn stat_file(path: &Path) -> FileState {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => FileState::Regular,
        Ok(_) => FileState::Irregular,
        Err(error) => FileState::Unreadable {
            error: format!("stat {}: {}", path.display(), go_io_error_text(&error)),
        },
    }
}

/// Reports every path as a regular file, for checks on a machine that does not have the files.
pub fn assume_regular_file(_path: &Path) -> FileState {
    FileState::Regular
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_states_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(stat_file(&file), FileState::Regular);
        assert_eq!(stat_file(folder.path()), FileState::Irregular);
        let missing = folder.path().join("missing");
        let error = format!("stat {}: no such file or directory", missing.display());
        assert_eq!(stat_file(&missing), FileState::Unreadable { error });
        assert_eq!(assume_regular_file(&missing), FileState::Regular);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("file"), &link).unwrap();
        assert!(matches!(stat_file(&link), FileState::Unreadable { .. }));
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(stat_file(&link), FileState::Regular);
    }
}
