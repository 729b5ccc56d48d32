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
use crate::connector::Route;
use crate::fault::{Fault, FaultKind};

/// The most dials to one target at the same time. It is as large as the number of waiting requests can be, so that none
/// times out behind the dials of others.
const DIALS_MAX: usize = 1024;

type Waiter = oneshot::Sender<Result<TargetConnection, Fault>>;

/// The dials to one target.
#[derive(Default)]
pub(crate) struct SharedDials {
    state: Mutex<DialState>,
    n_successful_dials: AtomicU64,
}

struct DialState {
    /// The requests that wait for a connection. The limit of calls in flight bounds them.
    waiters: VecDeque<Waiter>,
    n_dials: usize,
    n_dials_max: usize,
}

impl Default for DialState {
    fn default() -> Self {
        Self { waiters: VecDeque::new(), n_dials: 0, n_dials_max: 1 }
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
        route: &Arc<Route>,
    ) -> impl Future<Output = Result<TargetConnection, Fault>> + Send + use<> {
        let (waiter, connection) = oneshot::channel();
        self.lock().waiters.push_back(waiter);
        self.start_dials(route);
        async { connection.await.unwrap_or_else(|_| Err(runtime_stopped_fault())) }
    }

    /// Starts as many dials as are needed and permitted.
    fn start_dials(self: &Arc<Self>, route: &Arc<Route>) {
        let n_new = {
            let mut state = self.lock();
            state.waiters.retain(|waiter| !waiter.is_closed());
            let n_wanted = state.waiters.len().min(state.n_dials_max);
            let n_new = n_wanted.saturating_sub(state.n_dials);
            state.n_dials += n_new;
            n_new
        };
        for _ in 0..n_new {
            let mut dial = RunningDial { dials: Arc::clone(self), result: None };
            let route = Arc::clone(route);
            tokio::spawn(async move {
                dial.result = Some(route.connect().await);
                let dials = Arc::clone(&dial.dials);
                drop(dial);
                dials.start_dials(&route);
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, DialState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running dial. However its task ends, a waiter gets the result.
struct RunningDial {
    dials: Arc<SharedDials>,
    result: Option<Result<TargetConnection, Fault>>,
}

impl Drop for RunningDial {
    fn drop(&mut self) {
        let end = self.result.take().unwrap_or_else(|| Err(runtime_stopped_fault()));
        if end.is_ok() {
            self.dials.n_successful_dials.fetch_add(1, Ordering::Relaxed);
        }
        self.dials.lock().end_dial(end);
    }
}

fn runtime_stopped_fault() -> Fault {
    Fault::new(FaultKind::Local, "the runtime is going down")
}

impl DialState {
    fn end_dial(&mut self, dialed: Result<TargetConnection, Fault>) {
        self.n_dials -= 1;
        match dialed {
            Ok(wire) => {
                self.n_dials_max = (self.n_dials_max * 2).min(DIALS_MAX);
                let mut unclaimed = Ok(wire);
                while let Some(waiter) = self.waiters.pop_front() {
                    match waiter.send(unclaimed) {
                        Ok(()) => return,
                        Err(returned) => unclaimed = returned,
                    }
                }
            }
            Err(fault) => {
                self.n_dials_max = 1;
                // While other dials run, only the first waiter fails. The others may still get a connection.
                let n_failed = if self.n_dials == 0 { self.waiters.len() } else { 1 };
                for waiter in self.waiters.drain(..n_failed.min(self.waiters.len())) {
                    // A request that gave up no longer receives.
                    let _ = waiter.send(Err(fault.clone()));
                }
            }
        }
    }
}
