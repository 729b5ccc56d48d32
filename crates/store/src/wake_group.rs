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

/// The number of watches that the task wakes before it lets other tasks run. Together they take less than a
/// millisecond. Watches of one connection mostly have adjacent slots, so they send their events together.
const MEMBERS_PER_TURN: usize = 64;

/// The longest pause between two rounds of a large group. After a round the group pauses as long as the
/// round took, so one group uses the processors for at most half of the time. Events that arrive during the
/// pause reach each member together; later events are not delayed.
const REST_MAX: Duration = Duration::from_millis(10);

/// The watches of one prefix that are woken a few at a time.
#[derive(Debug, Default)]
pub(crate) struct WakeGroup(Mutex<WakeGroupState>);

#[derive(Debug, Default)]
struct WakeGroupState {
    /// The newest revision that wrote a key under the prefix of the group.
    revision: Revision,
    /// The state of each member; `None` in a free slot.
    member_slots: Vec<Option<WakeGroupMemberState>>,
    free_slots: Vec<usize>,
    /// Whether a [`WakeMembersTask`] runs, or waits for `next_round_at`.
    is_waking: bool,
    /// The earliest time of the next round of a large group.
    next_wake_round_at: Option<Instant>,
    /// The runtime of the member that joined last. It runs the [`WakeMembersTask`].
    latest_member_runtime: Option<Handle>,
    is_closed: bool,
}

#[derive(Debug, Default)]
struct WakeGroupMemberState {
    /// Whether the group has given the member a turn that it has not used yet.
    has_turn: bool,
    /// The waker of the task of the member; set while the member waits.
    waker: Option<Waker>,
}

/// A watch that belongs to a group. Dropping it removes the watch from the group.
#[derive(Debug)]
pub(crate) struct WakeGroupMember {
    group: Arc<WakeGroup>,
    slot_index: usize,
}

/// The store was closed, and the group with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WakeGroupClosed;

impl WakeGroup {
    /// Adds a member. The next newer revision wakes it.
    pub(crate) fn join_group(self: &Arc<Self>) -> WakeGroupMember {
        let mut state = self.lock();
        let slot = state.free_slots.pop().unwrap_or(state.member_slots.len());
        match state.member_slots.get_mut(slot) {
            Some(free) => *free = Some(WakeGroupMemberState::default()),
            None => state.member_slots.push(Some(WakeGroupMemberState::default())),
        }
        state.latest_member_runtime = Handle::try_current().ok();
        drop(state);
        WakeGroupMember { group: Arc::clone(self), slot_index: slot }
    }

    /// Reports whether the group has no members.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.free_slots.len() == state.member_slots.len()
    }

    /// Wakes the members, unless the group already had this revision or a newer one.
    pub(crate) fn wake_members_at_revision(self: &Arc<Self>, revision: Revision) {
        let mut state = self.lock();
        if revision <= state.revision {
            return;
        }
        state.revision = revision;
        if state.is_waking || state.free_slots.len() == state.member_slots.len() {
            // The task that wakes the members begins again when it sees the new revision.
            return;
        }
        if state.member_slots.len() <= MEMBERS_PER_TURN {
            // One turn is enough, and most groups are small.
            let wakers = state.give_turn_to_slots(0, MEMBERS_PER_TURN);
            drop(state);
            return wakers.into_iter().for_each(Waker::wake);
        }
        state.is_waking = true;
        let waking = WakeMembersTask { group: Arc::clone(self), has_woken_all: false };
        let runtime = state.latest_member_runtime.clone();
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
        let wakers = state.give_turn_to_slots(0, usize::MAX);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ignores a poisoned lock: every change of the state is a single step, so a panic leaves no half-made
    /// change.
    fn lock(&self) -> MutexGuard<'_, WakeGroupState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WakeGroupState {
    /// Gives a turn to the members in `n_slots` slots from `first` on, and returns the wakers of those that
    /// wait.
    fn give_turn_to_slots(&mut self, first: usize, n_slots: usize) -> Vec<Waker> {
        let members = self.member_slots.iter_mut().skip(first).take(n_slots).flatten();
        members
            .filter_map(|member| {
                member.has_turn = true;
                member.waker.take()
            })
            .collect()
    }
}

/// The task that wakes the members. If it is dropped before its end, because its runtime ends, it wakes all
/// of them.
struct WakeMembersTask {
    group: Arc<WakeGroup>,
    has_woken_all: bool,
}

impl WakeMembersTask {
    /// Gives every member a turn, and begins again while there are newer revisions.
    async fn run(mut self) {
        while !self.has_woken_all {
            let next_round_at = self.group.lock().next_wake_round_at;
            if let Some(until) = next_round_at.filter(|until| *until > Instant::now()) {
                tokio::time::sleep_until(until).await;
            }
            let begun = Instant::now();
            let revision = self.give_all_members_a_turn().await;
            let ended = Instant::now();
            let mut state = self.group.lock();
            state.next_wake_round_at = Some(ended + ended.duration_since(begun).min(REST_MAX));
            self.has_woken_all = state.revision == revision;
            state.is_waking = !self.has_woken_all;
        }
    }

    /// Gives every member a turn, and returns the newest revision at the begin of the round.
    async fn give_all_members_a_turn(&self) -> Revision {
        let revision = self.group.lock().revision;
        let mut next_slot = 0;
        loop {
            let wakers = {
                let mut state = self.group.lock();
                if next_slot >= state.member_slots.len() {
                    return revision;
                }
                state.give_turn_to_slots(next_slot, MEMBERS_PER_TURN)
            };
            next_slot += MEMBERS_PER_TURN;
            wakers.into_iter().for_each(Waker::wake);
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for WakeMembersTask {
    fn drop(&mut self) {
        if !self.has_woken_all {
            let mut state = self.group.lock();
            state.is_waking = false;
            let wakers = state.give_turn_to_slots(0, usize::MAX);
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

impl WakeGroupMember {
    /// Waits for a turn that was given since the last call of [`discard_turn`](Self::discard_turn).
    ///
    /// # Errors
    /// The group was closed.
    pub(crate) async fn wait_for_turn(&mut self) -> Result<(), WakeGroupClosed> {
        poll_fn(|cx| {
            let mut state = self.group.lock();
            if state.is_closed {
                return Poll::Ready(Err(WakeGroupClosed));
            }
            let Some(Some(member)) = state.member_slots.get_mut(self.slot_index) else {
                return Poll::Ready(Err(WakeGroupClosed));
            };
            let has_turn = std::mem::take(&mut member.has_turn);
            let is_registered = |waker: &Waker| waker.will_wake(cx.waker());
            let old_waker = match has_turn {
                true => member.waker.take(),
                false if member.waker.as_ref().is_some_and(is_registered) => None,
                false => member.waker.replace(cx.waker().clone()),
            };
            // Dropping a waker can drop its task, and with it a member of this group.
            drop(state);
            drop(old_waker);
            if has_turn { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }

    /// Discards a turn that the member has not used yet.
    pub(crate) fn discard_turn(&mut self) {
        if let Some(Some(member)) = self.group.lock().member_slots.get_mut(self.slot_index) {
            member.has_turn = false;
        }
    }
}

impl Drop for WakeGroupMember {
    fn drop(&mut self) {
        let mut state = self.group.lock();
        let left = state.member_slots.get_mut(self.slot_index).and_then(Option::take);
        state.free_slots.push(self.slot_index);
        if state.free_slots.len() == state.member_slots.len() {
            // No member is left, so the group frees its memory.
            (state.member_slots, state.free_slots) = (Vec::new(), Vec::new());
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
            let (mut member, n_turns) = (group.join_group(), Arc::clone(&n_turns));
            tokio::spawn(async move {
                while member.wait_for_turn().await.is_ok() {
                    n_turns.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let is_waiting = |slot: &Option<WakeGroupMemberState>| {
            slot.as_ref().is_some_and(|own| own.waker.is_some())
        };
        wait_until(|| group.lock().member_slots.iter().all(is_waiting)).await;
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
        group.wake_members_at_revision(Revision::new(7));
        wait_until(|| n_turns.load(Ordering::Relaxed) > 0).await;
        let n_before = n_turns.load(Ordering::Relaxed);
        assert!(n_before < n_members / 2, "{n_before} of {n_members}");
        // Revisions that come meanwhile make one more turn for each member.
        group.wake_members_at_revision(Revision::new(8));
        group.wake_members_at_revision(Revision::new(9));
        wait_until(|| !group.lock().is_waking).await;
        wait_until(|| n_turns.load(Ordering::Relaxed) == 2 * n_members).await;
        group.wake_members_at_revision(Revision::new(9));
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
        group.lock().next_wake_round_at = Some(Instant::now() + rest);
        let begun = Instant::now();
        group.wake_members_at_revision(Revision::new(7));
        group.wake_members_at_revision(Revision::new(8));
        tokio::time::advance(rest / 2).await;
        assert_eq!(n_turns.load(Ordering::Relaxed), 0);
        tokio::time::advance(rest).await;
        wait_until(|| !group.lock().is_waking).await;
        wait_until(|| n_turns.load(Ordering::Relaxed) == n_members).await;
        // Time stands still while the members have their turns, so they need no rest.
        let next_round_at = group.lock().next_wake_round_at.unwrap();
        assert!(next_round_at <= begun + 2 * rest, "{next_round_at:?}");
        group.wake_members_at_revision(Revision::new(9));
        wait_until(|| n_turns.load(Ordering::Relaxed) >= 2 * n_members).await;
        assert_eq!(n_turns.load(Ordering::Relaxed), 2 * n_members, "one turn for two revisions");
    }

    #[tokio::test]
    async fn a_member_waits_for_a_turn_that_it_has_not_seen() {
        let group = Arc::<WakeGroup>::default();
        let mut member = group.join_group();
        group.wake_members_at_revision(Revision::new(7));
        member.wait_for_turn().await.unwrap();
        group.wake_members_at_revision(Revision::new(8));
        wait_until(|| !group.lock().is_waking).await;
        member.discard_turn();
        let waiting = tokio::time::timeout(Duration::from_millis(1), member.wait_for_turn());
        assert!(waiting.await.is_err());
        group.close();
        assert_eq!(member.wait_for_turn().await, Err(WakeGroupClosed));
    }

    #[test]
    fn members_wake_without_a_runtime_too() {
        let new_runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let group = Arc::<WakeGroup>::default();
        let (first, second) = (new_runtime(), new_runtime());
        let others: Vec<WakeGroupMember> =
            (0..MEMBERS_PER_TURN).map(|_| group.join_group()).collect();
        let mut member = first.block_on(async { group.join_group() });
        // The runtime of the member has ended, so nobody runs its tasks.
        drop(first);
        group.wake_members_at_revision(Revision::new(7));
        second.block_on(member.wait_for_turn()).unwrap();
        let mut other = group.join_group();
        group.wake_members_at_revision(Revision::new(8));
        second.block_on(other.wait_for_turn()).unwrap();
        drop((member, other, others));
        assert!(group.is_empty() && group.lock().member_slots.is_empty());
    }
}
