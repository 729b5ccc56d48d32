//! The faults of connections, which are reported and do not stop the server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::connection_table::ConnectionLimit;

/// A fault of one connection. The server continues.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionFault {
    /// A connection could not be accepted.
    #[error("a connection cannot be accepted: {0}")]
    Accept(io::Error),
    /// The TLS handshake failed.
    #[error("TLS handshake with {peer} failed: {error}")]
    Handshake {
        /// The address of the peer.
        peer: SocketAddr,
        /// The error of the handshake.
        error: io::Error,
    },
    /// The connection broke, or the peer violated HTTP.
    #[error("connection with {peer} failed: {error}{}", format_causes(error))]
    Connection {
        /// The address of the peer.
        peer: SocketAddr,
        /// The error of the connection.
        error: hyper::Error,
    },
    /// The peer exceeded a timeout and was disconnected.
    #[error("connection with {peer} dropped: {reason}")]
    TimedOut {
        /// The address of the peer.
        peer: SocketAddr,
        /// The timeout that the peer exceeded.
        reason: &'static str,
    },
    /// The connection was closed to make room for another one.
    #[error("connection with {peer} closed at the limit `{}`", limit.name())]
    Evicted {
        /// The address of the peer.
        peer: SocketAddr,
        /// The limit that another connection reached.
        limit: ConnectionLimit,
    },
    /// The connection was refused, because there is no other connection to close.
    #[error("connection with {peer} refused at the limit `{}`", limit.name())]
    Refused {
        /// The address of the peer.
        peer: SocketAddr,
        /// The limit that the connection reached.
        limit: ConnectionLimit,
    },
    /// The peer of a stream exceeded a timeout, and the stream was reset.
    #[error("stream of {peer} reset: {reason}")]
    StreamTimedOut {
        /// The address of the peer.
        peer: SocketAddr,
        /// The timeout that the peer exceeded.
        reason: &'static str,
    },
    /// The service panicked in a request or a connection.
    #[error("a request or a connection was lost to a panic")]
    Panic,
}

/// Receives connection faults. During an attack it is called often, so it should be quick.
pub type ConnectionFaultReporter = Arc<dyn Fn(&ConnectionFault) + Send + Sync>;

/// The sources of an error of hyper, which its own text leaves out.
fn format_causes(error: &hyper::Error) -> String {
    let mut text = String::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
