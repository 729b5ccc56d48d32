//! Calls in flight, and the checks that wait for them.
//!
//! Checks of the same request at the same time share one call. The call runs as a task of its own, so that each check
//! may stop waiting at any time. The last one to leave aborts the task, because no check would use the answer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::cache_key::CacheKey;
use crate::call_error::CallError;
use crate::webhook_call::CallResult;

/// Receives the result of a call.
pub(crate) type CallResultReceiver = watch::Receiver<Option<Arc<CallResult>>>;

/// The newest call for each request. The limit on calls in flight bounds the table.
pub(crate) type CallTable = HashMap<Arc<CacheKey>, Arc<InFlightCall>, foldhash::fast::RandomState>;

/// The calls in flight of one webhook.
#[derive(Default)]
pub(crate) struct InFlightCalls {
    call_table: Mutex<CallTable>,
}

/// One call in flight.
///
/// INVARIANT: `n_waiters` is the number of its waiters, and changes only while the table is locked.
pub(crate) struct InFlightCall {
    n_waiters: AtomicUsize,
    is_request_sent: AtomicBool,
    result_receiver: CallResultReceiver,
    /// The task of the call. The check that begins the call sets it at once.
    abort_handle: OnceLock<AbortHandle>,
}

impl InFlightCall {
    /// Records that the request has been sent, so that the webhook may decide from now on.
    pub(crate) fn mark_request_sent(&self) {
        self.is_request_sent.store(true, Ordering::Relaxed);
    }
}

/// A check that waits for a call. Dropping it ends the wait; dropping the last one ends the call.
pub(crate) struct CallWaiter<'a> {
    in_flight_calls: &'a InFlightCalls,
    key: Arc<CacheKey>,
    in_flight_call: Arc<InFlightCall>,
}

impl InFlightCalls {
    pub(crate) fn lock(&self) -> MutexGuard<'_, CallTable> {
        self.call_table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the call in flight for this request, if there is one. If its answer will not be cached, only checks that
    /// come before it is sent may join: the policy of the webhook may have changed since.
    pub(crate) fn join_in_flight_call<'a>(
        &'a self,
        table: &CallTable,
        key: &Arc<CacheKey>,
        is_answer_cached: bool,
    ) -> Option<CallWaiter<'a>> {
        let call = table.get(key)?;
        if !is_answer_cached && call.is_request_sent.load(Ordering::Relaxed) {
            return None;
        }
        call.n_waiters.fetch_add(1, Ordering::Relaxed);
        Some(CallWaiter {
            in_flight_calls: self,
            key: Arc::clone(key),
            in_flight_call: Arc::clone(call),
        })
    }

    /// Adds a call that is about to begin, with its first waiter.
    pub(crate) fn add_in_flight_call<'a>(
        &'a self,
        table: &mut CallTable,
        key: Arc<CacheKey>,
        result_receiver: CallResultReceiver,
    ) -> CallWaiter<'a> {
        let call = Arc::new(InFlightCall {
            n_waiters: AtomicUsize::new(1),
            is_request_sent: AtomicBool::new(false),
            result_receiver,
            abort_handle: OnceLock::new(),
        });
        table.insert(Arc::clone(&key), Arc::clone(&call));
        CallWaiter { in_flight_calls: self, key, in_flight_call: call }
    }

    /// Removes a call that has ended.
    pub(crate) fn remove_in_flight_call(&self, key: &Arc<CacheKey>, call: &Arc<InFlightCall>) {
        remove_from_call_table(&mut self.lock(), key, call);
    }
}

fn remove_from_call_table(table: &mut CallTable, key: &Arc<CacheKey>, call: &Arc<InFlightCall>) {
    if let Entry::Occupied(newest) = table.entry(Arc::clone(key))
        && Arc::ptr_eq(newest.get(), call)
    {
        newest.remove();
    }
}

impl CallWaiter<'_> {
    /// Returns the shared call that this waiter waits for.
    pub(crate) fn in_flight_call(&self) -> &Arc<InFlightCall> {
        &self.in_flight_call
    }

    /// Sets the task of the call.
    pub(crate) fn set_abort_handle(&self, abort_handle: AbortHandle) {
        // Only the check that began the call sets the handle, so it is set once.
        let _ = self.in_flight_call.abort_handle.set(abort_handle);
    }

    /// Waits until the call has ended.
    pub(crate) async fn wait_for_result(self) -> Result<Arc<CallResult>, CallError> {
        let mut result_receiver = self.in_flight_call.result_receiver.clone();
        match result_receiver.wait_for(Option::is_some).await {
            Ok(end) => end.clone().ok_or(CallError::Lost),
            // The task has ended without a result: it panicked, or the runtime is shutting down.
            Err(_) => Err(CallError::Lost),
        }
    }
}

impl Drop for CallWaiter<'_> {
    fn drop(&mut self) {
        let is_last = {
            let mut table = self.in_flight_calls.lock();
            let is_last = self.in_flight_call.n_waiters.fetch_sub(1, Ordering::Relaxed) == 1;
            if is_last {
                remove_from_call_table(&mut table, &self.key, &self.in_flight_call);
            }
            is_last
        };
        // The table is unlocked before this, because the cleanup of the task locks it.
        if let Some(abort_handle) = self.in_flight_call.abort_handle.get().filter(|_| is_last) {
            abort_handle.abort();
        }
    }
}
