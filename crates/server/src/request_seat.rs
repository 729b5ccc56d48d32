//! The seat of a request, which it gives back while it waits for webhooks.
//!
//! A request that waits for webhooks does not work, so it holds no seat: other requests run meanwhile. The number of
//! requests that wait and the bytes of their objects are limited, because they stay in memory. The limit is checked before an
//! attempt to write calls its first webhook. Afterwards the request always gets its seat back, because webhooks may have had
//! effects, and what a webhook adds to the object is counted and not refused.

use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use api_object::{Status, Tree};
use authz::User;
use concurrency_limit::{Busy, LongComputationFlag, Permit};
use flow_control::{Classification, Rejection, Seat, SuspendedSeat};
use prometheus::IntGauge;
use serde_json::Value;
use tokio::time::{Duration, Instant};

use crate::server_state::ServerState;

/// A request waits for a seat at most this long, and at most a quarter of its time, as in Kubernetes.
const SEAT_WAIT_MAX: Duration = Duration::from_secs(60);

/// The seat of one request.
///
/// The deletions of a deletecollection share the seat of their request: it is given back when the first of them waits for
/// webhooks, and comes back when one of them goes on.
pub(crate) struct RequestSeat<'a> {
    server: &'a ServerState,
    user: &'a User,
    /// An exempt request takes no seat from others, so it keeps its own.
    is_exempt: bool,
    state: Mutex<SeatState>,
    /// Whether the request keeps a processor for long.
    pub(crate) long_work: LongComputationFlag,
    _in_flight: InFlightCount,
}

struct SeatState {
    holding: Holding,
    /// Held from the first wait for webhooks to the end of the request.
    wait_permits: Option<WaitPermits>,
}

/// The place among the requests that wait, and the memory for the objects of the request.
struct WaitPermits {
    _place: Permit,
    /// For the most bytes that have waited at one time. They stay for the next wait, so that it is not refused.
    bytes: Permit,
    /// The bytes of the objects that wait now. Only the deletions of a deletecollection wait at the same time.
    bytes_waiting: usize,
}

/// One wait for admission webhooks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HookWait {
    /// The bytes of the objects that stay in memory meanwhile.
    pub(crate) object_bytes: usize,
    /// Whether the attempt to write has called no webhook yet, so that it may be refused.
    pub(crate) is_first_of_attempt: bool,
}

/// Counts the objects of one wait until it is dropped.
struct WaitingBytes<'s, 'a> {
    seat: &'s RequestSeat<'a>,
    n_bytes: usize,
}

impl Drop for WaitingBytes<'_, '_> {
    fn drop(&mut self) {
        if let Some(permits) = &mut self.seat.lock().wait_permits {
            permits.bytes_waiting = permits.bytes_waiting.saturating_sub(self.n_bytes);
        }
    }
}

enum Holding {
    Seat(Seat),
    Suspended(SuspendedSeat),
    /// The seat was given back for good, or is coming back.
    Nothing,
}

/// Counts a request in flight until it is dropped.
struct InFlightCount(IntGauge);

impl Drop for InFlightCount {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl<'a> RequestSeat<'a> {
    /// Waits for a seat, for at most a quarter of the time that is left.
    ///
    /// # Errors
    /// The priority level has no seat for the request.
    pub(crate) async fn acquire(
        server: &'a ServerState,
        user: &'a User,
        verb: &str,
        classification: &Classification,
        deadline: Instant,
    ) -> Result<Self, Rejection> {
        let now = Instant::now();
        let wait_max = (deadline.saturating_duration_since(now) / 4).min(SEAT_WAIT_MAX);
        let seat = classification.acquire(1, now + wait_max).await?;
        let in_flight = match verb {
            "get" | "list" | "watch" => &server.metrics.in_flight_read_only,
            _ => &server.metrics.in_flight_mutating,
        };
        in_flight.inc();
        Ok(Self {
            server,
            user,
            is_exempt: classification.is_exempt(),
            state: Mutex::new(SeatState { holding: Holding::Seat(seat), wait_permits: None }),
            long_work: LongComputationFlag::default(),
            _in_flight: InFlightCount(in_flight.clone()),
        })
    }

    /// Gives the seat back for good.
    pub(crate) fn release(&self) {
        let holding = std::mem::replace(&mut self.lock().holding, Holding::Nothing);
        drop(holding);
    }

    /// Waits for admission webhooks without the seat. The seat is back before this returns.
    ///
    /// # Errors
    /// 429, before the attempt calls its first webhook, if too many requests wait or their objects take too much memory.
    pub(crate) async fn wait_for_hooks<T>(
        &self,
        wait: HookWait,
        calls: impl Future<Output = T>,
    ) -> Result<T, Status> {
        if self.is_exempt {
            return Ok(calls.await);
        }
        let _waiting_bytes = self.begin_wait(wait)?;
        self.suspend();
        let output = calls.await;
        self.resume().await;
        Ok(output)
    }

    /// Waits for authorizers during a built-in check, without the seat if they do not decide at once. The seat is back before
    /// this returns.
    ///
    /// # Errors
    /// 429 if the authorizers do not decide at once, too many requests wait, and the request has not waited before.
    pub(crate) async fn wait_for_check<T>(
        &self,
        deciding: impl Future<Output = T>,
    ) -> Result<T, Status> {
        let mut deciding = pin!(deciding);
        match poll_once(deciding.as_mut()).await {
            Poll::Ready(output) => Ok(output),
            // The objects of the request count already: with its body, and if it has waited for webhooks.
            Poll::Pending => {
                let wait = HookWait { object_bytes: 0, is_first_of_attempt: false };
                self.wait_for_hooks(wait, deciding).await
            }
        }
    }

    /// Waits for authorizers. If they do not decide at once, the request gives its seat back for good: nothing but its
    /// response is left to do.
    ///
    /// # Errors
    /// 429 if the authorizers do not decide at once and too many requests wait.
    pub(crate) async fn wait_for_authorizers<T>(
        &self,
        deciding: impl Future<Output = T>,
    ) -> Result<T, Status> {
        let mut deciding = pin!(deciding);
        if let Poll::Ready(output) = poll_once(deciding.as_mut()).await {
            return Ok(output);
        }
        if !self.is_exempt {
            drop(self.begin_wait(HookWait { object_bytes: 0, is_first_of_attempt: true })?);
            self.release();
        }
        Ok(deciding.await)
    }

    fn begin_wait(&self, wait: HookWait) -> Result<WaitingBytes<'_, 'a>, Status> {
        let n_bytes = wait.object_bytes;
        let mut state = self.lock();
        let permits = match &mut state.wait_permits {
            Some(permits) => permits,
            empty => empty.insert(self.acquire_wait_permits()?),
        };
        // A small patch may change a large object, so the memory for the body does not suffice.
        let n_waiting = permits.bytes_waiting.saturating_add(n_bytes);
        if wait.is_first_of_attempt {
            permits.bytes.grow_to(n_waiting).map_err(|_| self.refuse_bytes())?;
        } else {
            permits.bytes.grow_exempt_to(n_waiting);
        }
        permits.bytes_waiting = n_waiting;
        Ok(WaitingBytes { seat: self, n_bytes })
    }

    fn acquire_wait_permits(&self) -> Result<WaitPermits, Status> {
        let user = authz::user_limit_key(&self.user.name);
        let place = self.server.webhook_waits.acquire(user).map_err(|busy| {
            let why = match busy {
                Busy::User { permits_max } => format!(
                    "{permits_max} requests of this user wait for webhooks, which is the most for one user, \
                     please try again later"
                ),
                Busy::Total { permits_max } => format!(
                    "{permits_max} requests wait for webhooks, which is the most, please try again later"
                ),
            };
            self.refuse(&why)
        })?;
        let bytes = self.server.body_bytes.common().acquire_many(user, 0);
        let bytes = bytes.map_err(|_| self.refuse_bytes())?;
        Ok(WaitPermits { _place: place, bytes, bytes_waiting: 0 })
    }

    fn refuse_bytes(&self) -> Status {
        self.refuse("the objects of requests take too much memory, please try again later")
    }

    fn refuse(&self, why: &str) -> Status {
        self.server.metrics.request_terminations.with_label_values(&["429"]).inc();
        Status::too_many_requests(why, 1)
    }

    fn suspend(&self) {
        let mut state = self.lock();
        state.holding = match std::mem::replace(&mut state.holding, Holding::Nothing) {
            Holding::Seat(seat) => Holding::Suspended(seat.suspend()),
            other => other,
        };
    }

    async fn resume(&self) {
        let suspended = {
            let mut state = self.lock();
            match std::mem::replace(&mut state.holding, Holding::Nothing) {
                Holding::Suspended(suspended) => suspended,
                other => {
                    state.holding = other;
                    return;
                }
            }
        };
        let seat = suspended.resume().await;
        self.lock().holding = Holding::Seat(seat);
    }

    fn lock(&self) -> MutexGuard<'_, SeatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls a future once.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// About as many bytes as the members of an object have in JSON.
pub(crate) fn tree_bytes(tree: &Tree) -> usize {
    tree.iter().map(|(key, value)| key.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => 8 + text.len(),
        Value::Array(items) => 8 + items.iter().map(value_bytes).sum::<usize>(),
        Value::Object(tree) => 8 + tree_bytes(tree),
    }
}
