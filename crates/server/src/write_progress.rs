//! Whether a request has begun to write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a request has begun to write. Until then its deadline ends it at any moment; afterwards it is
/// given time to learn the outcome of the write and to do what belongs to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteProgress(Arc<State>);

#[derive(Debug, Default)]
struct State {
    has_begun: AtomicBool,
    has_had_grace: AtomicBool,
}

impl WriteProgress {
    /// The store is about to be asked for a change.
    pub(crate) fn begin(&self) {
        self.0.has_begun.store(true, Ordering::Relaxed);
    }

    /// Whether a request whose time is over goes on to end its write. It does so once.
    pub(crate) fn take_grace(&self) -> bool {
        self.0.has_begun.load(Ordering::Relaxed)
            && !self.0.has_had_grace.swap(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_that_writes_gets_more_time_and_only_once() {
        let progress = WriteProgress::default();
        assert!(!progress.take_grace());
        progress.clone().begin();
        assert!(progress.take_grace());
        assert!(!progress.take_grace());
    }
}
