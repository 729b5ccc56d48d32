//! The limits on connections.

use std::time::Duration;

/// Limits on connections, on request heads, and on waiting for a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Open connections. Further peers wait in the backlog of the socket, so that open connections
    /// stay served.
    pub connections_max: usize,
    /// Bytes of all header fields of a request together. More is answered with 431.
    pub header_bytes_max: u32,
    /// Header fields of a request over HTTP/1.1. Each impersonated group takes one.
    pub header_fields_max: usize,
    /// Bytes of the path and query of a request. More is answered with 414.
    pub url_bytes_max: usize,
    /// Concurrent requests on an HTTP/2 connection.
    pub streams_max: u32,
    /// Upper bound on the duration of a TLS handshake.
    pub handshake_timeout: Duration,
    /// Upper bound on the duration of a request head from its first byte, and of the first request
    /// of a connection from the end of the handshake. It limits the effect of peers that send
    /// slowly.
    pub header_timeout: Duration,
    /// How long a connection stays open without a request. It exceeds the 90 seconds for which Go's
    /// clients keep connections, so that the client closes first.
    pub idle_timeout: Duration,
    /// Upper bound on the time in which a peer reads nothing of a response.
    pub write_stall_timeout: Duration,
    /// Upper bound on the time in which the peer of an HTTP/2 stream takes none of the bytes that wait for it. The
    /// stream is reset then, and the connection stays.
    pub stream_stall_timeout: Duration,
    /// The interval of HTTP/2 pings to a silent peer, and the idle time before TCP keepalive
    /// probes.
    pub ping_interval: Duration,
    /// Upper bound on the time until a ping is answered.
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
            stream_stall_timeout: Duration::from_secs(30),
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(15),
        }
    }
}
