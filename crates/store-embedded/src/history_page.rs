//! Old parts of the history that were moved from memory to files.
//!
//! Pages are for the running process alone: the log tells the history again after a restart. So they
//! are not synced_revision, and what is left of them is removed when the directory is opened.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::history::KeyChange;
use crate::record::{Record, RecordReader, encode_change};
use crate::store_files;

/// A file of changes. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct HistoryPage {
    path: PathBuf,
    checksum: u32,
    len: u64,
    /// Sum of the bytes of all pages.
    total: Arc<AtomicU64>,
}

impl HistoryPage {
    /// Writes changes to a new file, and adds its length to the total until it is removed.
    pub(crate) fn write(
        path: PathBuf,
        steps: &[KeyChange],
        total: &Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let mut bytes = Vec::new();
        for step in steps {
            encode_change(&mut bytes, step);
        }
        let (checksum, len) = (crc32fast::hash(&bytes), bytes.len() as u64);
        total.fetch_add(len, Ordering::Relaxed);
        let page = Self { path, checksum, len, total: total.clone() };
        store_files::create_new(&page.path)?.write_all(&bytes)?;
        Ok(page)
    }

    /// Reads the changes back.
    pub(crate) fn read(&self) -> io::Result<Vec<KeyChange>> {
        let bytes = store_files::read(&self.path)?;
        if crc32fast::hash(&bytes) != self.checksum {
            return Err(self.damaged("its checksum is wrong"));
        }
        let mut reader = RecordReader::new(&bytes);
        let mut steps = Vec::new();
        while let Some(record) = reader.next().map_err(|error| self.damaged(&error.to_string()))? {
            let Record::KeyChange(change) = record else {
                return Err(self.damaged("it holds records that are not changes"));
            };
            steps.push(change);
        }
        Ok(steps)
    }

    fn damaged(&self, why: &str) -> io::Error {
        let path = self.path.display();
        io::Error::new(io::ErrorKind::InvalidData, format!("page `{path}` is damaged: {why}"))
    }
}

impl Drop for HistoryPage {
    fn drop(&mut self) {
        // The next open removes a page that cannot be removed now.
        fs::remove_file(&self.path).ok();
        self.total.fetch_sub(self.len, Ordering::Relaxed);
    }
}
