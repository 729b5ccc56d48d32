//! Binds the socket that the server listens on.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpSocket};

/// Upper bound on connections that wait to be accepted. The system may allow fewer.
const BACKLOG_CONNECTIONS_MAX: u32 = 4096;

/// A bound socket, with or without TLS.
#[derive(Debug)]
pub struct Listener {
    pub(crate) tcp_listener: TcpListener,
    pub(crate) bound_address: SocketAddr,
    /// `None` means plain HTTP.
    pub(crate) tls_config: Option<Arc<ServerConfig>>,
}

/// Why the address cannot be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process uses the address.
    #[error("cannot listen on {0}: the address is in use, perhaps by another server")]
    InUse(SocketAddr),
    /// The process may not bind ports below 1024.
    #[error("cannot listen on {0}: permission denied, choose a port above 1023")]
    Forbidden(SocketAddr),
    /// No interface of this machine has the address.
    #[error("cannot listen on {0}: this machine does not have the address")]
    NotLocal(SocketAddr),
    /// Plain HTTP was requested on an address that other machines can reach.
    #[error("cannot listen on {0}: plain HTTP is for loopback addresses only")]
    NotLoopback(SocketAddr),
    /// The system reports another error.
    #[error("cannot listen on {address}")]
    Io {
        /// The address that was to be bound.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
}

impl Listener {
    /// Listens for TLS. Port zero is replaced by a free one.
    ///
    /// # Errors
    /// [`BindError`] if the address cannot be bound.
    pub fn bind(address: SocketAddr, tls: Arc<ServerConfig>) -> Result<Self, BindError> {
        Self::bind_socket(address, Some(tls))
    }

    /// Listens for plain HTTP/1.1, which everyone on the network path can read and change. It is
    /// for tests and for a proxy on the same machine.
    ///
    /// # Errors
    /// [`BindError::NotLoopback`] if other machines could connect, and the other variants if the
    /// address cannot be bound.
    pub fn dangerous_bind_plain(address: SocketAddr) -> Result<Self, BindError> {
        if !address.ip().is_loopback() {
            return Err(BindError::NotLoopback(address));
        }
        Self::bind_socket(address, None)
    }

    fn bind_socket(address: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Result<Self, BindError> {
        let bind = || {
            let socket =
                if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            // A restarted server can bind while connections of the old process still close.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            let socket = socket.listen(BACKLOG_CONNECTIONS_MAX)?;
            let address = socket.local_addr()?;
            Ok((socket, address))
        };
        let (socket, address) = bind().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse(address),
            io::ErrorKind::PermissionDenied => BindError::Forbidden(address),
            io::ErrorKind::AddrNotAvailable => BindError::NotLocal(address),
            _ => BindError::Io { address, source },
        })?;
        Ok(Self { tcp_listener: socket, bound_address: address, tls_config: tls })
    }

    /// The bound address, with the port that the system chose if none was requested.
    pub fn bound_address(&self) -> SocketAddr {
        self.bound_address
    }
}
