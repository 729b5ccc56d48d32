//! Calls that are under way, and who waits for them.
//!
//! Checks that ask the same at the same time share one call. It runs as a task of its own, so that
//! no one of them carries it: each may leave at any time. The last one to leave ends the call, since
//! nobody is there to use the answer, and the webhook is spared the work.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::call::CallEnd;
use crate::error::CallError;
use crate::key::Key;

/// How a call ended, once it has.
pub(crate) type Ended = watch::Receiver<Option<Arc<CallEnd>>>;

/// The calls that a check may join: for each question the latest. The limit of calls in flight bounds
/// them.
pub(crate) type Table = HashMap<Arc<Key>, Arc<Flight>, foldhash::fast::RandomState>;

/// The calls of one webhook that are under way.
#[derive(Default)]
pub(crate) struct Flights {
    table: Mutex<Table>,
}

/// One call.
///
/// INVARIANT: `n_waiting` is the number of its waiters, and changes only while the table is locked.
pub(crate) struct Flight {
    n_waiting: AtomicUsize,
    is_sent: AtomicBool,
    ended: Ended,
    /// The task of the call, once it runs. The check that began the call waits for it until then.
    task: OnceLock<AbortHandle>,
}

impl Flight {
    /// From now on the webhook may look at the question.
    pub(crate) fn send(&self) {
        self.is_sent.store(true, Ordering::Relaxed);
    }
}

/// A check that waits for a call. Dropping it is leaving.
pub(crate) struct Waiter<'a> {
    flights: &'a Flights,
    key: Arc<Key>,
    flight: Arc<Flight>,
}

impl Flights {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a call that is under way, if there is one for this question. An answer that is not
    /// kept is only for those who asked before the webhook was: a policy may have changed since.
    pub(crate) fn join<'a>(
        &'a self,
        table: &Table,
        key: &Arc<Key>,
        is_answer_kept: bool,
    ) -> Option<Waiter<'a>> {
        let flight = table.get(key)?;
        if !is_answer_kept && flight.is_sent.load(Ordering::Relaxed) {
            return None;
        }
        flight.n_waiting.fetch_add(1, Ordering::Relaxed);
        Some(Waiter { flights: self, key: Arc::clone(key), flight: Arc::clone(flight) })
    }

    /// Enters a call that is about to begin, and waits for it.
    pub(crate) fn enter<'a>(
        &'a self,
        table: &mut Table,
        key: Arc<Key>,
        ended: Ended,
    ) -> Waiter<'a> {
        let flight = Arc::new(Flight {
            n_waiting: AtomicUsize::new(1),
            is_sent: AtomicBool::new(false),
            ended,
            task: OnceLock::new(),
        });
        table.insert(Arc::clone(&key), Arc::clone(&flight));
        Waiter { flights: self, key, flight }
    }

    /// Strikes out a call that is over.
    pub(crate) fn strike(&self, key: &Arc<Key>, flight: &Arc<Flight>) {
        strike(&mut self.lock(), key, flight);
    }
}

fn strike(table: &mut Table, key: &Arc<Key>, flight: &Arc<Flight>) {
    if let Entry::Occupied(latest) = table.entry(Arc::clone(key))
        && Arc::ptr_eq(latest.get(), flight)
    {
        latest.remove();
    }
}

impl Waiter<'_> {
    /// The call that is waited for.
    pub(crate) fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }

    /// Says which task carries the call.
    pub(crate) fn carry(&self, task: AbortHandle) {
        // There is no other: only the check that began the call says this, once.
        let _ = self.flight.task.set(task);
    }

    /// Waits until the call is over.
    pub(crate) async fn ended(self) -> Result<Arc<CallEnd>, CallError> {
        let mut ended = self.flight.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(end) => end.clone().ok_or(CallError::Lost),
            // The task is gone: it panicked, or the runtime is going down.
            Err(_) => Err(CallError::Lost),
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let is_last = {
            let mut table = self.flights.lock();
            let is_last = self.flight.n_waiting.fetch_sub(1, Ordering::Relaxed) == 1;
            if is_last {
                strike(&mut table, &self.key, &self.flight);
            }
            is_last
        };
        // The table is not locked any more: what the task drops may want to lock it.
        if let Some(task) = self.flight.task.get().filter(|_| is_last) {
            task.abort();
        }
    }
}
