//! Fair scheduling of operations that occupy a processor for long.
//!
//! An operation sets its [`LongComputationFlag`] and then needs a [`CpuSlot`] each time it is polled.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Hands out a few CPU slots at a time, round-robin between the waiting users. The waiting operations of one user
/// get slots in the order of arrival. So an operation waits for one operation of each other user, not for all of
/// them. An operation that has run before precedes those of the same user that have not, because it may hold much
/// memory.
///
/// Its memory is bounded by the number of operations that wait, which the caller limits.
#[derive(Debug)]
pub struct FairCpuScheduler {
    cpu_slots_max: usize,
    cpu_slots_per_user_max: usize,
    scheduler_state: Mutex<SchedulerState>,
}

#[derive(Debug, Default)]
struct SchedulerState {
    n_running_operations: usize,
    /// Users without a running or waiting operation have no entry.
    operations_by_user: HashMap<Arc<str>, UserOperations>,
    /// The users with waiting operations; the first gets the next slot.
    waiting_users: VecDeque<Arc<str>>,
}

#[derive(Debug, Default)]
struct UserOperations {
    n_running_operations: usize,
    waiters: VecDeque<Arc<CpuSlotWaiter>>,
}

/// One operation that waits for a CPU slot.
#[derive(Debug)]
struct CpuSlotWaiter {
    has_run_before: bool,
    waiter_state: Mutex<WaiterState>,
}

#[derive(Debug, Default)]
struct WaiterState {
    has_cpu_slot: bool,
    waker: Option<Waker>,
}

impl CpuSlotWaiter {
    fn lock(&self) -> MutexGuard<'_, WaiterState> {
        self.waiter_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to occupy a CPU. Dropping it gives the slot to the next operation.
#[derive(Debug)]
#[must_use = "a CPU slot that is dropped at once limits nothing"]
pub struct CpuSlot {
    scheduler: Arc<FairCpuScheduler>,
    user: Arc<str>,
}

/// The future of a CPU slot. Dropping it removes the operation from the queue.
#[derive(Debug)]
pub struct CpuSlotFuture {
    scheduler: Arc<FairCpuScheduler>,
    user: Arc<str>,
    has_run_before: bool,
    /// `None` before the first poll and after the slot was handed over.
    waiter: Option<Arc<CpuSlotWaiter>>,
}

impl FairCpuScheduler {
    /// Creates a scheduler with `slots_max` slots. One user has at most half of them, rounded up.
    pub fn new(slots_max: usize) -> Self {
        let slots_max = slots_max.max(1);
        Self {
            cpu_slots_max: slots_max,
            cpu_slots_per_user_max: slots_max.div_ceil(2),
            scheduler_state: Mutex::default(),
        }
    }

    /// Waits for a CPU slot for an operation of a user. The caller says whether the operation has run before.
    pub fn acquire_cpu_slot(self: &Arc<Self>, user: &str, has_run_before: bool) -> CpuSlotFuture {
        CpuSlotFuture {
            scheduler: Arc::clone(self),
            user: Arc::from(user),
            has_run_before,
            waiter: None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, SchedulerState> {
        self.scheduler_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot if one is free; otherwise enqueues a waiter and returns it.
    fn take_slot_or_enqueue(
        &self,
        user: &Arc<str>,
        has_run_before: bool,
    ) -> Option<Arc<CpuSlotWaiter>> {
        let mut state = self.lock();
        let is_free = state.n_running_operations < self.cpu_slots_max;
        let own = state.operations_by_user.entry(Arc::clone(user)).or_default();
        if is_free && own.n_running_operations < self.cpu_slots_per_user_max {
            own.n_running_operations += 1;
            state.n_running_operations += 1;
            return None;
        }
        let waiter = Arc::new(CpuSlotWaiter { has_run_before, waiter_state: Mutex::default() });
        let idx = match has_run_before {
            true => own.waiters.iter().take_while(|other| other.has_run_before).count(),
            false => own.waiters.len(),
        };
        own.waiters.insert(idx, Arc::clone(&waiter));
        if own.waiters.len() == 1 {
            state.waiting_users.push_back(Arc::clone(user));
        }
        Some(waiter)
    }

    /// Releases a slot of a user, and gives free slots to waiting operations.
    fn release_slot(&self, user: &Arc<str>) {
        let mut state = self.lock();
        state.n_running_operations = state.n_running_operations.saturating_sub(1);
        if let Some(own) = state.operations_by_user.get_mut(user) {
            own.n_running_operations = own.n_running_operations.saturating_sub(1);
        }
        state.remove_user_if_idle(user);
        let wakers = self.grant_free_slots(&mut state);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn grant_free_slots(&self, state: &mut SchedulerState) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let mut n_users = state.waiting_users.len();
        while state.n_running_operations < self.cpu_slots_max && n_users > 0 {
            n_users -= 1;
            let Some(user) = state.waiting_users.pop_front() else { break };
            let Some(own) = state.operations_by_user.get_mut(&user) else { continue };
            if own.n_running_operations < self.cpu_slots_per_user_max
                && let Some(waiter) = own.waiters.pop_front()
            {
                own.n_running_operations += 1;
                state.n_running_operations += 1;
                let mut waiter = waiter.lock();
                waiter.has_cpu_slot = true;
                wakers.extend(waiter.waker.take());
            }
            if !own.waiters.is_empty() {
                state.waiting_users.push_back(user);
            }
        }
        wakers
    }

    /// Removes the waiter of an operation that was dropped. If the waiter already has a slot, releases it.
    fn cancel_waiter(&self, user: &Arc<str>, waiter: &Arc<CpuSlotWaiter>) {
        let mut state = self.lock();
        if waiter.lock().has_cpu_slot {
            drop(state);
            self.release_slot(user);
            return;
        }
        if let Some(own) = state.operations_by_user.get_mut(user) {
            own.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
            if own.waiters.is_empty() {
                state.waiting_users.retain(|other| other != user);
            }
        }
        state.remove_user_if_idle(user);
    }

    #[cfg(test)]
    fn is_idle(&self) -> bool {
        let state = self.lock();
        state.n_running_operations == 0
            && state.operations_by_user.is_empty()
            && state.waiting_users.is_empty()
    }
}

impl SchedulerState {
    fn remove_user_if_idle(&mut self, user: &Arc<str>) {
        if self
            .operations_by_user
            .get(user)
            .is_some_and(|own| own.n_running_operations == 0 && own.waiters.is_empty())
        {
            self.operations_by_user.remove(user);
        }
    }
}

impl Future for CpuSlotFuture {
    type Output = CpuSlot;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CpuSlot> {
        if self.waiter.is_none() {
            self.waiter = self.scheduler.take_slot_or_enqueue(&self.user, self.has_run_before);
        }
        if let Some(waiter) = &self.waiter {
            let mut state = waiter.lock();
            if !state.has_cpu_slot {
                state.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        self.waiter = None;
        Poll::Ready(CpuSlot {
            scheduler: Arc::clone(&self.scheduler),
            user: Arc::clone(&self.user),
        })
    }
}

impl Drop for CpuSlotFuture {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.scheduler.cancel_waiter(&self.user, &waiter);
        }
    }
}

impl CpuSlot {
    /// Reports whether an operation of another user waits that could run if this slot were released.
    pub fn is_another_user_waiting(&self) -> bool {
        let state = self.scheduler.lock();
        state.waiting_users.iter().filter(|user| **user != self.user).any(|user| {
            let own = state.operations_by_user.get(user);
            own.is_some_and(|own| own.n_running_operations < self.scheduler.cpu_slots_per_user_max)
        })
    }
}

impl Drop for CpuSlot {
    fn drop(&mut self) {
        self.scheduler.release_slot(&self.user);
    }
}

/// A flag of one operation: the operation occupies a CPU for long. The caller that polls the operation reads the
/// flag before each poll, and waits for a [`CpuSlot`] if it is set.
#[derive(Debug, Default)]
pub struct LongComputationFlag(AtomicBool);

impl LongComputationFlag {
    /// Sets the flag, and returns when the operation is polled again. Returns `false` at once if the flag is set
    /// already.
    pub async fn begin_long_computation(&self) -> bool {
        if self.0.swap(true, Ordering::Relaxed) {
            return false;
        }
        let mut has_yielded = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        true
    }

    /// Clears the flag: the rest of the operation does not take long.
    pub fn end_long_computation(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Sets the flag from outside of the operation.
    pub fn mark_long_computation(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Reports whether the flag is set.
    pub fn is_long_computation(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
