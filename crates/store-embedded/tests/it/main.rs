//! The embedded store as its users see it: a directory that is opened, used, killed and opened again.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod contract;
mod crash;
mod damage;
mod directory;
mod format;
mod history;
mod limits;
mod restart;
mod scratch;
mod space;
mod write_errors;
