//! Hands out seats to requests.

#[cfg(test)]
mod tests;

use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::classify::{Classification, FlowSchemas};
use crate::flow_schema::FlowSchema;
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
    queues: LevelQueues<oneshot::Sender<Seat>>,
}

/// The right of one request to run. Dropping it lets the next request run.
#[derive(Debug)]
#[must_use = "a seat that is dropped at once limits nothing"]
pub struct Seat {
    level: Arc<Level>,
    held: HeldSeats,
    begun: Instant,
}

/// A request that has given its seat back for a while, such as while it waits for an admission webhook.
#[derive(Debug)]
pub struct SuspendedSeat {
    level: Arc<Level>,
    seats: u32,
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
            Configuration { schemas: FlowSchemas::new(Vec::new(), &[]), levels: Vec::new() };
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
        let schemas = FlowSchemas::new(schemas, &levels);
        self.configuration.store(Arc::new(Configuration { schemas, levels }));
    }

    /// The schema, level and flow of a request. `None` if no schema matches; the mandatory schema `catch-all` matches
    /// every request.
    pub fn classify(&self, request: &RequestDigest<'_>) -> Option<Classification> {
        self.configuration.load().schemas.classify(request, &self.hasher)
    }

    /// How busy each level is.
    pub fn usage(&self) -> Vec<LevelUsage> {
        self.configuration.load().levels.iter().map(|level| level.usage()).collect()
    }
}

impl Classification {
    /// Waits until the request may run, at most until `deadline`. Dropping the future gives up the place in the queue.
    pub async fn acquire(&self, seats: u32, deadline: Instant) -> Result<Seat, Rejection> {
        let level = &self.level;
        let mut receiver = None;
        let arrival = {
            let queues = &mut level.lock().queues;
            let seats = seats.clamp(1, queues.seats_max().max(1));
            queues.arrive(self.flow_hash, seats, || new_sender(&mut receiver))
        };
        match arrival {
            Arrival::Execute(held) => Ok(level.seat(held)),
            Arrival::NoSeat => Err(Rejection::ConcurrencyLimit),
            Arrival::QueueFull => Err(Rejection::QueueFull),
            Arrival::Wait(id) => {
                let seat = tokio::time::timeout_at(deadline, level.wait(id, receiver)).await;
                seat.ok().flatten().ok_or(Rejection::TimeOut)
            }
        }
    }
}

fn new_sender(receiver: &mut Option<oneshot::Receiver<Seat>>) -> oneshot::Sender<Seat> {
    let (sender, own) = oneshot::channel();
    *receiver = Some(own);
    sender
}

impl Seat {
    /// Gives the seat back, to take it again later.
    pub fn suspend(self) -> SuspendedSeat {
        SuspendedSeat { level: Arc::clone(&self.level), seats: self.held.seats }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let dispatched = self.level.lock().queues.finish(self.held, self.begun.elapsed());
        self.level.wake(dispatched);
    }
}

impl SuspendedSeat {
    /// Waits for the seat. It is never refused, because the request may have had effects already.
    pub async fn resume(self) -> Seat {
        let level = &self.level;
        loop {
            let mut receiver = None;
            let arrival = level.lock().queues.resume(self.seats, || new_sender(&mut receiver));
            match arrival {
                Ok(held) => return level.seat(held),
                Err(id) => {
                    if let Some(seat) = level.wait(id, receiver).await {
                        return seat;
                    }
                }
            }
        }
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

    pub(crate) fn uid(&self) -> Arc<str> {
        Arc::clone(&self.lock().uid)
    }

    fn configure(self: &Arc<Self>, level: &PriorityLevel, seats: u32) {
        let dispatched = {
            let mut state = self.lock();
            if *state.uid != *level.uid {
                state.uid = level.uid.as_str().into();
            }
            let (is_exempt, seats, limit_response) = limits(level.kind, seats);
            state.is_exempt = is_exempt;
            state.queues.configure(seats, limit_response)
        };
        self.wake(dispatched);
    }

    fn lock(&self) -> MutexGuard<'_, LevelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seat(self: &Arc<Self>, held: HeldSeats) -> Seat {
        Seat { level: Arc::clone(self), held, begun: Instant::now() }
    }

    /// Waits until somebody hands over a seat. Dropping the future gives up the place in the queue.
    async fn wait(
        self: &Arc<Self>,
        id: WaiterId,
        receiver: Option<oneshot::Receiver<Seat>>,
    ) -> Option<Seat> {
        let place = QueuePlace { level: self, id };
        let seat = receiver?.await.ok();
        // A seat was handed over, so the place in the queue is gone already.
        std::mem::forget(place);
        seat
    }

    /// Hands seats to waiting requests. A seat for a request that has just given up is dropped, which frees it again. The
    /// lock is not held, because dropping a seat takes it.
    fn wake(self: &Arc<Self>, dispatched: Dispatched<oneshot::Sender<Seat>>) {
        for (sender, held) in dispatched {
            drop(sender.send(self.seat(held)));
        }
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
    level: &'a Arc<Level>,
    id: WaiterId,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let dispatched = self.level.lock().queues.cancel(self.id);
        self.level.wake(dispatched);
    }
}
