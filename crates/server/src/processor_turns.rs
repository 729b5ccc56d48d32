//! Keeps requests that occupy a processor for long, such as those with large objects, from delaying other
//! requests.
//!
//! A worker thread of the async runtime polls one task after the other, so a request that computes for 50 ms
//! delays the other tasks of the worker by 50 ms. Such a request is therefore polled on a thread that is no
//! worker, and the operating system shares the processors between both. It needs a [`concurrency_limit::Turn`] for
//! each poll. There are few turns: one user has at most half of them, and waiting users get turns in rotation.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use concurrency_limit::{CpuSlot, CpuSlotFuture, FairCpuScheduler, LongComputationFlag};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Sleep;

/// A request whose body or stored object has more bytes needs turns: to decode, check and encode it takes about a
/// millisecond.
pub(crate) const LONG_WORK_BYTES: usize = 16 << 10;

/// A request that occupied its worker for longer than this in one poll, without announcing long work, needs turns
/// from then on.
const POLL_TIME_MAX: Duration = Duration::from_millis(2);

/// The maximum time for which a request keeps its turn while it waits, for example for the store.
const HOLD_TIME_MAX: Duration = Duration::from_millis(5);

/// The turns of a server: one for each processor, and at least two, so that two users can have one each.
pub(crate) fn new_processor_turn_queue() -> Arc<FairCpuScheduler> {
    let n_processors = available_parallelism().map_or(1, |count| count.get());
    Arc::new(FairCpuScheduler::new(n_processors.max(2)))
}

/// Runs the rest of a request. As soon as `work` is set, each poll needs a turn. `turns` is `None` for a request
/// of an exempt priority level, which waits for no turn.
pub(crate) async fn run_in_processor_turns<T>(
    turns: Option<&Arc<FairCpuScheduler>>,
    user: &str,
    work: &LongComputationFlag,
    request: impl Future<Output = T>,
) -> T {
    let mut request = pin!(request);
    let (mut waiting, mut has_had_turn): (Option<CpuSlotFuture>, bool) = (None, false);
    let mut held: Option<TurnHeldWhileWaiting> = None;
    std::future::poll_fn(move |cx| {
        if !work.is_long_computation() && waiting.is_none() {
            held = None;
            let begun = Instant::now();
            let polled = request.as_mut().poll(cx);
            if polled.is_pending() && begun.elapsed() > POLL_TIME_MAX {
                work.mark_long_computation();
            }
            return polled;
        }
        let Some(turns) = turns else {
            return run_outside_async_workers(|| request.as_mut().poll(cx));
        };
        let (turn, is_hold_over) = match held.take() {
            Some(held) => (held.processor_turn, held.hold_timeout.is_elapsed()),
            None => {
                let wait =
                    waiting.get_or_insert_with(|| turns.acquire_cpu_slot(user, has_had_turn));
                let Poll::Ready(turn) = Pin::new(wait).poll(cx) else { return Poll::Pending };
                (waiting, has_had_turn) = (None, true);
                (turn, false)
            }
        };
        let polled = run_outside_async_workers(|| request.as_mut().poll(cx));
        if polled.is_pending()
            && work.is_long_computation()
            && !is_hold_over
            && !turn.is_another_user_waiting()
        {
            let mut until = Box::pin(tokio::time::sleep(HOLD_TIME_MAX));
            // This poll registers the waker: the request is polled again when the timeout fires.
            let _ = until.as_mut().poll(cx);
            held = Some(TurnHeldWhileWaiting { processor_turn: turn, hold_timeout: until });
        }
        polled
    })
    .await
}

/// The turn of a request that waits briefly, for example for the store, while no other request needs the turn. If
/// requests gave up their turns at every wait, many half-finished requests of one user would hold decoded objects
/// in memory.
struct TurnHeldWhileWaiting {
    processor_turn: CpuSlot,
    hold_timeout: Pin<Box<Sleep>>,
}

/// Runs `work` on this thread. On a multi-threaded runtime another thread runs the other tasks of this worker
/// meanwhile.
pub(crate) fn run_outside_async_workers<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // A single-threaded runtime has no other thread.
        Ok(_) | Err(_) => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Keeps the thread for a while, without a pause that other tasks could use.
    fn keep_thread(time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            std::hint::black_box(0);
        }
    }

    /// A16: on a runtime of one worker, another task runs while a long one keeps its thread.
    #[test]
    fn a16_others_run_beside_long_work() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let n_turns = Arc::new(AtomicUsize::new(0));
        let other = runtime.spawn({
            let n_turns = Arc::clone(&n_turns);
            async move {
                loop {
                    n_turns.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        });
        let n_during_work = runtime.block_on(runtime.spawn(async move {
            let (work, turns) = (LongComputationFlag::default(), new_processor_turn_queue());
            run_in_processor_turns(Some(&turns), "jane", &work, async {
                work.begin_long_computation().await;
                let n_before = n_turns.load(Ordering::Relaxed);
                let begun = Instant::now();
                // A busy machine may let the other thread run late.
                while n_turns.load(Ordering::Relaxed) == n_before && begun.elapsed().as_secs() < 30
                {
                    keep_thread(Duration::from_millis(1));
                }
                n_turns.load(Ordering::Relaxed) - n_before
            })
            .await
        }));
        other.abort();
        assert!(n_during_work.unwrap() > 0);
    }

    /// A17: a request of an exempt level, such as that of an administrator, does not wait for the turns of others.
    #[tokio::test]
    async fn a17_exempt_requests_wait_for_no_turn() {
        let (work, turns) = (LongComputationFlag::default(), Arc::new(FairCpuScheduler::new(1)));
        let _turn = turns.acquire_cpu_slot("jane", false).await;
        work.mark_long_computation();
        assert_eq!(run_in_processor_turns(None, "admin", &work, async { "done" }).await, "done");
        let waiting = run_in_processor_turns(Some(&turns), "joe", &work, async { "done" });
        let waited = tokio::time::timeout(Duration::from_millis(20), waiting).await;
        assert!(waited.is_err(), "others wait");
    }

    /// Work that was not announced is noticed, and a runtime of one thread does the work too.
    #[tokio::test]
    async fn unannounced_work_is_noticed() {
        let (work, turns) = (LongComputationFlag::default(), new_processor_turn_queue());
        let done = run_in_processor_turns(Some(&turns), "jane", &work, async {
            keep_thread(2 * POLL_TIME_MAX);
            tokio::task::yield_now().await;
            "done"
        });
        assert_eq!(done.await, "done");
        assert!(work.is_long_computation());
    }
}
