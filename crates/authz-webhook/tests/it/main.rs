//! Tests of match conditions and of the webhook, with a scripted peer in place of the network.

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
