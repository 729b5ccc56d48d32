//! The tests that every engine of the store passes.
//!
//! An engine implements [`Harness`] and lists the checks with [`suite!`]; each check becomes a test. This
//! crate is a dev-dependency only.
//!
//! Owns: the contract of `store`, as tests.
//! Must not know: any engine.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a check says that it failed by panicking, like any test"
)]

mod compaction;
mod concurrency;
mod expiry;
mod gets;
mod harness;
mod lists;
mod model;
mod shared_revision;
mod shorthand;
mod transactions;
mod watches;
mod writes;

pub use compaction::{
    compacting_a_future_revision_is_refused, compacting_ends_watches_behind_the_floor,
    compaction_never_lowers_the_floor, compaction_removes_only_states_below_the_floor,
};
pub use concurrency::{concurrent_writes_are_linearizable, exactly_one_concurrent_create_succeeds};
pub use expiry::{
    a_key_expires_with_an_event, a_write_without_ttl_removes_the_ttl,
    renewing_a_key_restarts_its_ttl,
};
pub use gets::{
    absent_keys_have_no_entry, gets_at_a_revision_show_that_state,
    gets_not_older_than_a_revision_refuse_the_future, waiting_for_a_revision_ends_at_that_revision,
};
pub use harness::{Harness, block_on};
pub use lists::{
    lists_are_ordered_and_cover_their_prefix_only, lists_at_a_revision_show_that_state,
    lists_of_the_future_are_refused, pages_are_consistent_under_writes,
    pages_begin_at_the_requested_key, pages_end_at_their_bytes,
};
pub use model::random_histories_agree_with_the_model;
pub use shared_revision::{
    a_bump_and_its_write_are_one_batch, a_bump_wakes_watches_of_the_shared_revision,
    a_changed_shared_revision_refuses_writes,
    a_key_conflict_is_reported_before_a_changed_shared_revision,
    a_shared_revision_has_no_ttl_and_ignores_expiry, a_write_may_bump_its_own_key,
    batches_never_split_a_write_and_its_bump, only_writes_that_name_a_shared_revision_bump_it,
    requiring_a_shared_revision_does_not_bump_it, writes_that_expect_a_shared_revision_are_serial,
};
pub use transactions::{
    a_failed_condition_is_reported_and_nothing_is_written, a_transaction_is_one_revision_in_order,
    additional_writes_are_atomic_with_their_write, racing_reservations_have_one_holder,
    value_size_of_additional_writes_is_limited,
};
pub use watches::{
    a_watch_delivers_all_events_after_its_revision, a_watch_delivers_only_its_prefix,
    a_watch_from_a_future_revision_waits, an_idle_watch_reports_progress,
    dropping_a_wait_loses_no_event, events_carry_both_versions, watches_wake_for_new_writes,
};
pub use writes::{
    a_closed_store_fails_every_operation, a_recreated_key_has_a_new_create_revision,
    creating_an_existing_key_fails, deleting_another_version_fails,
    each_write_makes_the_next_revision, failed_writes_use_no_revision,
    updating_another_version_fails, value_size_is_limited,
};
