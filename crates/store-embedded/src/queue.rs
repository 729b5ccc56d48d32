//! The way from many callers to the one writer.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use store::{Expect, Key, ReadError, Revision, WriteError};
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
        write: Write,
        reply: Reply<Revision, WriteError>,
        _room: OwnedSemaphorePermit,
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

/// A put, or a delete when there is no content.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) key: Key,
    pub(crate) expect: Expect,
    pub(crate) content: Option<Content>,
}

#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) value: Bytes,
    pub(crate) expires_at_ms: Option<u64>,
}

/// Commands in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    not_empty: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    commands: Vec<Command>,
    is_closed: bool,
}

impl Queue {
    /// Adds a command; the writer wakes up. After closing it is dropped, which its sender notices.
    pub(crate) fn push(&self, command: Command) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if !inner.is_closed {
            inner.commands.push(command);
            drop(inner);
            self.not_empty.notify_one();
        }
    }

    /// Takes all commands, waiting for the first until a deadline.
    pub(crate) fn take(&self, deadline: Instant) -> Vec<Command> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let timeout = deadline.saturating_duration_since(Instant::now());
        let wait =
            self.not_empty.wait_timeout_while(inner, timeout, |inner| inner.commands.is_empty());
        let (mut inner, _) = wait.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut inner.commands)
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
