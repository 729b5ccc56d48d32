//! Fair scheduling of operations that occupy a processor for long.
//!
//! An operation announces long work ([`LongWork`]) and then needs a [`Turn`] each time it is polled.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Hands out a few turns at a time. Users who wait take turns, and the waiting operations of one user get theirs in the order
/// in which they came, so an operation waits for one operation of each other user and not for all of them. An operation that
/// has had a turn before goes before those of the same user that have not, because it may hold much memory.
///
/// Its memory is bounded by the number of operations that wait, which the caller limits.
#[derive(Debug)]
pub struct TurnQueue {
    turns_max: usize,
    turns_per_user_max: usize,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    n_running: usize,
    /// Users without a running or waiting operation have no entry.
    users: HashMap<Arc<str>, UserState>,
    /// The users who have operations waiting, the next one first.
    order: VecDeque<Arc<str>>,
}

#[derive(Debug, Default)]
struct UserState {
    n_running: usize,
    waiting: VecDeque<Arc<Waiter>>,
}

/// One operation that waits.
#[derive(Debug)]
struct Waiter {
    has_had_turn: bool,
    state: Mutex<WaiterState>,
}

#[derive(Debug, Default)]
struct WaiterState {
    has_turn: bool,
    waker: Option<Waker>,
}

impl Waiter {
    fn lock(&self) -> MutexGuard<'_, WaiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to keep a processor. Dropping it gives the turn to the next operation.
#[derive(Debug)]
#[must_use = "a turn that is dropped at once limits nothing"]
pub struct Turn {
    queue: Arc<TurnQueue>,
    user: Arc<str>,
}

/// Waits for a turn. Dropping it gives the place in the queue up.
#[derive(Debug)]
pub struct WaitForTurn {
    queue: Arc<TurnQueue>,
    user: Arc<str>,
    has_had_turn: bool,
    /// `None` before the first poll and after the turn was handed over.
    waiter: Option<Arc<Waiter>>,
}

impl TurnQueue {
    /// Creates a queue with `turns_max` turns at a time. One user has at most half of them, rounded up.
    pub fn new(turns_max: usize) -> Self {
        let turns_max = turns_max.max(1);
        Self { turns_max, turns_per_user_max: turns_max.div_ceil(2), state: Mutex::default() }
    }

    /// Waits for a turn of a user. The caller says whether the operation has had a turn before.
    pub fn wait(self: &Arc<Self>, user: &str, has_had_turn: bool) -> WaitForTurn {
        WaitForTurn { queue: Arc::clone(self), user: Arc::from(user), has_had_turn, waiter: None }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a turn at once, or queues a waiter.
    fn take_or_enqueue(&self, user: &Arc<str>, has_had_turn: bool) -> Option<Arc<Waiter>> {
        let mut state = self.lock();
        let is_free = state.n_running < self.turns_max;
        let own = state.users.entry(Arc::clone(user)).or_default();
        if is_free && own.n_running < self.turns_per_user_max {
            own.n_running += 1;
            state.n_running += 1;
            return None;
        }
        let waiter = Arc::new(Waiter { has_had_turn, state: Mutex::default() });
        let idx = match has_had_turn {
            true => own.waiting.iter().take_while(|other| other.has_had_turn).count(),
            false => own.waiting.len(),
        };
        own.waiting.insert(idx, Arc::clone(&waiter));
        if own.waiting.len() == 1 {
            state.order.push_back(Arc::clone(user));
        }
        Some(waiter)
    }

    /// Ends a turn of a user, and gives free turns to those who wait.
    fn end_turn(&self, user: &Arc<str>) {
        let mut state = self.lock();
        state.n_running = state.n_running.saturating_sub(1);
        if let Some(own) = state.users.get_mut(user) {
            own.n_running = own.n_running.saturating_sub(1);
        }
        state.forget_if_idle(user);
        let wakers = self.hand_out(&mut state);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn hand_out(&self, state: &mut QueueState) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let mut n_users = state.order.len();
        while state.n_running < self.turns_max && n_users > 0 {
            n_users -= 1;
            let Some(user) = state.order.pop_front() else { break };
            let Some(own) = state.users.get_mut(&user) else { continue };
            if own.n_running < self.turns_per_user_max
                && let Some(waiter) = own.waiting.pop_front()
            {
                own.n_running += 1;
                state.n_running += 1;
                let mut waiter = waiter.lock();
                waiter.has_turn = true;
                wakers.extend(waiter.waker.take());
            }
            if !own.waiting.is_empty() {
                state.order.push_back(user);
            }
        }
        wakers
    }

    /// Removes the waiter of an operation that was dropped. If the waiter has its turn already, the turn ends.
    fn give_up(&self, user: &Arc<str>, waiter: &Arc<Waiter>) {
        let mut state = self.lock();
        if waiter.lock().has_turn {
            drop(state);
            self.end_turn(user);
            return;
        }
        if let Some(own) = state.users.get_mut(user) {
            own.waiting.retain(|other| !Arc::ptr_eq(other, waiter));
            if own.waiting.is_empty() {
                state.order.retain(|other| other != user);
            }
        }
        state.forget_if_idle(user);
    }

    #[cfg(test)]
    fn is_idle(&self) -> bool {
        let state = self.lock();
        state.n_running == 0 && state.users.is_empty() && state.order.is_empty()
    }
}

impl QueueState {
    fn forget_if_idle(&mut self, user: &Arc<str>) {
        if self.users.get(user).is_some_and(|own| own.n_running == 0 && own.waiting.is_empty()) {
            self.users.remove(user);
        }
    }
}

impl Future for WaitForTurn {
    type Output = Turn;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Turn> {
        if self.waiter.is_none() {
            self.waiter = self.queue.take_or_enqueue(&self.user, self.has_had_turn);
        }
        if let Some(waiter) = &self.waiter {
            let mut state = waiter.lock();
            if !state.has_turn {
                state.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        self.waiter = None;
        Poll::Ready(Turn { queue: Arc::clone(&self.queue), user: Arc::clone(&self.user) })
    }
}

impl Drop for WaitForTurn {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.queue.give_up(&self.user, &waiter);
        }
    }
}

impl Turn {
    /// Whether an operation of another user waits that could run if this turn ended.
    pub fn is_wanted(&self) -> bool {
        let state = self.queue.lock();
        state.order.iter().filter(|user| **user != self.user).any(|user| {
            let own = state.users.get(user);
            own.is_some_and(|own| own.n_running < self.queue.turns_per_user_max)
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.queue.end_turn(&self.user);
    }
}

/// A flag of one operation: the operation occupies a processor for long. The caller that polls the operation reads
/// the flag before each poll, and waits for a [`Turn`] if it is set.
#[derive(Debug, Default)]
pub struct LongWork(AtomicBool);

impl LongWork {
    /// Announces that what follows takes long, and returns when the operation is polled again. Returns `false` at once if
    /// that was announced before.
    pub async fn begin(&self) -> bool {
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

    /// Announces that what follows does not take long any more.
    pub fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Announces long work from outside of the operation.
    pub fn set_begun(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the operation takes long.
    pub fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
