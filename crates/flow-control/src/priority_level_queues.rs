//! The seats and queues of one priority level.
//!
//! Queues take turns by start-time fair queuing. Each queue has a start tag, the service in seat-nanoseconds that it has
//! had. The queue with the lowest tag is served next. A request moves the tag of its queue by an estimate when it begins,
//! and by the difference to its real service when it ends. A queue that was empty begins at the tag of the request that was
//! dispatched last, so that an idle flow saves up no service.
//!
//! A request that has run before and needs its seats again does not wait in its queue, but its queue is charged for
//! it. While resuming and queued requests wait, seats go to both kinds alternately.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use crate::priority_level::{LimitResponse, QueuingOptions};
use crate::shuffle_shard::QueueHand;

/// The assumed service of one seat, until the request ends and its service is known.
const ESTIMATED_SERVICE: Duration = Duration::from_millis(3);

/// The seats and queues of one priority level. `W` wakes a waiting request.
///
/// INVARIANT: if a request waits, the request that is served next does not fit.
#[derive(Debug)]
pub(crate) struct PriorityLevelQueues<W> {
    seats_max: u32,
    limit_response: LimitResponse,
    seats_in_use: u32,
    n_executing_requests: usize,
    /// Empty if requests are refused instead of queued.
    queues: Vec<Queue<W>>,
    /// The number of times that the queues were replaced. It keeps a request from changing the start tag of a queue
    /// that replaced its own.
    queues_generation: u64,
    /// The requests that have run before and need a seat again. They are never refused.
    resuming_requests: VecDeque<SeatWaiter<W>>,
    /// Whether the next seats go to a queued request, because the last ones went to a resuming request.
    is_queued_request_next: bool,
    /// The start tag of the request that was dispatched last.
    virtual_time: u64,
    n_waiting_requests: usize,
    last_waiter_id: WaiterId,
}

#[derive(Debug)]
struct Queue<W> {
    waiters: VecDeque<SeatWaiter<W>>,
    start_tag: u64,
    seats_in_use: u32,
}

#[derive(Debug)]
struct SeatWaiter<W> {
    id: WaiterId,
    flow_hash: u64,
    n_seats: u32,
    /// For a request that resumes, the queue that is charged.
    charged_queue: Option<QueueRef>,
    wake_handle: W,
}

/// A queue by its index, and the generation of the queues that the index is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct QueueRef {
    index: usize,
    generation: u64,
}

/// Identifies a waiting request of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaiterId(u64);

/// The seats that a running request holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldSeats {
    pub(crate) n_seats: u32,
    /// The queue that the request came from.
    source_queue: Option<QueueRef>,
}

/// What happens to a request that arrives.
#[derive(Debug)]
pub(crate) enum RequestArrivalResult {
    /// It has a seat and runs now.
    Execute(HeldSeats),
    /// It waits; its `W` will be returned by a later call.
    Wait(WaiterId),
    /// All seats are in use, and requests of this level do not wait.
    NoSeat,
    /// The queue of its flow is full.
    QueueFull,
}

/// Requests that run from now on.
pub(crate) type DispatchedRequests<W> = Vec<(W, HeldSeats)>;

impl<W> PriorityLevelQueues<W> {
    pub(crate) fn new(seats_max: u32, limit_response: LimitResponse) -> Self {
        Self {
            seats_max,
            limit_response,
            seats_in_use: 0,
            n_executing_requests: 0,
            queues: build_queues(limit_response, 0),
            queues_generation: 0,
            resuming_requests: VecDeque::new(),
            is_queued_request_next: false,
            virtual_time: 0,
            n_waiting_requests: 0,
            last_waiter_id: WaiterId(0),
        }
    }

    pub(crate) fn seats_max(&self) -> u32 {
        self.seats_max
    }

    pub(crate) fn seats_in_use(&self) -> u32 {
        self.seats_in_use
    }

    pub(crate) fn n_executing_requests(&self) -> usize {
        self.n_executing_requests
    }

    pub(crate) fn n_waiting_requests(&self) -> usize {
        self.n_waiting_requests
    }

    /// Executes an arriving request, enqueues it or refuses it. `make_wake` is called only if the request has to
    /// wait.
    ///
    /// 1. If no request waits and its seats are free, the request runs.
    /// 2. If the level has no queues, the request is refused.
    /// 3. The request waits in the shortest queue of its flow, or is refused if that queue is full.
    pub(crate) fn execute_or_enqueue(
        &mut self,
        flow_hash: u64,
        seats: u32,
        make_wake: impl FnOnce() -> W,
    ) -> RequestArrivalResult {
        let queue = self.choose_shortest_queue(flow_hash);
        if self.n_waiting_requests == 0 && self.has_free_seats(seats) {
            if let Some(queue) = queue.and_then(|index| self.queues.get_mut(index)) {
                queue.start_tag = queue.start_tag.max(self.virtual_time);
            }
            return RequestArrivalResult::Execute(self.begin_executing_request(queue, seats));
        }
        let LimitResponse::Queue(options) = self.limit_response else {
            return RequestArrivalResult::NoSeat;
        };
        let virtual_time = self.virtual_time;
        let Some(queue) = queue.and_then(|index| self.queues.get_mut(index)) else {
            return RequestArrivalResult::NoSeat;
        };
        if queue.waiters.len() >= options.queue_length_limit as usize {
            return RequestArrivalResult::QueueFull;
        }
        if queue.waiters.is_empty() {
            queue.start_tag = queue.start_tag.max(virtual_time);
        }
        self.last_waiter_id.0 += 1;
        let id = self.last_waiter_id;
        let wake = make_wake();
        queue.waiters.push_back(SeatWaiter {
            id,
            flow_hash,
            n_seats: seats,
            charged_queue: None,
            wake_handle: wake,
        });
        self.n_waiting_requests += 1;
        RequestArrivalResult::Wait(id)
    }

    /// Gives a request that has run before its seats again. The request runs or waits; it is never refused.
    pub(crate) fn resume_request(
        &mut self,
        held: HeldSeats,
        make_wake: impl FnOnce() -> W,
    ) -> Result<HeldSeats, WaiterId> {
        let HeldSeats { n_seats: seats, source_queue: queue } = held;
        let is_next = self.resuming_requests.is_empty()
            && (self.n_waiting_requests == 0 || !self.is_queued_request_next);
        if is_next && self.has_free_seats(seats) {
            return Ok(self.begin_resumed_request(queue, seats));
        }
        self.last_waiter_id.0 += 1;
        let id = self.last_waiter_id;
        let wake = make_wake();
        self.resuming_requests.push_back(SeatWaiter {
            id,
            flow_hash: 0,
            n_seats: seats,
            charged_queue: queue,
            wake_handle: wake,
        });
        self.n_waiting_requests += 1;
        Err(id)
    }

    /// Takes back the seats of a request that ends after running for `service`, and dispatches waiting requests.
    pub(crate) fn finish_request(
        &mut self,
        held: HeldSeats,
        service: Duration,
    ) -> DispatchedRequests<W> {
        self.seats_in_use = self.seats_in_use.saturating_sub(held.n_seats);
        self.n_executing_requests = self.n_executing_requests.saturating_sub(1);
        if let Some(queue) = held.source_queue.and_then(|queue| self.queue_if_not_replaced(queue)) {
            queue.seats_in_use = queue.seats_in_use.saturating_sub(held.n_seats);
            queue.start_tag = queue
                .start_tag
                .saturating_add(to_seat_nanoseconds(held.n_seats, service))
                .saturating_sub(to_seat_nanoseconds(held.n_seats, ESTIMATED_SERVICE));
        }
        self.dispatch_waiting_requests()
    }

    /// Removes a request that stops waiting. Returns the requests that can run now because of that.
    pub(crate) fn cancel_waiter(&mut self, id: WaiterId) -> DispatchedRequests<W> {
        let queues = self.queues.iter_mut().map(|queue| &mut queue.waiters);
        for waiting in queues.chain([&mut self.resuming_requests]) {
            if let Some(index) = waiting.iter().position(|waiter| waiter.id == id) {
                waiting.remove(index);
                self.n_waiting_requests -= 1;
                break;
            }
        }
        self.dispatch_waiting_requests()
    }

    /// Applies a changed configuration. No waiting request is refused because of it: if the queues change, the
    /// waiting requests move to the new ones, and if there are none any more, they wait in the order of the old
    /// queues.
    pub(crate) fn reconfigure_queues(
        &mut self,
        seats_max: u32,
        limit_response: LimitResponse,
    ) -> DispatchedRequests<W> {
        self.seats_max = seats_max;
        if self.limit_response != limit_response {
            self.limit_response = limit_response;
            self.queues_generation += 1;
            let old = std::mem::replace(
                &mut self.queues,
                build_queues(limit_response, self.virtual_time),
            );
            for waiter in old.into_iter().flat_map(|queue| queue.waiters) {
                let queue = self.choose_shortest_queue(waiter.flow_hash);
                match queue.and_then(|index| self.queues.get_mut(index)) {
                    Some(queue) => queue.waiters.push_back(waiter),
                    None => self.resuming_requests.push_back(waiter),
                }
            }
        }
        self.dispatch_waiting_requests()
    }

    /// The queue of a flow's hand with the fewest requests and seats.
    fn choose_shortest_queue(&self, flow_hash: u64) -> Option<usize> {
        let LimitResponse::Queue(QueuingOptions { n_queues, hand_size, .. }) = self.limit_response
        else {
            return None;
        };
        QueueHand::deal_queues(flow_hash, n_queues, hand_size)
            .iter()
            .filter_map(|&index| {
                let index = index as usize;
                let queue = self.queues.get(index)?;
                Some((queue.waiters.len() + queue.seats_in_use as usize, index))
            })
            .min()
            .map(|(_, index)| index)
    }

    /// Reports whether enough seats are free for a request. A request for more seats than the level has runs alone.
    fn has_free_seats(&self, seats: u32) -> bool {
        self.seats_in_use == 0 || self.seats_in_use.saturating_add(seats) <= self.seats_max
    }

    /// Returns the queue; `None` if the queues were replaced since.
    fn queue_if_not_replaced(
        &mut self,
        QueueRef { index, generation }: QueueRef,
    ) -> Option<&mut Queue<W>> {
        if generation != self.queues_generation {
            return None;
        }
        self.queues.get_mut(index)
    }

    /// Begins a request that comes from a queue, or from none.
    fn begin_executing_request(&mut self, queue: Option<usize>, seats: u32) -> HeldSeats {
        self.is_queued_request_next = false;
        if let Some(queue) = queue.and_then(|index| self.queues.get(index)) {
            self.virtual_time = self.virtual_time.max(queue.start_tag);
        }
        let generation = self.queues_generation;
        self.take_seats(queue.map(|index| QueueRef { index, generation }), seats)
    }

    /// Begins a request that has run before. It was not chosen by its start tag, so the virtual time stays: a flow that
    /// resumes often has a tag ahead of the flows that arrive later.
    fn begin_resumed_request(&mut self, queue: Option<QueueRef>, seats: u32) -> HeldSeats {
        self.is_queued_request_next = true;
        let virtual_time = self.virtual_time;
        if let Some(queue) = queue.and_then(|queue| self.queue_if_not_replaced(queue))
            && queue.waiters.is_empty()
        {
            queue.start_tag = queue.start_tag.max(virtual_time);
        }
        self.take_seats(queue, seats)
    }

    fn take_seats(&mut self, queue: Option<QueueRef>, seats: u32) -> HeldSeats {
        self.seats_in_use = self.seats_in_use.saturating_add(seats);
        self.n_executing_requests += 1;
        if let Some(queue) = queue.and_then(|queue| self.queue_if_not_replaced(queue)) {
            queue.seats_in_use = queue.seats_in_use.saturating_add(seats);
            queue.start_tag =
                queue.start_tag.saturating_add(to_seat_nanoseconds(seats, ESTIMATED_SERVICE));
        }
        HeldSeats { n_seats: seats, source_queue: queue }
    }

    /// Lets waiting requests run while their seats are free.
    fn dispatch_waiting_requests(&mut self) -> DispatchedRequests<W> {
        let mut dispatched = Vec::new();
        while self.n_waiting_requests > 0 {
            let next = match self.resuming_requests.is_empty() || self.is_queued_request_next {
                true => self.choose_next_queue(),
                false => None,
            };
            let waiting = match next.and_then(|index| self.queues.get(index)) {
                Some(queue) => &queue.waiters,
                None => &self.resuming_requests,
            };
            let Some(seats) = waiting.front().map(|waiter| waiter.n_seats) else {
                break;
            };
            if !self.has_free_seats(seats) {
                break;
            }
            let waiting = match next.and_then(|index| self.queues.get_mut(index)) {
                Some(queue) => &mut queue.waiters,
                None => &mut self.resuming_requests,
            };
            let Some(waiter) = waiting.pop_front() else {
                break;
            };
            self.n_waiting_requests -= 1;
            let held = match next {
                Some(_) => self.begin_executing_request(next, waiter.n_seats),
                None => self.begin_resumed_request(waiter.charged_queue, waiter.n_seats),
            };
            dispatched.push((waiter.wake_handle, held));
        }
        dispatched
    }

    /// The queue that is served next: of those with a waiting request, the one with the lowest start tag.
    fn choose_next_queue(&self) -> Option<usize> {
        let waiting = self.queues.iter().enumerate().filter(|(_, queue)| !queue.waiters.is_empty());
        waiting.min_by_key(|(_, queue)| queue.start_tag).map(|(index, _)| index)
    }
}

fn build_queues<W>(limit_response: LimitResponse, start_tag: u64) -> Vec<Queue<W>> {
    let n_queues = match limit_response {
        LimitResponse::Reject => 0,
        LimitResponse::Queue(options) => options.n_queues,
    };
    (0..n_queues).map(|_| Queue { waiters: VecDeque::new(), start_tag, seats_in_use: 0 }).collect()
}

fn to_seat_nanoseconds(seats: u32, service: Duration) -> u64 {
    let nanos = u64::try_from(service.as_nanos()).unwrap_or(u64::MAX);
    nanos.saturating_mul(u64::from(seats))
}
