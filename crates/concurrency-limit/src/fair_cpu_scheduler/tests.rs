//! Tests of turns and of the announcement of long work.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::*;

/// Polls once. Nobody is woken: tests poll again after each change.
fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Option<F::Output> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn waiting(queue: &Arc<FairCpuScheduler>, user: &str) -> Pin<Box<CpuSlotFuture>> {
    let mut own = Box::pin(queue.acquire_cpu_slot(user, false));
    assert!(poll(&mut own).is_none(), "{user} waits");
    own
}

#[test]
fn one_user_leaves_turns_for_others() {
    let queue = Arc::new(FairCpuScheduler::new(2));
    let jane = poll(&mut Box::pin(queue.acquire_cpu_slot("jane", false))).unwrap();
    // One turn is free, but jane has her half.
    let mut second = waiting(&queue, "jane");
    let joe = poll(&mut Box::pin(queue.acquire_cpu_slot("joe", false))).unwrap();
    assert!(!joe.is_another_user_waiting());
    let mut ada = waiting(&queue, "ada");
    assert!(joe.is_another_user_waiting() && jane.is_another_user_waiting());
    drop(joe);
    // Jane has waited for longer and still has her half, so ada is next.
    assert!(poll(&mut second).is_none());
    let ada = poll(&mut ada).unwrap();
    drop(jane);
    drop((poll(&mut second).unwrap(), ada));
    assert!(queue.is_idle());
}

#[test]
fn users_who_wait_take_turns() {
    let queue = Arc::new(FairCpuScheduler::new(1));
    let mut turn = poll(&mut Box::pin(queue.acquire_cpu_slot("first", false)));
    let mut waiters: Vec<_> = ["jane", "jane", "jane", "joe", "ada", "joe"]
        .map(|user| (user, waiting(&queue, user)))
        .into_iter()
        .collect();
    let mut served = Vec::new();
    while turn.take().is_some() {
        let next = waiters
            .iter_mut()
            .enumerate()
            .find_map(|(idx, (user, waiter))| poll(waiter).map(|turn| (idx, *user, turn)));
        if let Some((idx, user, next)) = next {
            waiters.remove(idx);
            served.push(user);
            turn = Some(next);
        }
    }
    assert_eq!(served, ["jane", "joe", "ada", "jane", "joe", "jane"]);
    assert!(queue.is_idle());
}

#[test]
fn operations_that_have_begun_go_first() {
    let queue = Arc::new(FairCpuScheduler::new(2));
    let turn = poll(&mut Box::pin(queue.acquire_cpu_slot("jane", false))).unwrap();
    let mut second = waiting(&queue, "jane");
    let mut begun = Box::pin(queue.acquire_cpu_slot("jane", true));
    assert!(poll(&mut begun).is_none());
    drop(turn);
    assert!(poll(&mut second).is_none());
    drop(poll(&mut begun).unwrap());
    drop(poll(&mut second).unwrap());
    assert!(queue.is_idle());
}

#[test]
fn whoever_gives_up_blocks_nobody() {
    let queue = Arc::new(FairCpuScheduler::new(1));
    let turn = poll(&mut Box::pin(queue.acquire_cpu_slot("first", false))).unwrap();
    let (jane, joe) = (waiting(&queue, "jane"), waiting(&queue, "joe"));
    let mut ada = waiting(&queue, "ada");
    drop(jane);
    drop(turn);
    // Joe has got the turn and does not take it.
    assert!(poll(&mut ada).is_none());
    drop(joe);
    drop(poll(&mut ada).unwrap());
    drop(queue.acquire_cpu_slot("nobody polls this", false));
    assert!(queue.is_idle());
}

#[test]
fn long_work_is_announced_once() {
    let work = LongComputationFlag::default();
    assert!(!work.is_long_computation());
    let mut begin = Box::pin(work.begin_long_computation());
    assert!(poll(&mut begin).is_none() && work.is_long_computation());
    assert_eq!(poll(&mut begin), Some(true));
    assert_eq!(poll(&mut Box::pin(work.begin_long_computation())), Some(false));
    work.end_long_computation();
    assert!(!work.is_long_computation());
    let other = LongComputationFlag::default();
    other.mark_long_computation();
    assert!(other.is_long_computation());
}
