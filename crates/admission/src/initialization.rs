//! Objects with pending initializers, without I/O.
//!
//! 1. [`decide_create`] and [`decide_update`] decide what a write does to the field `metadata.initializers`.
//! 2. [`Initializers::create_errors`] and [`Initializers::update_errors`] validate the result.
//! 3. The server that creates an object runs [`InitializerTimers`] for it, so that an initializer that does not act does not block
//!    the object for ever.
//! 4. [`read_repair()`] repairs an object whose server died.
//!
//! Time is always an argument.

mod create_decision;
mod initialize_denied;
mod initializers_field;
mod options;
mod read_repair;
mod timers;
mod update_decision;

pub use create_decision::{CreateDecision, InitializersOrigin, decide_create};
pub use initialize_denied::InitializeDenied;
pub use initializers_field::{
    Initializers, copy_initializers, has_pending_initializers, normalize_initializers,
    without_initializer,
};
pub use options::{
    InitializerOptions, WAITING_OBJECTS_MAX, WAITING_OBJECTS_PER_USER_MAX, WaitingObjectsMax,
};
pub use read_repair::{ReadRepair, read_repair};
pub use timers::{ExpiredInitializer, ExpiryAction, InitializerTimers};
pub use update_decision::{UpdateDecision, decide_update};
