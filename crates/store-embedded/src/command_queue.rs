//! The way from many callers to the one writer.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use store::{ReadError, Revision, Transaction, WriteError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// How many bytes may wait for the writer, and so the most that one batch can hold. Who comes later
/// waits before the queue.
pub(crate) const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a permit of the queue stands for. A write takes one for itself and one for each of these, so
/// the number of waiting writes is bounded too.
pub(crate) const BYTES_PER_PERMIT: usize = 1024;

/// What callers ask of the writer.
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
    /// Does now what is done every second.
    Tick {
        reply: oneshot::Sender<()>,
    },
    /// Finishes and ends the thread, after which the sender is dropped.
    Close {
        reply: oneshot::Sender<()>,
    },
}

pub(crate) type Reply<T, E> = oneshot::Sender<Result<T, E>>;

/// A transaction whose content has a deadline in place of a time to live.
#[derive(Debug)]
pub(crate) struct WriteCommand {
    pub(crate) transaction: Transaction,
    pub(crate) expires_at_ms: Option<u64>,
}

/// How long to wait for how many commands before a batch begins.
///
/// Writers who were answered together come back together, but not at the same instant. Without a pause
/// the first of them would get a sync of its own while the others wait for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchWait {
    pub(crate) n_commands: usize,
    pub(crate) time_max: Duration,
}

/// Commands in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct CommandQueue {
    inner: Mutex<QueueState>,
    batch_ready: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    commands: Vec<Command>,
    /// With so many the writer wakes up; it sleeps deeper while it gathers.
    n_commands_wanted: usize,
    is_closed: bool,
}

impl CommandQueue {
    /// Adds a command; the writer wakes up. After closing it is dropped, which its sender notices.
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

    /// Takes all commands, waiting for the first until a deadline, and then a moment for more.
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

    /// Drops all commands, now and later.
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.is_closed = true;
        let dropped = std::mem::take(&mut inner.commands);
        drop(inner);
        drop(dropped);
    }
}
