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
mod marks;
mod model;
mod shorthand;
mod transactions;
mod watches;
mod writes;

pub use compaction::{
    compacting_ends_watches_behind_the_floor, compacting_forgets_old_states_only,
    compacting_the_future_is_refused, compacting_twice_keeps_the_higher_floor,
};
pub use concurrency::{concurrent_writes_are_linearizable, one_of_many_creators_wins};
pub use expiry::{
    a_key_expires_with_an_event, a_key_that_is_renewed_lives_on,
    a_write_without_ttl_lets_the_key_live,
};
pub use gets::{
    absent_keys_have_no_entry, gets_at_a_revision_show_that_state,
    gets_not_older_than_a_revision_refuse_the_future, waiting_for_a_revision_ends_when_it_is_there,
};
pub use harness::{Harness, block_on};
pub use lists::{
    lists_are_ordered_and_cover_their_prefix_only, lists_at_a_revision_show_that_state,
    lists_of_the_future_are_refused, pages_are_consistent_under_writes, pages_begin_where_asked,
};
pub use marks::{
    a_conflict_goes_before_a_moved_mark, a_mark_is_kept_by_who_writes_something_else,
    a_mark_is_told_with_its_write, a_mark_may_be_the_key_that_is_written,
    a_mark_moves_with_its_writes_only, a_mark_neither_expires_nor_moves_by_expiry,
    a_moved_mark_refuses_writes, a_watch_of_the_mark_wakes_for_its_writes,
    many_marks_are_told_in_whole_revisions, writes_on_an_expected_mark_are_serial,
};
pub use model::random_histories_agree_with_the_model;
pub use transactions::{
    a_failed_condition_is_named_and_nothing_is_written,
    a_transaction_is_one_revision_told_in_order, racing_reservations_have_one_holder,
    values_beside_have_a_largest_size, writes_beside_are_there_or_not_with_their_write,
};
pub use watches::{
    a_dropped_wait_loses_nothing, an_idle_watch_tells_progress, events_carry_both_versions,
    watches_from_every_revision_tell_the_log, watches_of_the_future_wait,
    watches_tell_their_prefix_only, watches_wake_for_new_writes,
};
pub use writes::{
    a_key_created_again_starts_anew, closing_ends_everything, creates_want_no_key,
    deletes_want_the_expected_version, each_write_makes_the_next_revision,
    failed_writes_use_no_revision, updates_want_the_expected_version, values_have_a_largest_size,
};
