//! The seat of a request, which it gives back while it waits for webhooks.
//!
//! A request that waits for webhooks does not work, so it holds no seat: other requests run meanwhile. The number of
//! requests that wait and the bytes of their objects are limited, because they stay in memory. The limit is checked before the first
//! webhook is called. Afterwards the request always gets its seat back, because webhooks may have had effects.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use api_object::{Status, Tree};
use authz::User;
use concurrency_limit::{Busy, Permit};
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
    _in_flight: InFlightCount,
}

struct SeatState {
    holding: Holding,
    /// The place among those that wait, and the memory for the objects. Held from the first wait for webhooks to the end of
    /// the request.
    wait_permits: Option<(Permit, Permit)>,
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
    /// 429, before the first webhook is called, if too many requests wait.
    pub(crate) async fn wait_for_hooks<T>(
        &self,
        object_bytes: usize,
        calls: impl Future<Output = T>,
    ) -> Result<T, Status> {
        if self.is_exempt {
            return Ok(calls.await);
        }
        self.acquire_wait_permit(object_bytes)?;
        self.suspend();
        let output = calls.await;
        self.resume().await;
        Ok(output)
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
        let first = std::future::poll_fn(|cx| Poll::Ready(deciding.as_mut().poll(cx))).await;
        if let Poll::Ready(output) = first {
            return Ok(output);
        }
        if !self.is_exempt {
            self.acquire_wait_permit(0)?;
            self.release();
        }
        Ok(deciding.await)
    }

    fn acquire_wait_permit(&self, object_bytes: usize) -> Result<(), Status> {
        let mut state = self.lock();
        if state.wait_permits.is_some() {
            return Ok(());
        }
        let user = authz::user_limit_key(&self.user.name);
        let count_refusal = || {
            self.server.metrics.request_terminations.with_label_values(&["429"]).inc();
        };
        let permit = self.server.webhook_waits.acquire(user).map_err(|busy| {
            count_refusal();
            let why = match busy {
                Busy::User { permits_max } => format!(
                    "{permits_max} requests of this user wait for webhooks, which is the most for one user, \
                     please try again later"
                ),
                Busy::Total { permits_max } => format!(
                    "{permits_max} requests wait for webhooks, which is the most, please try again later"
                ),
            };
            Status::too_many_requests(&why, 1)
        })?;
        // A small patch may change a large object, so the memory for the body does not suffice.
        let bytes = self.server.body_bytes.acquire_many(user, object_bytes).map_err(|_| {
            count_refusal();
            let why = "the objects of requests take too much memory, please try again later";
            Status::too_many_requests(why, 1)
        })?;
        state.wait_permits = Some((permit, bytes));
        Ok(())
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
