//! Moves the oldest history from memory to files, while the store runs and while it opens.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::history::History;
use crate::history_page::HistoryPage;
use crate::store_files;

/// Writes the pages of one run of the store.
#[derive(Debug)]
pub(crate) struct HistoryPager {
    directory: PathBuf,
    /// The number of the first log of this run.
    run_number: u64,
    n_pages_written: u64,
    history_memory_bytes_max: usize,
    /// Bytes of all pages that still exist.
    history_pages_bytes: Arc<AtomicU64>,
}

impl HistoryPager {
    pub(crate) fn new(directory: &Path, run_number: u64, memory_bytes_max: usize) -> Self {
        let directory = directory.to_owned();
        Self {
            directory,
            run_number,
            n_pages_written: 0,
            history_memory_bytes_max: memory_bytes_max,
            history_pages_bytes: Arc::default(),
        }
    }

    /// The bytes that the pages take up on disk.
    pub(crate) fn history_pages_bytes(&self) -> u64 {
        self.history_pages_bytes.load(Ordering::Relaxed)
    }

    /// Writes pages while the history takes too much memory. Returns whether it wrote any.
    pub(crate) fn write_history_pages(&mut self, history: &mut History) -> io::Result<bool> {
        let mut is_changed = false;
        while history.history_memory_bytes() > self.history_memory_bytes_max {
            let before = history.history_memory_bytes();
            let Self {
                directory,
                run_number,
                n_pages_written: n_pages,
                history_pages_bytes: bytes,
                ..
            } = self;
            history.move_oldest_chunk_to_page(&mut |changes| {
                let path = store_files::history_page_path(directory, *run_number, *n_pages);
                *n_pages += 1;
                HistoryPage::write(path, changes, bytes)
            })?;
            if history.history_memory_bytes() == before {
                break;
            }
            is_changed = true;
        }
        Ok(is_changed)
    }

    /// Reports whether the history takes so much memory that it should be dropped.
    pub(crate) fn exceeds_memory_limit(&self, history: &History) -> bool {
        history.history_memory_bytes() > self.history_memory_bytes_max.saturating_mul(2)
    }
}
