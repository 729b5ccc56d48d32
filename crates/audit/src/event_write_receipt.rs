//! The receipt that a request waits for after its event was given to the backends.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::backend::BackendState;

/// Tells whether the backends have written an event. A caller that does not wait drops it.
#[derive(Debug, Default)]
#[must_use = "a request waits for its receipt in the blocking modes"]
pub struct EventWriteReceipt {
    is_dropped_by_strict_backend: bool,
    pending_writes: Vec<PendingWrite>,
}

/// A backend in a strict mode did not write an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("failed to store audit event")]
pub struct EventNotWritten;

/// The write of an event at one backend.
#[derive(Debug)]
pub(crate) struct PendingWrite {
    result_receiver: oneshot::Receiver<bool>,
    wait_max: Duration,
    is_blocking_strict: bool,
    backend_state: Arc<BackendState>,
}

/// The future of a receipt, which is boxed as every future between crates.
pub type EventWriteFuture = Pin<Box<dyn Future<Output = Result<(), EventNotWritten>> + Send>>;

impl EventWriteReceipt {
    /// Marks the event as dropped by a strict backend.
    pub(crate) fn mark_dropped_by_strict_backend(&mut self) {
        self.is_dropped_by_strict_backend = true;
    }

    pub(crate) fn add_pending_write(&mut self, pending: PendingWrite) {
        self.pending_writes.push(pending);
    }

    /// Reports whether [`Self::wait_until_written`] returns at once.
    pub fn needs_no_wait(&self) -> bool {
        self.pending_writes.is_empty()
    }

    /// Waits until the backends that requests wait for have written the event, for a limited time.
    ///
    /// The future fails with [`EventNotWritten`] if a backend in the mode `blocking-strict` did not write the event. A
    /// request at the stage RequestReceived must then be refused.
    pub fn wait_until_written(self) -> EventWriteFuture {
        Box::pin(async move {
            let mut is_refused = self.is_dropped_by_strict_backend;
            for pending in self.pending_writes {
                let is_strict = pending.is_blocking_strict;
                is_refused |= !pending.wait_until_written().await && is_strict;
            }
            if is_refused { Err(EventNotWritten) } else { Ok(()) }
        })
    }
}

impl PendingWrite {
    pub(crate) fn new(
        is_written: oneshot::Receiver<bool>,
        wait_max: Duration,
        is_strict: bool,
        state: Arc<BackendState>,
    ) -> Self {
        Self {
            result_receiver: is_written,
            wait_max,
            is_blocking_strict: is_strict,
            backend_state: state,
        }
    }

    async fn wait_until_written(self) -> bool {
        match timeout(self.wait_max, self.result_receiver).await {
            Ok(is_written) => is_written.unwrap_or(false),
            Err(_) => {
                self.backend_state.report_stall();
                false
            }
        }
    }
}
