//! Clusters of etcd for tests: real members on the loopback interface, and lines to them that can be cut.
//!
//! A [`Member`] is a process with a directory of its own; both go away with it. It can be killed,
//! stopped, frozen and started again with the data it had. A [`Line`] is a connection to a member, by
//! way of which a test can be cut off from it. A dev-dependency only.
//!
//! ```
//! let mut members = etcd_testing::Member::three();
//! let leader = etcd_testing::leader(&members);
//! members[leader].kill();
//! members[leader].restart();
//! members[leader].wait_until_healthy();
//! ```
//!
//! Owns: the program `etcd`, its arguments, its ports, its misfortunes.
//! Must not know: what is kept in it, and by whom.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can not have its cluster fails by panicking"
)]

mod line;
mod member;
mod port;

pub use line::{Line, State};
pub use member::{Member, leader};
