//! Resolves a Kubernetes Service to an address.

use std::fmt;
use std::net::SocketAddr;

use crate::target::ServiceName;

/// Resolves Services from memory. The client calls it for every new connection from an async task, so it must not block.
pub trait ServiceResolver: Send + Sync {
    /// Returns the host and port to connect to for a Service.
    ///
    /// # Errors
    /// [`ResolveError`] if the Service cannot be resolved; its text is shown to the client of the API.
    fn resolve_service(&self, service: &ServiceName) -> Result<HostPort, ResolveError>;

    /// Reports whether the Service still resolves to this address. Connections to another one are not used for new
    /// requests.
    fn is_current_endpoint(&self, service: &ServiceName, address: &HostPort) -> bool {
        let _ = (service, address);
        true
    }

    /// Overrides the address of the host of a URL, as a line in `/etc/hosts` would.
    fn override_address(&self, host: &str, port: u16) -> Option<SocketAddr> {
        let _ = (host, port);
        None
    }
}

/// A host name or an IP address, with a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// The host name or IP address; an IPv6 address has no brackets.
    pub host: String,
    /// The TCP port of the endpoint.
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

/// The reason why a Service cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ResolveError(
    /// The reason, for the client of the API.
    pub String,
);
