//! What bounds a client.

use std::time::Duration;

use crate::address::AddressPolicy;

/// What bounds a client, whatever its peer does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Longest body of an answer in bytes, after decompression. Three megabytes of reason are known
    /// to be accepted elsewhere, so the default is 8 MiB. To a long question the answer may be longer:
    /// [`ANSWER_FACTOR`](crate::ANSWER_FACTOR) times the question.
    pub body_bytes_max: usize,
    /// Longest head of an answer in bytes, and what is buffered of a connection: 64 KiB
    /// unless told. Below 8 KiB the HTTP library does not go.
    pub head_bytes_max: usize,
    /// Most header fields of an answer.
    pub headers_max: usize,
    /// Most idle connections that are kept. Calls at a time take as many connections, and whoever finds
    /// none that is idle pays for a handshake, which costs more than all the rest of a call.
    pub idle_connections_max: usize,
    /// How long an idle connection may be used again; it is closed before twice that has passed.
    /// Shorter than what servers and what stands between usually permit, so that we are the ones
    /// who close.
    pub idle_timeout: Duration,
    /// How long all that comes before the first byte of a request may take: name, proxy, TCP, TLS. The
    /// requests that wait for a connection share dials, which outlive the request that caused them.
    pub connect_timeout: Duration,
    /// Which addresses it connects to. It is checked for every connection, after names are resolved.
    pub addresses: AddressPolicy,
    /// How old a token that was read from a file may become before the file is read again.
    pub token_age_max: Duration,
}

/// What the HTTP library needs at least for a head.
pub(crate) const HEAD_BYTES_MIN: usize = 8 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 8 * 1024 * 1024,
            head_bytes_max: 64 * 1024,
            headers_max: 128,
            idle_connections_max: 128,
            idle_timeout: Duration::from_secs(90),
            connect_timeout: Duration::from_secs(2),
            addresses: AddressPolicy::default(),
            token_age_max: Duration::from_secs(50),
        }
    }
}
