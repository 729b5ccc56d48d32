//! Clusters of etcd for tests: real members on the loopback interface, and connections that can be cut.
//!
//! A [`Member`] is a process with its own directory; dropping it ends the process and removes the
//! directory. A test can kill, stop, freeze and restart it. A [`Line`] is a connection to a member that a
//! test can cut. This crate is a dev-dependency only.
//!
//! ```
//! let mut members = etcd_testing::Member::three();
//! let leader = etcd_testing::leader(&members);
//! members[leader].kill();
//! members[leader].restart();
//! members[leader].wait_until_healthy();
//! ```
//!
//! Owns: the program `etcd`, its arguments and ports, and its simulated failures.
//! Must not know: the stored data, and which crate stores it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot have its cluster fails by panicking"
)]

mod line;
mod member;
mod port;

pub use line::{Line, State};
pub use member::{Member, leader};
pub use port::free_ports;
