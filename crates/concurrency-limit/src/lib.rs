//! Limits operations that run at the same time: the calls to one webhook, open watches, or the long checks of RBAC
//! escalation. With one permit for each byte, it limits the bytes that requests hold.
//!
//! One user holds at most half of the permits, rounded up, unless the caller chooses another number, so with two or more
//! permits the requests of one user leave some for others. Acquiring a permit never waits: a caller gets a [`Permit`] or
//! [`LimitReached`] at once.
//!
//! INVARIANT: [`LimitReached`] is a state of this server, not of the webhook. The client gets 429 and `Retry-After`, whatever the
//! failure policy of the webhook is.
//!
//! ```
//! use std::sync::Arc;
//!
//! use concurrency_limit::{LimitReached, ConcurrencyLimit};
//!
//! let limit = Arc::new(ConcurrencyLimit::new(3));
//! let first = limit.acquire_permit("jane")?;
//! let second = limit.acquire_permit("jane")?;
//! assert_eq!(limit.acquire_permit("jane").err(), Some(LimitReached::User { permits_max: 2 }));
//! let third = limit.acquire_permit("joe")?;
//! assert_eq!(limit.acquire_permit("ada").err(), Some(LimitReached::Total { permits_max: 3 }));
//! drop(first);
//! assert!(limit.acquire_permit("ada").is_ok());
//! # drop((second, third));
//! # Ok::<(), LimitReached>(())
//! ```
//!
//! Operations that occupy a CPU for long wait for a [`CpuSlot`] instead. Waiting users get the free CPU slots in
//! turn.
//!
//! Owns: the number of permits and CPU slots in use, for each user and in total.
//! Must not know: what the permits are for, clocks, failure policies, status codes.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod concurrency_limit;
mod fair_cpu_scheduler;

pub use concurrency_limit::{ConcurrencyLimit, LimitReached, Permit};
pub use fair_cpu_scheduler::{CpuSlot, CpuSlotFuture, FairCpuScheduler, LongComputationFlag};
