//! How a webhook is reached: one HTTP exchange, by somebody who knows HTTP.

use std::pin::Pin;
use std::time::Duration;

use authz::Unavailable;
use bytes::Bytes;

/// The answer of an HTTP service, as far as it matters here. The body has been read whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// The HTTP status code.
    pub status: u16,
    /// The header `Content-Type`, if there was one.
    pub content_type: Option<String>,
    /// The header `Retry-After`, if there was one.
    pub retry_after: Option<String>,
    /// The body. The transport bounds its length; a longer one is [`FaultKind::TooLarge`].
    pub body: Bytes,
}

/// What kept an exchange from ending with a [`Reply`]: as much as retry, metrics and the failure policy
/// need to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The time was up.
    Timeout,
    /// There is no connection: name resolution, refusal, or nobody answered in time.
    Connect,
    /// No TLS connection came about, or it was broken off with an alert.
    Tls,
    /// The peer reset the connection. Tried again.
    Reset,
    /// The answer is longer than the transport accepts.
    TooLarge,
    /// Anything else that the peer did, such as an end in the middle.
    Other,
    /// This server failed, not the peer. No failure policy applies.
    Local(Unavailable),
}

/// An exchange that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What kind of failure it is.
    pub kind: FaultKind,
    /// The message for people, without secrets; as Kubernetes words it where that is known.
    pub message: String,
}

impl Fault {
    /// A fault of a kind with a message.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// An exchange under way. Dropping it ends the exchange.
pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<Reply, Fault>> + Send + 'a>>;

/// Makes HTTP exchanges with one webhook.
///
/// The target, credentials and connections belong to the implementation. It is called concurrently,
/// it never retries, and it never follows a redirect: what the service said is the reply.
pub trait Transport: Send + Sync {
    /// Posts a body and reads the answer, all of it within `limit`.
    fn send(&self, body: Bytes, limit: Duration) -> Sending<'_>;

    /// Where bodies are posted to, for messages, without secrets; empty if that can not be said.
    fn url(&self) -> &str {
        ""
    }
}
