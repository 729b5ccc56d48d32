//! The flow controller: hands out the seats of priority levels to requests.

#[cfg(test)]
mod tests;

use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::classify_requests::{ActiveSchema, Classification, FlowSchemas};
use crate::flow_schema::FlowSchema;
use crate::flow_schema_statistics::{FlowSchemaStatistics, FlowSchemaUsage};
use crate::priority_level::{LimitResponse, PriorityLevel, PriorityLevelKind};
use crate::priority_level_queues::{
    DispatchedRequests, HeldSeats, PriorityLevelQueues, RequestArrivalResult, WaiterId,
};
use crate::request_digest::RequestDigest;
use crate::seat_allocation::{nominal_seats, total_concurrency_shares};

/// Classifies requests and hands out the seats of all priority levels.
#[derive(Debug)]
pub struct FlowController {
    /// The seats of all levels together.
    seats_max: u32,
    current_schemas_and_levels: ArcSwap<SchemasAndLevels>,
    /// Seeded at random in each process, so that no client can choose flows that share all queues with another
    /// flow.
    hash_builder: RandomState,
}

#[derive(Debug)]
struct SchemasAndLevels {
    flow_schemas: FlowSchemas,
    level_runtimes: Vec<Arc<LevelRuntime>>,
}

/// The state of one priority level. A change of its configuration keeps this value, so waiting requests keep their
/// place in the queue.
#[derive(Debug)]
pub(crate) struct LevelRuntime {
    name: String,
    level_state: Mutex<LevelState>,
}

#[derive(Debug)]
struct LevelState {
    uid: Arc<str>,
    is_exempt: bool,
    level_queues: PriorityLevelQueues<WaitingRequest>,
}

/// A request that waits for a seat.
#[derive(Debug)]
struct WaitingRequest {
    seat_sender: oneshot::Sender<Seat>,
    seat_owner: SeatOwner,
}

/// The request that a seat belongs to, for the statistics of its schema.
#[derive(Debug, Clone)]
struct SeatOwner {
    active_schema: Arc<ActiveSchema>,
    is_watch: bool,
    /// How long the request held a seat before it was suspended.
    execution_time_before_suspension: Duration,
}

/// The right of one request to run. Dropping it lets the next request run.
#[derive(Debug)]
#[must_use = "a seat that is dropped at once limits nothing"]
pub struct Seat {
    seat_owner: SeatOwner,
    held_seats: HeldSeats,
    execution_began_at: Instant,
    is_suspended: bool,
}

/// A request that has given its seat back for a while, such as while it waits for an admission webhook.
#[derive(Debug)]
pub struct SuspendedSeat {
    seat_owner: SeatOwner,
    /// The seats that the request held, and the queue that is charged for them.
    held_seats: HeldSeats,
}

/// Why a request gets no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RejectionReason {
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

impl RejectionReason {
    /// All reasons why a request gets no seat.
    pub const ALL: [Self; 3] = [Self::ConcurrencyLimit, Self::QueueFull, Self::TimeOut];

    /// The value of the label `reason` in Kubernetes' metrics.
    pub fn reason_label_value(self) -> &'static str {
        match self {
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::QueueFull => "queue-full",
            Self::TimeOut => "time-out",
        }
    }
}

/// The seats of a priority level that are in use, and the requests that run and wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityLevelUsage {
    /// The name of the level.
    pub name: String,
    /// The seats of the level; `None` if it is exempt.
    pub seats_max: Option<u32>,
    /// The number of seats that requests hold.
    pub seats_in_use: u32,
    /// The number of requests that hold a seat.
    pub n_executing_requests: usize,
    /// The number of requests that wait for a seat.
    pub n_waiting_requests: usize,
}

impl FlowController {
    /// Makes a controller without schemas and levels.
    pub fn new(seats_max: u32) -> Self {
        let current_schemas_and_levels =
            SchemasAndLevels { flow_schemas: FlowSchemas::new_empty(), level_runtimes: Vec::new() };
        Self {
            seats_max,
            current_schemas_and_levels: ArcSwap::from_pointee(current_schemas_and_levels),
            hash_builder: RandomState::new(),
        }
    }

    /// Replaces all schemas and levels. Requests that run or wait go on under the new limits of their level; those of a level
    /// that no longer exists go on under its last limits. Callers do not run this concurrently.
    pub fn replace_schemas_and_levels(
        &self,
        schemas: Vec<Arc<FlowSchema>>,
        levels: &[PriorityLevel],
    ) {
        let shares = total_concurrency_shares(levels);
        let old = self.current_schemas_and_levels.load_full();
        let levels: Vec<Arc<LevelRuntime>> = levels
            .iter()
            .map(|level| {
                let seats = nominal_seats(level, shares, self.seats_max);
                match old.level_runtimes.iter().find(|known| known.name == level.name) {
                    Some(known) => {
                        known.update_level(level, seats);
                        Arc::clone(known)
                    }
                    None => Arc::new(LevelRuntime::new(level, seats)),
                }
            })
            .collect();
        let schemas = FlowSchemas::new(schemas, &levels, &old.flow_schemas);
        self.current_schemas_and_levels
            .store(Arc::new(SchemasAndLevels { flow_schemas: schemas, level_runtimes: levels }));
    }

    /// The schema, level and flow of a request. A request that no schema matches belongs to the mandatory schema
    /// `catch-all`; `None` if that is not in force.
    pub fn classify_request(&self, request: &RequestDigest<'_>) -> Option<Classification> {
        self.current_schemas_and_levels
            .load()
            .flow_schemas
            .classify_request(request, &self.hash_builder)
    }

    /// The statistics of the requests of each schema. Schemas that no longer exist are not in it.
    pub fn flow_schema_usages(&self) -> Vec<FlowSchemaUsage> {
        self.current_schemas_and_levels.load().flow_schemas.flow_schema_usages()
    }

    /// Returns the seats in use and the waiting requests of each priority level.
    pub fn priority_level_usages(&self) -> Vec<PriorityLevelUsage> {
        self.current_schemas_and_levels
            .load()
            .level_runtimes
            .iter()
            .map(|level| level.to_priority_level_usage())
            .collect()
    }
}

impl Classification {
    /// Waits until the request may run, at most until `deadline`. Dropping the future gives up the place in the queue.
    pub async fn acquire_seats(
        &self,
        seats: u32,
        deadline: Instant,
    ) -> Result<Seat, RejectionReason> {
        let statistics = &self.active_schema.flow_schema_statistics;
        let level = &self.active_schema.level_runtime;
        let holder = || SeatOwner {
            active_schema: Arc::clone(&self.active_schema),
            is_watch: self.is_watch,
            execution_time_before_suspension: Duration::ZERO,
        };
        let mut receiver = None;
        let arrival = {
            let queues = &mut level.lock().level_queues;
            let seats = seats.clamp(1, queues.seats_max().max(1));
            queues.execute_or_enqueue(self.flow_hash, seats, || {
                new_waiting_request(holder(), &mut receiver)
            })
        };
        let rejection = match arrival {
            RequestArrivalResult::Execute(held) => {
                statistics.record_dispatch(Duration::ZERO);
                return Ok(Seat::new(holder(), held));
            }
            RequestArrivalResult::NoSeat => RejectionReason::ConcurrencyLimit,
            RequestArrivalResult::QueueFull => RejectionReason::QueueFull,
            RequestArrivalResult::Wait(id) => {
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
                        statistics.record_rejection(RejectionReason::TimeOut, begun.elapsed());
                        return Err(RejectionReason::TimeOut);
                    }
                }
            }
        };
        statistics.record_rejection(rejection, Duration::ZERO);
        Err(rejection)
    }
}

fn new_waiting_request(
    holder: SeatOwner,
    receiver: &mut Option<oneshot::Receiver<Seat>>,
) -> WaitingRequest {
    let (sender, own) = oneshot::channel();
    *receiver = Some(own);
    WaitingRequest { seat_sender: sender, seat_owner: holder }
}

/// Counts a request as waiting until it is dropped.
struct WaitingCountGuard<'a>(&'a FlowSchemaStatistics);

impl<'a> WaitingCountGuard<'a> {
    fn new(flow_schema_statistics: &'a FlowSchemaStatistics) -> Self {
        flow_schema_statistics.n_waiting_requests.increase_gauge(1);
        Self(flow_schema_statistics)
    }
}

impl Drop for WaitingCountGuard<'_> {
    fn drop(&mut self) {
        self.0.n_waiting_requests.decrease_gauge(1);
    }
}

impl Seat {
    fn new(holder: SeatOwner, held: HeldSeats) -> Self {
        let statistics = &holder.active_schema.flow_schema_statistics;
        statistics.n_executing_requests.increase_gauge(1);
        statistics.seats_in_use.increase_gauge(held.n_seats as usize);
        Self {
            seat_owner: holder,
            held_seats: held,
            execution_began_at: Instant::now(),
            is_suspended: false,
        }
    }

    /// Gives the seat back until [`SuspendedSeat::reacquire_seat`].
    pub fn suspend_seat(mut self) -> SuspendedSeat {
        self.is_suspended = true;
        let mut holder = self.seat_owner.clone();
        holder.execution_time_before_suspension += self.execution_began_at.elapsed();
        SuspendedSeat { seat_owner: holder, held_seats: self.held_seats }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let service = self.execution_began_at.elapsed();
        let statistics = &self.seat_owner.active_schema.flow_schema_statistics;
        statistics.n_executing_requests.decrease_gauge(1);
        statistics.seats_in_use.decrease_gauge(self.held_seats.n_seats as usize);
        if !self.is_suspended {
            let service_of_all = self.seat_owner.execution_time_before_suspension + service;
            statistics.record_execution(self.seat_owner.is_watch, service_of_all);
        }
        let level = &self.seat_owner.active_schema.level_runtime;
        let dispatched = level.lock().level_queues.finish_request(self.held_seats, service);
        hand_over_seats(dispatched);
    }
}

impl SuspendedSeat {
    /// Waits until the request has a seat again. The request is never refused, because it may have had effects already.
    pub async fn reacquire_seat(self) -> Seat {
        let level = &self.seat_owner.active_schema.level_runtime;
        loop {
            let mut receiver = None;
            let arrival = level.lock().level_queues.resume_request(self.held_seats, || {
                new_waiting_request(self.seat_owner.clone(), &mut receiver)
            });
            match arrival {
                Ok(held) => return Seat::new(self.seat_owner.clone(), held),
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
    for (WaitingRequest { seat_sender, seat_owner: seat_holder }, held) in dispatched {
        drop(seat_sender.send(Seat::new(seat_holder, held)));
    }
}

impl LevelRuntime {
    fn new(level: &PriorityLevel, seats: u32) -> Self {
        let (is_exempt, seats, limit_response) = seat_limits_of_level_kind(level.kind, seats);
        let queues = PriorityLevelQueues::new(seats, limit_response);
        let state = LevelState { uid: level.uid.as_str().into(), is_exempt, level_queues: queues };
        Self { name: level.name.clone(), level_state: Mutex::new(state) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn level_uid_and_is_exempt(&self) -> (Arc<str>, bool) {
        let state = self.lock();
        (Arc::clone(&state.uid), state.is_exempt)
    }

    fn update_level(&self, level: &PriorityLevel, seats: u32) {
        let dispatched = {
            let mut state = self.lock();
            if *state.uid != *level.uid {
                state.uid = level.uid.as_str().into();
            }
            let (is_exempt, seats, limit_response) = seat_limits_of_level_kind(level.kind, seats);
            state.is_exempt = is_exempt;
            state.level_queues.reconfigure_queues(seats, limit_response)
        };
        hand_over_seats(dispatched);
    }

    fn lock(&self) -> MutexGuard<'_, LevelState> {
        self.level_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a seat is handed over. Dropping the future gives up the place in the queue.
    async fn wait_for_seat(
        &self,
        id: WaiterId,
        receiver: Option<oneshot::Receiver<Seat>>,
    ) -> Option<Seat> {
        let place = QueuePlaceGuard { level_runtime: self, id };
        let seat = receiver?.await.ok();
        // A seat was handed over, so the place in the queue is gone already.
        std::mem::forget(place);
        seat
    }

    fn to_priority_level_usage(&self) -> PriorityLevelUsage {
        let state = self.lock();
        PriorityLevelUsage {
            name: self.name.clone(),
            seats_max: (!state.is_exempt).then(|| state.level_queues.seats_max()),
            seats_in_use: state.level_queues.seats_in_use(),
            n_executing_requests: state.level_queues.n_executing_requests(),
            n_waiting_requests: state.level_queues.n_waiting_requests(),
        }
    }
}

/// Returns whether a level is exempt, its seats, and its response while no seat is free. An exempt level has so
/// many seats that one is always free.
fn seat_limits_of_level_kind(kind: PriorityLevelKind, seats: u32) -> (bool, u32, LimitResponse) {
    match kind {
        PriorityLevelKind::Exempt => (true, u32::MAX, LimitResponse::Reject),
        PriorityLevelKind::Limited { limit_response, .. } => (false, seats, limit_response),
    }
}

/// A place in a queue, which is given up when this is dropped.
struct QueuePlaceGuard<'a> {
    level_runtime: &'a LevelRuntime,
    id: WaiterId,
}

impl Drop for QueuePlaceGuard<'_> {
    fn drop(&mut self) {
        let dispatched = self.level_runtime.lock().level_queues.cancel_waiter(self.id);
        hand_over_seats(dispatched);
    }
}
