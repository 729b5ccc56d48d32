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
use concurrency_limit::{LimitReached, LongComputationFlag, Permit};
use flow_control::{Classification, RejectionReason, Seat, SuspendedSeat};
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
    /// Whether the priority level is exempt. Such a request keeps its seat while it waits, because exempt seats are
    /// not limited.
    is_priority_level_exempt: bool,
    seat_state: Mutex<RequestSeatState>,
    /// Whether the request needs processor turns.
    pub(crate) long_computation_flag: LongComputationFlag,
    _in_flight_guard: InFlightRequestGuard,
}

struct RequestSeatState {
    seat_holding: SeatHolding,
    /// Held from the first wait for webhooks to the end of the request.
    webhook_wait_permits: Option<WebhookWaitPermits>,
}

/// The permits of a request that waits for webhooks: one of the waiting requests, and the bytes of its objects.
struct WebhookWaitPermits {
    _webhook_wait_permit: Permit,
    /// The permit for the largest number of object bytes so far. The request keeps it for its next wait, so that
    /// the next wait is not refused.
    object_bytes_permit: Permit,
    /// The bytes of the objects that wait now. Only the deletions of a deletecollection wait at the same time.
    waiting_object_bytes: usize,
}

/// One wait for admission webhooks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WebhookWait {
    /// The bytes of the objects that stay in memory meanwhile.
    pub(crate) n_object_bytes: usize,
    /// Whether the attempt to write has called no webhook yet, so that it may be refused.
    pub(crate) is_first_wait_of_attempt: bool,
}

/// Counts the object bytes of one wait until it is dropped.
struct WaitingObjectBytesGuard<'s, 'a> {
    seat: &'s RequestSeat<'a>,
    n_waiting_object_bytes: usize,
}

impl Drop for WaitingObjectBytesGuard<'_, '_> {
    fn drop(&mut self) {
        if let Some(permits) = &mut self.seat.lock().webhook_wait_permits {
            permits.waiting_object_bytes =
                permits.waiting_object_bytes.saturating_sub(self.n_waiting_object_bytes);
        }
    }
}

enum SeatHolding {
    Seat(Seat),
    Suspended(SuspendedSeat),
    /// The request released its seat for good, or is waiting to get it back.
    Nothing,
}

/// Counts a request in flight until it is dropped.
struct InFlightRequestGuard(IntGauge);

impl Drop for InFlightRequestGuard {
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
    ) -> Result<Self, RejectionReason> {
        let now = Instant::now();
        let wait_max = (deadline.saturating_duration_since(now) / 4).min(SEAT_WAIT_MAX);
        let seat = classification.acquire_seats(1, now + wait_max).await?;
        let in_flight = match verb {
            "get" | "list" | "watch" => &server.metrics.in_flight_read_only_requests,
            _ => &server.metrics.in_flight_mutating_requests,
        };
        in_flight.inc();
        Ok(Self {
            server,
            user,
            is_priority_level_exempt: classification.is_exempt(),
            seat_state: Mutex::new(RequestSeatState {
                seat_holding: SeatHolding::Seat(seat),
                webhook_wait_permits: None,
            }),
            long_computation_flag: LongComputationFlag::default(),
            _in_flight_guard: InFlightRequestGuard(in_flight.clone()),
        })
    }

    /// Releases the seat; the request does not get it back.
    pub(crate) fn release(&self) {
        let seat_holding = std::mem::replace(&mut self.lock().seat_holding, SeatHolding::Nothing);
        drop(seat_holding);
    }

    /// Waits for admission webhooks without the seat. The seat is back before this returns.
    ///
    /// # Errors
    /// 429, before the attempt calls its first webhook, if too many requests wait or their objects take too much memory.
    pub(crate) async fn wait_for_admission_webhooks<T>(
        &self,
        wait: WebhookWait,
        calls: impl Future<Output = T>,
    ) -> Result<T, Status> {
        if self.is_priority_level_exempt {
            return Ok(calls.await);
        }
        let _waiting_bytes = self.begin_webhook_wait(wait)?;
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
    pub(crate) async fn wait_for_authorizers_of_check<T>(
        &self,
        deciding: impl Future<Output = T>,
    ) -> Result<T, Status> {
        let mut deciding = pin!(deciding);
        match poll_once(deciding.as_mut()).await {
            Poll::Ready(output) => Ok(output),
            // The objects of the request count already: with its body, and if it has waited for webhooks.
            Poll::Pending => {
                let wait = WebhookWait { n_object_bytes: 0, is_first_wait_of_attempt: false };
                self.wait_for_admission_webhooks(wait, deciding).await
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
        if !self.is_priority_level_exempt {
            drop(self.begin_webhook_wait(WebhookWait {
                n_object_bytes: 0,
                is_first_wait_of_attempt: true,
            })?);
            self.release();
        }
        Ok(deciding.await)
    }

    fn begin_webhook_wait(
        &self,
        wait: WebhookWait,
    ) -> Result<WaitingObjectBytesGuard<'_, 'a>, Status> {
        let n_bytes = wait.n_object_bytes;
        let mut state = self.lock();
        let permits = match &mut state.webhook_wait_permits {
            Some(permits) => permits,
            empty => empty.insert(self.acquire_webhook_wait_permits()?),
        };
        // A small patch may change a large object, so the memory for the body does not suffice.
        let n_waiting = permits.waiting_object_bytes.saturating_add(n_bytes);
        if wait.is_first_wait_of_attempt {
            permits
                .object_bytes_permit
                .grow_permit_to(n_waiting)
                .map_err(|_| self.too_many_object_bytes_status())?;
        } else {
            permits.object_bytes_permit.grow_permit_beyond_limit(n_waiting);
        }
        permits.waiting_object_bytes = n_waiting;
        Ok(WaitingObjectBytesGuard { seat: self, n_waiting_object_bytes: n_bytes })
    }

    fn acquire_webhook_wait_permits(&self) -> Result<WebhookWaitPermits, Status> {
        let user = authz::user_limit_key(&self.user.name);
        let place = self.server.webhook_waits_limit.acquire_permit(user).map_err(|busy| {
            let why = match busy {
                LimitReached::User { permits_max } => format!(
                    "{permits_max} requests of this user wait for webhooks, which is the most for one user, \
                     please try again later"
                ),
                LimitReached::Total { permits_max } => format!(
                    "{permits_max} requests wait for webhooks, which is the most, please try again later"
                ),
            };
            self.too_many_requests_status(&why)
        })?;
        let bytes = self.server.body_bytes_budget.common_bytes_limit().acquire_permits(user, 0);
        let bytes = bytes.map_err(|_| self.too_many_object_bytes_status())?;
        Ok(WebhookWaitPermits {
            _webhook_wait_permit: place,
            object_bytes_permit: bytes,
            waiting_object_bytes: 0,
        })
    }

    fn too_many_object_bytes_status(&self) -> Status {
        self.too_many_requests_status(
            "the objects of requests take too much memory, please try again later",
        )
    }

    fn too_many_requests_status(&self, why: &str) -> Status {
        self.server.metrics.request_terminations.with_label_values(&["429"]).inc();
        Status::too_many_requests(why, 1)
    }

    fn suspend(&self) {
        let mut state = self.lock();
        state.seat_holding = match std::mem::replace(&mut state.seat_holding, SeatHolding::Nothing)
        {
            SeatHolding::Seat(seat) => SeatHolding::Suspended(seat.suspend_seat()),
            other => other,
        };
    }

    async fn resume(&self) {
        let suspended = {
            let mut state = self.lock();
            match std::mem::replace(&mut state.seat_holding, SeatHolding::Nothing) {
                SeatHolding::Suspended(suspended) => suspended,
                other => {
                    state.seat_holding = other;
                    return;
                }
            }
        };
        let seat = suspended.reacquire_seat().await;
        self.lock().seat_holding = SeatHolding::Seat(seat);
    }

    fn lock(&self) -> MutexGuard<'_, RequestSeatState> {
        self.seat_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls a future once.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// Estimates the size of an object in JSON.
pub(crate) fn estimate_json_bytes(tree: &Tree) -> usize {
    tree.iter().map(|(key, value)| key.len() + estimate_json_value_bytes(value)).sum()
}

fn estimate_json_value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => 8 + text.len(),
        Value::Array(items) => 8 + items.iter().map(estimate_json_value_bytes).sum::<usize>(),
        Value::Object(tree) => 8 + estimate_json_bytes(tree),
    }
}
