//! A flag that a request sets before its first write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a request has begun to write. Before that, its deadline ends the request at any moment. Afterwards
/// the client gets a response at the deadline, but the request continues until it knows the outcome of the
/// write and has completed what belongs to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteBegunFlag(Arc<AtomicBool>);

impl WriteBegunFlag {
    /// Marks that the request is about to write to the store.
    pub(crate) fn mark_write_begun(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_begun_writing(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
