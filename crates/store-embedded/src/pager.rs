//! Moving the oldest part of the history from memory to files, while the store runs and while it opens.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::files;
use crate::history::History;
use crate::page::Page;

/// Makes pages of one run, which have names of their own.
#[derive(Debug)]
pub(crate) struct Pager {
    directory: PathBuf,
    /// The number of the first log of this run.
    run: u64,
    n_pages: u64,
    memory_bytes_max: usize,
    /// Of all pages that somebody may still read.
    bytes: Arc<AtomicU64>,
}

impl Pager {
    pub(crate) fn new(directory: &Path, run: u64, memory_bytes_max: usize) -> Self {
        let directory = directory.to_owned();
        Self { directory, run, n_pages: 0, memory_bytes_max, bytes: Arc::default() }
    }

    /// The bytes that the pages take up on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Writes pages while the history takes up too much memory. Says whether any was written.
    pub(crate) fn page_out(&mut self, history: &mut History) -> io::Result<bool> {
        let mut is_changed = false;
        while history.resident_bytes() > self.memory_bytes_max {
            let before = history.resident_bytes();
            let Self { directory, run, n_pages, bytes, .. } = self;
            history.page_out(&mut |steps| {
                let path = files::page(directory, *run, *n_pages);
                *n_pages += 1;
                Page::write(path, steps, bytes)
            })?;
            if history.resident_bytes() == before {
                break;
            }
            is_changed = true;
        }
        Ok(is_changed)
    }

    /// Whether the history takes up so much memory that it is better forgotten than kept there.
    pub(crate) fn is_overdue(&self, history: &History) -> bool {
        history.resident_bytes() > self.memory_bytes_max.saturating_mul(2)
    }
}
