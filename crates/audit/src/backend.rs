//! A backend of the auditor: a bounded queue, and a thread of its own that takes events from it to a sink.
//!
//! INVARIANT: no worker of the server waits in here. [`Backend::enqueue`] takes the event or drops it, and a
//! [`EventWriteReceipt`](crate::EventWriteReceipt) is awaited for a limited time. A sink that hangs costs events, which are counted.

mod backend_status;
mod batch_writer;
mod queue_space;
mod throttle;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use self::backend_status::EventCounts;
use self::queue_space::{QueueReservation, QueueSpace};
use crate::event_write_receipt::PendingWrite;

pub use self::backend_status::{BackendStatus, LossCause};

/// Upper bound on the bytes of the events in one queue, whatever their number. The events of one user take at most half
/// of it.
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Receives the events of one backend: a log file, or a webhook.
pub trait EventSink: Send + Sync + 'static {
    /// Writes events in their order. Each is a line of JSON that ends with a line feed. The future may block its
    /// thread, which does nothing else.
    fn write_events<'a>(&'a self, lines: &'a [Bytes]) -> SinkFuture<'a>;

    /// The number of batches that the backend may write at the same time.
    fn batches_in_flight_max(&self) -> usize {
        1
    }
}

/// The future of a sink. It is boxed, so that sinks of other crates need no type parameters here.
pub type SinkFuture<'a> = Pin<Box<dyn Future<Output = Result<(), SinkError>> + Send + 'a>>;

/// Some events of a batch were not written.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SinkError {
    /// The number of events at the beginning of the batch that were written.
    pub n_written_events: usize,
    /// The number of events after those that are lost. The backend passes the rest of the batch to the sink again.
    pub n_lost_events: usize,
    /// The cause, without secrets.
    pub message: String,
}

/// Whether requests wait for their events, and whether they fail with them. The names are those of kube-apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendMode {
    /// Requests do not wait.
    Batch,
    /// A request waits until its event is written. If that fails or takes too long, the request continues.
    Blocking,
    /// As `Blocking`, but a request whose event of the stage RequestReceived is not written is refused.
    BlockingStrict,
}

/// The options of a backend.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendOptions {
    /// Whether requests wait for their events.
    pub backend_mode: BackendMode,
    /// The maximum number of events in the queue, including those that are being written. The events of one user take
    /// at most half of it.
    pub queued_events_max: usize,
    /// The maximum number of events in a batch.
    pub batch_events_max: usize,
    /// How long an incomplete batch waits for more events in mode `Batch`.
    pub batch_wait_max: Duration,
    /// The rate of batches in mode `Batch`; `None` does not limit it.
    pub batch_throttle: Option<BatchThrottle>,
    /// The size in bytes above which an event loses its bodies. If it is still longer, it is dropped.
    pub event_bytes_max: usize,
    /// The maximum total size of the events of one batch, in bytes.
    pub batch_bytes_max: usize,
    /// How long a request waits for its event in the modes that wait. After one wait has timed out, no request
    /// waits until the sink writes again.
    pub blocking_wait_max: Duration,
}

/// A limit of the rate of batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchThrottle {
    /// The average number of batches a second.
    pub qps: f32,
    /// The number of batches that may follow each other at once.
    pub burst: u32,
}

impl Default for BackendOptions {
    /// The options of kube-apiserver for a log.
    fn default() -> Self {
        Self {
            backend_mode: BackendMode::Blocking,
            queued_events_max: 10_000,
            batch_events_max: 400,
            batch_wait_max: Duration::ZERO,
            batch_throttle: None,
            event_bytes_max: crate::EVENT_BYTES_MAX,
            batch_bytes_max: crate::EVENT_BYTES_MAX,
            blocking_wait_max: Duration::from_secs(5),
        }
    }
}

/// A running backend. Its thread ends when the backend is dropped and the queue is empty.
#[derive(Debug)]
pub struct Backend {
    name: &'static str,
    options: BackendOptions,
    queue_space: Arc<QueueSpace>,
    queue_sender: mpsc::UnboundedSender<Message>,
    backend_state: Arc<BackendState>,
}

/// The part of a backend that its thread shares.
#[derive(Debug, Default)]
pub(crate) struct BackendState {
    event_counts: EventCounts,
    /// Whether the wait of a request timed out, and nothing was written since.
    is_stalled: AtomicBool,
}

/// The thread of a backend cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the thread of the audit backend `{name}`")]
pub struct StartBackendError {
    name: &'static str,
    source: io::Error,
}

/// A message to the thread of a backend. The queue is bounded because each event holds a [`Reservation`].
enum Message {
    Event(QueuedEvent),
    /// Requests a signal when all events before this message are written or lost.
    Flush(oneshot::Sender<()>),
}

struct QueuedEvent {
    event_line: Bytes,
    /// Tells the request that waits whether the event was written.
    result_sender: Option<oneshot::Sender<bool>>,
    _queue_reservation: QueueReservation,
}

/// The result of giving an event to a backend.
pub(crate) enum EnqueueResult {
    /// The event is in the queue.
    Accepted,
    /// The event is in the queue, and the request should wait for it.
    Pending(PendingWrite),
    /// The event is lost, or it is unknown whether it will be written.
    NotRecorded,
}

impl Backend {
    /// Starts the thread of a backend. The name, such as `log`, is a label of metrics.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub fn start(
        name: &'static str,
        sink: Arc<dyn EventSink>,
        options: BackendOptions,
    ) -> Result<Self, StartBackendError> {
        let at = |source| StartBackendError { name, source };
        let (queue, messages) = mpsc::unbounded_channel();
        let space = Arc::new(QueueSpace::new(options.queued_events_max, QUEUE_BYTES_MAX));
        let state = Arc::new(BackendState::default());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(at)?;
        let writing =
            batch_writer::write_until_closed(messages, sink, options.clone(), state.clone());
        let thread = thread::Builder::new().name(format!("audit-{name}"));
        thread.spawn(move || runtime.block_on(writing)).map_err(at)?;
        Ok(Self { name, options, queue_space: space, queue_sender: queue, backend_state: state })
    }

    /// The label of the backend in metrics.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn options(&self) -> &BackendOptions {
        &self.options
    }

    /// Puts an event into the queue, or drops and counts it if the queue is full. Never waits.
    pub(crate) fn enqueue_event(&self, line: Bytes, user: &str) -> EnqueueResult {
        let reservation = match self.queue_space.reserve(user, line.len()) {
            Ok(reservation) => reservation,
            Err(full) => {
                self.count_dropped_event(full.into());
                return EnqueueResult::NotRecorded;
            }
        };
        let (written_sender, written) = oneshot::channel();
        let waits = self.options.backend_mode != BackendMode::Batch;
        let event = QueuedEvent {
            event_line: line,
            result_sender: waits.then_some(written_sender),
            _queue_reservation: reservation,
        };
        if self.queue_sender.send(Message::Event(event)).is_err() {
            // The thread has panicked, which is a bug of a sink.
            self.count_dropped_event(LossCause::Failed);
            return EnqueueResult::NotRecorded;
        }
        match waits {
            false => EnqueueResult::Accepted,
            true if self.backend_state.is_stalled.load(Ordering::Acquire) => {
                EnqueueResult::NotRecorded
            }
            true => EnqueueResult::Pending(PendingWrite::new(
                written,
                self.options.blocking_wait_max,
                self.is_blocking_strict(),
                Arc::clone(&self.backend_state),
            )),
        }
    }

    pub(crate) fn is_blocking_strict(&self) -> bool {
        self.options.backend_mode == BackendMode::BlockingStrict
    }

    /// Counts an event that never reaches the queue.
    pub(crate) fn count_dropped_event(&self, cause: LossCause) {
        self.backend_state.event_counts.count_lost_events(cause, 1);
    }

    /// The counts of the backend.
    pub fn status(&self) -> BackendStatus {
        self.backend_state
            .event_counts
            .to_backend_status(self.name, self.queue_space.n_queued_events())
    }

    /// Waits until the events that are in the queue now are written or lost. The caller limits the time.
    pub(crate) async fn flush(&self) {
        let (done_sender, done) = oneshot::channel();
        if self.queue_sender.send(Message::Flush(done_sender)).is_ok() {
            // The thread drops the sender only if it panics, and then nothing is left to wait for.
            let _ = done.await;
        }
    }
}

impl BackendState {
    /// Records that the wait of a request timed out, so that other requests do not wait as well.
    pub(crate) fn report_stall(&self) {
        self.is_stalled.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
