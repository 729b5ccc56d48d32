//! Wakes many watches a few at a time.
//!
//! A write wakes every watch of its prefix. If a thousand tasks become ready at once, everything that becomes ready
//! later waits for all of them: the response to the write, and requests of other users. So a task wakes a few watches,
//! lets others run, and goes on. The events of writes that happen meanwhile reach each watch together, at its next turn.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::Revision;

/// How many watches are woken before other tasks run. Together they take less than a millisecond, and watches of one
/// connection, which mostly follow each other, send their events together.
const MEMBERS_PER_TURN: usize = 64;

/// After all members of a large group had a turn, they rest as long as that took, at most this long. The members of one
/// group thereby keep the processors for at most half of the time, and the events of the rest reach them together. An event
/// that comes later is not delayed.
const REST_MAX: Duration = Duration::from_millis(10);

/// The watches of one prefix that are woken a few at a time.
#[derive(Debug, Default)]
pub(crate) struct WakeGroup(Mutex<GroupState>);

#[derive(Debug, Default)]
struct GroupState {
    /// The newest revision that concerns the members.
    revision: Revision,
    /// `None` in slots that no member has.
    slots: Vec<Option<MemberState>>,
    free_slots: Vec<usize>,
    /// Whether a task wakes the members now, or will do so after their rest.
    is_waking: bool,
    /// When a large group may be woken again.
    rests_until: Option<Instant>,
    /// The runtime of the member that came last.
    runtime: Option<Handle>,
    is_closed: bool,
}

#[derive(Debug, Default)]
struct MemberState {
    /// Whether the member has had a turn since it last looked.
    is_due: bool,
    /// Set while the member waits.
    waker: Option<Waker>,
}

/// A watch of a group. Dropping it leaves the group.
#[derive(Debug)]
pub(crate) struct GroupMember {
    group: Arc<WakeGroup>,
    slot: usize,
}

/// The group was closed, because the store was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupClosed;

impl WakeGroup {
    /// Adds a member, which the next newer revision wakes.
    pub(crate) fn join(self: &Arc<Self>) -> GroupMember {
        let mut state = self.lock();
        let slot = state.free_slots.pop().unwrap_or(state.slots.len());
        match state.slots.get_mut(slot) {
            Some(free) => *free = Some(MemberState::default()),
            None => state.slots.push(Some(MemberState::default())),
        }
        state.runtime = Handle::try_current().ok();
        drop(state);
        GroupMember { group: Arc::clone(self), slot }
    }

    /// Reports whether the group has no members.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.free_slots.len() == state.slots.len()
    }

    /// Wakes the members, unless they know a revision that is not older.
    pub(crate) fn raise(self: &Arc<Self>, revision: Revision) {
        let mut state = self.lock();
        if revision <= state.revision {
            return;
        }
        state.revision = revision;
        if state.is_waking || state.free_slots.len() == state.slots.len() {
            // The task that wakes the members begins again when it sees the new revision.
            return;
        }
        if state.slots.len() <= MEMBERS_PER_TURN {
            // One turn is enough, and most groups are small.
            let wakers = state.make_due(0, MEMBERS_PER_TURN);
            drop(state);
            return wakers.into_iter().for_each(Waker::wake);
        }
        state.is_waking = true;
        let waking = WakingTask { group: Arc::clone(self), has_ended: false };
        let runtime = state.runtime.clone();
        drop(state);
        match runtime {
            // A runtime that has ended drops the task, which then wakes all members.
            Some(runtime) => drop(runtime.spawn(waking.run())),
            None => drop(waking),
        }
    }

    /// Ends the waits of all members.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let wakers = state.make_due(0, usize::MAX);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// A poisoned lock is used: every change of the state is a single step.
    fn lock(&self) -> MutexGuard<'_, GroupState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GroupState {
    /// Gives a turn to the members in some slots, and returns the wakers of those that wait.
    fn make_due(&mut self, first: usize, n_slots: usize) -> Vec<Waker> {
        let members = self.slots.iter_mut().skip(first).take(n_slots).flatten();
        members
            .filter_map(|member| {
                member.is_due = true;
                member.waker.take()
            })
            .collect()
    }
}

/// The task that wakes the members. Dropping it before its end, as a runtime does that ends, wakes all of them.
struct WakingTask {
    group: Arc<WakeGroup>,
    has_ended: bool,
}

impl WakingTask {
    /// Gives every member a turn, and all of them another one as long as there are newer revisions.
    async fn run(mut self) {
        while !self.has_ended {
            let rests_until = self.group.lock().rests_until;
            if let Some(until) = rests_until.filter(|until| *until > Instant::now()) {
                tokio::time::sleep_until(until).await;
            }
            let begun = Instant::now();
            let revision = self.give_turns().await;
            let ended = Instant::now();
            let mut state = self.group.lock();
            state.rests_until = Some(ended + ended.duration_since(begun).min(REST_MAX));
            self.has_ended = state.revision == revision;
            state.is_waking = !self.has_ended;
        }
    }

    /// Gives every member a turn, and returns the revision that all of them have seen then.
    async fn give_turns(&self) -> Revision {
        let revision = self.group.lock().revision;
        let mut next_slot = 0;
        loop {
            let wakers = {
                let mut state = self.group.lock();
                if next_slot >= state.slots.len() {
                    return revision;
                }
                state.make_due(next_slot, MEMBERS_PER_TURN)
            };
            next_slot += MEMBERS_PER_TURN;
            wakers.into_iter().for_each(Waker::wake);
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for WakingTask {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut state = self.group.lock();
            state.is_waking = false;
            let wakers = state.make_due(0, usize::MAX);
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

impl GroupMember {
    /// Waits for a turn that was given since the last call of [`mark_seen`](Self::mark_seen).
    ///
    /// # Errors
    /// The group was closed.
    pub(crate) async fn wait(&mut self) -> Result<(), GroupClosed> {
        poll_fn(|cx| {
            let mut state = self.group.lock();
            if state.is_closed {
                return Poll::Ready(Err(GroupClosed));
            }
            let Some(Some(member)) = state.slots.get_mut(self.slot) else {
                return Poll::Ready(Err(GroupClosed));
            };
            let is_due = std::mem::take(&mut member.is_due);
            let is_registered = |waker: &Waker| waker.will_wake(cx.waker());
            let old_waker = match is_due {
                true => member.waker.take(),
                false if member.waker.as_ref().is_some_and(is_registered) => None,
                false => member.waker.replace(cx.waker().clone()),
            };
            // Dropping a waker can drop its task, and with it a member of this group.
            drop(state);
            drop(old_waker);
            if is_due { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }

    /// Forgets the turns that were given so far.
    pub(crate) fn mark_seen(&mut self) {
        if let Some(Some(member)) = self.group.lock().slots.get_mut(self.slot) {
            member.is_due = false;
        }
    }
}

impl Drop for GroupMember {
    fn drop(&mut self) {
        let mut state = self.group.lock();
        let left = state.slots.get_mut(self.slot).and_then(Option::take);
        state.free_slots.push(self.slot);
        if state.free_slots.len() == state.slots.len() {
            // Nobody is left, so the memory of a large group is given back.
            (state.slots, state.free_slots) = (Vec::new(), Vec::new());
        }
        drop(state);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Adds members whose tasks count their turns, and waits until all of them wait.
    async fn spawn_members(group: &Arc<WakeGroup>, n_members: usize) -> Arc<AtomicUsize> {
        let n_turns = Arc::new(AtomicUsize::new(0));
        for _ in 0..n_members {
            let (mut member, n_turns) = (group.join(), Arc::clone(&n_turns));
            tokio::spawn(async move {
                while member.wait().await.is_ok() {
                    n_turns.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let is_waiting =
            |slot: &Option<MemberState>| slot.as_ref().is_some_and(|own| own.waker.is_some());
        wait_until(|| group.lock().slots.iter().all(is_waiting)).await;
        n_turns
    }

    async fn wait_until(is_done: impl Fn() -> bool) {
        let waiting = async {
            while !is_done() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap();
    }

    /// A10: what becomes ready while a large group is woken does not wait for all of it.
    #[tokio::test]
    async fn a10_others_run_while_a_large_group_is_woken() {
        let group = Arc::<WakeGroup>::default();
        let n_members = 10 * MEMBERS_PER_TURN;
        let n_turns = spawn_members(&group, n_members).await;
        group.raise(Revision::new(7));
        wait_until(|| n_turns.load(Ordering::Relaxed) > 0).await;
        let n_before = n_turns.load(Ordering::Relaxed);
        assert!(n_before < n_members / 2, "{n_before} of {n_members}");
        // Revisions that come meanwhile make one more turn for each member.
        group.raise(Revision::new(8));
        group.raise(Revision::new(9));
        wait_until(|| !group.lock().is_waking).await;
        wait_until(|| n_turns.load(Ordering::Relaxed) == 2 * n_members).await;
        group.raise(Revision::new(9));
        assert!(!group.lock().is_waking, "an old revision is no news");
        group.close();
        wait_until(|| group.is_empty()).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_group_rests_after_its_turns() {
        let group = Arc::<WakeGroup>::default();
        let n_members = 2 * MEMBERS_PER_TURN;
        let n_turns = spawn_members(&group, n_members).await;
        let rest = Duration::from_millis(7);
        group.lock().rests_until = Some(Instant::now() + rest);
        let begun = Instant::now();
        group.raise(Revision::new(7));
        group.raise(Revision::new(8));
        tokio::time::advance(rest / 2).await;
        assert_eq!(n_turns.load(Ordering::Relaxed), 0);
        tokio::time::advance(rest).await;
        wait_until(|| !group.lock().is_waking).await;
        wait_until(|| n_turns.load(Ordering::Relaxed) == n_members).await;
        // Time stands still while the members have their turns, so they need no rest.
        let rests_until = group.lock().rests_until.unwrap();
        assert!(rests_until <= begun + 2 * rest, "{rests_until:?}");
        group.raise(Revision::new(9));
        wait_until(|| n_turns.load(Ordering::Relaxed) >= 2 * n_members).await;
        assert_eq!(n_turns.load(Ordering::Relaxed), 2 * n_members, "one turn for two revisions");
    }

    #[tokio::test]
    async fn a_member_waits_for_a_turn_that_it_has_not_seen() {
        let group = Arc::<WakeGroup>::default();
        let mut member = group.join();
        group.raise(Revision::new(7));
        member.wait().await.unwrap();
        group.raise(Revision::new(8));
        wait_until(|| !group.lock().is_waking).await;
        member.mark_seen();
        let waiting = tokio::time::timeout(Duration::from_millis(1), member.wait());
        assert!(waiting.await.is_err());
        group.close();
        assert_eq!(member.wait().await, Err(GroupClosed));
    }

    #[test]
    fn members_wake_without_a_runtime_too() {
        let new_runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let group = Arc::<WakeGroup>::default();
        let (first, second) = (new_runtime(), new_runtime());
        let others: Vec<GroupMember> = (0..MEMBERS_PER_TURN).map(|_| group.join()).collect();
        let mut member = first.block_on(async { group.join() });
        // The runtime of the member has ended, so nobody runs its tasks.
        drop(first);
        group.raise(Revision::new(7));
        second.block_on(member.wait()).unwrap();
        let mut other = group.join();
        group.raise(Revision::new(8));
        second.block_on(other.wait()).unwrap();
        drop((member, other, others));
        assert!(group.is_empty() && group.lock().slots.is_empty());
    }
}
