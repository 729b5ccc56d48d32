//! Match conditions as the specification lists them (chain §9.5), and the webhook with a scripted
//! peer in the place of a network (chain §9.6, §9.7).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod allocations;
mod answers;
mod caching;
mod compile;
mod evaluate;
mod matching;
mod peer;
mod record;
mod retrying;
mod sharing;
mod surviving;
mod vectors;
mod wire;
