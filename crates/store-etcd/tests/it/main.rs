//! The store on real members of etcd, which the tests start, kill, stop and start again.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod compaction;
mod contract;
mod cut_off;
mod expiry;
mod failures;
mod faults;
mod format;
mod lists;
mod member;
mod reconnect;
mod shorthand;
mod tls;
