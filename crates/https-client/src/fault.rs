//! The failure of an exchange.

/// The reason why an exchange with a server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The kind of the failure.
    pub kind: FaultKind,
    /// The message, in the words of Go's HTTP client where there are any, because operators search for them. It
    /// never contains a secret.
    pub message: String,
}

/// The kind of a failure, as far as callers distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The timeout of the exchange has passed.
    Timeout,
    /// The peer has reset the connection.
    Reset,
    /// The answer is larger than permitted.
    TooLarge,
    /// The connection was refused.
    Refused,
    /// The name of the host or of the Service cannot be resolved.
    Dns,
    /// No connection could be opened, because of the connect timeout or another network error.
    Connect,
    /// The TLS handshake failed, or an alert ended the connection.
    Tls,
    /// The peer closed the connection before the end of its response.
    Eof,
    /// The [`AddressPolicy`](crate::AddressPolicy) forbids the address. No failure policy applies, since no server was
    /// called.
    AddressRefused,
    /// Any other failure of the peer.
    Other,
    /// This process failed, not the peer: it has no descriptors, ports or memory left, or its runtime stops. No failure
    /// policy applies.
    Local,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Adds a prefix that names the operation.
    pub(crate) fn with_message_prefix(self, operation: impl std::fmt::Display) -> Self {
        Self { kind: self.kind, message: format!("{operation}: {}", self.message) }
    }
}
