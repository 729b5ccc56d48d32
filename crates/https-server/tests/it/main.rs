//! The listener, from the outside: real sockets, real handshakes, peers that misbehave.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod evictions;
mod hang_up;
mod host;
mod http2_floods;
mod limits;
mod protocols;
mod rapid_reset;
mod raw_http2;
mod reload;
mod shutdown;
mod slow_peers;
mod stalled_streams;
