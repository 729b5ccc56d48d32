//! What one peer may take of the server.

use std::time::Duration;

/// Bounds on connections, on the heads of requests, and on waiting for a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at one time. Past it the next peers wait in the queue of the socket, so
    /// that those being served stay served.
    pub connections_max: usize,
    /// Bytes of all header fields of a request together. More is answered with 431.
    pub header_bytes_max: u32,
    /// Header fields of a request over HTTP/1.1. Impersonated groups take one each.
    pub header_fields_max: usize,
    /// Bytes of the path and query of a request. More is answered with 414.
    pub url_bytes_max: usize,
    /// Requests at one time on a connection of HTTP/2.
    pub streams_max: u32,
    /// How long a TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How long the head of a request may take from its first byte, and the first request of a
    /// connection from the end of the handshake. It bounds what a peer gains by sending slowly.
    pub header_timeout: Duration,
    /// How long a connection stays open without a request. Longer than the 90 seconds for which
    /// Go's clients keep connections, so that the client is the one who closes.
    pub idle_timeout: Duration,
    /// How long a peer may take nothing of what is being sent to it.
    pub write_stall_timeout: Duration,
    /// How often a silent peer of HTTP/2 is asked for a sign of life, and how long TCP waits
    /// before it does the same.
    pub ping_interval: Duration,
    /// How long that sign of life may take.
    pub ping_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            header_bytes_max: 64 << 10,
            header_fields_max: 512,
            url_bytes_max: 8 << 10,
            streams_max: 100,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(180),
            write_stall_timeout: Duration::from_secs(60),
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(15),
        }
    }
}
