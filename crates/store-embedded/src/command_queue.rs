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
pub(crate) enum WriterCommand {
    Write {
        write: WriteCommand,
        reply: ReplySender<Revision, WriteError>,
        _write_permits: OwnedSemaphorePermit,
    },
    Compact {
        revision: Revision,
        reply: ReplySender<Revision, ReadError>,
    },
    /// Runs the periodic work now.
    Tick {
        reply: oneshot::Sender<()>,
    },
    /// Ends the writer thread.
    Close {
        reply: oneshot::Sender<()>,
    },
}

pub(crate) type ReplySender<T, E> = oneshot::Sender<Result<T, E>>;

/// A transaction whose time to live is resolved to a deadline.
#[derive(Debug)]
pub(crate) struct WriteCommand {
    pub(crate) transaction: Transaction,
    pub(crate) expires_at_ms: Option<u64>,
}

/// The number of commands that the writer waits for before it starts a batch, and the maximum wait.
///
/// Callers that were answered together send their next writes almost together. Without the wait the first
/// of them would get a sync of its own while the others wait for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchWait {
    pub(crate) n_commands_to_wait_for: usize,
    pub(crate) wait_time_max: Duration,
}

/// Commands in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct CommandQueue {
    queue_state: Mutex<QueueState>,
    batch_ready_condvar: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    queued_commands: Vec<WriterCommand>,
    /// Number of queued commands that wakes the writer.
    n_commands_wanted: usize,
    is_closed: bool,
}

impl CommandQueue {
    /// Adds a command and wakes the writer. After closing, the command is dropped and its caller gets an error.
    pub(crate) fn push(&self, command: WriterCommand) {
        let mut state = self.queue_state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_closed {
            state.queued_commands.push(command);
            let is_enough = state.queued_commands.len() >= state.n_commands_wanted;
            drop(state);
            if is_enough {
                self.batch_ready_condvar.notify_one();
            }
        }
    }

    /// Takes all commands: waits for the first one until a deadline, and then briefly for more.
    pub(crate) fn take_batch(
        &self,
        deadline: Instant,
        batch_wait: &BatchWait,
    ) -> Vec<WriterCommand> {
        let mut state = self.queue_state.lock().unwrap_or_else(PoisonError::into_inner);
        state =
            self.wait_for_commands(state, 1, deadline.saturating_duration_since(Instant::now()));
        if !state.queued_commands.is_empty() {
            state = self.wait_for_commands(
                state,
                batch_wait.n_commands_to_wait_for,
                batch_wait.wait_time_max,
            );
        }
        std::mem::take(&mut state.queued_commands)
    }

    fn wait_for_commands<'a>(
        &self,
        mut state: MutexGuard<'a, QueueState>,
        n_commands_wanted: usize,
        time_max: Duration,
    ) -> MutexGuard<'a, QueueState> {
        if state.queued_commands.len() >= n_commands_wanted {
            return state;
        }
        state.n_commands_wanted = n_commands_wanted;
        let too_few = |state: &mut QueueState| state.queued_commands.len() < n_commands_wanted;
        let result = self.batch_ready_condvar.wait_timeout_while(state, time_max, too_few);
        result.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Drops all commands, and all that arrive later.
    pub(crate) fn close(&self) {
        let mut state = self.queue_state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_closed = true;
        let dropped = std::mem::take(&mut state.queued_commands);
        drop(state);
        drop(dropped);
    }
}
