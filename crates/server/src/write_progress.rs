//! Whether a request has begun to write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a request has begun to write. Until then its deadline ends it at any moment. Afterwards its client
/// is answered at the deadline, but the request learns the outcome of the write and does what belongs to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteProgress(Arc<AtomicBool>);

impl WriteProgress {
    /// The store is about to be asked for a change.
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
