//! The limits of a client.

use std::time::Duration;

use crate::address_policy::AddressPolicy;

/// The limits of a client, which hold whatever its peer does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The longest response body in bytes, after decompression. Kubernetes accepts a reason of three megabytes, so the
    /// default is 8 MiB. The response to a long request may be longer:
    /// [`RESPONSE_SIZE_FACTOR`](crate::RESPONSE_SIZE_FACTOR) times the request.
    pub response_body_bytes_max: usize,
    /// The longest response head in bytes, and the buffer of a connection. The default is 64 KiB, and the HTTP library needs
    /// at least 8 KiB.
    pub response_head_bytes_max: usize,
    /// The maximum number of header fields of a response.
    pub response_header_fields_max: usize,
    /// The maximum number of idle connections in the pool. Concurrent calls need one connection each, and a call
    /// without an idle connection makes a handshake, which costs more than the rest of the call.
    pub idle_connections_max: usize,
    /// The time for which an idle connection may be reused. The client closes it before twice this time has
    /// passed. It is shorter than the usual timeouts of servers and proxies, so that the client closes first.
    pub idle_timeout: Duration,
    /// The maximum time that opening a connection may take: name resolution, proxy, TCP and TLS. Requests that
    /// wait for a connection share dials, which continue after the request that started them ends.
    pub connect_timeout: Duration,
    /// The addresses that the client may connect to. Each connection is checked after the name is resolved.
    pub address_policy: AddressPolicy,
    /// The age at which a token from a file is read again.
    pub token_age_max: Duration,
}

/// The smallest buffer for a response head that the HTTP library accepts.
pub(crate) const HEAD_BYTES_MIN: usize = 8 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            response_body_bytes_max: 8 * 1024 * 1024,
            response_head_bytes_max: 64 * 1024,
            response_header_fields_max: 128,
            idle_connections_max: 128,
            idle_timeout: Duration::from_secs(90),
            connect_timeout: Duration::from_secs(2),
            address_policy: AddressPolicy::default(),
            token_age_max: Duration::from_secs(50),
        }
    }
}
