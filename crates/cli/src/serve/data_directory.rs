//! The data directory during the start: the server locks it before it writes, and restores it if the
//! start fails.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use store_embedded::{DIRECTORY_MODE, LockedDirectory};

/// The directory of the embedded store below the data directory.
const STORE_DIRECTORY: &str = "store";
const LOCK_FILE: &str = "lock";

/// A data directory that this process has locked.
///
/// Before [`Self::keep_created_files`], dropping it removes the files that the start created: certificates, keys,
/// the kubeconfig, an empty audit log, and new directories. It never touches objects that the embedded
/// store contained before.
#[derive(Debug)]
pub(super) struct DataDirectory {
    path: PathBuf,
    /// The files that the server creates, with their content before the start.
    original_file_contents: Vec<(PathBuf, Option<Vec<u8>>)>,
    /// Directories that did not exist before and are removed when they are empty, innermost first.
    created_paths: Vec<PathBuf>,
    is_store_new: bool,
    keeps_files_on_drop: bool,
    /// The locked directory of the embedded store until the store opens it.
    store_directory: Option<LockedDirectory>,
    _directory_lock: LockedDirectory,
}

impl DataDirectory {
    /// Locks the directory, and the directory of the embedded store if `has_store`. It writes nothing
    /// else, and a failure leaves nothing behind.
    ///
    /// # Errors
    /// Another process has locked it, other users can write to it, or it contains symbolic links.
    pub(super) fn lock_data_directory(path: &Path, has_store: bool) -> anyhow::Result<Self> {
        let mut created = CreatedPaths::default();
        let result = Self::lock(path, has_store, &mut created);
        if result.is_err() {
            created.remove_empty_paths();
        }
        result
    }

    fn lock(path: &Path, has_store: bool, created: &mut CreatedPaths) -> anyhow::Result<Self> {
        created.create_directory(path)?;
        let lock = created.lock(path)?;
        // The check runs under the lock, so that no other process creates the directory at the same time.
        let store_path = path.join(STORE_DIRECTORY);
        let is_store_new = fs::symlink_metadata(&store_path).is_err();
        let store_directory = match has_store {
            false => None,
            true => {
                reject_symlink(&store_path)?;
                created.create_directory(&store_path)?;
                Some(created.lock(&store_path).with_context(|| {
                    format!("cannot open the store in `{}`", store_path.display())
                })?)
            }
        };
        let mut original_contents = Vec::new();
        for name in https_server::GENERATED_FILES {
            let file = path.join(name);
            reject_symlink(&file)?;
            let before = match fs::read(&file) {
                Ok(contents) => Some(contents),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read `{}`", file.display()));
                }
            };
            original_contents.push((file, before));
        }
        Ok(Self {
            path: path.to_owned(),
            original_file_contents: original_contents,
            created_paths: std::mem::take(&mut created.0),
            is_store_new,
            keeps_files_on_drop: false,
            store_directory,
            _directory_lock: lock,
        })
    }

    /// Registers a file that is removed if the start fails. A file that exists already or has content stays.
    pub(super) fn register_file_to_remove_on_failure(&mut self, file: &Path) {
        if !file.exists() {
            self.created_paths.insert(0, file.to_owned());
        }
    }

    /// Returns the locked directory of the embedded store.
    ///
    /// # Errors
    /// The directory was not locked, or was taken before.
    pub(super) fn take_store_directory(&mut self) -> anyhow::Result<LockedDirectory> {
        self.store_directory.take().context("the directory of the store is not locked")
    }

    /// Keeps the created files, because the server is ready. The directory stays locked until drop.
    pub(super) fn keep_created_files(&mut self) {
        self.keeps_files_on_drop = true;
    }

    fn restore_original_files(&mut self) {
        for (file, before) in &self.original_file_contents {
            // The error of the start is more useful than an error of this cleanup.
            let _ = match before {
                None => fs::remove_file(file),
                Some(before) if fs::read(file).is_ok_and(|now| now == *before) => Ok(()),
                Some(before) => https_server::replace_private_file(file, before),
            };
        }
        if self.is_store_new {
            let _ = fs::remove_dir_all(self.path.join(STORE_DIRECTORY));
        }
        CreatedPaths(std::mem::take(&mut self.created_paths)).remove_empty_paths();
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        if !self.keeps_files_on_drop {
            self.restore_original_files();
        }
    }
}

fn reject_symlink(path: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        !fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()),
        "`{}` is a symbolic link, and links in a data directory are not followed",
        path.display()
    );
    Ok(())
}

/// The files and directories that this start has created so far, innermost first.
#[derive(Debug, Default)]
struct CreatedPaths(Vec<PathBuf>);

impl CreatedPaths {
    /// Creates a directory and its missing parents.
    fn create_directory(&mut self, path: &Path) -> anyhow::Result<()> {
        let missing = path
            .ancestors()
            .take_while(|own| !own.as_os_str().is_empty() && fs::symlink_metadata(own).is_err());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        self.0.splice(0..0, missing);
        let created = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path);
        created.with_context(|| format!("cannot create directory `{}`", path.display()))
    }

    fn lock(&mut self, path: &Path) -> anyhow::Result<LockedDirectory> {
        let file = path.join(LOCK_FILE);
        let is_new = fs::symlink_metadata(&file).is_err();
        let locked = LockedDirectory::lock(path)?;
        if is_new {
            self.0.insert(0, file);
        }
        Ok(locked)
    }

    /// Removes created paths that are empty. A directory with other content stays.
    fn remove_empty_paths(&mut self) {
        for path in std::mem::take(&mut self.0) {
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            let _ = match found.is_dir() {
                true => fs::remove_dir(&path),
                false if found.len() == 0 => fs::remove_file(&path),
                false => Ok(()),
            };
        }
    }
}
