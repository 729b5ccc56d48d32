//! Dials that the requests to one target share.
//!
//! A dial belongs to no request: it runs as a task of its own, with a deadline of its own, and goes on
//! when the request that caused it gives up. While the target does not answer there is one dial at a
//! time for all requests that wait, and its failure is the failure of each of them. Each dial that
//! succeeds doubles the number of dials that may run at the same time, so that a target that answers is
//! not connected to one by one.
//!
//! The failure of a dial is the target's, but whoever is out of time while the dials of others succeed has
//! waited in line here; the number of those that succeeded tells.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::connect::Route;
use crate::fault::{Fault, FaultKind};
use crate::wire::Wire;

/// The most dials to one target at the same time. Fewer than requests may wait would make some of them
/// wait for the dials of others until they are out of time.
const DIALS_MAX: usize = 1024;

type Waiter = oneshot::Sender<Result<Wire, Fault>>;

/// The dials to one target.
#[derive(Default)]
pub(crate) struct Dials {
    state: Mutex<State>,
    n_connected: AtomicU64,
}

struct State {
    /// Requests that wait for a connection. Calls in flight bound them.
    waiters: VecDeque<Waiter>,
    n_dials: usize,
    n_dials_max: usize,
}

impl Default for State {
    fn default() -> Self {
        Self { waiters: VecDeque::new(), n_dials: 0, n_dials_max: 1 }
    }
}

impl Dials {
    /// How many dials have succeeded so far.
    pub(crate) fn n_connected(&self) -> u64 {
        self.n_connected.load(Ordering::Relaxed)
    }

    /// A connection of which nobody else makes use.
    pub(crate) fn connection(
        self: &Arc<Self>,
        route: &Arc<Route>,
    ) -> impl Future<Output = Result<Wire, Fault>> + Send + use<> {
        let (waiter, connection) = oneshot::channel();
        self.lock().waiters.push_back(waiter);
        self.dial(route);
        async { connection.await.unwrap_or_else(|_| Err(lost())) }
    }

    /// Starts as many dials as are needed and permitted.
    fn dial(self: &Arc<Self>, route: &Arc<Route>) {
        let n_new = {
            let mut state = self.lock();
            state.waiters.retain(|waiter| !waiter.is_closed());
            let n_wanted = state.waiters.len().min(state.n_dials_max);
            let n_new = n_wanted.saturating_sub(state.n_dials);
            state.n_dials += n_new;
            n_new
        };
        for _ in 0..n_new {
            let mut dial = Dial { dials: Arc::clone(self), end: None };
            let route = Arc::clone(route);
            tokio::spawn(async move {
                dial.end = Some(route.connect().await);
                let dials = Arc::clone(&dial.dials);
                drop(dial);
                dials.dial(&route);
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A dial that runs. However its task ends, the waiters hear of it.
struct Dial {
    dials: Arc<Dials>,
    end: Option<Result<Wire, Fault>>,
}

impl Drop for Dial {
    fn drop(&mut self) {
        let end = self.end.take().unwrap_or_else(|| Err(lost()));
        if end.is_ok() {
            self.dials.n_connected.fetch_add(1, Ordering::Relaxed);
        }
        self.dials.lock().end_dial(end);
    }
}

fn lost() -> Fault {
    Fault::new(FaultKind::Local, "the runtime is going down")
}

impl State {
    fn end_dial(&mut self, dialed: Result<Wire, Fault>) {
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
                // While other dials run, the waiters after the first may still get a connection.
                let n_failed = if self.n_dials == 0 { self.waiters.len() } else { 1 };
                for waiter in self.waiters.drain(..n_failed.min(self.waiters.len())) {
                    // A request that gave up hears of nothing.
                    let _ = waiter.send(Err(fault.clone()));
                }
            }
        }
    }
}
