//! Initializers: an object stays hidden until each of its initializers has processed it.
//!
//! The crate `admission` decides what may happen to such an object; this module carries it out:
//! 1. [`mod@assign_initializers`] decides about the initializers of an object during admission.
//! 2. [`object_initialization_wait`] stores the object and lets the client wait for its initializers.
//! 3. [`object_initialization_tracker`] tracks the object from then on, even if the client has gone, and removes
//!    initializers that do not act in time.
//! 4. [`uninitialized_visibility`] hides the object from clients that do not ask for uninitialized objects.
//! 5. [`uninitialized_object_counts`] counts such objects, and [`abandoned_object_sweep`] deletes those that an
//!    initializer marked as failed, if the server that should have done that is gone.
//! 6. [`read_repair`] repairs the object when a client reads it, if the server that tracked it is gone.

mod abandoned_object_sweep;
mod assign_initializers;
mod failed_initialization_deletion;
mod object_initialization_tracker;
mod object_initialization_wait;
mod object_watchers;
mod read_repair;
mod uninitialized_object_counts;
mod uninitialized_object_writes;
mod uninitialized_visibility;

pub(crate) use abandoned_object_sweep::sweep_abandoned_initializations;
pub(crate) use assign_initializers::{
    assign_initializers, check_initializer_update, normalize_initializers_after_hooks,
};
pub(crate) use failed_initialization_deletion::{
    delete_after_failed_initialization, has_failed_initialization,
};
pub(crate) use object_initialization_tracker::{
    ObjectInitializationTracker, run_object_initialization_jobs,
};
pub(crate) use object_initialization_wait::{
    ObjectInitializationWait, store_uninitialized_object, wait_for_initializers,
};
pub(crate) use object_watchers::ObjectWatchers;
pub use read_repair::UninitializedGetMode;
pub(crate) use read_repair::{GetResult, get_with_initializer_repair};
pub(crate) use uninitialized_object_counts::{UninitializedObjectCounts, WAITING_PATH};
pub(crate) use uninitialized_visibility::{
    UNINITIALIZED_PATH, had_no_uninitialized_objects, is_stored_initialized,
    is_stored_uninitialized, snapshot_shows_no_uninitialized_objects,
    uninitialized_visibility_filter,
};
