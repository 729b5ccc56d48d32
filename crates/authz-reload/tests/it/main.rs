//! The configuration of authorizers, from flags and files, as a server uses it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod convert;
mod error_chains;
mod flags;
mod health_check;
mod hook;
mod hooks;
mod reload;
mod stage;
mod start;
mod under_load;
mod watching;
