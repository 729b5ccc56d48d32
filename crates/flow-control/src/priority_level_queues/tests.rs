use proptest::prelude::*;

use super::*;

const SHORT: Duration = Duration::from_millis(1);

fn queued(
    seats_max: u32,
    queues: u32,
    hand_size: u32,
    queue_length_limit: u32,
) -> PriorityLevelQueues<u64> {
    let options = QueuingOptions { n_queues: queues, hand_size, queue_length_limit };
    PriorityLevelQueues::new(seats_max, LimitResponse::Queue(options))
}

fn executes(arrival: RequestArrivalResult) -> HeldSeats {
    match arrival {
        RequestArrivalResult::Execute(held) => held,
        other => panic!("expected a request that runs, got {other:?}"),
    }
}

fn waits(arrival: &RequestArrivalResult) -> bool {
    matches!(arrival, RequestArrivalResult::Wait(_))
}

#[test]
fn a_level_that_rejects_refuses_when_all_seats_are_in_use() {
    let mut level: PriorityLevelQueues<u64> = PriorityLevelQueues::new(2, LimitResponse::Reject);
    let first = executes(level.execute_or_enqueue(1, 1, || 1));
    executes(level.execute_or_enqueue(2, 1, || 2));
    assert!(matches!(level.execute_or_enqueue(3, 1, || 3), RequestArrivalResult::NoSeat));
    assert!(level.finish_request(first, SHORT).is_empty());
    executes(level.execute_or_enqueue(3, 1, || 3));
}

#[test]
fn a_full_queue_refuses_and_others_do_not() {
    let mut level = queued(1, 2, 1, 2);
    executes(level.execute_or_enqueue(0, 1, || 0));
    assert!(waits(&level.execute_or_enqueue(0, 1, || 1)));
    assert!(waits(&level.execute_or_enqueue(0, 1, || 2)));
    assert!(matches!(level.execute_or_enqueue(0, 1, || 3), RequestArrivalResult::QueueFull));
    assert!(waits(&level.execute_or_enqueue(1, 1, || 4)));
}

#[test]
fn a_flow_with_many_requests_takes_turns_with_a_flow_that_has_few() {
    let mut level = queued(1, 8, 1, 100);
    let mut running = executes(level.execute_or_enqueue(0, 1, || 0));
    for n in 1..=20 {
        assert!(waits(&level.execute_or_enqueue(0, 1, || n)));
    }
    for n in 100..103 {
        assert!(waits(&level.execute_or_enqueue(1, 1, || n)));
    }
    let mut order = Vec::new();
    for _ in 0..8 {
        let dispatched = level.finish_request(running, SHORT);
        let [(who, held)] = dispatched[..] else { panic!("one request runs after another") };
        order.push(who);
        running = held;
    }
    let of_the_few = order.iter().filter(|&&who| who >= 100).count();
    assert_eq!(of_the_few, 3, "{order:?}");
}

#[test]
fn a_flow_with_long_requests_gets_fewer_turns() {
    let mut level = queued(1, 8, 1, 200);
    let mut running = executes(level.execute_or_enqueue(7, 1, || 0));
    for n in 0..100 {
        assert!(waits(&level.execute_or_enqueue(0, 1, || n)));
        assert!(waits(&level.execute_or_enqueue(1, 1, || 1000 + n)));
    }
    let (mut n_long, mut n_short) = (0, 0);
    let mut service = SHORT;
    for _ in 0..100 {
        let dispatched = level.finish_request(running, service);
        let [(who, held)] = dispatched[..] else { panic!("one request runs after another") };
        running = held;
        if who < 1000 {
            n_long += 1;
            service = Duration::from_millis(90);
        } else {
            n_short += 1;
            service = Duration::from_millis(10);
        }
    }
    assert!(n_short >= 8 * n_long, "{n_short} short and {n_long} long requests ran");
}

#[test]
fn an_idle_flow_saves_up_no_service() {
    let mut level = queued(1, 8, 1, 100);
    for _ in 0..1000 {
        let held = executes(level.execute_or_enqueue(0, 1, || 0));
        level.finish_request(held, SHORT);
    }
    // Flow 1 has never run. It takes turns with flow 0 now, but is not served 1,000 times first.
    let mut running = executes(level.execute_or_enqueue(0, 1, || 0));
    for n in 0..50 {
        assert!(waits(&level.execute_or_enqueue(0, 1, || n)));
        assert!(waits(&level.execute_or_enqueue(1, 1, || 1000 + n)));
    }
    let mut n_of_idle = 0;
    for _ in 0..20 {
        let dispatched = level.finish_request(running, SHORT);
        let [(who, held)] = dispatched[..] else { panic!("one request runs after another") };
        n_of_idle += usize::from(who >= 1000);
        running = held;
    }
    assert!((8..=12).contains(&n_of_idle), "{n_of_idle} of 20");
}

#[test]
fn a_request_that_wants_more_seats_than_there_are_runs_alone() {
    let mut level = queued(2, 1, 1, 10);
    let small = executes(level.execute_or_enqueue(0, 1, || 0));
    assert!(waits(&level.execute_or_enqueue(0, 10, || 1)));
    assert!(waits(&level.execute_or_enqueue(0, 1, || 2)));
    let dispatched = level.finish_request(small, SHORT);
    let [(1, large)] = dispatched[..] else { panic!("{dispatched:?}") };
    let dispatched = level.finish_request(large, SHORT);
    assert!(matches!(dispatched[..], [(2, _)]));
}

#[test]
fn requests_that_resume_take_turns_with_those_that_wait_and_are_never_refused() {
    let mut level = queued(1, 1, 1, 3);
    let suspended = executes(level.execute_or_enqueue(0, 1, || 0));
    assert!(level.finish_request(suspended, SHORT).is_empty());
    let mut running = executes(level.execute_or_enqueue(0, 1, || 0));
    for n in 1..4 {
        assert!(waits(&level.execute_or_enqueue(0, 1, || n)));
    }
    for n in 10..15 {
        assert!(level.resume_request(suspended, || n).is_err());
    }
    let mut order = Vec::new();
    for _ in 0..8 {
        let dispatched = level.finish_request(running, SHORT);
        let [(who, held)] = dispatched[..] else { panic!("one request runs after another") };
        order.push(who);
        running = held;
    }
    assert_eq!(order, [10, 1, 11, 2, 12, 3, 13, 14]);
}

/// A flow that asks for its seat again and again pays for the work that it does then.
#[test]
fn work_after_a_resumption_is_charged_to_the_flow() {
    let mut level = queued(1, 8, 1, 100);
    let mut suspended = executes(level.execute_or_enqueue(0, 1, || 0));
    level.finish_request(suspended, SHORT);
    for _ in 0..10 {
        suspended = level.resume_request(suspended, || 0).expect("a free seat");
        level.finish_request(suspended, 10 * SHORT);
    }
    let mut running = executes(level.execute_or_enqueue(7, 1, || 0));
    for n in 0..50 {
        assert!(waits(&level.execute_or_enqueue(0, 1, || n)));
        assert!(waits(&level.execute_or_enqueue(1, 1, || 1000 + n)));
    }
    for _ in 0..30 {
        let dispatched = level.finish_request(running, SHORT);
        let [(who, held)] = dispatched[..] else { panic!("one request runs after another") };
        assert!(who >= 1000, "the flow has had 100 ms already");
        running = held;
    }
}

#[test]
fn a_cancelled_request_does_not_run() {
    let mut level = queued(1, 1, 1, 10);
    let running = executes(level.execute_or_enqueue(0, 1, || 0));
    let RequestArrivalResult::Wait(id) = level.execute_or_enqueue(0, 1, || 1) else {
        panic!("no seat is free")
    };
    assert!(waits(&level.execute_or_enqueue(0, 1, || 2)));
    assert!(level.cancel_waiter(id).is_empty());
    assert!(matches!(level.finish_request(running, SHORT)[..], [(2, _)]));
    assert_eq!(level.n_waiting_requests(), 0);
}

#[test]
fn cancelling_a_wide_request_lets_narrow_ones_run() {
    let mut level = queued(3, 1, 1, 10);
    executes(level.execute_or_enqueue(0, 1, || 0));
    let RequestArrivalResult::Wait(id) = level.execute_or_enqueue(0, 3, || 1) else {
        panic!("it needs three seats")
    };
    assert!(waits(&level.execute_or_enqueue(0, 1, || 2)));
    assert!(matches!(level.cancel_waiter(id)[..], [(2, _)]));
}

#[test]
fn a_change_of_the_configuration_loses_nobody() {
    let mut level = queued(1, 8, 2, 100);
    let running = executes(level.execute_or_enqueue(0, 1, || 0));
    for n in 1..=10 {
        assert!(waits(&level.execute_or_enqueue(n, 1, || n)));
    }
    let options = QueuingOptions { n_queues: 2, hand_size: 1, queue_length_limit: 1 };
    assert!(level.reconfigure_queues(1, LimitResponse::Queue(options)).is_empty());
    assert_eq!(level.n_waiting_requests(), 10);
    assert!(level.reconfigure_queues(1, LimitResponse::Reject).is_empty());
    assert_eq!(level.reconfigure_queues(4, LimitResponse::Reject).len(), 3);
    assert_eq!(level.finish_request(running, SHORT).len(), 1);
    assert_eq!(level.n_waiting_requests(), 6);
}

#[derive(Debug, Clone)]
enum Step {
    Arrive { flow: u64, seats: u32 },
    Resume(usize),
    Finish(usize),
    Cancel(usize),
    Configure { seats_max: u32, queues: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u64..6, 1u32..4).prop_map(|(flow, seats)| Step::Arrive { flow, seats }),
        2 => any::<usize>().prop_map(Step::Resume),
        4 => any::<usize>().prop_map(Step::Finish),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => (1u32..6, 0u32..5).prop_map(|(seats_max, queues)| Step::Configure { seats_max, queues }),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    /// Every request runs, waits, was refused or was cancelled, exactly once; and seats are never lost.
    #[test]
    fn nobody_is_lost_and_no_seat_leaks(steps in steps()) {
        let mut level = queued(3, 4, 2, 3);
        let mut running: Vec<HeldSeats> = Vec::new();
        let mut finished: Vec<HeldSeats> = Vec::new();
        let mut waiting: Vec<(u64, WaiterId)> = Vec::new();
        for (n, step) in (0..).zip(steps) {
            let dispatched = match step {
                Step::Arrive { flow, seats } => match level.execute_or_enqueue(flow, seats, || n) {
                    RequestArrivalResult::Execute(held) => { running.push(held); Vec::new() }
                    RequestArrivalResult::Wait(id) => { waiting.push((n, id)); Vec::new() }
                    RequestArrivalResult::NoSeat | RequestArrivalResult::QueueFull => Vec::new(),
                },
                Step::Resume(which) if !finished.is_empty() => {
                    match level.resume_request(finished[which % finished.len()], || n) {
                        Ok(held) => running.push(held),
                        Err(id) => waiting.push((n, id)),
                    }
                    Vec::new()
                }
                Step::Finish(which) if !running.is_empty() => {
                    let held = running.swap_remove(which % running.len());
                    finished.push(held);
                    level.finish_request(held, SHORT)
                }
                Step::Cancel(which) if !waiting.is_empty() => {
                    let (_, id) = waiting.swap_remove(which % waiting.len());
                    level.cancel_waiter(id)
                }
                Step::Configure { seats_max, queues } => {
                    let response = match queues {
                        0 => LimitResponse::Reject,
                        queues => LimitResponse::Queue(QueuingOptions { n_queues: queues, hand_size: 1, queue_length_limit: 3 }),
                    };
                    level.reconfigure_queues(seats_max, response)
                }
                Step::Resume(_) | Step::Finish(_) | Step::Cancel(_) => Vec::new(),
            };
            for (who, held) in dispatched {
                let place = waiting.iter().position(|&(own, _)| own == who);
                waiting.swap_remove(place.expect("only requests that wait are dispatched"));
                running.push(held);
            }
            prop_assert_eq!(level.n_waiting_requests(), waiting.len());
            prop_assert_eq!(level.n_executing_requests(), running.len());
            prop_assert_eq!(level.seats_in_use(), running.iter().map(|held| held.n_seats).sum::<u32>());
            prop_assert!(running.is_empty() <= waiting.is_empty(), "somebody waits while all seats are free");
        }
        while let Some(held) = running.pop() {
            for (who, held) in level.finish_request(held, SHORT) {
                let place = waiting.iter().position(|&(own, _)| own == who);
                waiting.swap_remove(place.expect("only requests that wait are dispatched"));
                running.push(held);
            }
        }
        prop_assert!(waiting.is_empty(), "all who waited have run");
        prop_assert_eq!(level.seats_in_use(), 0);
    }
}
