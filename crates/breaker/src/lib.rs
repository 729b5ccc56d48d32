//! Leaves a service alone that does not answer.
//!
//! A service that is down costs every request that asks it its timeout. After some calls in a row
//! that failed, the breaker opens: whoever wants to call is told at once to do without. After a while
//! one call is let through to see whether the service is back; if that fails too, the next wait is
//! twice as long. What doing without means is up to the caller, as with any other failure.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Instant;
//!
//! use breaker::{Breaker, BreakerOptions, Sign};
//!
//! let options = BreakerOptions { failures_to_open: 1, ..BreakerOptions::default() };
//! let breaker = Arc::new(Breaker::new(options, |_| {}));
//! let now = Instant::now();
//! let pass = breaker.admit(now)?;
//! pass.ended(Sign::of_status(503), now);
//! let halt = breaker.admit(now).unwrap_err().to_string();
//! assert!(halt.ends_with("it is left alone for another 1000ms"));
//! # Ok::<(), breaker::Halt>(())
//! ```
//!
//! Owns: when a service counts as dead, and for how long it is left alone.
//! Must not know: HTTP libraries, clocks, what is asked and answered, failure policies.

mod breaker;
mod options;

pub use breaker::{Breaker, Halt, Pass, Sign};
pub use options::{BreakerOptions, BreakerState};
