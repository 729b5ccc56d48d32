//! The queue of log lines in front of standard error, and the thread that writes them.
//!
//! Standard error may be a pipe that nobody reads. A worker that wrote to it would wait for ever, and every
//! request of that worker with it. So workers put lines into a bounded queue, and a line that does not fit is
//! counted.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum number of bytes of queued lines.
const QUEUE_BYTES_MAX: usize = 8 << 20;

/// Routine lines, such as those of requests, may fill this much of the queue. The rest is reserved for warnings and
/// errors.
const ROUTINE_BYTES_MAX: usize = QUEUE_BYTES_MAX / 2;

/// The memory of a queued line besides its text, so that many short lines count too.
const LINE_OVERHEAD_BYTES: usize = 64;

/// The maximum size of one write in bytes. Lines that wait are written together.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// How much of the queue a line may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogLinePriority {
    /// One of many lines, such as that of a request.
    Routine,
    /// A line about something that an operator should know.
    Important,
}

/// A bounded queue of lines, which one thread writes in their order.
#[derive(Debug, Default)]
pub(super) struct LogLineQueue {
    queue_state: Mutex<LogLineQueueState>,
    /// Notifies the writer thread of new lines.
    lines_available: Condvar,
    /// Notifies callers of `flush` that all lines are written.
    all_lines_written: Condvar,
}

#[derive(Debug, Default)]
struct LogLineQueueState {
    queued_lines: VecDeque<String>,
    queued_bytes: usize,
    /// Whether the thread is writing lines that are no longer in the queue.
    is_thread_writing: bool,
    n_dropped_lines: u64,
    /// The number of dropped lines that no log line has reported yet.
    n_unreported_dropped_lines: u64,
}

/// Returns the queue of standard error, of which each process has one.
pub(super) fn stderr_line_queue() -> &'static LogLineQueue {
    static QUEUE: OnceLock<Arc<LogLineQueue>> = OnceLock::new();
    QUEUE.get_or_init(|| {
        let queue = Arc::new(LogLineQueue::default());
        let own = Arc::clone(&queue);
        let thread = thread::Builder::new().name("log".to_owned());
        // Without a thread the queue fills up and lines are counted as dropped; requests are served all the same.
        drop(thread.spawn(move || own.write_queued_lines(&mut io::stderr())));
        queue
    })
}

impl LogLineQueue {
    /// Puts a line into the queue, or drops and counts it. Never waits for a write. When the queue is
    /// mostly empty again, it returns the number of lines that were dropped before, once, so that the log can
    /// mention them.
    pub(super) fn push(&self, line: String, priority: LogLinePriority) -> Option<u64> {
        let bytes_max = match priority {
            LogLinePriority::Routine => ROUTINE_BYTES_MAX,
            LogLinePriority::Important => QUEUE_BYTES_MAX,
        };
        let mut state = self.lock();
        let n_bytes = state.queued_bytes + line.len() + LINE_OVERHEAD_BYTES;
        if n_bytes > bytes_max {
            state.n_dropped_lines += 1;
            state.n_unreported_dropped_lines += 1;
            return None;
        }
        state.queued_bytes = n_bytes;
        state.queued_lines.push_back(line);
        let n_dropped = match n_bytes <= ROUTINE_BYTES_MAX / 2 {
            true => std::mem::take(&mut state.n_unreported_dropped_lines),
            false => 0,
        };
        drop(state);
        self.lines_available.notify_one();
        (n_dropped > 0).then_some(n_dropped)
    }

    /// The number of lines that were dropped.
    pub(super) fn n_dropped_lines(&self) -> u64 {
        self.lock().n_dropped_lines
    }

    /// Waits until all lines are written, at most for `limit`. Reports whether they are.
    pub(super) fn flush(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        while state.is_thread_writing || !state.queued_lines.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.all_lines_written.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// Writes lines for ever. Lines that cannot be written, as to a closed pipe, count as dropped.
    fn write_queued_lines(&self, target: &mut dyn Write) {
        let mut chunk = String::new();
        loop {
            chunk.clear();
            let n_lines = self.take_queued_lines(&mut chunk);
            let is_written =
                target.write_all(chunk.as_bytes()).and_then(|()| target.flush()).is_ok();
            let mut state = self.lock();
            state.is_thread_writing = false;
            if !is_written {
                state.n_dropped_lines += n_lines;
            }
            if state.queued_lines.is_empty() {
                self.all_lines_written.notify_all();
            }
        }
    }

    /// Waits for lines and moves some of them into the chunk. Returns their number.
    fn take_queued_lines(&self, chunk: &mut String) -> u64 {
        let mut state = self.lock();
        while state.queued_lines.is_empty() {
            state = self.lines_available.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut n_lines = 0;
        while chunk.len() < WRITE_BYTES_MAX
            && let Some(line) = state.queued_lines.pop_front()
        {
            state.queued_bytes =
                state.queued_bytes.saturating_sub(line.len() + LINE_OVERHEAD_BYTES);
            chunk.push_str(&line);
            n_lines += 1;
        }
        state.is_thread_writing = true;
        n_lines
    }

    /// A poisoned lock is used: no panic can happen between the changes of the state.
    fn lock(&self) -> MutexGuard<'_, LogLineQueueState> {
        self.queue_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A pipe that nobody reads until the gate is opened.
    struct Pipe {
        gate: mpsc::Receiver<()>,
        written: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.gate.recv();
            let _ = self.written.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start() -> (Arc<LogLineQueue>, mpsc::Sender<()>, mpsc::Receiver<Vec<u8>>) {
        let (opener, gate) = mpsc::channel();
        let (written, reader) = mpsc::channel();
        let queue = Arc::new(LogLineQueue::default());
        let own = Arc::clone(&queue);
        thread::spawn(move || {
            own.write_queued_lines(&mut Pipe { gate, written });
        });
        (queue, opener, reader)
    }

    fn read_all(queue: &LogLineQueue, reader: &mpsc::Receiver<Vec<u8>>) -> String {
        assert!(queue.flush(Duration::from_secs(60)));
        String::from_utf8(reader.try_iter().flatten().collect()).unwrap()
    }

    /// A24: a pipe that nobody reads costs lines, which are counted, and nobody's time. The lines of requests
    /// leave room for warnings. When the pipe is read again, the log goes on and mentions what it lost.
    #[test]
    fn a24_a_pipe_that_nobody_reads_costs_lines_and_no_time() {
        let (queue, opener, reader) = start();
        let line = format!("{}\n", "x".repeat(1000));
        let n_lines = 2 * ROUTINE_BYTES_MAX / line.len();
        for _ in 0..n_lines {
            assert_eq!(queue.push(line.clone(), LogLinePriority::Routine), None);
        }
        let n_dropped = queue.n_dropped_lines();
        assert!(n_dropped > 0 && n_dropped < n_lines as u64, "{n_dropped}");
        assert_eq!(queue.push("a warning\n".to_owned(), LogLinePriority::Important), None);
        assert_eq!(queue.n_dropped_lines(), n_dropped);
        assert!(!queue.flush(Duration::from_millis(1)));
        drop(opener);
        assert!(read_all(&queue, &reader).ends_with("xx\na warning\n"));
        assert_eq!(queue.push("later\n".to_owned(), LogLinePriority::Routine), Some(n_dropped));
        assert_eq!(read_all(&queue, &reader), "later\n");
        assert_eq!(queue.n_dropped_lines(), n_dropped);
    }

    #[test]
    fn lines_are_written_in_their_order() {
        let (queue, opener, reader) = start();
        drop(opener);
        let want: String = (0..1000).map(|n| format!("{n}\n")).collect();
        for n in 0..1000 {
            queue.push(format!("{n}\n"), LogLinePriority::Routine);
        }
        assert_eq!(read_all(&queue, &reader), want);
    }
}
