//! The interface between the checks and an engine.

use std::future::Future;
use std::time::Duration;

use store::Store;

/// Gives the checks access to an engine.
pub trait Harness: Sync {
    /// The store type of the engine.
    type Store: Store;

    /// Opens a store without keys under `/registry/` that no other test writes to. Its revision need not be
    /// the first.
    fn fresh(&self) -> impl Future<Output = Self::Store> + Send;

    /// Lets this much time pass for the store, with everything that is due by then. An engine with an own
    /// clock moves it; others sleep.
    fn pass(&self, store: &Self::Store, time: Duration) -> impl Future<Output = ()> + Send;

    /// The number of random histories to try.
    fn cases(&self) -> u32 {
        64
    }
}

/// Runs a check to its end. The runtime has two threads, so that tasks run at the same time.
pub fn block_on<T>(check: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be built")
        .block_on(check)
}

/// Makes a test of every check, for the harness that the expression gives.
#[macro_export]
macro_rules! suite {
    ($harness:expr) => {
        $crate::suite!(@async $harness;
            absent_keys_have_no_entry
            gets_at_a_revision_show_that_state
            gets_not_older_than_a_revision_refuse_the_future
            waiting_for_a_revision_ends_when_it_is_there
            lists_are_ordered_and_cover_their_prefix_only
            lists_at_a_revision_show_that_state
            lists_of_the_future_are_refused
            pages_are_consistent_under_writes
            pages_begin_where_asked
            each_write_makes_the_next_revision
            creates_want_no_key
            updates_want_the_expected_version
            deletes_want_the_expected_version
            failed_writes_use_no_revision
            a_key_created_again_starts_anew
            values_have_a_largest_size
            closing_ends_everything
            watches_from_every_revision_tell_the_log
            watches_tell_their_prefix_only
            watches_wake_for_new_writes
            watches_of_the_future_wait
            events_carry_both_versions
            an_idle_watch_tells_progress
            a_dropped_wait_loses_nothing
            compacting_forgets_old_states_only
            compacting_the_future_is_refused
            compacting_twice_keeps_the_higher_floor
            compacting_ends_watches_behind_the_floor
            a_key_expires_with_an_event
            a_key_that_is_renewed_lives_on
            a_write_without_ttl_lets_the_key_live
            a_mark_moves_with_its_writes_only
            a_mark_is_kept_by_who_writes_something_else
            a_moved_mark_refuses_writes
            a_conflict_goes_before_a_moved_mark
            a_mark_may_be_the_key_that_is_written
            a_mark_is_told_with_its_write
            a_watch_of_the_mark_wakes_for_its_writes
            many_marks_are_told_in_whole_revisions
            writes_on_an_expected_mark_are_serial
            a_mark_neither_expires_nor_moves_by_expiry
            a_transaction_is_one_revision_told_in_order
            a_failed_condition_is_named_and_nothing_is_written
            writes_beside_are_there_or_not_with_their_write
            racing_reservations_have_one_holder
            values_beside_have_a_largest_size
            concurrent_writes_are_linearizable
            one_of_many_creators_wins
        );

        #[test]
        fn random_histories_agree_with_the_model() {
            $crate::random_histories_agree_with_the_model(&$harness);
        }
    };
    (@async $harness:expr; $($check:ident)*) => {
        $(
            #[test]
            fn $check() {
                $crate::block_on($crate::$check(&$harness));
            }
        )*
    };
}
