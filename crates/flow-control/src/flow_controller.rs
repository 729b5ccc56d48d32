//! Hands out seats to requests.

#[cfg(test)]
mod tests;

use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::classify::{ActiveSchema, Classification, FlowSchemas};
use crate::flow_schema::FlowSchema;
use crate::flow_statistics::{FlowStatistics, FlowUsage};
use crate::level_queues::{ArrivalResult, DispatchedRequests, HeldSeats, LevelQueues, WaiterId};
use crate::priority_level::{LimitResponse, PriorityLevel, PriorityLevelKind};
use crate::request_digest::RequestDigest;
use crate::seat_allocation::{nominal_seats, total_shares};

/// Classifies requests and hands out the seats of all priority levels.
#[derive(Debug)]
pub struct FlowController {
    /// The seats of all levels together.
    seats_max: u32,
    configuration: ArcSwap<Configuration>,
    /// Seeded at random in each process, so that no client can choose flows that share all queues with another
    /// flow.
    hash_builder: RandomState,
}

#[derive(Debug)]
struct Configuration {
    schemas: FlowSchemas,
    levels: Vec<Arc<LevelRuntime>>,
}

/// The state of one priority level. A change of its configuration keeps this value, so waiting requests keep their
/// place in the queue.
#[derive(Debug)]
pub(crate) struct LevelRuntime {
    name: String,
    state: Mutex<LevelState>,
}

#[derive(Debug)]
struct LevelState {
    uid: Arc<str>,
    is_exempt: bool,
    queues: LevelQueues<WaitingRequest>,
}

/// A request that waits for a seat.
#[derive(Debug)]
struct WaitingRequest {
    seat_sender: oneshot::Sender<Seat>,
    seat_holder: SeatHolder,
}

/// The request that a seat belongs to, for the statistics of its schema.
#[derive(Debug, Clone)]
struct SeatHolder {
    schema: Arc<ActiveSchema>,
    is_watch: bool,
    /// How long the request held a seat before it was suspended.
    service_before_suspension: Duration,
}

/// The right of one request to run. Dropping it lets the next request run.
#[derive(Debug)]
#[must_use = "a seat that is dropped at once limits nothing"]
pub struct Seat {
    seat_holder: SeatHolder,
    held_seats: HeldSeats,
    began_at: Instant,
    is_suspended: bool,
}

/// A request that has given its seat back for a while, such as while it waits for an admission webhook.
#[derive(Debug)]
pub struct SuspendedSeat {
    seat_holder: SeatHolder,
    /// The seats that the request held, and the queue that is charged for them.
    held_seats: HeldSeats,
}

/// Why a request gets no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// All seats of a level without queues are in use.
    #[error("all seats of the priority level are in use")]
    ConcurrencyLimit,
    /// The queue of the flow is full.
    #[error("the queue of the flow is full")]
    QueueFull,
    /// No seat became free in time.
    #[error("no seat became free in time")]
    TimeOut,
}

impl Rejection {
    /// All reasons why a request gets no seat.
    pub const ALL: [Self; 3] = [Self::ConcurrencyLimit, Self::QueueFull, Self::TimeOut];

    /// The value of the label `reason` in Kubernetes' metrics.
    pub fn metric_label(self) -> &'static str {
        match self {
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::QueueFull => "queue-full",
            Self::TimeOut => "time-out",
        }
    }
}

/// How busy a level is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelUsage {
    /// The name of the level.
    pub name: String,
    /// The seats of the level; `None` if it is exempt.
    pub seats_max: Option<u32>,
    /// The seats in use.
    pub seats_in_use: u32,
    /// The requests that run.
    pub n_executing: usize,
    /// The requests that wait.
    pub n_waiting: usize,
}

impl FlowController {
    /// Makes a controller without schemas and levels.
    pub fn new(seats_max: u32) -> Self {
        let configuration =
            Configuration { schemas: FlowSchemas::without_schemas(), levels: Vec::new() };
        Self {
            seats_max,
            configuration: ArcSwap::from_pointee(configuration),
            hash_builder: RandomState::new(),
        }
    }

    /// Replaces all schemas and levels. Requests that run or wait go on under the new limits of their level; those of a level
    /// that no longer exists go on under its last limits. Callers do not run this concurrently.
    pub fn configure(&self, schemas: Vec<Arc<FlowSchema>>, levels: &[PriorityLevel]) {
        let shares = total_shares(levels);
        let old = self.configuration.load_full();
        let levels: Vec<Arc<LevelRuntime>> = levels
            .iter()
            .map(|level| {
                let seats = nominal_seats(level, shares, self.seats_max);
                match old.levels.iter().find(|known| known.name == level.name) {
                    Some(known) => {
                        known.configure(level, seats);
                        Arc::clone(known)
                    }
                    None => Arc::new(LevelRuntime::new(level, seats)),
                }
            })
            .collect();
        let schemas = FlowSchemas::new(schemas, &levels, &old.schemas);
        self.configuration.store(Arc::new(Configuration { schemas, levels }));
    }

    /// The schema, level and flow of a request. `None` if no schema matches; the mandatory schema `catch-all` matches
    /// every request.
    pub fn classify(&self, request: &RequestDigest<'_>) -> Option<Classification> {
        self.configuration.load().schemas.classify(request, &self.hash_builder)
    }

    /// The statistics of the requests of each schema. Schemas that no longer exist are not in it.
    pub fn flow_usages(&self) -> Vec<FlowUsage> {
        self.configuration.load().schemas.flow_usages()
    }

    /// How busy each level is.
    pub fn level_usages(&self) -> Vec<LevelUsage> {
        self.configuration.load().levels.iter().map(|level| level.level_usage()).collect()
    }
}

impl Classification {
    /// Waits until the request may run, at most until `deadline`. Dropping the future gives up the place in the queue.
    pub async fn acquire(&self, seats: u32, deadline: Instant) -> Result<Seat, Rejection> {
        let statistics = &self.schema.statistics;
        let level = &self.schema.level;
        let holder = || SeatHolder {
            schema: Arc::clone(&self.schema),
            is_watch: self.is_watch,
            service_before_suspension: Duration::ZERO,
        };
        let mut receiver = None;
        let arrival = {
            let queues = &mut level.lock().queues;
            let seats = seats.clamp(1, queues.seats_max().max(1));
            queues.execute_or_enqueue(self.flow_hash, seats, || {
                new_waiting_request(holder(), &mut receiver)
            })
        };
        let rejection = match arrival {
            ArrivalResult::Execute(held) => {
                statistics.record_dispatch(Duration::ZERO);
                return Ok(Seat::new(holder(), held));
            }
            ArrivalResult::NoSeat => Rejection::ConcurrencyLimit,
            ArrivalResult::QueueFull => Rejection::QueueFull,
            ArrivalResult::Wait(id) => {
                let begun = Instant::now();
                let waiting = WaitingCountGuard::new(statistics);
                let seat =
                    tokio::time::timeout_at(deadline, level.wait_for_seat(id, receiver)).await;
                drop(waiting);
                match seat.ok().flatten() {
                    Some(seat) => {
                        statistics.record_dispatch(begun.elapsed());
                        return Ok(seat);
                    }
                    None => {
                        statistics.record_rejection(Rejection::TimeOut, begun.elapsed());
                        return Err(Rejection::TimeOut);
                    }
                }
            }
        };
        statistics.record_rejection(rejection, Duration::ZERO);
        Err(rejection)
    }
}

fn new_waiting_request(
    holder: SeatHolder,
    receiver: &mut Option<oneshot::Receiver<Seat>>,
) -> WaitingRequest {
    let (sender, own) = oneshot::channel();
    *receiver = Some(own);
    WaitingRequest { seat_sender: sender, seat_holder: holder }
}

/// Counts a request as waiting until it is dropped.
struct WaitingCountGuard<'a>(&'a FlowStatistics);

impl<'a> WaitingCountGuard<'a> {
    fn new(statistics: &'a FlowStatistics) -> Self {
        statistics.n_waiting.add(1);
        Self(statistics)
    }
}

impl Drop for WaitingCountGuard<'_> {
    fn drop(&mut self) {
        self.0.n_waiting.subtract(1);
    }
}

impl Seat {
    fn new(holder: SeatHolder, held: HeldSeats) -> Self {
        let statistics = &holder.schema.statistics;
        statistics.n_executing.add(1);
        statistics.seats_in_use.add(held.seats as usize);
        Self {
            seat_holder: holder,
            held_seats: held,
            began_at: Instant::now(),
            is_suspended: false,
        }
    }

    /// Gives the seat back, to take it again later.
    pub fn suspend(mut self) -> SuspendedSeat {
        self.is_suspended = true;
        let mut holder = self.seat_holder.clone();
        holder.service_before_suspension += self.began_at.elapsed();
        SuspendedSeat { seat_holder: holder, held_seats: self.held_seats }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let service = self.began_at.elapsed();
        let statistics = &self.seat_holder.schema.statistics;
        statistics.n_executing.subtract(1);
        statistics.seats_in_use.subtract(self.held_seats.seats as usize);
        if !self.is_suspended {
            let service_of_all = self.seat_holder.service_before_suspension + service;
            statistics.record_execution(self.seat_holder.is_watch, service_of_all);
        }
        let level = &self.seat_holder.schema.level;
        let dispatched = level.lock().queues.finish_request(self.held_seats, service);
        hand_over_seats(dispatched);
    }
}

impl SuspendedSeat {
    /// Waits for the seat. The request is never refused, because it may have had effects already.
    pub async fn resume(self) -> Seat {
        let level = &self.seat_holder.schema.level;
        loop {
            let mut receiver = None;
            let arrival = level.lock().queues.resume_request(self.held_seats, || {
                new_waiting_request(self.seat_holder.clone(), &mut receiver)
            });
            match arrival {
                Ok(held) => return Seat::new(self.seat_holder.clone(), held),
                Err(id) => {
                    if let Some(seat) = level.wait_for_seat(id, receiver).await {
                        return seat;
                    }
                }
            }
        }
    }
}

/// Hands seats to waiting requests. A seat for a request that has just given up is dropped, which frees it again. The lock
/// of the level is not held, because dropping a seat takes it.
fn hand_over_seats(dispatched: DispatchedRequests<WaitingRequest>) {
    for (WaitingRequest { seat_sender, seat_holder }, held) in dispatched {
        drop(seat_sender.send(Seat::new(seat_holder, held)));
    }
}

impl LevelRuntime {
    fn new(level: &PriorityLevel, seats: u32) -> Self {
        let (is_exempt, seats, limit_response) = limits_of_kind(level.kind, seats);
        let queues = LevelQueues::new(seats, limit_response);
        let state = LevelState { uid: level.uid.as_str().into(), is_exempt, queues };
        Self { name: level.name.clone(), state: Mutex::new(state) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn uid_and_exemption(&self) -> (Arc<str>, bool) {
        let state = self.lock();
        (Arc::clone(&state.uid), state.is_exempt)
    }

    fn configure(&self, level: &PriorityLevel, seats: u32) {
        let dispatched = {
            let mut state = self.lock();
            if *state.uid != *level.uid {
                state.uid = level.uid.as_str().into();
            }
            let (is_exempt, seats, limit_response) = limits_of_kind(level.kind, seats);
            state.is_exempt = is_exempt;
            state.queues.configure(seats, limit_response)
        };
        hand_over_seats(dispatched);
    }

    fn lock(&self) -> MutexGuard<'_, LevelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a seat is handed over. Dropping the future gives up the place in the queue.
    async fn wait_for_seat(
        &self,
        id: WaiterId,
        receiver: Option<oneshot::Receiver<Seat>>,
    ) -> Option<Seat> {
        let place = QueuePlaceGuard { level: self, id };
        let seat = receiver?.await.ok();
        // A seat was handed over, so the place in the queue is gone already.
        std::mem::forget(place);
        seat
    }

    fn level_usage(&self) -> LevelUsage {
        let state = self.lock();
        LevelUsage {
            name: self.name.clone(),
            seats_max: (!state.is_exempt).then(|| state.queues.seats_max()),
            seats_in_use: state.queues.seats_in_use(),
            n_executing: state.queues.n_executing(),
            n_waiting: state.queues.n_waiting(),
        }
    }
}

/// Returns whether a level is exempt, its seats, and its response while no seat is free. An exempt level has so
/// many seats that one is always free.
fn limits_of_kind(kind: PriorityLevelKind, seats: u32) -> (bool, u32, LimitResponse) {
    match kind {
        PriorityLevelKind::Exempt => (true, u32::MAX, LimitResponse::Reject),
        PriorityLevelKind::Limited { limit_response, .. } => (false, seats, limit_response),
    }
}

/// A place in a queue, which is given up when this is dropped.
struct QueuePlaceGuard<'a> {
    level: &'a LevelRuntime,
    id: WaiterId,
}

impl Drop for QueuePlaceGuard<'_> {
    fn drop(&mut self) {
        let dispatched = self.level.lock().queues.cancel_waiter(self.id);
        hand_over_seats(dispatched);
    }
}
