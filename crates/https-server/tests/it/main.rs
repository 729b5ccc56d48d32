//! The listener, from the outside: real sockets, real handshakes, peers that misbehave.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod hang_up;
mod host;
mod limits;
mod protocols;
mod rapid_reset;
mod reload;
mod shutdown;
mod slow_peers;
mod stalled_streams;
