//! Initializers: objects that wait for somebody to act on them before they are there for everybody.
//!
//! What such an object may become is decided in the crate `admission`; here it is brought about:
//! 1. [`assign`] settles whom an object waits for, on its way through admission.
//! 2. [`wait`] stores it, and lets the creator wait.
//! 3. [`oversee`] follows it from then on, whatever becomes of the creator, and takes out those who do
//!    not act in time.
//! 4. [`visibility`] hides it from those who do not ask for it.
//! 5. [`reading`] repairs it when it is read, in case the server that followed it is gone.

mod assign;
mod fail;
mod onlookers;
mod oversee;
mod own_writes;
mod reading;
mod visibility;
mod wait;

pub(crate) use fail::has_failed;
pub(crate) use onlookers::Onlookers;
pub(crate) use oversee::{Overseer, oversee_all};
pub use reading::GetMode;
pub(crate) use reading::Read;
pub(crate) use visibility::{UNINITIALIZED_PATH, is_hidden, is_shown};
pub(crate) use wait::Waiting;
