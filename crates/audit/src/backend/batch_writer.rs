//! The thread of a backend: it collects events into batches and gives these to the sink.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::backend_status::LossCause;
use super::throttle::TokenBucket;
use super::{BackendMode, BackendOptions, BackendState, EventSink, Message, QueuedEvent};

/// Events that the sink gets together.
#[derive(Default)]
struct EventBatch {
    events: Vec<QueuedEvent>,
    n_batch_bytes: usize,
}

/// The message that ended a batch; `Nothing` if its size or its time limit ended it.
enum MessageAfterBatch {
    Nothing,
    /// The first event of the next batch, which did not fit.
    Next(QueuedEvent),
    Flush(oneshot::Sender<()>),
}

/// Writes events until all senders of the queue are dropped and the queue is empty.
pub(super) async fn write_until_closed(
    mut messages: mpsc::UnboundedReceiver<Message>,
    sink: Arc<dyn EventSink>,
    options: BackendOptions,
    state: Arc<BackendState>,
) {
    let throttle = options.batch_throttle.filter(|_| options.backend_mode == BackendMode::Batch);
    let mut bucket = throttle.map(|throttle| TokenBucket::new(throttle, Instant::now()));
    let batches_max = sink.batches_in_flight_max().max(1);
    let mut writing = JoinSet::new();
    let mut next = None;
    loop {
        let mut batch = EventBatch::default();
        let first = match next.take() {
            Some(event) => Some(Message::Event(event)),
            None => messages.recv().await,
        };
        let after = match first {
            None => break,
            Some(Message::Flush(done)) => MessageAfterBatch::Flush(done),
            Some(Message::Event(event)) => {
                batch.push(event);
                batch.collect_events(&mut messages, &options).await
            }
        };
        if !batch.events.is_empty() {
            if let Some(bucket) = &mut bucket {
                sleep(bucket.take_token(Instant::now())).await;
            }
            let written = write_batch(Arc::clone(&sink), batch, Arc::clone(&state));
            if batches_max == 1 {
                written.await;
            } else {
                while writing.len() >= batches_max {
                    writing.join_next().await;
                }
                writing.spawn(written);
                while writing.try_join_next().is_some() {}
            }
        }
        match after {
            MessageAfterBatch::Nothing => {}
            MessageAfterBatch::Next(event) => next = Some(event),
            MessageAfterBatch::Flush(done) => {
                while writing.join_next().await.is_some() {}
                // The caller may have given up.
                let _ = done.send(());
            }
        }
    }
    while writing.join_next().await.is_some() {}
}

impl EventBatch {
    fn push(&mut self, event: QueuedEvent) {
        self.n_batch_bytes += event.event_line.len();
        self.events.push(event);
    }

    /// Adds events until the batch is full. In mode `Batch` it waits for them, in other modes it takes those
    /// that are already in the queue, because requests wait for the batch.
    async fn collect_events(
        &mut self,
        messages: &mut mpsc::UnboundedReceiver<Message>,
        options: &BackendOptions,
    ) -> MessageAfterBatch {
        let waits = options.backend_mode == BackendMode::Batch && !options.batch_wait_max.is_zero();
        let deadline = Instant::now() + options.batch_wait_max;
        while self.events.len() < options.batch_events_max {
            let message = match waits {
                true => timeout_at(deadline, messages.recv()).await.ok().flatten(),
                false => messages.try_recv().ok(),
            };
            match message {
                None => break,
                Some(Message::Flush(done)) => return MessageAfterBatch::Flush(done),
                Some(Message::Event(event)) => {
                    if self.n_batch_bytes + event.event_line.len() > options.batch_bytes_max {
                        return MessageAfterBatch::Next(event);
                    }
                    self.push(event);
                }
            }
        }
        MessageAfterBatch::Nothing
    }
}

async fn write_batch(sink: Arc<dyn EventSink>, batch: EventBatch, state: Arc<BackendState>) {
    let lines: Vec<Bytes> = batch.events.iter().map(|event| event.event_line.clone()).collect();
    let mut rest = lines.as_slice();
    let mut events = batch.events.into_iter();
    while !rest.is_empty() {
        let (n_written, n_lost) = match sink.write_events(rest).await {
            Ok(()) => (rest.len(), 0),
            Err(error) => {
                state.event_counts.set_last_sink_error(error.message);
                let n_written = error.n_written_events.min(rest.len() - 1);
                (n_written, error.n_lost_events.clamp(1, rest.len() - n_written))
            }
        };
        state.is_stalled.store(false, Ordering::Release);
        state.event_counts.count_written_events(n_written);
        state.event_counts.count_lost_events(LossCause::Failed, n_lost);
        for (idx, event) in events.by_ref().take(n_written + n_lost).enumerate() {
            if let Some(waiting) = event.result_sender {
                // The request may have given up.
                let _ = waiting.send(idx < n_written);
            }
        }
        rest = rest.get(n_written + n_lost..).unwrap_or_default();
    }
}
