//! Why there is no answer.

use std::sync::Arc;

use authz::Unavailable;
use concurrency_limit::Busy;

use crate::observe::FailOpenCause;
use crate::transport::{Fault, FaultKind};

/// Why a webhook gave no answer. A clone shares the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There was no whole HTTP answer.
    #[error("{message}")]
    Transport {
        /// What kind of failure it is.
        kind: FaultKind,
        /// The message for people.
        message: Arc<str>,
    },
    /// The HTTP answer is not a review, or says that something failed.
    #[error("{message}")]
    Response {
        /// The HTTP status code.
        status: u16,
        /// Whether asking again may help.
        retry: Retry,
        /// Whether the service, or one behind it, ran out of time.
        is_timeout: bool,
        /// The message for people.
        message: Arc<str>,
    },
    /// The webhook was not called: as many calls as allowed are in flight.
    #[error("webhook was not called: {0}")]
    Busy(Busy),
    /// The call ended without saying how: a fault of ours, or the server is going down.
    #[error("webhook call failed: it ended without an answer")]
    Lost,
}

/// Whether asking again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It may.
    Later,
    /// It would be answered the same.
    Never,
}

impl CallError {
    /// Reports whether another attempt is made (chain §4.7).
    pub(crate) fn is_retriable(&self) -> bool {
        match self {
            Self::Transport { kind, .. } => *kind == FaultKind::Reset,
            Self::Response { retry, .. } => *retry == Retry::Later,
            Self::Busy(_) | Self::Lost => false,
        }
    }

    /// Reports whether time ran out.
    pub(crate) fn is_timeout(&self) -> bool {
        match self {
            Self::Transport { kind, .. } => *kind == FaultKind::Timeout,
            Self::Response { is_timeout, .. } => *is_timeout,
            Self::Busy(_) | Self::Lost => false,
        }
    }

    /// What the webhook did wrong, to which its failure policy applies.
    ///
    /// # Errors
    /// [`Unavailable`] if this server failed and not the webhook.
    pub fn cause(&self) -> Result<FailOpenCause, Unavailable> {
        match self {
            Self::Transport { kind, .. } => match kind {
                FaultKind::Timeout => Ok(FailOpenCause::Timeout),
                FaultKind::Connect => Ok(FailOpenCause::Connect),
                FaultKind::Tls => Ok(FailOpenCause::Tls),
                FaultKind::Reset | FaultKind::Other => Ok(FailOpenCause::ConnectionLost),
                FaultKind::TooLarge => Ok(FailOpenCause::BadAnswer),
                FaultKind::Local(why) => Err(*why),
            },
            Self::Response { status: 200..=206, .. } => Ok(FailOpenCause::BadAnswer),
            Self::Response { .. } => Ok(FailOpenCause::HttpStatus),
            Self::Busy(_) => Err(Unavailable::TooManyCalls),
            Self::Lost => Err(Unavailable::OutOfResources),
        }
    }

    /// The HTTP status code, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Response { status, .. } => Some(*status),
            _ => None,
        }
    }
}

impl From<Fault> for CallError {
    fn from(fault: Fault) -> Self {
        Self::Transport { kind: fault.kind, message: fault.message.into() }
    }
}
