//! The queue from callers to the writer thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use store::{ReadError, Revision, Transaction, WriteError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Maximum bytes in the queue, and so in one batch. Further callers wait for permits.
pub(crate) const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes per permit. A write takes one permit plus one for each of these, so the number of queued writes is
/// bounded too.
pub(crate) const BYTES_PER_PERMIT: usize = 1024;

/// A command for the writer.
#[derive(Debug)]
pub(crate) enum Command {
    Write {
        write: WriteCommand,
        reply: Reply<Revision, WriteError>,
        _write_permits: OwnedSemaphorePermit,
    },
    Compact {
        revision: Revision,
        reply: Reply<Revision, ReadError>,
    },
    /// Runs the periodic work now.
    Tick {
        reply: oneshot::Sender<()>,
    },
    /// Ends the thread; then the sender is dropped.
    Close {
        reply: oneshot::Sender<()>,
    },
}

pub(crate) type Reply<T, E> = oneshot::Sender<Result<T, E>>;

/// A transaction whose time to live is resolved to a deadline.
#[derive(Debug)]
pub(crate) struct WriteCommand {
    pub(crate) transaction: Transaction,
    pub(crate) expires_at_ms: Option<u64>,
}

/// How long the writer waits for how many commands before it starts a batch.
///
/// Callers that were answered together send their next writes almost together. Without the wait the first
/// of them would get a sync of its own while the others wait for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchWait {
    pub(crate) n_commands: usize,
    pub(crate) time_max: Duration,
}

/// Commands in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct CommandQueue {
    inner: Mutex<QueueState>,
    batch_ready: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    commands: Vec<Command>,
    /// Number of queued commands that wakes the writer.
    n_commands_wanted: usize,
    is_closed: bool,
}

impl CommandQueue {
    /// Adds a command and wakes the writer. After closing, the command is dropped and its caller gets an error.
    pub(crate) fn push(&self, command: Command) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if !inner.is_closed {
            inner.commands.push(command);
            let is_enough = inner.commands.len() >= inner.n_commands_wanted;
            drop(inner);
            if is_enough {
                self.batch_ready.notify_one();
            }
        }
    }

    /// Takes all commands: waits for the first one until a deadline, and then briefly for more.
    pub(crate) fn take_batch(&self, deadline: Instant, batch_wait: &BatchWait) -> Vec<Command> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner = self.wait(inner, 1, deadline.saturating_duration_since(Instant::now()));
        if !inner.commands.is_empty() {
            inner = self.wait(inner, batch_wait.n_commands, batch_wait.time_max);
        }
        std::mem::take(&mut inner.commands)
    }

    fn wait<'a>(
        &self,
        mut inner: MutexGuard<'a, QueueState>,
        n_commands_wanted: usize,
        time_max: Duration,
    ) -> MutexGuard<'a, QueueState> {
        if inner.commands.len() >= n_commands_wanted {
            return inner;
        }
        inner.n_commands_wanted = n_commands_wanted;
        let too_few = |inner: &mut QueueState| inner.commands.len() < n_commands_wanted;
        let wait = self.batch_ready.wait_timeout_while(inner, time_max, too_few);
        wait.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Drops all commands, and all that arrive later.
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.is_closed = true;
        let dropped = std::mem::take(&mut inner.commands);
        drop(inner);
        drop(dropped);
    }
}
