//! Why there is no answer.

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What kind of failure it was.
    pub kind: FaultKind,
    /// What happened, in the words that Go's HTTP client has for it where it has some: operators
    /// search for them. It never holds a secret.
    pub message: String,
}

/// What kind of failure it was, as far as somebody decides by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The time for the exchange has passed.
    Timeout,
    /// The peer has reset the connection.
    Reset,
    /// The answer is larger than permitted.
    TooLarge,
    /// Nobody listens there.
    Refused,
    /// The name of the host, or the service, is not known.
    Dns,
    /// No connection came about in time, or for another reason of the network.
    Connect,
    /// No TLS connection came about, or it was broken off with an alert.
    Tls,
    /// The peer has closed the connection before the end of its answer.
    Eof,
    /// This client does not connect to the address that the name has; see
    /// [`AddressPolicy`](crate::AddressPolicy). No failure policy applies: nobody was asked.
    AddressRefused,
    /// Anything else that the peer did.
    Other,
    /// This process failed, not the peer: it has no descriptors, ports or memory left, or its runtime
    /// is going down. No failure policy applies.
    Local,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The same failure, said of something larger.
    pub(crate) fn within(self, what: impl std::fmt::Display) -> Self {
        Self { kind: self.kind, message: format!("{what}: {}", self.message) }
    }
}
