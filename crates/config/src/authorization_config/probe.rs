//! Looks at the files that a configuration names.

use std::path::Path;

use document::go_error_text;

/// What is found at the path of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// A regular file, perhaps behind symbolic links.
    Regular,
    /// Something else, such as a directory.
    Irregular,
    /// Nothing that can be looked at.
    Unreadable {
        /// The message of the operating system.
        error: String,
    },
}

/// Looks at the file system.
pub fn stat(path: &Path) -> FileState {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => FileState::Regular,
        Ok(_) => FileState::Irregular,
        Err(error) => FileState::Unreadable {
            error: format!("stat {}: {}", path.display(), go_error_text(&error)),
        },
    }
}

/// Looks at nothing: for checks away from the machine that the paths are for.
pub fn assume_regular(_path: &Path) -> FileState {
    FileState::Regular
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(stat(&file), FileState::Regular);
        assert_eq!(stat(folder.path()), FileState::Irregular);
        let missing = folder.path().join("missing");
        let error = format!("stat {}: no such file or directory", missing.display());
        assert_eq!(stat(&missing), FileState::Unreadable { error });
        assert_eq!(assume_regular(&missing), FileState::Regular);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("file"), &link).unwrap();
        assert!(matches!(stat(&link), FileState::Unreadable { .. }));
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(stat(&link), FileState::Regular);
    }
}
