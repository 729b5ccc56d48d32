//! Why there is no answer.

use std::sync::Arc;

use breaker::{Halt, Sign};

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
    /// The webhook was not called: the breaker is not closed.
    #[error(transparent)]
    Halted(#[from] Halt),
    /// The webhook was not called: as many calls as allowed are in flight.
    #[error("webhook was not called: {in_flight_max} calls are in flight")]
    TooManyInFlight {
        /// How many are allowed.
        in_flight_max: usize,
    },
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
            Self::Transport { kind, .. } => {
                matches!(kind, FaultKind::Reset | FaultKind::ConnectionLost)
            }
            Self::Response { retry, .. } => *retry == Retry::Later,
            Self::Halted(_) | Self::TooManyInFlight { .. } | Self::Lost => false,
        }
    }

    /// Reports whether time ran out.
    pub(crate) fn is_timeout(&self) -> bool {
        match self {
            Self::Transport { kind, .. } => *kind == FaultKind::Timeout,
            Self::Response { is_timeout, .. } => *is_timeout,
            Self::Halted(_) | Self::TooManyInFlight { .. } | Self::Lost => false,
        }
    }

    /// What this says about the service; nothing, if it was not asked or nobody knows the end.
    pub(crate) fn sign(&self) -> Option<Sign> {
        match self {
            Self::Transport { .. } => Some(Sign::Dead),
            Self::Response { status, .. } => Some(Sign::of_status(*status)),
            Self::Halted(_) | Self::TooManyInFlight { .. } | Self::Lost => None,
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
