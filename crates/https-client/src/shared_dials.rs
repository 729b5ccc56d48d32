//! Dials that the requests to one target share.
//!
//! A dial belongs to no request: it runs as a task with its own deadline, and continues when the request that started it
//! ends. While the target does not answer, there is one dial at a time for all waiting requests, and its failure fails all of
//! them. Each successful dial doubles the number of dials that may run at the same time.
//!
//! A failed dial is a fault of the target. A request that times out while dials of other requests succeed has waited in this
//! process; the number of successful dials shows that.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::connection::TargetConnection;
use crate::connector::ConnectionRoute;
use crate::fault::{Fault, FaultKind};

/// The maximum number of dials to one target at the same time. It is as large as the number of waiting requests can be,
/// so that none times out behind the dials of others.
const DIALS_MAX: usize = 1024;

type ConnectionWaiter = oneshot::Sender<Result<TargetConnection, Fault>>;

/// The dials to one target.
#[derive(Default)]
pub(crate) struct SharedDials {
    dial_state: Mutex<DialState>,
    n_successful_dials: AtomicU64,
}

struct DialState {
    /// The requests that wait for a connection. The limit of calls in flight bounds them.
    waiting_requests: VecDeque<ConnectionWaiter>,
    n_running_dials: usize,
    n_concurrent_dials_max: usize,
}

impl Default for DialState {
    fn default() -> Self {
        Self { waiting_requests: VecDeque::new(), n_running_dials: 0, n_concurrent_dials_max: 1 }
    }
}

impl SharedDials {
    /// The number of successful dials so far.
    pub(crate) fn n_successful_dials(&self) -> u64 {
        self.n_successful_dials.load(Ordering::Relaxed)
    }

    /// Waits for a new connection, which no other request uses.
    pub(crate) fn wait_for_connection(
        self: &Arc<Self>,
        route: &Arc<ConnectionRoute>,
    ) -> impl Future<Output = Result<TargetConnection, Fault>> + Send + use<> {
        let (waiter, connection) = oneshot::channel();
        self.lock().waiting_requests.push_back(waiter);
        self.start_dials(route);
        async { connection.await.unwrap_or_else(|_| Err(runtime_stopped_fault())) }
    }

    /// Starts as many dials as are needed and permitted.
    fn start_dials(self: &Arc<Self>, route: &Arc<ConnectionRoute>) {
        let n_new = {
            let mut state = self.lock();
            state.waiting_requests.retain(|waiter| !waiter.is_closed());
            let n_wanted = state.waiting_requests.len().min(state.n_concurrent_dials_max);
            let n_new = n_wanted.saturating_sub(state.n_running_dials);
            state.n_running_dials += n_new;
            n_new
        };
        for _ in 0..n_new {
            let mut dial = RunningDial { shared_dials: Arc::clone(self), dial_result: None };
            let route = Arc::clone(route);
            tokio::spawn(async move {
                dial.dial_result = Some(route.connect().await);
                let dials = Arc::clone(&dial.shared_dials);
                drop(dial);
                dials.start_dials(&route);
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, DialState> {
        self.dial_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running dial. However its task ends, a waiter gets the result.
struct RunningDial {
    shared_dials: Arc<SharedDials>,
    dial_result: Option<Result<TargetConnection, Fault>>,
}

impl Drop for RunningDial {
    fn drop(&mut self) {
        let end = self.dial_result.take().unwrap_or_else(|| Err(runtime_stopped_fault()));
        if end.is_ok() {
            self.shared_dials.n_successful_dials.fetch_add(1, Ordering::Relaxed);
        }
        self.shared_dials.lock().end_dial(end);
    }
}

fn runtime_stopped_fault() -> Fault {
    Fault::new(FaultKind::Local, "the runtime is going down")
}

impl DialState {
    fn end_dial(&mut self, dialed: Result<TargetConnection, Fault>) {
        self.n_running_dials -= 1;
        match dialed {
            Ok(wire) => {
                self.n_concurrent_dials_max = (self.n_concurrent_dials_max * 2).min(DIALS_MAX);
                let mut unclaimed = Ok(wire);
                while let Some(waiter) = self.waiting_requests.pop_front() {
                    match waiter.send(unclaimed) {
                        Ok(()) => return,
                        Err(returned) => unclaimed = returned,
                    }
                }
            }
            Err(fault) => {
                self.n_concurrent_dials_max = 1;
                // While other dials run, only the first waiter fails. The others may still get a connection.
                let n_failed =
                    if self.n_running_dials == 0 { self.waiting_requests.len() } else { 1 };
                for waiter in
                    self.waiting_requests.drain(..n_failed.min(self.waiting_requests.len()))
                {
                    // A request that gave up no longer receives.
                    let _ = waiter.send(Err(fault.clone()));
                }
            }
        }
    }
}
