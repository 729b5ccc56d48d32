//! Objects with pending initializers, without I/O.
//!
//! 1. [`decide_initializers_on_create`] and [`decide_initializers_on_update`] decide what a write does to the field `metadata.initializers`.
//! 2. [`Initializers::validate_on_create`] and [`Initializers::validate_on_update`] validate the result.
//! 3. The server that creates an object runs [`InitializerTimers`] for it, so that an initializer that does not act does not block
//!    the object for ever.
//! 4. [`repair_on_read()`] repairs an object whose server died.
//!
//! Time is always an argument.

mod initialize_denied;
mod initializer_options;
mod initializer_timers;
mod initializers_field;
mod initializers_on_create;
mod initializers_on_update;
mod read_repair;

pub use initialize_denied::InitializeDenied;
pub use initializer_options::{
    InitializerOptions, WAITING_OBJECTS_MAX, WAITING_OBJECTS_PER_USER_MAX, WaitingObjectLimits,
};
pub use initializer_timers::{ExpiredInitializer, ExpiryAction, InitializerTimers};
pub use initializers_field::{
    Initializers, copy_initializers, has_pending_initializers, normalize_initializers,
    without_initializer,
};
pub use initializers_on_create::{
    InitializersOnCreate, InitializersOrigin, decide_initializers_on_create,
};
pub use initializers_on_update::{InitializersOnUpdate, decide_initializers_on_update};
pub use read_repair::{ReadRepair, repair_on_read};
