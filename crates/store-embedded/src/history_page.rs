//! Old parts of the history that were moved from memory to files.
//!
//! Only the running process uses pages: after a restart, recovery rebuilds the history from the logs. So pages
//! are not synced, and opening the directory removes leftover pages.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::history::KeyChange;
use crate::record::{FileRecord, RecordReader, encode_change};
use crate::store_files;

/// A file of changes. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct HistoryPage {
    path: PathBuf,
    page_checksum: u32,
    len: u64,
    /// Sum of the bytes of all pages.
    all_pages_bytes: Arc<AtomicU64>,
}

impl HistoryPage {
    /// Writes changes to a new file, and adds its length to the total until it is removed.
    pub(crate) fn write(
        path: PathBuf,
        changes: &[KeyChange],
        all_pages_bytes: &Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let mut bytes = Vec::new();
        for change in changes {
            encode_change(&mut bytes, change);
        }
        let (checksum, len) = (crc32fast::hash(&bytes), bytes.len() as u64);
        all_pages_bytes.fetch_add(len, Ordering::Relaxed);
        let page =
            Self { path, page_checksum: checksum, len, all_pages_bytes: all_pages_bytes.clone() };
        store_files::create_private_file(&page.path)?.write_all(&bytes)?;
        Ok(page)
    }

    /// Reads the changes back.
    pub(crate) fn read(&self) -> io::Result<Vec<KeyChange>> {
        let bytes = store_files::read(&self.path)?;
        if crc32fast::hash(&bytes) != self.page_checksum {
            return Err(self.damaged_page_error("its checksum is wrong"));
        }
        let mut reader = RecordReader::new(&bytes);
        let mut changes = Vec::new();
        while let Some(record) =
            reader.next().map_err(|error| self.damaged_page_error(&error.to_string()))?
        {
            let FileRecord::KeyChange(change) = record else {
                return Err(self.damaged_page_error("it holds records that are not changes"));
            };
            changes.push(change);
        }
        Ok(changes)
    }

    fn damaged_page_error(&self, why: &str) -> io::Error {
        let path = self.path.display();
        io::Error::new(io::ErrorKind::InvalidData, format!("page `{path}` is damaged: {why}"))
    }
}

impl Drop for HistoryPage {
    fn drop(&mut self) {
        // The next open removes a page that cannot be removed now.
        fs::remove_file(&self.path).ok();
        self.all_pages_bytes.fetch_sub(self.len, Ordering::Relaxed);
    }
}
