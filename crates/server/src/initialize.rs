//! Initializers: objects that wait for somebody to act on them before they are there for everybody.
//!
//! What such an object may become is decided in the crate `admission`; here it is brought about:
//! 1. [`assign`] settles whom an object waits for, on its way through admission.
//! 2. [`wait`] stores it, and lets the creator wait.
//! 3. [`oversee`] follows it from then on, whatever becomes of the creator, and takes out those who do
//!    not act in time.
//! 4. [`visibility`] hides it from those who do not ask for it.
//! 5. [`waiting_objects`] counts such objects, and [`sweep`] ends those that an initializer gave up on,
//!    in case the server that should have done that is gone.
//! 6. [`reading`] repairs it when it is read, in case the server that followed it is gone.

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

pub(crate) use fail::has_failed;
pub(crate) use object_watchers::ObjectWatchers;
pub use reading::GetMode;
pub(crate) use reading::Read;
pub(crate) use sweep::sweep_waiting;
pub(crate) use tracker::{InitializationTracker, oversee_all};
pub(crate) use visibility::{UNINITIALIZED_PATH, is_hidden, is_shown};
pub(crate) use wait::Waiting;
pub(crate) use waiting_objects::{WAITING_PATH, WaitingObjects};
