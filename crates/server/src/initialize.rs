//! Initializers: an object stays hidden until each of its initializers has processed it.
//!
//! The crate `admission` decides what may happen to such an object; this module carries it out:
//! 1. [`assign`] decides about the initializers of an object during admission.
//! 2. [`wait`] stores the object and lets the client wait for its initializers.
//! 3. [`tracker`] tracks the object from then on, even if the client has gone, and removes initializers that
//!    do not act in time.
//! 4. [`visibility`] hides the object from clients that do not ask for uninitialized objects.
//! 5. [`waiting_objects`] counts such objects, and [`sweep`] deletes those that an initializer failed, if the
//!    server that should have done that is gone.
//! 6. [`reading`] repairs the object when a client reads it, if the server that tracked it is gone.

mod assign;
mod fail;
mod object_watchers;
mod own_writes;
mod reading;
mod sweep;
mod tracker;
mod visibility;
mod wait;
mod waiting_objects;

pub(crate) use assign::{assign_initializers, check_initializer_update, conform_initializers};
pub(crate) use fail::{delete_failed, has_failed};
pub(crate) use object_watchers::ObjectWatchers;
pub use reading::GetMode;
pub(crate) use reading::{ReadResult, read};
pub(crate) use sweep::sweep_waiting;
pub(crate) use tracker::{InitializationTracker, run_tracker};
pub(crate) use visibility::{
    UNINITIALIZED_PATH, has_no_hidden_objects, has_surely_no_hidden_objects, is_hidden, is_visible,
    visibility_filter,
};
pub(crate) use wait::{InitializationWait, store_uninitialized, wait_for_initializers};
pub(crate) use waiting_objects::{WAITING_PATH, WaitingObjects};
