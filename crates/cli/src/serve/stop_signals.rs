//! The signals that stop the server.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM. Signals that arrive between two waits are not lost.
pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Handles both signals from now on.
    ///
    /// # Errors
    /// The operating system refuses to install a handler.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let handle = |kind| signal(kind).context("can not handle signals");
        Ok(Self {
            interrupt: handle(SignalKind::interrupt())?,
            terminate: handle(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(super) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
