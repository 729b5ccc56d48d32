//! The seats and queues of one priority level.
//!
//! Queues take turns by start-time fair queuing. Each queue has a start tag, the service in seat-nanoseconds that it has
//! had. The queue with the lowest tag is served next. A request moves the tag of its queue by an estimate when it begins,
//! and by the difference to its real service when it ends. A queue that was empty begins at the tag of the request that was
//! dispatched last, so that an idle flow saves up no service.
//!
//! A request that has run before and needs its seats again does not wait in its queue, but its queue is charged for it. While
//! both wait, such requests and those in the queues are served alternately.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use crate::priority_level::{LimitResponse, QueuingOptions};
use crate::shuffle_shard::Hand;

/// The assumed service of one seat, until the request ends and its service is known.
const ESTIMATED_SERVICE: Duration = Duration::from_millis(3);

/// The seats and queues of one priority level. `W` wakes a waiting request.
///
/// INVARIANT: if a request waits, the request that is served next does not fit.
#[derive(Debug)]
pub(crate) struct LevelQueues<W> {
    seats_max: u32,
    limit_response: LimitResponse,
    seats_in_use: u32,
    n_executing: usize,
    /// Empty if requests are refused instead of queued.
    queues: Vec<Queue<W>>,
    /// Counts the times that the queues were made anew, so that a request does not move the tag of a later queue.
    queues_generation: u64,
    /// The requests that have run before and need a seat again. They are never refused.
    resuming: VecDeque<Waiter<W>>,
    /// Whether a request in a queue goes before those that resume, because one that resumed went last.
    is_turn_of_queues: bool,
    /// The start tag of the request that was dispatched last.
    virtual_time: u64,
    n_waiting: usize,
    last_waiter: WaiterId,
}

#[derive(Debug)]
struct Queue<W> {
    waiting: VecDeque<Waiter<W>>,
    start_tag: u64,
    seats_in_use: u32,
}

#[derive(Debug)]
struct Waiter<W> {
    id: WaiterId,
    flow_hash: u64,
    seats: u32,
    /// For a request that resumes, the queue that is charged.
    resumed_from: Option<QueueRef>,
    wake: W,
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
    pub(crate) seats: u32,
    /// The queue that the request came from.
    queue: Option<QueueRef>,
}

/// What happens to a request that arrives.
#[derive(Debug)]
pub(crate) enum Arrival {
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
pub(crate) type Dispatched<W> = Vec<(W, HeldSeats)>;

impl<W> LevelQueues<W> {
    pub(crate) fn new(seats_max: u32, limit_response: LimitResponse) -> Self {
        Self {
            seats_max,
            limit_response,
            seats_in_use: 0,
            n_executing: 0,
            queues: new_queues(limit_response, 0),
            queues_generation: 0,
            resuming: VecDeque::new(),
            is_turn_of_queues: false,
            virtual_time: 0,
            n_waiting: 0,
            last_waiter: WaiterId(0),
        }
    }

    pub(crate) fn seats_max(&self) -> u32 {
        self.seats_max
    }

    pub(crate) fn seats_in_use(&self) -> u32 {
        self.seats_in_use
    }

    pub(crate) fn n_executing(&self) -> usize {
        self.n_executing
    }

    pub(crate) fn n_waiting(&self) -> usize {
        self.n_waiting
    }

    /// A request arrives. `make_wake` is called only if it has to wait.
    ///
    /// 1. If nobody waits and its seats are free, the request runs.
    /// 2. If the level refuses, the request is refused.
    /// 3. The request waits in the shortest queue of its flow, or is refused if that queue is full.
    pub(crate) fn arrive(
        &mut self,
        flow_hash: u64,
        seats: u32,
        make_wake: impl FnOnce() -> W,
    ) -> Arrival {
        let queue = self.shortest_queue(flow_hash);
        if self.n_waiting == 0 && self.fits(seats) {
            if let Some(queue) = queue.and_then(|index| self.queues.get_mut(index)) {
                queue.start_tag = queue.start_tag.max(self.virtual_time);
            }
            return Arrival::Execute(self.begin(queue, seats));
        }
        let LimitResponse::Queue(options) = self.limit_response else {
            return Arrival::NoSeat;
        };
        let virtual_time = self.virtual_time;
        let Some(queue) = queue.and_then(|index| self.queues.get_mut(index)) else {
            return Arrival::NoSeat;
        };
        if queue.waiting.len() >= options.queue_length_limit as usize {
            return Arrival::QueueFull;
        }
        if queue.waiting.is_empty() {
            queue.start_tag = queue.start_tag.max(virtual_time);
        }
        self.last_waiter.0 += 1;
        let id = self.last_waiter;
        let wake = make_wake();
        queue.waiting.push_back(Waiter { id, flow_hash, seats, resumed_from: None, wake });
        self.n_waiting += 1;
        Arrival::Wait(id)
    }

    /// A request that has run before needs the seats again that it held. It runs or waits, and is never refused.
    pub(crate) fn resume(
        &mut self,
        held: HeldSeats,
        make_wake: impl FnOnce() -> W,
    ) -> Result<HeldSeats, WaiterId> {
        let HeldSeats { seats, queue } = held;
        let is_next = self.resuming.is_empty() && (self.n_waiting == 0 || !self.is_turn_of_queues);
        if is_next && self.fits(seats) {
            return Ok(self.begin_resumed(queue, seats));
        }
        self.last_waiter.0 += 1;
        let id = self.last_waiter;
        let wake = make_wake();
        self.resuming.push_back(Waiter { id, flow_hash: 0, seats, resumed_from: queue, wake });
        self.n_waiting += 1;
        Err(id)
    }

    /// A running request gives its seats back after `service`.
    pub(crate) fn finish(&mut self, held: HeldSeats, service: Duration) -> Dispatched<W> {
        self.seats_in_use = self.seats_in_use.saturating_sub(held.seats);
        self.n_executing = self.n_executing.saturating_sub(1);
        if let Some(queue) = held.queue.and_then(|queue| self.queue_in_force(queue)) {
            queue.seats_in_use = queue.seats_in_use.saturating_sub(held.seats);
            queue.start_tag = queue
                .start_tag
                .saturating_add(seat_nanos(held.seats, service))
                .saturating_sub(seat_nanos(held.seats, ESTIMATED_SERVICE));
        }
        self.dispatch()
    }

    /// A request gives up waiting. Returns the requests that it kept from running.
    pub(crate) fn cancel(&mut self, id: WaiterId) -> Dispatched<W> {
        let queues = self.queues.iter_mut().map(|queue| &mut queue.waiting);
        for waiting in queues.chain([&mut self.resuming]) {
            if let Some(index) = waiting.iter().position(|waiter| waiter.id == id) {
                waiting.remove(index);
                self.n_waiting -= 1;
                break;
            }
        }
        self.dispatch()
    }

    /// Applies a changed configuration. Nobody who waits is refused because of it: if the queues change, the waiting requests
    /// move to the new ones, and if there are none any more, they wait in the order of the old queues.
    pub(crate) fn configure(
        &mut self,
        seats_max: u32,
        limit_response: LimitResponse,
    ) -> Dispatched<W> {
        self.seats_max = seats_max;
        if self.limit_response != limit_response {
            self.limit_response = limit_response;
            self.queues_generation += 1;
            let old =
                std::mem::replace(&mut self.queues, new_queues(limit_response, self.virtual_time));
            for waiter in old.into_iter().flat_map(|queue| queue.waiting) {
                let queue = self.shortest_queue(waiter.flow_hash);
                match queue.and_then(|index| self.queues.get_mut(index)) {
                    Some(queue) => queue.waiting.push_back(waiter),
                    None => self.resuming.push_back(waiter),
                }
            }
        }
        self.dispatch()
    }

    /// The queue of a flow's hand with the fewest requests and seats.
    fn shortest_queue(&self, flow_hash: u64) -> Option<usize> {
        let LimitResponse::Queue(QueuingOptions { queues, hand_size, .. }) = self.limit_response
        else {
            return None;
        };
        Hand::deal(flow_hash, queues, hand_size)
            .iter()
            .filter_map(|&index| {
                let index = index as usize;
                let queue = self.queues.get(index)?;
                Some((queue.waiting.len() + queue.seats_in_use as usize, index))
            })
            .min()
            .map(|(_, index)| index)
    }

    /// Whether a request can run now. One that wants more seats than there are runs alone.
    fn fits(&self, seats: u32) -> bool {
        self.seats_in_use == 0 || self.seats_in_use.saturating_add(seats) <= self.seats_max
    }

    /// The queue, unless the queues were made anew since.
    fn queue_in_force(
        &mut self,
        QueueRef { index, generation }: QueueRef,
    ) -> Option<&mut Queue<W>> {
        if generation != self.queues_generation {
            return None;
        }
        self.queues.get_mut(index)
    }

    /// Begins a request that comes from a queue, or from none.
    fn begin(&mut self, queue: Option<usize>, seats: u32) -> HeldSeats {
        self.is_turn_of_queues = false;
        if let Some(queue) = queue.and_then(|index| self.queues.get(index)) {
            self.virtual_time = self.virtual_time.max(queue.start_tag);
        }
        let generation = self.queues_generation;
        self.take_seats(queue.map(|index| QueueRef { index, generation }), seats)
    }

    /// Begins a request that has run before. It was not chosen by its start tag, so the virtual time stays: a flow that
    /// resumes often has a tag ahead of the flows that arrive later.
    fn begin_resumed(&mut self, queue: Option<QueueRef>, seats: u32) -> HeldSeats {
        self.is_turn_of_queues = true;
        let virtual_time = self.virtual_time;
        if let Some(queue) = queue.and_then(|queue| self.queue_in_force(queue))
            && queue.waiting.is_empty()
        {
            queue.start_tag = queue.start_tag.max(virtual_time);
        }
        self.take_seats(queue, seats)
    }

    fn take_seats(&mut self, queue: Option<QueueRef>, seats: u32) -> HeldSeats {
        self.seats_in_use = self.seats_in_use.saturating_add(seats);
        self.n_executing += 1;
        if let Some(queue) = queue.and_then(|queue| self.queue_in_force(queue)) {
            queue.seats_in_use = queue.seats_in_use.saturating_add(seats);
            queue.start_tag = queue.start_tag.saturating_add(seat_nanos(seats, ESTIMATED_SERVICE));
        }
        HeldSeats { seats, queue }
    }

    /// Lets waiting requests run while their seats are free.
    fn dispatch(&mut self) -> Dispatched<W> {
        let mut dispatched = Vec::new();
        while self.n_waiting > 0 {
            let next = match self.resuming.is_empty() || self.is_turn_of_queues {
                true => self.next_queue(),
                false => None,
            };
            let waiting = match next.and_then(|index| self.queues.get(index)) {
                Some(queue) => &queue.waiting,
                None => &self.resuming,
            };
            let Some(seats) = waiting.front().map(|waiter| waiter.seats) else {
                break;
            };
            if !self.fits(seats) {
                break;
            }
            let waiting = match next.and_then(|index| self.queues.get_mut(index)) {
                Some(queue) => &mut queue.waiting,
                None => &mut self.resuming,
            };
            let Some(waiter) = waiting.pop_front() else {
                break;
            };
            self.n_waiting -= 1;
            let held = match next {
                Some(_) => self.begin(next, waiter.seats),
                None => self.begin_resumed(waiter.resumed_from, waiter.seats),
            };
            dispatched.push((waiter.wake, held));
        }
        dispatched
    }

    /// The queue that is served next: of those in which somebody waits, the one with the lowest start tag.
    fn next_queue(&self) -> Option<usize> {
        let waiting = self.queues.iter().enumerate().filter(|(_, queue)| !queue.waiting.is_empty());
        waiting.min_by_key(|(_, queue)| queue.start_tag).map(|(index, _)| index)
    }
}

fn new_queues<W>(limit_response: LimitResponse, start_tag: u64) -> Vec<Queue<W>> {
    let n_queues = match limit_response {
        LimitResponse::Reject => 0,
        LimitResponse::Queue(options) => options.queues,
    };
    (0..n_queues).map(|_| Queue { waiting: VecDeque::new(), start_tag, seats_in_use: 0 }).collect()
}

fn seat_nanos(seats: u32, service: Duration) -> u64 {
    let nanos = u64::try_from(service.as_nanos()).unwrap_or(u64::MAX);
    nanos.saturating_mul(u64::from(seats))
}
