//! Match conditions as the specification lists them (chain §9.5).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod compile;
mod evaluate;
mod record;
