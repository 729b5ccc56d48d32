//! Services that behave as a script says, for tests: good ones and bad ones.
//!
//! A [`Peer`] is a real server on the loopback interface: it gives the answers of its [`Script`] in
//! order, over TCP or TLS, keeps what it has received, and misbehaves on demand. A [`Relay`] is a
//! proxy that remembers what it was asked for. An [`Authority`] makes certificates, also bad ones.
//! Each runs on a thread of its own and stops when it is dropped, so that tests of any kind can use
//! it, with or without a runtime.
//!
//! ```
//! use std::io::{Read as _, Write as _};
//!
//! let peer = fake_http::Peer::start(vec![fake_http::Answer::json("{}").status(429)])?;
//! let mut stream = std::net::TcpStream::connect(peer.address())?;
//! stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 429 "));
//! assert_eq!(peer.requests()[0].method, "GET");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Owns: the misbehaviour of peers, and certificates for tests.
//! Must not know: what is asked and answered, and who asks.

mod answer;
mod certificates;
mod http1;
mod http2;
mod log;
mod peer;
mod relay;
mod request;
mod script;
mod socks;
mod stream;
mod thread;
mod tls;

pub use answer::{Answer, Body, Conduct};
pub use certificates::{
    Authority, Issued, Leaf, Purpose, Sha1Signed, Validity, self_signed, sha1_signed,
};
pub use peer::{NOBODY, Peer};
pub use relay::{Asked, Relay, RelayKind};
pub use request::{Handshake, Request};
pub use script::Script;
pub use tls::ServerTls;
