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

    /// Lets this much time pass for the store, and waits until everything that is due has happened. An engine with
    /// its own clock advances the clock; the others sleep.
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
            waiting_for_a_revision_ends_at_that_revision
            lists_are_ordered_and_cover_their_prefix_only
            lists_at_a_revision_show_that_state
            lists_of_the_future_are_refused
            pages_are_consistent_under_writes
            pages_begin_at_the_requested_key
            pages_end_at_their_bytes
            each_write_makes_the_next_revision
            creating_an_existing_key_fails
            updating_another_version_fails
            deleting_another_version_fails
            failed_writes_use_no_revision
            a_recreated_key_has_a_new_create_revision
            value_size_is_limited
            a_closed_store_fails_every_operation
            a_watch_delivers_all_events_after_its_revision
            a_watch_delivers_only_its_prefix
            watches_wake_for_new_writes
            a_watch_from_a_future_revision_waits
            events_carry_both_versions
            an_idle_watch_reports_progress
            dropping_a_wait_loses_no_event
            compaction_removes_only_states_below_the_floor
            compacting_a_future_revision_is_refused
            compaction_never_lowers_the_floor
            compacting_ends_watches_behind_the_floor
            a_key_expires_with_an_event
            renewing_a_key_restarts_its_ttl
            a_write_without_ttl_removes_the_ttl
            only_writes_that_name_a_shared_revision_bump_it
            requiring_a_shared_revision_does_not_bump_it
            a_changed_shared_revision_refuses_writes
            a_key_conflict_is_reported_before_a_changed_shared_revision
            a_write_may_bump_its_own_key
            a_bump_and_its_write_are_one_batch
            a_bump_wakes_watches_of_the_shared_revision
            batches_never_split_a_write_and_its_bump
            writes_that_expect_a_shared_revision_are_serial
            a_shared_revision_has_no_ttl_and_ignores_expiry
            a_transaction_is_one_revision_in_order
            a_failed_condition_is_reported_and_nothing_is_written
            additional_writes_are_atomic_with_their_write
            racing_reservations_have_one_holder
            value_size_of_additional_writes_is_limited
            concurrent_writes_are_linearizable
            exactly_one_concurrent_create_succeeds
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
