//! Lists and reads the files that arguments name. A directory stands for the manifests below it.

mod glob;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use document::ReadError;

pub(crate) use glob::Glob;

/// Maximum depth of directories. Symbolic links may form cycles.
const DIRECTORY_DEPTH_MAX: usize = 32;

/// Maximum number of files in a directory.
const FILES_MAX: usize = 100_000;

/// Name of standard input in messages.
pub(crate) const STDIN_NAME: &str = "<stdin>";

/// The extensions of manifests in directories. A file that an argument names may have any name.
const MANIFEST_EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// The manifests of a directory cannot be listed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum ListManifestsError {
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    #[error("{}: there is no file in this directory (*.yaml, *.yml, *.json)", .0.display())]
    NoManifest(PathBuf),
    #[error("{}: there is no file in this directory (*.yaml, *.yml, *.json), use -R for the directories in it", .0.display())]
    OnlyDirectories(PathBuf),
    #[error("{}: directories are nested deeper than {DIRECTORY_DEPTH_MAX}", .0.display())]
    TooDeep(PathBuf),
    #[error("{}: there are more than {FILES_MAX} files", .0.display())]
    TooManyFiles(PathBuf),
}

/// An input cannot be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum ReadInputError {
    #[error(transparent)]
    File(#[from] ReadError),
    #[error("read {name}: {message}")]
    Stdin { name: String, message: String },
    #[error("{0}")]
    Directory(String),
}

/// Objects from files, with the flags of kubectl.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FilenameFlags {
    /// File or directory of manifests, or `-` for standard input; may be repeated
    ///
    /// In a directory the command reads the files whose names end with .yaml, .yml or .json, and with
    /// -R also those of its subdirectories.
    #[arg(short = 'f', long = "filename", value_name = "PATH")]
    pub(crate) filenames: Vec<PathBuf>,

    /// Also read the subdirectories of a directory of -f
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,

    /// Leave out files and directories inside a directory; may be repeated
    ///
    /// `*` and `?` stand for characters of a name, `**` for directories. A pattern without a slash
    /// matches names at any depth, such as `values*.yaml` or `templates`; a pattern with a slash
    /// matches paths below the given directory, such as `charts/*/templates`.
    #[arg(long = "exclude", value_name = "GLOB")]
    pub(crate) exclude_patterns: Vec<Glob>,
}

/// A file or directory that an argument names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InputPath<'a> {
    pub(crate) path: &'a Path,
    /// Whether the directories inside a directory count too.
    pub(crate) is_recursive: bool,
    /// The patterns of files and directories that are left out.
    pub(crate) exclude_patterns: &'a [Glob],
}

impl FilenameFlags {
    /// Returns all inputs: those of another argument, whose directories are read recursively, and those of -f.
    pub(crate) fn input_paths<'a>(
        &'a self,
        recursive_paths: &'a [PathBuf],
    ) -> impl Iterator<Item = InputPath<'a>> {
        let input = |path: &'a PathBuf, is_recursive| InputPath {
            path,
            is_recursive,
            exclude_patterns: &self.exclude_patterns,
        };
        let recursive = recursive_paths.iter().map(move |path| input(path, true));
        recursive.chain(self.filenames.iter().map(move |path| input(path, self.recursive)))
    }
}

impl InputPath<'_> {
    /// Reports whether the argument stands for standard input.
    pub(crate) fn is_stdin(self) -> bool {
        is_stdin(self.path)
    }
}

/// Returns the path of a file, or for a directory all files in it with one of the extensions
/// `.yaml`, `.yml` and `.json`, sorted by name. It skips hidden and excluded files and directories.
///
/// # Errors
/// A directory cannot be read, or contains no manifest.
pub(crate) fn manifest_files(input: InputPath<'_>) -> Result<Vec<PathBuf>, ListManifestsError> {
    if !input.path.is_dir() {
        return Ok(vec![input.path.to_owned()]);
    }
    let mut found = ManifestListing::default();
    collect_manifest_files(input, input.path, 0, &mut found)?;
    if found.manifest_paths.is_empty() && !found.has_excluded_files {
        return Err(match found.has_skipped_directories {
            true => ListManifestsError::OnlyDirectories(input.path.to_owned()),
            false => ListManifestsError::NoManifest(input.path.to_owned()),
        });
    }
    Ok(found.manifest_paths)
}

/// The result of listing a directory.
#[derive(Debug, Default)]
struct ManifestListing {
    manifest_paths: Vec<PathBuf>,
    has_excluded_files: bool,
    /// Whether there are directories that are not read, because the listing is not recursive.
    has_skipped_directories: bool,
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
    input: InputPath<'_>,
    directory: &Path,
    depth: usize,
    found: &mut ManifestListing,
) -> Result<(), ListManifestsError> {
    if depth >= DIRECTORY_DEPTH_MAX {
        return Err(ListManifestsError::TooDeep(directory.to_owned()));
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
        let relative = entry.strip_prefix(input.path).unwrap_or(&entry);
        if input.exclude_patterns.iter().any(|glob| glob.matches_path(relative)) {
            found.has_excluded_files = true;
            continue;
        }
        if entry.is_dir() {
            match input.is_recursive {
                true => collect_manifest_files(input, &entry, depth + 1, found)?,
                false => found.has_skipped_directories = true,
            }
        } else if has_ending {
            if found.manifest_paths.len() == FILES_MAX {
                return Err(ListManifestsError::TooManyFiles(directory.to_owned()));
            }
            found.manifest_paths.push(entry);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn manifest_files(path: &Path) -> Result<Vec<PathBuf>, ListManifestsError> {
        super::manifest_files(InputPath { path, is_recursive: true, exclude_patterns: &[] })
    }

    #[test]
    fn directories_are_read_as_kubectl_does() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("b/templates")).unwrap();
        let list = |is_recursive, exclude: &[&str]| {
            let exclude: Vec<Glob> = exclude.iter().map(|text| text.parse().unwrap()).collect();
            let input = InputPath { path: root, is_recursive, exclude_patterns: &exclude };
            let files = super::manifest_files(input).map_err(|error| error.to_string())?;
            let name = |file: &PathBuf| file.strip_prefix(root).unwrap().display().to_string();
            Ok::<_, String>(files.iter().map(name).collect::<Vec<_>>().join(" "))
        };
        assert!(list(false, &[]).unwrap_err().ends_with("use -R for the directories in it"));
        for file in ["a.yaml", "b/c.yaml", "b/templates/d.yaml"] {
            fs::write(root.join(file), "").unwrap();
        }
        assert_eq!(list(false, &[]).as_deref(), Ok("a.yaml"));
        assert_eq!(list(true, &[]).as_deref(), Ok("a.yaml b/c.yaml b/templates/d.yaml"));
        assert_eq!(list(true, &["templates"]).as_deref(), Ok("a.yaml b/c.yaml"));
        assert_eq!(list(true, &["*.yaml"]).as_deref(), Ok(""));
    }

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
