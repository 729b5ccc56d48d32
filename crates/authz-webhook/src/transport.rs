//! The interface to an HTTP client: one request and its response.

use std::pin::Pin;
use std::time::Duration;

use authz::UnavailableCause;
use bytes::Bytes;

/// The parts of an HTTP response that matter here. The body has been read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpResponse {
    /// The HTTP status code.
    pub status: u16,
    /// The header `Content-Type`, if there was one.
    pub content_type: Option<String>,
    /// The header `Retry-After`, if there was one.
    pub retry_after: Option<String>,
    /// The body. The transport bounds its length; a longer one is [`TransportErrorKind::TooLarge`].
    pub body: Bytes,
}

/// The kind of a failed exchange, which retries, metrics and the failure policy depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransportErrorKind {
    /// The time limit has passed.
    Timeout,
    /// No connection: name resolution failed, or the peer refused it or did not answer in time.
    Connect,
    /// The TLS handshake failed, or the peer sent an alert.
    Tls,
    /// The peer reset the connection. The caller tries again.
    Reset,
    /// The response is longer than the transport accepts.
    TooLarge,
    /// Any other failure of the peer, such as a connection that ends within the response.
    Other,
    /// This server failed, not the peer. No failure policy applies.
    Local(UnavailableCause),
}

/// The error of an HTTP exchange that ended without a complete response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    /// The kind of failure.
    pub kind: TransportErrorKind,
    /// The message, without secrets, in Kubernetes' words where they are known.
    pub message: String,
}

impl TransportError {
    /// An error of this kind with a message.
    pub fn new(kind: TransportErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// The future of an exchange. Dropping it cancels the exchange.
pub type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + 'a>>;

/// Makes HTTP exchanges with one webhook.
///
/// This is a trait because the HTTP client depends on connections and credentials, which this crate does not know. It
/// is called concurrently, never retries, and never follows a redirect.
pub trait Transport: Send + Sync {
    /// Posts a body and reads the whole response within `limit`.
    fn send(&self, body: Bytes, limit: Duration) -> ResponseFuture<'_>;

    /// The URL for messages, without secrets; empty if it is not known.
    fn url(&self) -> &str {
        ""
    }
}
