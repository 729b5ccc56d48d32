//! Hands out seats to requests.

#[cfg(test)]
mod tests;

use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::classify::{Classification, FlowSchemas, SchemaInForce};
use crate::flow_schema::FlowSchema;
use crate::flow_statistics::{FlowStatistics, FlowUsage};
use crate::level_queues::{Arrival, Dispatched, HeldSeats, LevelQueues, WaiterId};
use crate::priority_level::{LimitResponse, PriorityLevel, PriorityLevelKind};
use crate::request_digest::RequestDigest;
use crate::seat_allocation::{nominal_seats, shares_of_all};

/// Classifies requests and hands out the seats of all priority levels.
#[derive(Debug)]
pub struct FlowController {
    /// The seats of all levels together.
    seats_max: u32,
    configuration: ArcSwap<Configuration>,
    /// Keyed anew in each process, so that no client can choose flows that share all queues with another flow.
    hasher: RandomState,
}

#[derive(Debug)]
struct Configuration {
    schemas: FlowSchemas,
    levels: Vec<Arc<Level>>,
}

/// A priority level at work. It stays the same while its configuration changes, so requests that wait keep their place.
#[derive(Debug)]
pub(crate) struct Level {
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
    sender: oneshot::Sender<Seat>,
    holder: SeatHolder,
}

/// The request that a seat belongs to, for the statistics of its schema.
#[derive(Debug, Clone)]
struct SeatHolder {
    schema: Arc<SchemaInForce>,
    is_watch: bool,
    /// How long the request held a seat before it was suspended.
    served_before: Duration,
}

/// The right of one request to run. Dropping it lets the next request run.
#[derive(Debug)]
#[must_use = "a seat that is dropped at once limits nothing"]
pub struct Seat {
    holder: SeatHolder,
    held: HeldSeats,
    begun: Instant,
    is_suspended: bool,
}

/// A request that has given its seat back for a while, such as while it waits for an admission webhook.
#[derive(Debug)]
pub struct SuspendedSeat {
    holder: SeatHolder,
    /// The seats that the request held, and the queue that is charged for them.
    held: HeldSeats,
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
        let configuration = Configuration { schemas: FlowSchemas::empty(), levels: Vec::new() };
        Self {
            seats_max,
            configuration: ArcSwap::from_pointee(configuration),
            hasher: RandomState::new(),
        }
    }

    /// Replaces all schemas and levels. Requests that run or wait go on under the new limits of their level; those of a level
    /// that no longer exists go on under its last limits. Callers do not run this concurrently.
    pub fn configure(&self, schemas: Vec<Arc<FlowSchema>>, levels: &[PriorityLevel]) {
        let shares = shares_of_all(levels);
        let old = self.configuration.load_full();
        let levels: Vec<Arc<Level>> = levels
            .iter()
            .map(|level| {
                let seats = nominal_seats(level, shares, self.seats_max);
                match old.levels.iter().find(|known| known.name == level.name) {
                    Some(known) => {
                        known.configure(level, seats);
                        Arc::clone(known)
                    }
                    None => Arc::new(Level::new(level, seats)),
                }
            })
            .collect();
        let schemas = FlowSchemas::new(schemas, &levels, &old.schemas);
        self.configuration.store(Arc::new(Configuration { schemas, levels }));
    }

    /// The schema, level and flow of a request. `None` if no schema matches; the mandatory schema `catch-all` matches
    /// every request.
    pub fn classify(&self, request: &RequestDigest<'_>) -> Option<Classification> {
        self.configuration.load().schemas.classify(request, &self.hasher)
    }

    /// The statistics of the requests of each schema. Schemas that no longer exist are not in it.
    pub fn flow_usage(&self) -> Vec<FlowUsage> {
        self.configuration.load().schemas.usage()
    }

    /// How busy each level is.
    pub fn usage(&self) -> Vec<LevelUsage> {
        self.configuration.load().levels.iter().map(|level| level.usage()).collect()
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
            served_before: Duration::ZERO,
        };
        let mut receiver = None;
        let arrival = {
            let queues = &mut level.lock().queues;
            let seats = seats.clamp(1, queues.seats_max().max(1));
            queues.arrive(self.flow_hash, seats, || new_waiting_request(holder(), &mut receiver))
        };
        let rejection = match arrival {
            Arrival::Execute(held) => {
                statistics.record_dispatch(Duration::ZERO);
                return Ok(Seat::new(holder(), held));
            }
            Arrival::NoSeat => Rejection::ConcurrencyLimit,
            Arrival::QueueFull => Rejection::QueueFull,
            Arrival::Wait(id) => {
                let begun = Instant::now();
                let waiting = WaitingCount::new(statistics);
                let seat = tokio::time::timeout_at(deadline, level.wait(id, receiver)).await;
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
    WaitingRequest { sender, holder }
}

/// Counts a request as waiting until it is dropped.
struct WaitingCount<'a>(&'a FlowStatistics);

impl<'a> WaitingCount<'a> {
    fn new(statistics: &'a FlowStatistics) -> Self {
        statistics.n_waiting.add(1);
        Self(statistics)
    }
}

impl Drop for WaitingCount<'_> {
    fn drop(&mut self) {
        self.0.n_waiting.subtract(1);
    }
}

impl Seat {
    fn new(holder: SeatHolder, held: HeldSeats) -> Self {
        let statistics = &holder.schema.statistics;
        statistics.n_executing.add(1);
        statistics.seats_in_use.add(held.seats as usize);
        Self { holder, held, begun: Instant::now(), is_suspended: false }
    }

    /// Gives the seat back, to take it again later.
    pub fn suspend(mut self) -> SuspendedSeat {
        self.is_suspended = true;
        let mut holder = self.holder.clone();
        holder.served_before += self.begun.elapsed();
        SuspendedSeat { holder, held: self.held }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let service = self.begun.elapsed();
        let statistics = &self.holder.schema.statistics;
        statistics.n_executing.subtract(1);
        statistics.seats_in_use.subtract(self.held.seats as usize);
        if !self.is_suspended {
            let service_of_all = self.holder.served_before + service;
            statistics.record_execution(self.holder.is_watch, service_of_all);
        }
        let level = &self.holder.schema.level;
        let dispatched = level.lock().queues.finish(self.held, service);
        wake(dispatched);
    }
}

impl SuspendedSeat {
    /// Waits for the seat. It is never refused, because the request may have had effects already.
    pub async fn resume(self) -> Seat {
        let level = &self.holder.schema.level;
        loop {
            let mut receiver = None;
            let arrival = level
                .lock()
                .queues
                .resume(self.held, || new_waiting_request(self.holder.clone(), &mut receiver));
            match arrival {
                Ok(held) => return Seat::new(self.holder.clone(), held),
                Err(id) => {
                    if let Some(seat) = level.wait(id, receiver).await {
                        return seat;
                    }
                }
            }
        }
    }
}

/// Hands seats to waiting requests. A seat for a request that has just given up is dropped, which frees it again. The lock
/// of the level is not held, because dropping a seat takes it.
fn wake(dispatched: Dispatched<WaitingRequest>) {
    for (WaitingRequest { sender, holder }, held) in dispatched {
        drop(sender.send(Seat::new(holder, held)));
    }
}

impl Level {
    fn new(level: &PriorityLevel, seats: u32) -> Self {
        let (is_exempt, seats, limit_response) = limits(level.kind, seats);
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
            let (is_exempt, seats, limit_response) = limits(level.kind, seats);
            state.is_exempt = is_exempt;
            state.queues.configure(seats, limit_response)
        };
        wake(dispatched);
    }

    fn lock(&self) -> MutexGuard<'_, LevelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until somebody hands over a seat. Dropping the future gives up the place in the queue.
    async fn wait(&self, id: WaiterId, receiver: Option<oneshot::Receiver<Seat>>) -> Option<Seat> {
        let place = QueuePlace { level: self, id };
        let seat = receiver?.await.ok();
        // A seat was handed over, so the place in the queue is gone already.
        std::mem::forget(place);
        seat
    }

    fn usage(&self) -> LevelUsage {
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

/// Whether a level is exempt, its seats, and what happens while none is free. An exempt level has so many seats that one is
/// always free.
fn limits(kind: PriorityLevelKind, seats: u32) -> (bool, u32, LimitResponse) {
    match kind {
        PriorityLevelKind::Exempt => (true, u32::MAX, LimitResponse::Reject),
        PriorityLevelKind::Limited { limit_response, .. } => (false, seats, limit_response),
    }
}

/// A place in a queue, which is given up when this is dropped.
struct QueuePlace<'a> {
    level: &'a Level,
    id: WaiterId,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let dispatched = self.level.lock().queues.cancel(self.id);
        wake(dispatched);
    }
}
