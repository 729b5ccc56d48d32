//! The list of scenarios that pass, which only grows.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the file with the list, in the folder of the suites.
const FILE: &str = "passing.txt";

/// The ids of scenarios that pass, in one file with one id per line.
#[derive(Debug)]
pub struct Ratchet {
    path: PathBuf,
    ids: BTreeSet<String>,
}

/// The reason why the list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RatchetError {
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Ratchet {
    /// Reads the list of a folder of suites; a folder without a list has an empty one.
    ///
    /// # Errors
    /// There is a file, and it cannot be read.
    pub fn read(folder: &Path) -> Result<Self, RatchetError> {
        let path = folder.join(FILE);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(|source| RatchetError::Read { path: path.clone(), source })?,
        };
        let ids = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(Self { path, ids: ids.map(str::to_owned).collect() })
    }

    /// The ids in the list.
    pub fn ids(&self) -> &BTreeSet<String> {
        &self.ids
    }

    /// Adds scenarios, removes none, and returns how many are new.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn extend(&mut self, ids: impl IntoIterator<Item = String>) -> Result<usize, RatchetError> {
        let n_before = self.ids.len();
        self.ids.extend(ids);
        let mut text = self.ids.iter().cloned().collect::<Vec<_>>().join("\n");
        text.push('\n');
        fs::write(&self.path, text)
            .map_err(|source| RatchetError::Write { path: self.path.clone(), source })?;
        Ok(self.ids.len() - n_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_grows_by_what_passes_and_never_shrinks() {
        let folder = tempfile::tempdir().unwrap();
        let mut ratchet = Ratchet::read(folder.path()).unwrap();
        assert!(ratchet.ids().is_empty());
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(ratchet.extend(owned(&["b", "a"])).unwrap(), 2);
        assert_eq!(ratchet.extend(owned(&["c", "b"])).unwrap(), 1);
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert_eq!(text, "a\nb\nc\n");
        assert_eq!(Ratchet::read(folder.path()).unwrap().ids().len(), 3);
    }
}
