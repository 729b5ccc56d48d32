//! Calls that are under way, and who waits for them.
//!
//! Checks that ask the same at the same time share one call. It runs as a task of its own, so that
//! no one of them carries it: each may leave at any time. The last one to leave ends the call, since
//! nobody is there to use the answer, and the webhook is spared the work.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::call::CallEnd;
use crate::error::CallError;
use crate::key::Key;

/// How a call ended, once it has.
pub(crate) type Ended = watch::Receiver<Option<Arc<CallEnd>>>;

/// The calls of one webhook that are under way. The limit of calls in flight bounds them.
#[derive(Default)]
pub(crate) struct Flights {
    table: Mutex<Table>,
}

/// The locked table.
#[derive(Default)]
pub(crate) struct Table {
    flights: HashMap<Arc<Key>, Flight, foldhash::fast::RandomState>,
    n_started: u64,
}

/// INVARIANT: `n_waiting` waiters name this flight by its number, and it is at least one.
struct Flight {
    number: u64,
    n_waiting: usize,
    ended: Ended,
    /// The task of the call, once it runs. Whoever entered the flight waits for it until then.
    task: Option<AbortHandle>,
}

/// A check that waits for a call. Dropping it is leaving.
pub(crate) struct Waiter<'a> {
    flights: &'a Flights,
    key: Arc<Key>,
    number: u64,
    ended: Ended,
}

impl Flights {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a call that is under way, if there is one for this question.
    pub(crate) fn join<'a>(&'a self, table: &mut Table, key: &Arc<Key>) -> Option<Waiter<'a>> {
        let flight = table.flights.get_mut(key)?;
        flight.n_waiting += 1;
        let (number, ended) = (flight.number, flight.ended.clone());
        Some(Waiter { flights: self, key: Arc::clone(key), number, ended })
    }

    /// Enters a call that is about to begin, and waits for it.
    pub(crate) fn enter<'a>(
        &'a self,
        table: &mut Table,
        key: Arc<Key>,
        ended: Ended,
    ) -> Waiter<'a> {
        table.n_started += 1;
        let number = table.n_started;
        let flight = Flight { number, n_waiting: 1, ended: ended.clone(), task: None };
        table.flights.insert(Arc::clone(&key), flight);
        Waiter { flights: self, key, number, ended }
    }

    /// Strikes out a call that is over.
    pub(crate) fn strike(&self, key: &Arc<Key>, number: u64) {
        if let Entry::Occupied(flight) = self.lock().flights.entry(Arc::clone(key))
            && flight.get().number == number
        {
            flight.remove();
        }
    }

    /// Takes a waiter off a call, and the call off the table if that was the last one.
    fn leave(&self, key: &Arc<Key>, number: u64) -> Option<AbortHandle> {
        let mut table = self.lock();
        let flight = table.flights.get_mut(key).filter(|flight| flight.number == number)?;
        flight.n_waiting -= 1;
        if flight.n_waiting > 0 {
            return None;
        }
        table.flights.remove(key)?.task
    }
}

impl Waiter<'_> {
    /// The number of the call, by which it is told from others with the same question.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Says which task carries the call.
    pub(crate) fn carry(&self, task: AbortHandle) {
        let mut table = self.flights.lock();
        let flight = table.flights.get_mut(&self.key).filter(|flight| flight.number == self.number);
        // It may be over already.
        if let Some(flight) = flight {
            flight.task = Some(task);
        }
    }

    /// Waits until the call is over.
    pub(crate) async fn ended(mut self) -> Result<Arc<CallEnd>, CallError> {
        match self.ended.wait_for(Option::is_some).await {
            Ok(end) => end.clone().ok_or(CallError::Lost),
            // The task is gone: it panicked, or the runtime is going down.
            Err(_) => Err(CallError::Lost),
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        // The table is not locked any more: what the task drops may want to lock it.
        if let Some(task) = self.flights.leave(&self.key, self.number) {
            task.abort();
        }
    }
}
