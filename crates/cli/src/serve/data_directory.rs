//! The data directory during the start: claimed before anything is written, and left as it was found if
//! the start fails.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use store_embedded::{DIRECTORY_MODE, LockedDirectory};

/// The directory of the embedded store below the data directory.
const STORE: &str = "store";
const LOCK: &str = "lock";

/// A data directory that belongs to this process.
///
/// Until [`Self::keep`] is called, dropping it takes back what the start has made: certificates, keys,
/// the kubeconfig, an empty audit log, and directories that did not exist. Objects that the embedded store
/// held before are never touched.
#[derive(Debug)]
pub(super) struct DataDirectory {
    path: PathBuf,
    /// The files that the server makes, with what they held before.
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
    /// Directories that did not exist before and are removed when they are empty, innermost first.
    made: Vec<PathBuf>,
    is_store_new: bool,
    is_kept: bool,
    /// Taken by the embedded store.
    store: Option<LockedDirectory>,
    _lock: LockedDirectory,
}

impl DataDirectory {
    /// Locks the directory, and that of the embedded store if there is to be one. Nothing else is
    /// written, and on failure nothing stays.
    ///
    /// # Errors
    /// Another process has it, others than its owner can write to it, or it holds links.
    pub(super) fn claim(path: &Path, has_store: bool) -> anyhow::Result<Self> {
        let mut made = Made::default();
        let result = Self::lock(path, has_store, &mut made);
        if result.is_err() {
            made.take_back();
        }
        result
    }

    fn lock(path: &Path, has_store: bool, made: &mut Made) -> anyhow::Result<Self> {
        made.directory(path)?;
        let lock = made.lock(path)?;
        // Looked at under the lock, so that it is not another start that makes it.
        let store_path = path.join(STORE);
        let is_store_new = fs::symlink_metadata(&store_path).is_err();
        let store = match has_store {
            false => None,
            true => {
                refuse_link(&store_path)?;
                made.directory(&store_path)?;
                Some(made.lock(&store_path).with_context(|| {
                    format!("can not open the store in `{}`", store_path.display())
                })?)
            }
        };
        let mut files = Vec::new();
        for name in https_server::GENERATED_FILES {
            let file = path.join(name);
            refuse_link(&file)?;
            let before = match fs::read(&file) {
                Ok(contents) => Some(contents),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("can not read `{}`", file.display()));
                }
            };
            files.push((file, before));
        }
        Ok(Self {
            path: path.to_owned(),
            files,
            made: std::mem::take(&mut made.0),
            is_store_new,
            is_kept: false,
            store,
            _lock: lock,
        })
    }

    /// Removes this file too if the start fails, if it does not exist yet and nothing is written to it.
    pub(super) fn expect_new(&mut self, file: &Path) {
        if !file.exists() {
            self.made.insert(0, file.to_owned());
        }
    }

    /// The directory of the embedded store.
    ///
    /// # Errors
    /// It was not claimed, or is taken already.
    pub(super) fn take_store(&mut self) -> anyhow::Result<LockedDirectory> {
        self.store.take().context("the directory of the store is not locked")
    }

    /// The server serves: what was made stays. The directory stays locked until this is dropped.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    fn restore(&mut self) {
        for (file, before) in &self.files {
            // The error that made the start fail says more than one about cleaning up after it.
            let _ = match before {
                None => fs::remove_file(file),
                Some(before) if fs::read(file).is_ok_and(|now| now == *before) => Ok(()),
                Some(before) => https_server::replace_file(file, before),
            };
        }
        if self.is_store_new {
            let _ = fs::remove_dir_all(self.path.join(STORE));
        }
        Made(std::mem::take(&mut self.made)).take_back();
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        if !self.is_kept {
            self.restore();
        }
    }
}

fn refuse_link(path: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        !fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()),
        "`{}` is a symbolic link, and links in a data directory are not followed",
        path.display()
    );
    Ok(())
}

/// The files and directories that this start has made so far, innermost first.
#[derive(Debug, Default)]
struct Made(Vec<PathBuf>);

impl Made {
    /// Makes a directory and what leads to it.
    fn directory(&mut self, path: &Path) -> anyhow::Result<()> {
        let missing = path
            .ancestors()
            .take_while(|own| !own.as_os_str().is_empty() && fs::symlink_metadata(own).is_err());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        self.0.splice(0..0, missing);
        let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path);
        made.with_context(|| format!("can not create directory `{}`", path.display()))
    }

    fn lock(&mut self, path: &Path) -> anyhow::Result<LockedDirectory> {
        let file = path.join(LOCK);
        let is_new = fs::symlink_metadata(&file).is_err();
        let locked = LockedDirectory::lock(path)?;
        if is_new {
            self.0.insert(0, file);
        }
        Ok(locked)
    }

    /// Removes what is empty. A directory into which somebody has put something stays.
    fn take_back(&mut self) {
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
