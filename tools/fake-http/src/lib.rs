//! Fake HTTP services for tests, which follow a script and can misbehave.
//!
//! A [`Peer`] is a real server on the loopback interface. It gives the answers of its [`Script`] in
//! order, over TCP or TLS, and records the requests. A [`Relay`] is a proxy that records the targets of
//! connections. An [`Authority`] issues valid and invalid certificates. Each service runs on its own
//! thread and stops when it is dropped, so tests can use it with or without a runtime.
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
//! Must not know: the content of requests and answers, and which client sends them.

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
