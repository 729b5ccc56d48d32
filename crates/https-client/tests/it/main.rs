//! The client with real peers, which behave well or badly.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bad_peers;
mod certificates;
mod connections;
mod descriptors;
mod dials;
mod exchange;
mod fixture;
mod memory;
mod proxies;
mod resolving;
mod services;
