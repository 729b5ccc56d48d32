use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::EventWriteReceipt;

/// A sink that does what its script says: each batch of events is kept if the gate is open and the sink is
/// healthy.
#[derive(Default)]
struct ScriptedSink {
    batches: Mutex<Vec<Vec<Bytes>>>,
    gate: Mutex<Option<std::sync::mpsc::Receiver<()>>>,
    n_failures_left: AtomicUsize,
}

impl EventSink for ScriptedSink {
    fn write_events<'a>(&'a self, lines: &'a [Bytes]) -> SinkFuture<'a> {
        Box::pin(async move {
            // Blocks the thread, as a pipe does that nobody reads.
            if let Some(gate) = &*self.gate.lock().unwrap() {
                let _ = gate.recv();
            }
            if self
                .n_failures_left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
            {
                let message = "no space left".to_owned();
                return Err(SinkError { n_written_events: 0, n_lost_events: 1, message });
            }
            self.batches.lock().unwrap().push(lines.to_vec());
            Ok(())
        })
    }
}

impl ScriptedSink {
    fn lines(&self) -> Vec<String> {
        let batches = self.batches.lock().unwrap();
        let texts = batches.iter().flatten().map(|line| String::from_utf8_lossy(line).into_owned());
        texts.collect()
    }
}

fn options(mode: BackendMode) -> BackendOptions {
    BackendOptions {
        backend_mode: mode,
        queued_events_max: 8,
        blocking_wait_max: Duration::from_millis(20),
        ..BackendOptions::default()
    }
}

fn start(sink: &Arc<ScriptedSink>, options: BackendOptions) -> Backend {
    Backend::start("test", Arc::clone(sink) as Arc<dyn EventSink>, options).unwrap()
}

/// A sink whose writes block until the returned sender is dropped.
fn blocked_sink() -> (Arc<ScriptedSink>, std::sync::mpsc::Sender<()>) {
    let (opener, gate) = std::sync::mpsc::channel();
    let sink = ScriptedSink { gate: Mutex::new(Some(gate)), ..ScriptedSink::default() };
    (Arc::new(sink), opener)
}

/// Enqueues an event as the auditor does, and waits for its receipt.
async fn record(backend: &Backend, user: &str, line: &str) -> bool {
    let mut receipt = EventWriteReceipt::default();
    match backend.enqueue_event(Bytes::copy_from_slice(line.as_bytes()), user) {
        EnqueueResult::Accepted => {}
        EnqueueResult::Pending(pending) => receipt.add_pending_write(pending),
        EnqueueResult::NotRecorded if backend.is_blocking_strict() => {
            receipt.mark_dropped_by_strict_backend()
        }
        EnqueueResult::NotRecorded => {}
    }
    receipt.wait_until_written().await.is_ok()
}

fn n_lost(backend: &Backend, cause: LossCause) -> u64 {
    let status = backend.status();
    status
        .n_lost_events_by_cause
        .iter()
        .find(|(own, _)| *own == cause)
        .map(|(_, count)| *count)
        .unwrap()
}

#[tokio::test]
async fn in_the_blocking_modes_an_event_is_written_when_its_request_continues() {
    for mode in [BackendMode::Blocking, BackendMode::BlockingStrict] {
        let sink = Arc::new(ScriptedSink::default());
        let blocking_wait_max = Duration::from_secs(60);
        let backend = start(&sink, BackendOptions { blocking_wait_max, ..options(mode) });
        for line in ["a\n", "b\n"] {
            assert!(record(&backend, "jane", line).await);
            assert_eq!(sink.lines().last().map(String::as_str), Some(line));
        }
        assert_eq!(backend.status().n_written_events, 2);
    }
}

/// A24: in every mode a sink that blocks stops no caller. Events beyond the queue are dropped and counted, and
/// only the mode `blocking-strict` refuses requests. When the sink goes on, everything that was queued is
/// written.
#[tokio::test]
async fn a24_a_sink_that_blocks_costs_events_and_no_time() {
    for mode in [BackendMode::Batch, BackendMode::Blocking, BackendMode::BlockingStrict] {
        let (sink, opener) = blocked_sink();
        let backend = start(&sink, options(mode));
        for n in 0..20 {
            let is_accepted = record(&backend, "jane", &format!("{n}\n")).await;
            assert_eq!(is_accepted, mode != BackendMode::BlockingStrict, "{mode:?}");
        }
        // Half of the queue is for others, who are recorded.
        assert_eq!(n_lost(&backend, LossCause::UserShare), 16, "{mode:?}");
        for n in 0..20 {
            record(&backend, "joe", &format!("{n}\n")).await;
        }
        assert_eq!(n_lost(&backend, LossCause::QueueFull), 16, "{mode:?}");
        let status = backend.status();
        assert_eq!((status.n_queued_events, status.n_written_events), (8, 0), "{mode:?}");
        drop(opener);
        backend.flush().await;
        let status = backend.status();
        assert_eq!((status.n_queued_events, status.n_written_events), (0, 8), "{mode:?}");
        assert!(record(&backend, "jane", "later\n").await, "{mode:?}");
        backend.flush().await;
        assert_eq!(
            sink.lines(),
            ["0\n", "1\n", "2\n", "3\n", "0\n", "1\n", "2\n", "3\n", "later\n"]
        );
    }
}

/// After one request waited in vain the others do not wait, until something is written.
#[tokio::test]
async fn nobody_waits_for_a_stalled_sink_twice() {
    let (sink, opener) = blocked_sink();
    let backend = start(&sink, options(BackendMode::Blocking));
    record(&backend, "jane", "a\n").await;
    assert!(matches!(
        backend.enqueue_event(Bytes::from("b\n"), "jane"),
        EnqueueResult::NotRecorded
    ));
    drop(opener);
    backend.flush().await;
    assert!(matches!(backend.enqueue_event(Bytes::from("c\n"), "jane"), EnqueueResult::Pending(_)));
}

/// A24: a write that fails, as on a full disk, is counted with its cause. Only the mode `blocking-strict` refuses.
#[tokio::test]
async fn a24_a_write_that_fails_is_counted_with_its_cause() {
    for (mode, want) in [(BackendMode::Blocking, true), (BackendMode::BlockingStrict, false)] {
        let sink = Arc::new(ScriptedSink::default());
        sink.n_failures_left.store(1, Ordering::Relaxed);
        let blocking_wait_max = Duration::from_secs(60);
        let backend = start(&sink, BackendOptions { blocking_wait_max, ..options(mode) });
        assert_eq!(record(&backend, "jane", "lost\n").await, want);
        assert!(record(&backend, "jane", "kept\n").await);
        let status = backend.status();
        assert_eq!((status.n_written_events, n_lost(&backend, LossCause::Failed)), (1, 1));
        assert_eq!(status.n_lost_events_in_total(), 1);
        assert_eq!(status.last_sink_error.as_deref(), Some("no space left"));
        assert_eq!(sink.lines(), ["kept\n"]);
    }
}

#[tokio::test]
async fn batches_are_limited_in_number_and_bytes() {
    for (batch_size_max, batch_bytes_max, want) in
        [(3, 1000, vec![3, 3, 1]), (100, 4, vec![2, 2, 2, 1]), (100, 1, vec![1; 7])]
    {
        let (sink, opener) = blocked_sink();
        let batch_wait_max = Duration::from_secs(3600);
        let backend = start(
            &sink,
            BackendOptions {
                queued_events_max: 100,
                batch_events_max: batch_size_max,
                batch_bytes_max,
                batch_wait_max,
                ..options(BackendMode::Batch)
            },
        );
        for n in 0..7 {
            assert!(record(&backend, "jane", &format!("{n}\n")).await);
        }
        drop(opener);
        // A flush ends the wait for a full batch.
        backend.flush().await;
        let sizes: Vec<usize> = sink.batches.lock().unwrap().iter().map(Vec::len).collect();
        assert_eq!(sizes, want, "{batch_size_max} {batch_bytes_max}");
    }
}

/// A line that cannot be written does not take the lines after it along.
#[tokio::test]
async fn the_rest_of_a_batch_is_tried_after_a_lost_event() {
    let (sink, opener) = blocked_sink();
    sink.n_failures_left.store(1, Ordering::Relaxed);
    let backend =
        start(&sink, BackendOptions { queued_events_max: 100, ..options(BackendMode::Batch) });
    for line in ["a\n", "b\n", "c\n"] {
        assert!(record(&backend, "jane", line).await);
    }
    drop(opener);
    backend.flush().await;
    assert_eq!(sink.lines(), ["b\n", "c\n"]);
}
