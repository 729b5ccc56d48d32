//! The failure of a call.

use std::sync::Arc;

use authz::UnavailableCause;
use concurrency_limit::LimitReached;

use crate::observer::FailOpenCause;
use crate::transport::{TransportError, TransportErrorKind};

/// A webhook gave no answer. A clone shares the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There was no complete HTTP response.
    #[error("{message}")]
    Transport {
        /// The kind of failure.
        kind: TransportErrorKind,
        /// The message, without secrets.
        message: Arc<str>,
    },
    /// The HTTP response is an error or not a SubjectAccessReview.
    #[error("{message}")]
    Response {
        /// The HTTP status code.
        status: u16,
        /// Whether another attempt may succeed.
        retry_advice: RetryAdvice,
        /// Whether the service, or one behind it, reached a time limit.
        is_timeout: bool,
        /// The message, without secrets.
        message: Arc<str>,
    },
    /// The webhook was not called, because the limit on calls in flight is reached.
    #[error("webhook was not called: {0}")]
    Busy(LimitReached),
    /// The call ended without a result: this server has a bug, or it is shutting down.
    #[error("webhook call failed: it ended without an answer")]
    Lost,
}

/// Whether another attempt may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAdvice {
    /// Another attempt may succeed.
    Later,
    /// Another attempt would fail too.
    Never,
}

impl CallError {
    /// Reports whether the call is tried again: after a reset connection, or a response that may be temporary.
    pub(crate) fn is_retriable(&self) -> bool {
        match self {
            Self::Transport { kind, .. } => *kind == TransportErrorKind::Reset,
            Self::Response { retry_advice, .. } => *retry_advice == RetryAdvice::Later,
            Self::Busy(_) | Self::Lost => false,
        }
    }

    /// Reports whether a time limit was reached.
    pub(crate) fn is_timeout(&self) -> bool {
        match self {
            Self::Transport { kind, .. } => *kind == TransportErrorKind::Timeout,
            Self::Response { is_timeout, .. } => *is_timeout,
            Self::Busy(_) | Self::Lost => false,
        }
    }

    /// The failure of the webhook, to which its failure policy applies.
    ///
    /// # Errors
    /// [`UnavailableCause`] if this server failed and not the webhook.
    pub fn fail_open_cause(&self) -> Result<FailOpenCause, UnavailableCause> {
        match self {
            Self::Transport { kind, .. } => match kind {
                TransportErrorKind::Timeout => Ok(FailOpenCause::Timeout),
                TransportErrorKind::Connect => Ok(FailOpenCause::Connect),
                TransportErrorKind::Tls => Ok(FailOpenCause::Tls),
                TransportErrorKind::Reset | TransportErrorKind::Other => {
                    Ok(FailOpenCause::ConnectionLost)
                }
                TransportErrorKind::TooLarge => Ok(FailOpenCause::BadAnswer),
                TransportErrorKind::Local(why) => Err(*why),
            },
            Self::Response { status: 200..=206, .. } => Ok(FailOpenCause::BadAnswer),
            Self::Response { .. } => Ok(FailOpenCause::HttpStatus),
            Self::Busy(_) => Err(UnavailableCause::TooManyCalls),
            Self::Lost => Err(UnavailableCause::OutOfResources),
        }
    }

    /// The HTTP status code, if there was a response.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Response { status, .. } => Some(*status),
            Self::Transport { .. } | Self::Busy(_) | Self::Lost => None,
        }
    }
}

impl From<TransportError> for CallError {
    fn from(fault: TransportError) -> Self {
        Self::Transport { kind: fault.kind, message: fault.message.into() }
    }
}
