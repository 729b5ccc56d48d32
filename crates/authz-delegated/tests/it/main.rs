//! The authorizers of an extension server before a core server that is real but for what it says.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod build;
mod counting;
mod credentials;
mod decisions;
mod fixture;
mod rate;
