//! Hooks as the specification lists them, over real connections.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod authorizer;
mod deadlines;
mod decisions;
mod failures;
mod fixture;
mod hook_targets;
mod large_answers;
mod mutations;
mod own_side;
mod places;
mod reinvocation;
mod reviews;
