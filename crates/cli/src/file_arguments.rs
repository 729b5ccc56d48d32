//! Lists and reads the files that arguments name. A directory stands for the manifests below it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use document::ReadError;

/// Maximum depth of directories. Symbolic links may form cycles.
const DIRECTORY_DEPTH_MAX: usize = 32;

/// Maximum number of files in a directory.
const FILES_MAX: usize = 100_000;

/// Name of standard input in messages.
pub(crate) const STDIN_NAME: &str = "<stdin>";

/// The extensions of manifests in directories. A file that an argument names may have any name.
const MANIFEST_EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// The manifests of a directory can not be listed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum ListError {
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    #[error("{}: there is no file in this directory (*.yaml, *.yml, *.json)", .0.display())]
    NoManifest(PathBuf),
    #[error("{}: directories are nested deeper than {DIRECTORY_DEPTH_MAX}", .0.display())]
    TooDeep(PathBuf),
    #[error("{}: there are more than {FILES_MAX} files", .0.display())]
    TooManyFiles(PathBuf),
}

/// An input can not be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum InputError {
    #[error(transparent)]
    File(#[from] ReadError),
    #[error("read {name}: {message}")]
    Stdin { name: String, message: String },
    #[error("{0}")]
    Directory(String),
}

/// Returns the path of a file, or for a directory all files below it with one of the extensions
/// `.yaml`, `.yml` and `.json`, sorted by name. It skips hidden files and directories.
///
/// # Errors
/// A directory can not be read, or contains no manifest.
pub(crate) fn manifest_files(path: &Path) -> Result<Vec<PathBuf>, ListError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    collect_manifest_files(path, 0, &mut files)?;
    if files.is_empty() {
        return Err(ListError::NoManifest(path.to_owned()));
    }
    Ok(files)
}

/// Reports whether an argument stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a file, at most one byte beyond the limit, so that the caller can reject it.
///
/// # Errors
/// The error of the operating system.
pub(crate) fn read_file_up_to(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    read_stream_up_to(&mut File::open(path)?, bytes_max)
}

/// Reads the rest of a stream, at most one byte beyond the limit.
///
/// # Errors
/// The error of the operating system.
pub(crate) fn read_stream_up_to(reader: &mut dyn Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    reader.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn collect_manifest_files(
    directory: &Path,
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), ListError> {
    if depth >= DIRECTORY_DEPTH_MAX {
        return Err(ListError::TooDeep(directory.to_owned()));
    }
    let fail = |error: io::Error| ReadError::new(directory, &error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        entries.push(entry.map_err(fail)?.path());
    }
    entries.sort_unstable();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().as_encoded_bytes();
        let has_ending =
            entry.extension().is_some_and(|own| MANIFEST_EXTENSIONS.iter().any(|it| own == *it));
        if name.starts_with(b".") {
            continue;
        }
        if entry.is_dir() {
            collect_manifest_files(&entry, depth + 1, files)?;
        } else if has_ending {
            if files.len() == FILES_MAX {
                return Err(ListError::TooManyFiles(directory.to_owned()));
            }
            files.push(entry);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn folders_are_read_by_name_and_without_what_is_hidden() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("b/c")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        for file in ["z.yaml", "a.json", "b/c/d.yml", "b/notes.txt", ".git/x.yaml", ".h.yaml"] {
            fs::write(root.join(file), "").unwrap();
        }
        let files = manifest_files(root).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.strip_prefix(root).unwrap()).collect();
        assert_eq!(names, ["a.json", "b/c/d.yml", "z.yaml"].map(Path::new));
        let named = root.join("b/notes.txt");
        assert_eq!(manifest_files(&named), Ok(vec![named]));
    }

    #[test]
    fn an_empty_folder_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("notes.txt"), "").unwrap();
        let error = manifest_files(directory.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("there is no file in this directory (*.yaml, *.yml, *.json)"),
            "{error}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_circle_of_folders_ends() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(directory.path(), directory.path().join("loop")).unwrap();
        let error = manifest_files(directory.path()).unwrap_err().to_string();
        assert!(error.ends_with("directories are nested deeper than 32"), "{error}");
    }
}
