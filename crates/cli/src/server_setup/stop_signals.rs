//! The signals that stop the server.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM. Signals that arrive between two waits are not lost.
pub(crate) struct StopSignals {
    sigint: Signal,
    sigterm: Signal,
}

impl StopSignals {
    /// Handles both signals from now on.
    ///
    /// # Errors
    /// The operating system refuses to install a handler.
    pub(crate) fn register_signal_handlers() -> anyhow::Result<Self> {
        let handle = |kind| signal(kind).context("cannot handle signals");
        Ok(Self {
            sigint: handle(SignalKind::interrupt())?,
            sigterm: handle(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn wait_for_signal(&mut self) {
        tokio::select! {
            _ = self.sigint.recv() => {}
            _ = self.sigterm.recv() => {}
        }
    }
}
