//! The limits on connections.

use std::time::Duration;

use crate::descriptor_limit::DescriptorLimit;

/// Limits on connections, on request heads, and on waiting for a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Open connections. For a further one, the server closes the oldest connection on which nobody has
    /// authenticated, or else an idle one of the user who has the most connections; it never closes one with a
    /// request under way.
    pub connections_max: usize,
    /// Open connections from one address (of IPv6, from one network of 64 bits) on which nobody has
    /// authenticated. For a further one, the server closes the oldest of them.
    pub unauthenticated_per_address_max: usize,
    /// Open connections that count for one user. For a further one, the server closes the one of the user that
    /// is idle for the longest time.
    pub connections_per_user_max: usize,
    /// TLS handshakes at one time. For a further one, the server gives up the oldest.
    pub handshakes_max: usize,
    /// Connections from loopback addresses beyond `connections_max`, if none of the others can be closed. They
    /// are for administrators of this machine.
    pub loopback_reserve_connections_max: usize,
    /// How long a connection of the reserve may take until a request of an administrator.
    pub loopback_reserve_timeout: Duration,
    /// Bytes of all header fields of a request together. More is answered with 431.
    pub header_bytes_max: u32,
    /// Header fields of a request over HTTP/1.1. Each impersonated group takes one.
    pub header_fields_max: usize,
    /// Bytes of the path and query of a request. More is answered with 414.
    pub url_bytes_max: usize,
    /// Concurrent requests on an HTTP/2 connection.
    pub concurrent_streams_max: u32,
    /// Concurrent requests on an HTTP/2 connection on which nobody has authenticated; further ones wait.
    pub unauthenticated_streams_max: u32,
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

/// The default of [`Limits::connections_max`].
const CONNECTIONS_MAX: usize = 10_000;

/// The minimum number of users who can use up all connections: one user has at most one eighth of them.
const USERS_MIN: usize = 8;

/// Descriptors that are kept for files, webhooks and etcd: a quarter of all, between these bounds.
const DESCRIPTOR_RESERVE_MIN: u64 = 32;
const DESCRIPTOR_RESERVE_MAX: u64 = 4_096;

impl Limits {
    /// The limits for this number of connections, or for fewer, if the process may not open so many files. A
    /// part of the descriptors is kept for the store, for webhooks and for the log.
    pub fn for_connection_count(connections_max: usize, descriptors: DescriptorLimit) -> Self {
        let limits = Self::default();
        let allowed = descriptors.current_open_files_max.map_or(usize::MAX, |descriptors| {
            let kept = (descriptors / 4).clamp(DESCRIPTOR_RESERVE_MIN, DESCRIPTOR_RESERVE_MAX);
            let left = usize::try_from(descriptors.saturating_sub(kept)).unwrap_or(usize::MAX);
            left.saturating_sub(limits.loopback_reserve_connections_max)
        });
        let connections_max = connections_max.min(allowed).max(1);
        Self {
            connections_max,
            unauthenticated_per_address_max: connections_max.div_ceil(4),
            connections_per_user_max: connections_max.div_ceil(USERS_MIN),
            handshakes_max: connections_max.div_ceil(4),
            ..limits
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX,
            unauthenticated_per_address_max: CONNECTIONS_MAX / 4,
            connections_per_user_max: CONNECTIONS_MAX / USERS_MIN,
            handshakes_max: CONNECTIONS_MAX / 4,
            loopback_reserve_connections_max: 16,
            loopback_reserve_timeout: Duration::from_secs(5),
            header_bytes_max: 64 << 10,
            header_fields_max: 512,
            url_bytes_max: 8 << 10,
            concurrent_streams_max: 100,
            unauthenticated_streams_max: 10,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_everything_else() {
        let cases = [
            (None, 10_000),
            (Some(1 << 20), 10_000),
            (Some(16_384), 10_000),
            (Some(4_096), 4_096 - 1_024 - 16),
            (Some(256), 256 - 64 - 16),
            (Some(64), 64 - 32 - 16),
            (Some(20), 1),
        ];
        for (current, want) in cases {
            let descriptors = DescriptorLimit {
                initial_open_files_max: current,
                current_open_files_max: current,
            };
            let limits = Limits::for_connection_count(10_000, descriptors);
            assert_eq!(limits.connections_max, want, "{current:?}");
        }
        let unlimited =
            DescriptorLimit { initial_open_files_max: None, current_open_files_max: None };
        assert_eq!(Limits::for_connection_count(CONNECTIONS_MAX, unlimited), Limits::default());
    }
}
