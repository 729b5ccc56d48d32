//! The life of an object that initializers have yet to act on (admission §6), without I/O.
//!
//! A server asks [`decide_create`] and [`decide_update`] what a write means for the field
//! `metadata.initializers`, judges the outcome with [`Initializers::create_errors`] and
//! [`Initializers::update_errors`], and drives [`Steps`] for each object that it has created, so that
//! initializers that are dead do not block the cluster. [`repair()`] is for objects whose server died.
//! Time is always an argument.

mod answer;
mod create;
mod initializers;
mod options;
mod repair;
mod steps;
mod update;

pub use answer::{
    Awaited, TimeoutCause, accepted, create_denied, deleted, failure, initialization_timeout,
    update_denied,
};
pub use create::{CreateDecision, Origin, decide_create};
pub use initializers::{
    Initializers, carry_initializers, is_uninitialized, shape_initializers, without,
};
pub use options::{InitializerOptions, WAITING_MAX, WAITING_PER_USER_MAX, WaitingMax};
pub use repair::{Repair, repair};
pub use steps::{Expired, ExpiryAction, Steps};
pub use update::{UpdateDecision, decide_update};
