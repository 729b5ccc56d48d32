//! The recorded state of a peer, and waiting for changes of it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::request::{Handshake, Request};
use crate::script::Script;

/// The largest number of requests that a peer keeps: enough for any test, and a bound for benchmarks.
pub(crate) const REQUESTS_MAX: usize = 65_536;

/// The recorded state of a peer, shared by its thread and the test.
pub(crate) struct Log {
    state: Mutex<State>,
    changed: Condvar,
}

pub(crate) struct State {
    pub(crate) script: Script,
    /// The received requests, at most [`REQUESTS_MAX`].
    pub(crate) requests: Vec<Request>,
    pub(crate) n_requests: usize,
    pub(crate) handshakes: Vec<Handshake>,
    pub(crate) n_accepted: usize,
    pub(crate) n_open: usize,
    pub(crate) n_failed_handshakes: usize,
}

impl Log {
    pub(crate) fn new(script: Script) -> Self {
        let state = State {
            script,
            requests: Vec::new(),
            n_requests: 0,
            handshakes: Vec::new(),
            n_accepted: 0,
            n_open: 0,
            n_failed_handshakes: 0,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes all threads that wait for a change.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.notify_all();
        changed
    }

    /// Waits until a condition holds; false if it does not hold before the limit.
    pub(crate) fn wait(&self, limit: Duration, holds: &dyn Fn(&State) -> bool) -> bool {
        let end = Instant::now() + limit;
        let mut state = self.state();
        while !holds(&state) {
            let Some(left) = end.checked_duration_since(Instant::now()) else { return false };
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
