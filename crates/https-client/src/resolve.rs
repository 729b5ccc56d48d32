//! Finding services.

use std::fmt;
use std::net::SocketAddr;

use crate::target::ServiceName;

/// Knows from memory where services are. Asked for every new connection, from within a task, so it
/// must not block.
pub trait Resolve: Send + Sync {
    /// Where to connect to for a service.
    ///
    /// # Errors
    /// [`ResolveError`] if there is nowhere; its text is what the caller gets to read.
    fn resolve(&self, service: &ServiceName) -> Result<HostPort, ResolveError>;

    /// Where the host of a URL is, if that is known otherwise than from the name service, as a line
    /// in `/etc/hosts` would know it.
    fn address(&self, host: &str, port: u16) -> Option<SocketAddr> {
        let _ = (host, port);
        None
    }
}

/// A name or an address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// The name or the address; an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Why a service is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ResolveError(
    /// The reason.
    pub String,
);
